/* SPDX-License-Identifier: MIT */
/* The command line of storm submit, for whoever submits as it does. */
#pragma once

#include "cli/script.h"
#include "cli/wish.h"

/* Reads options, those in a script too, which count less; argv[0] is what complaints begin with, *ret_program the (first)
 * program and its arguments afterwards. As options_parse_leading. */
int submit_read(struct wish *w, struct script *s, struct option table[WISH_OPTIONS_MAX], int argc,
                char **argv, char ***ret_program);

/* Whether that can be submitted. 0, or the exit status after a complaint. */
int submit_judge(const char *what, const struct wish *w);
