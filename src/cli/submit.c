/* SPDX-License-Identifier: MIT */
/* storm submit: queues a program or a script; its output goes to files. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/complain.h"
#include "cli/submit.h"
#include "cli/waiter.h"

static int help(const struct option *table) {
    puts(
        "usage: storm submit [OPTIONS] PROGRAM|SCRIPT [ARGUMENTS] [: [-n N] PROGRAM [ARGUMENTS] ...]\n"
        "\n"
        "Queues a job and prints its number. Its output goes to storm-JOB.out in the folder it runs in.\n"
        "A script runs once, on the first node of the job, and may call storm run; lines of it that\n"
        "begin with #STORM hold options, those typed here come after them.");
    options_print(table, stdout);
    return STATUS_OK;
}

static int submit(struct waiter *w, const struct order *o, struct contact_answer *a) {
    int r = session_submit(w->contact.session, &o->submit, contact_answered, a);
    if (r < 0) {
        complain("submit", r == -E2BIG
                               ? "arguments and environment are too large together; see: --export"
                               : "there is not enough memory");
        return STATUS_STORM;
    }
    while (!a->here && !w->done)
        session_turn(w->contact.session);
    if (!a->here)
        return w->status;
    if (a->code == ANSWER_DONE)
        return 0;
    struct message_answer plain = {.code = a->code, .text = bytes_from_str(a->text)};
    return contact_refused("submit", &plain);
}

static int wait_for(struct waiter *w, const struct contact_answer *a) {
    uint32_t count = a->count > 0 ? a->count : 1;
    struct joblist jobs = {.count = count, .at = calloc(count, sizeof *jobs.at)};
    ASSERT(jobs.at != NULL);
    for (uint32_t i = 0; i < count; i++)
        jobs.at[i] = a->job + i;
    int r = waiter_follow(w, &jobs, count > 1);
    return r == 0 ? waiter_until_over(w) : r;
}

static int submit_order(struct waiter *waiter, struct wish *w, struct order *o) {
    struct contact_answer a = {0};
    int r = waiter_begin(waiter);
    if (r == 0)
        r = submit(waiter, o, &a);
    if (r != 0)
        return r;
    if (a.count > 1)
        printf("%" PRIu32 "-%" PRIu32 "\n", a.job, a.job + a.count - 1);
    else
        printf("%" PRIu32 "\n", a.job);
    fflush(stdout);
    if (w->wait)
        return wait_for(waiter, &a);
    contact_close(&waiter->contact);
    return STATUS_OK;
}

static int run(struct wish *w, struct order *o, char **argv) {
    struct waiter waiter = {.verbose = w->verbose};
    int r = submit_judge("submit", w);
    if (r == 0)
        r = contact_find(&waiter.contact.cluster, w->cluster);
    if (r == 0)
        r = order_make(o, w, WISH_SUBMIT, &waiter.contact.cluster, argv);
    if (r == 0 && w->dry_run)
        order_print(o, &waiter.contact.cluster);
    else if (r == 0)
        r = submit_order(&waiter, w, o);
    cluster_free(&waiter.contact.cluster);
    return r;
}

/* The options of the script count less than those that were typed: they are read first. */
static int read_script(struct script *s, int argc, char *const *argv, const struct option *table) {
    struct wish scratch = {0};
    struct option typed[WISH_OPTIONS_MAX];
    char **copy = calloc((size_t)argc + 1, sizeof *copy);
    ASSERT(copy != NULL);
    memcpy(copy, argv, (size_t)argc * sizeof *copy);
    wish_table(&scratch, WISH_SUBMIT, typed);
    struct option_reader reader = {0};
    int count = options_parse_program(typed, argc, copy, &reader);
    bool several = scratch.load != NULL || (count > 0 && !reader.plain && parts_several(copy + 1));
    int r = count > 0 && !several ? script_options(s, copy[1], table) : 0;
    free(copy);
    return count == OPTIONS_WRONG ? STATUS_USAGE : r;
}

int submit_read(struct wish *w, struct script *s, struct option table[WISH_OPTIONS_MAX], int argc,
                char **argv, char ***ret_program) {
    struct option_reader reader = {0};
    *w = (struct wish){0};
    *s = (struct script){0};
    wish_table(w, WISH_SUBMIT, table);
    if (read_script(s, argc, argv, table) != 0)
        return OPTIONS_WRONG;
    *ret_program = argv + 1;
    int count = options_parse_program(table, argc, argv, &reader);
    if (count >= 0 && wish_programs(w, argv[0], reader.plain, &count, ret_program) != 0)
        return OPTIONS_WRONG;
    return count;
}

int submit_judge(const char *what, const struct wish *w) {
    if (!w->copy && !w->libraries && w->inputs.count == 0 && w->fetches.count == 0)
        return 0;
    return complain(what,
                    "a queued job cannot bring or fetch files: whoever has them is gone when it "
                    "starts; put them on the nodes with storm cp, or submit a script that "
                    "calls storm run with these options");
}

int submit_main(int argc, char **argv) {
    struct wish w;
    struct script script;
    struct option table[WISH_OPTIONS_MAX];
    char **program;
    int count = submit_read(&w, &script, table, argc, argv, &program);
    if (count == OPTIONS_HELP)
        return help(table);
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count == 0)
        return complain("submit", "submit what? for example: storm submit -n 4 ./job.sh");
    struct order *o = calloc(1, sizeof *o);
    ASSERT(o != NULL);
    int r = run(&w, o, program);
    order_fini(o);
    free(o);
    script_fini(&script);
    parts_fini(&w.parts);
    return r;
}
