/* SPDX-License-Identifier: MIT */
/* yod and pingd: see cplant.h. */
#include "cli/cplant.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/complain.h"
#include "cli/wish.h"

static char word_run[] = "run", word_nodes[] = "nodes", word_ps[] = "ps", word_size[] = "--size",
            word_need[] = "--need", word_on[] = "--on", word_help[] = "--help",
            word_verbose[] = "--verbose", word_end[] = "--";

static bool __attribute__((format(printf, 2, 3))) no(struct cplant *c, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(c->why, sizeof c->why, format, args);
    va_end(args);
    return false;
}

static bool add(struct cplant *c, char *word) {
    if (c->count == CPLANT_WORDS_MAX)
        return no(c, "more than %d words", CPLANT_WORDS_MAX);
    c->words[c->count++] = word;
    c->words[c->count] = NULL;
    return true;
}

/* ---- nodes: Cplant has numbers, storm has names ---- */

/* "7" is n7, "5-9" and "5..9" are n[5-9]; what is no number is a name already. */
static int name_nodes(const char *item, size_t len, char *out, size_t cap) {
    size_t first = strspn(item, "0123456789");
    if (first == 0 || first > len)
        return snprintf(out, cap, "%.*s", (int)len, item);
    if (first == len)
        return snprintf(out, cap, "n%.*s", (int)len, item);
    size_t gap = strncmp(item + first, "..", 2) == 0 ? 2 : item[first] == '-' ? 1 : 0;
    const char *last = item + first + gap;
    size_t rest = len - first - gap;
    if (gap == 0 || rest == 0 || strspn(last, "0123456789") < rest)
        return snprintf(out, cap, "%.*s", (int)len, item);
    return snprintf(out, cap, "n[%.*s-%.*s]", (int)first, item, (int)rest, last);
}

static bool add_nodes(struct cplant *c, const char *list) {
    size_t at = 0;
    for (;; list++) {
        size_t len = strcspn(list, ",");
        int n = name_nodes(list, len, c->nodes + at, sizeof c->nodes - at);
        if (n < 0 || (size_t)n + 1 >= sizeof c->nodes - at)
            return no(c, "the list of nodes is too long");
        at += (size_t)n;
        list += len;
        if (*list == '\0')
            return add(c, c->nodes);
        c->nodes[at++] = ',';
    }
}

/* ---- yod ---- */

enum way { WAY_SIZE, WAY_NEED, WAY_NODES, WAY_HELP, WAY_TIMES, WAY_NOTHING, WAY_NONE };

struct rewrite {
    const char *name;
    enum way way;
    const char *hint; /* NONE */
};

static const struct rewrite yod_options[] = {
    {"-sz", WAY_SIZE, NULL},
    {"-size", WAY_SIZE, NULL},
    {"-na", WAY_NEED, NULL},
    {"-l", WAY_NODES, NULL},
    {"-nl", WAY_NODES, NULL},
    {"-list", WAY_NODES, NULL},
    {"-h", WAY_HELP, NULL},
    {"-help", WAY_HELP, NULL},
    {"-timing", WAY_TIMES, NULL},
    {"-quiet", WAY_NOTHING, NULL}, /* storm says nothing anyway */
    {"-attach", WAY_NONE, "storm attach JOB shows the output of one that runs"},
    {"-batch", WAY_NONE, "storm submit queues a job, and the prompt is back at once"},
    {"-bt", WAY_NONE, "--debug \"gdb -batch -ex run -ex bt\" says where a process crashed"},
    {"-d", WAY_NONE, "--debug gdb starts processes by a debugger, -timing tells of the launch"},
    {"-kill", WAY_NONE, "storm kill JOB ends one"},
};

