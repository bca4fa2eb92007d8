/* SPDX-License-Identifier: MIT */
/* What a job has left in its folders that is wanted here; the manager keeps them until we follow no more. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/complain.h"
#include "cli/fetch.h"
#include "cli/follow.h"
#include "cli/inputs.h"
#include "wire/folder.h"

/* Who is interrupted while a job is being ended, or now, wants to have his prompt back. */
static bool is_stopped(void *context) {
    const struct follow *f = context;
    return f->lost || f->done;
}

static bool fetch_one(struct follow *f, const char *text) {
    struct output_wish wish;
    struct fetch_outcome all;
    char inside[RUN_FOLDER_MAX], to[INPUT_NAME_MAX], path[RUN_FOLDER_MAX + INPUT_NAME_MAX];
    if (output_wish_read(text, &wish) != 0)
        return false;
    int r = fetch_path(wish.folder, to, sizeof to);
    if (r < 0) {
        complain("--fetch", "%s: %s", wish.folder, strerror(-r));
        return false;
    }
    run_folder_path(f->last.run, inside);
    snprintf(path, sizeof path, "%s/%s", inside, wish.pattern);
    struct fetch_order o = {.who = "--fetch",
                            .contact = &f->contact,
                            .from = &f->ran_on,
                            .path = path,
                            .to = to,
                            .apart = f->order->submit.nodes > 1,
                            .lenient = true,
                            .quiet = true,
                            .sending = &f->wish->sending,
                            .stopped = is_stopped,
                            .context = f};
    if (fetch_files(&o, &all) != 0 || all.bad > 0)
        return false;
    if (all.good == 0 && !is_stopped(f))
        complain("--fetch", "%s: no node has such a file", wish.pattern);
    return !is_stopped(f);
}

/* The job's own failure says more than that its files could not be had. */
void follow_fetch(struct follow *f) {
    const struct text_list *wanted = &f->wish->fetches;
    bool good = true;
    if (!f->over || f->lost || f->last.cause == CAUSE_FAILED)
        return;
    if (f->signals.interrupted_at != 0 || f->signals.ending != 0) {
        complain("--fetch", "interrupted; nothing was fetched");
        return;
    }
    int status = f->status;
    f->done = false; /* a signal says so again */
    for (uint32_t i = 0; i < wanted->count && !is_stopped(f); i++)
        good = fetch_one(f, wanted->at[i]) && good;
    if (f->status != status)
        complain("--fetch", "interrupted; not everything was fetched");
    else if (!good && status == 0)
        f->status = STATUS_STORM;
}
