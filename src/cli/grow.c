/* SPDX-License-Identifier: MIT */
/* storm grow: hosts for a job that runs, as its program could ask for them itself. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/complain.h"
#include "cli/contact.h"
#include "cli/options.h"
#include "wire/classes.h"

enum { COUNT_MAX = 4096 };

struct growth {
    const char *cluster, *need, *class_name;
    uint64_t ppn, together;
};

static int help(const struct option *table) {
    puts(
        "usage: storm grow [OPTIONS] JOB [N]\n"
        "\n"
        "Asks for N hosts (1, if it is not said) for a job that runs, and prints their numbers. Hosts are\n"
        "jobs: storm show and storm why tell how they stand, storm kill gives them back. They are lent:\n"
        "if another job waits for their processors, they are called back.");
    options_print(table, stdout);
    return STATUS_OK;
}

static int order(const struct growth *g, struct message_submit *s, uint32_t count) {
    struct bytes name = bytes_from_str(g->class_name != NULL ? g->class_name : "host");
    if (name.len == 0 || name.len > CLASS_NAME_MAX)
        return complain("grow", "--class: a name has 1 to %d characters", CLASS_NAME_MAX);
    if (g->need != NULL && strlen(g->need) > NEED_TEXT_MAX)
        return complain("grow", "--need is too long (at most %d characters)", NEED_TEXT_MAX);
    if (g->ppn == 0 || g->ppn > UINT16_MAX || g->together > COUNT_MAX)
        return complain("grow", "--ppn and --together are numbers that hosts can have");
    s->kind = JOB_ALLOC;
    s->flags = JOB_FAMILY | JOB_LENT | JOB_DETACHED;
    s->nodes = 1;
    s->ppn = s->procs = (uint32_t)g->ppn;
    s->array_first = count > 1 ? 1 : 0;
    s->array_last = count > 1 ? count : 0;
    s->together = (uint32_t)g->together;
    s->name = name;
    if (g->need != NULL && g->need[0] != '\0') {
        s->flags |= JOB_NEEDS;
        s->need = bytes_from_str(g->need);
    }
    return 0;
}

static int grow(const struct growth *g, const struct message_submit *s) {
    struct session_config callbacks = {.patience_ns = PATIENCE_ASKING};
    struct contact_answer a = {0};
    struct contact c;
    int r = contact_open(&c, g->cluster, &callbacks);
    if (r != 0)
        return r;
    r = contact_submit(&c, s, &a);
    contact_close(&c);
    if (r != 0)
        return r;
    struct message_answer plain = {.code = (uint8_t)a.code, .text = bytes_from_str(a.text)};
    if (a.code != ANSWER_DONE)
        return contact_refused("grow", &plain);
    for (uint32_t i = 0; i < a.count; i++)
        printf("%" PRIu32 "\n", a.job + i);
    return STATUS_OK;
}

int grow_main(int argc, char **argv) {
    struct growth g = {.ppn = 1};
    struct message_submit s = {0};
    uint64_t job = 0, count = 1;
    const struct option table[] = {
        {"need", OPTION_TEXT, &g.need, "EXPR", "hosts that have this: MEM>=512MB, NIC=FAST"},
        {"class", OPTION_TEXT, &g.class_name, "NAME", "what they are called (default host)"},
        {"ppn", OPTION_NUMBER, &g.ppn, "N", "processors of each (default 1)"},
        {"together", OPTION_NUMBER, &g.together, "N", "so many at once, or none of them"},
        {"cluster", OPTION_TEXT, &g.cluster, "NAME", "which cluster"},
        {0},
    };
    int words = options_parse(table, argc, argv);
    if (words == OPTIONS_HELP)
        return help(table);
    if (words == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (words < 1 || words > 2 || !options_number(argv[1], &job) || job == 0 || job > UINT32_MAX)
        return complain("grow", "which job? for example: storm grow 12 4");
    if (words == 2 && (!options_number(argv[2], &count) || count == 0 || count > COUNT_MAX))
        return complain("grow", "\"%.20s\" is no number of hosts (1 to %d)", argv[2], COUNT_MAX);
    int r = order(&g, &s, (uint32_t)count);
    s.parent = (uint32_t)job;
    return r != 0 ? r : grow(&g, &s);
}