static const struct rewrite *find(const struct rewrite *table, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

/* An option of storm run that has its value in the next word. */
static bool takes_value(const char *word) {
    struct wish w = {0};
    struct option table[WISH_OPTIONS_MAX];
    size_t len = strcspn(word, "=");
    if (word[len] == '=')
        return false;
    wish_table(&w, WISH_RUN, table);
    for (const struct option *o = table; o->name != NULL; o++)
        if (strcspn(o->name, ",") == len - 2 && strncmp(o->name, word + 2, len - 2) == 0)
            return o->kind != OPTION_FLAG;
    return strcmp(word, word_need) == 0;
}

static bool yod_option(struct cplant *c, const struct rewrite *r, char *value) {
    switch (r->way) {
    case WAY_SIZE:
        return add(c, word_size) && add(c, value);
    case WAY_NEED:
        return add(c, word_need) && add(c, value);
    case WAY_NODES:
        return add(c, word_on) && add_nodes(c, value);
    case WAY_HELP:
        return add(c, word_help);
    case WAY_TIMES:
        return add(c, word_verbose);
    case WAY_NONE:
        return no(c, "%s: not here; %s", r->name, r->hint);
    default:
        return true;
    }
}

/* Words of an option at argv[i]; how many, 0 after a refusal. */
static int yod_words(struct cplant *c, char **argv, int i) {
    const struct rewrite *r = find(yod_options, sizeof yod_options / sizeof *yod_options, argv[i]);
    if (r == NULL && strncmp(argv[i], "--", 2) != 0) {
        no(c,
           "%s: there is no such option here; yod knows -sz, -na, -list and the options of "
           "storm run that begin with two dashes",
           argv[i]);
        return 0;
    }
    bool two = r != NULL ? r->way <= WAY_NODES : takes_value(argv[i]);
    if (two && argv[i + 1] == NULL) {
        no(c, "%s: its value is missing; for example: yod -sz 2:2 -na \"MEM>=512MB\" app", argv[i]);
        return 0;
    }
    bool good = r != NULL ? yod_option(c, r, argv[i + 1])
                          : add(c, argv[i]) && (!two || add(c, argv[i + 1]));
    return good ? 1 + two : 0;
}

bool cplant_yod(struct cplant *c, int argc, char **argv) {
    int i = 1;
    c->count = 0;
    add(c, word_run);
    while (i < argc && argv[i][0] == '-' && strcmp(argv[i], word_end) != 0) {
        int words = yod_words(c, argv, i);
        if (words == 0)
            return false;
        i += words;
    }
    if (i < argc && strcmp(argv[i], word_end) != 0 && !add(c, word_end))
        return false;
    for (; i < argc; i++)
        if (!add(c, argv[i]))
            return false;
    return true;
}

/* ---- pingd ---- */

static const struct rewrite pingd_options[] = {
    {"-l", WAY_NODES, NULL},
    {"-nl", WAY_NODES, NULL},
    {"-list", WAY_NODES, NULL},
    {"-h", WAY_HELP, NULL},
    {"-help", WAY_HELP, NULL},
    {"-kill", WAY_NONE, "storm kill JOB ends a job"},
    {"-reset", WAY_NONE, "storm drain NODES gives nodes no more jobs, storm undrain does again"},
    {"-gone", WAY_NONE, "storm remove HOSTS takes machines out of the cluster"},
};

static bool pingd_option(struct cplant *c, char **argv, int *i) {
    const struct rewrite *r =
        find(pingd_options, sizeof pingd_options / sizeof *pingd_options, argv[*i]);
    if (r == NULL && strncmp(argv[*i], "--", 2) == 0)
        return add(c, argv[*i]);
    if (r == NULL)
        return no(c,
                  "%s: there is no such option here; pingd knows -list, numbers of jobs and "
                  "the options of storm nodes and storm ps",
                  argv[*i]);
    if (r->way == WAY_NONE)
        return no(c, "%s: not here; %s", r->name, r->hint);
    if (r->way == WAY_HELP)
        return add(c, word_help);
    if (argv[*i + 1] == NULL)
        return no(c, "%s: which nodes? for example: pingd -list 0-3", argv[*i]);
    return add_nodes(c, argv[++*i]);
}

/* Numbers are jobs: then they are what is shown, and not the nodes. */
bool cplant_pingd(struct cplant *c, int argc, char **argv) {
    c->count = 0;
    add(c, word_nodes);
    for (int i = 1; i < argc; i++) {
        bool job = isdigit((unsigned char)argv[i][0]) != 0;
        if (job)
            c->words[0] = word_ps;
        bool good = job || argv[i][0] != '-' ? add(c, argv[i]) : pingd_option(c, argv, &i);
        if (!good)
            return false;
    }
    return true;
}

/* ---- the commands ---- */

static int go(struct cplant *c, bool good, const char *name, int (*run)(int, char **)) {
    return good ? run(c->count, c->words) : complain(name, "%s", c->why);
}

int yod_main(int argc, char **argv) {
    struct cplant c;
    return go(&c, cplant_yod(&c, argc, argv), "yod", run_main);
}

int pingd_main(int argc, char **argv) {
    struct cplant c;
    bool good = cplant_pingd(&c, argc, argv);
    return go(&c, good, "pingd", c.words[0] == word_ps ? ps_main : nodes_main);
}
