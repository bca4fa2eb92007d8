/* SPDX-License-Identifier: MIT */
/* Running a program for a note: see hook.h. */
#include "os/hook.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <unistd.h>

enum { NOTE_MAX = 2048 };

static const char about[] = "node ";

void hook_prepare(void) {
    signal(SIGCHLD, SIG_IGN);
}

/* With nothing of ours: no signal blocked or passed over, no input, a session of its own. */
static int start(char *const argv[]) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    pid_t pid;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    int r = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(&files, 2, 1);
    if (r == 0)
        r = posix_spawn(&pid, argv[0], &files, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return -r;
}

int hook_call(const char *program, struct bytes note) {
    char words[NOTE_MAX], path[NOTE_MAX];
    size_t skip = sizeof about - 1, len = strlen(program);
    if (note.len >= sizeof words || len >= sizeof path || note.len < skip ||
        memcmp(note.at, about, skip) != 0)
        return 0;
    memcpy(words, note.at, note.len);
    words[note.len] = '\0';
    memcpy(path, program, len + 1);
    char *state = strrchr(words + skip, ' ');
    if (state == NULL)
        return 0;
    *state++ = '\0';
    int r = start((char *const[]){path, words + skip, state, NULL});
    return r < 0 ? r : 1;
}
