/* SPDX-License-Identifier: MIT */
/*
 * For tests of the real world: turns of a loop until something holds, and a folder to work in.
 *
 * Nothing here sleeps or measures time: what is waited for happens as soon as it can, and the
 * deadline is only there to fail instead of hanging.
 */
#pragma once

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/units.h"
#include "os/loop.h"
#include "tap.h"

#define PATIENCE_NS (60 * NS_PER_S)

/* Turns the loop until the condition holds; `after` is done at the end of every turn. */
#define TURN_UNTIL(loop, after, condition)                            \
    ({                                                                \
        bool turn_held;                                               \
        uint64_t turn_end = clock_ns() + PATIENCE_NS;                 \
        while (!(turn_held = (condition)) && clock_ns() < turn_end) { \
            loop_turn(loop, 1);                                       \
            after;                                                    \
        }                                                             \
        turn_held;                                                    \
    })

/* Of the two processes that we started last, the one before the other. Those of tests before may still be ending. */
static inline pid_t earlier_of_two(void) {
    char path[64], text[4096] = "";
    pid_t last[2] = {0, 0};
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *in = fopen(path, "r");
    if (in == NULL || fgets(text, sizeof text, in) == NULL)
        abort();
    fclose(in);
    for (char *at = text, *end; strtol(at, &end, 10) > 0; at = end) {
        last[0] = last[1];
        last[1] = (pid_t)strtol(at, NULL, 10);
    }
    return last[0];
}

static inline void folder_make(char path[PATH_MAX]) {
    const char *base = getenv("TMPDIR");
    snprintf(path, PATH_MAX, "%s/storm-test-XXXXXX", base != NULL ? base : "/tmp");
    if (mkdtemp(path) == NULL)
        abort();
}

static inline const char *folder_file(const char *folder, const char *name, char path[PATH_MAX]) {
    if (snprintf(path, PATH_MAX, "%s/%s", folder, name) >= PATH_MAX)
        abort();
    return path;
}

/* With the files in it. */
static inline void folder_remove(const char *folder) {
    char path[PATH_MAX];
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        if (e->d_name[0] != '.')
            remove(folder_file(folder, e->d_name, path));
    if (dir != NULL)
        closedir(dir);
    rmdir(folder);
}
