/* SPDX-License-Identifier: MIT */
/* yod and pingd: what Cplant called the commands that start jobs and look at them.
 *
 * They are other names of storm run, storm nodes and storm ps: words are put in place of words, and nothing else
 * happens here. Options that begin with two dashes are storm's own and stay. */
#pragma once

#include <stdbool.h>

enum { CPLANT_WORDS_MAX = 1024, CPLANT_TEXT_MAX = 4096 };

/* A command line of storm, argv[0] its command; NULL behind the last. */
struct cplant {
    int count;
    char *words[CPLANT_WORDS_MAX + 1];
    char nodes[CPLANT_TEXT_MAX]; /* a list of nodes, as storm has it */
    char why[256];               /* it makes no sense here */
};

/* False: `why` says what is wrong, and what to do. */
bool cplant_yod(struct cplant *c, int argc, char **argv);
bool cplant_pingd(struct cplant *c, int argc, char **argv);
