/* SPDX-License-Identifier: MIT */
/* A command that is run and waited for, as a user at a shell would: timed from start to end.
 *
 * It reads nothing, its complaints go where ours go, and what it prints is thrown away or kept. It
 * starts with no signal blocked, whatever we block: Ctrl-C reaches it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct errand {
    const char *const *argv;        /* argv[0] is a path, or a name that PATH is searched for */
    const char *const *environment; /* NULL: ours */
    char *output;                   /* NULL: what it prints is thrown away */
    size_t output_cap;              /* the text is cut to that, NUL included */
    bool silent;                    /* its complaints are thrown away too */
    /* afterwards */
    uint64_t ns;
    int status; /* exit code, or 128 + signal */
    size_t output_len;
};

/* 0 when it was run, however it ended; -ENOENT and other errors of starting it. */
int errand_run(struct errand *e);

/* Our environment without the names that begin with `prefix`, and with the setting "NAME=VALUE", which
 * must stay; free() the list. NULL if there is no memory. */
const char **errand_environment(const char *prefix, const char *setting);
