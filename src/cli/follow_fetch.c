/* SPDX-License-Identifier: MIT */
/* What a job has left in its folders that is wanted here; the manager keeps them until we follow no more. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/complain.h"
#include "cli/fetch.h"
#include "cli/follow.h"
#include "cli/inputs.h"
#include "wire/folder.h"

enum { TRIES = 6 };
#define PAUSE_NS (1 * NS_PER_S)

/* Who is interrupted while a job is being ended, or now, wants to have his prompt back. */
static bool is_stopped(void *context) {
    const struct follow *f = context;
    return f->lost || f->done;
}

static void pause_for(struct follow *f, uint64_t ns) {
    uint64_t end = clock_ns() + ns;
    while (clock_ns() < end && !is_stopped(f)) {
        loop_wake_at(&f->contact.loop, end);
        session_turn(f->contact.session);
    }
}

/* A node that is away keeps the files for us: it is asked again a few times. */
static bool fetch_all(struct follow *f, struct fetch_order *o, struct nodeset *from,
                      struct fetch_outcome *all) {
    struct fetch_outcome some;
    *all = (struct fetch_outcome){0};
    for (int tries = TRIES; !nodeset_empty(from) && !is_stopped(f); tries--) {
        nodeset_clear(o->away);
        if (tries == 1)
            o->away = NULL;
        if (fetch_files(o, &some) != 0)
            return false;
        all->good += some.good;
        all->bad += some.bad;
        if (o->away == NULL)
            break;
        nodeset_copy(from, o->away);
        pause_for(f, nodeset_empty(from) ? 0 : PAUSE_NS);
    }
    return all->bad == 0 && !is_stopped(f);
}

/* How many nodes had something; -1: not all that is there is here now. */
static int fetch_from(struct follow *f, const struct output_wish *w, const char *who, bool apart) {
    struct fetch_outcome all;
    char inside[RUN_FOLDER_MAX], to[INPUT_NAME_MAX], path[RUN_FOLDER_MAX + INPUT_NAME_MAX];
    int r = fetch_path(w->folder, to, sizeof to);
    if (r < 0) {
        complain(who, "%s: %s", w->folder, strerror(-r));
        return -1;
    }
    run_folder_path(f->last.run, inside);
    snprintf(path, sizeof path, "%s/%s", inside, w->pattern);
    void *sets = malloc(2 * nodeset_bytes(f->contact.cluster.nodes));
    struct nodeset from, away;
    ASSERT(sets != NULL);
    nodeset_init(&from, f->contact.cluster.nodes, sets);
    nodeset_init(&away, f->contact.cluster.nodes,
                 (uint8_t *)sets + nodeset_bytes(f->contact.cluster.nodes));
    nodeset_copy(&from, &f->ran_on);
    struct fetch_order o = {.who = who,
                            .contact = &f->contact,
                            .from = &from,
                            .away = &away,
                            .path = path,
                            .to = to,
                            .apart = apart,
                            .lenient = true,
                            .quiet = true,
                            .sending = &f->wish->sending,
                            .stopped = is_stopped,
                            .context = f};
    bool good = fetch_all(f, &o, &from, &all);
    free(sets);
    return good ? (int)all.good : -1;
}

static bool fetch_one(struct follow *f, const char *text) {
    struct output_wish wish;
    if (output_wish_read(text, &wish) != 0)
        return false;
    int nodes = fetch_from(f, &wish, "--fetch", f->order->submit.nodes > 1);
    if (nodes == 0)
        complain("--fetch", "%s: no node has such a file", wish.pattern);
    return nodes >= 0;
}

/* Their names are unique, and nothing else that the job has in its folder is called so. Who ended well has none. */
static void fetch_cores(struct follow *f) {
    struct output_wish wish = {.folder = "."};
    snprintf(wish.pattern, sizeof wish.pattern, "core.%" PRIu32 ".[0-9]*", f->job);
    if (f->status == 0)
        return;
    cores_begin(&f->cores, f->job);
    (void)fetch_from(f, &wish, "--cores", false);
}

/* The job's own failure says more than that its files could not be had. */
void follow_fetch(struct follow *f) {
    const struct text_list *wanted = &f->wish->fetches;
    bool good = true;
    if (!f->over || f->lost || f->last.cause == CAUSE_FAILED)
        return;
    if (wanted->count > 0 && (f->signals.interrupted_at != 0 || f->signals.ending != 0)) {
        complain("--fetch", "interrupted; nothing was fetched");
        return;
    }
    int status = f->status;
    if (f->ran_on_run != f->last.run) /* where its last attempt was has not come here */
        cluster_all(&f->contact.cluster, &f->ran_on);
    f->done = false; /* a signal says so again */
    for (uint32_t i = 0; i < wanted->count && !is_stopped(f); i++)
        good = fetch_one(f, wanted->at[i]) && good;
    if (f->wish->cores && !is_stopped(f))
        fetch_cores(f);
    if (f->status != status)
        complain("--fetch", "interrupted; not everything was fetched");
    else if (!good && status == 0)
        f->status = STATUS_STORM;
}
