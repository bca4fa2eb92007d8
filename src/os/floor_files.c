/* SPDX-License-Identifier: MIT */
/* Files written with nothing on top, and executed if wanted: see floor.h.
 *
 * No transfer that leaves a copy for each node on this machine can be faster: every byte is written once, nothing is
 * sent, checked, or told to anybody. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/files.h"
#include "os/floor.h"
#include "os/loop.h"

/* Of a name in the folder, which is all that is told apart. */
enum { NAME_ROOM = 32 };

struct works {
    const struct floor_files *config;
    int folder;
    pid_t *pids; /* by file; 0: none */
    _Atomic uint32_t next;
    _Atomic int error; /* the first */
};

static void note(struct works *w, int r) {
    int none = 0;
    if (r < 0)
        atomic_compare_exchange_strong(&w->error, &none, r);
}

static void name_file(uint32_t number, char out[NAME_ROOM]) {
    snprintf(out, NAME_ROOM, "floor%u", number);
}

/* Written part by part, as files that come are: no slower than at once (100 MB, best but one of four, three times: 26, 27, 28 ms; at once 31, 35, 46), and the
 * system keeps it in units of the same length. What is removed gives its memory to those who write next; in other units they
 * would get what a virtual machine has given back to its host, and must ask for again, which takes longer than the writing. */
enum { PART_BYTES = 256 << 10 };

static int write_parts(int fd, struct bytes contents) {
    int r = 0;
    for (size_t at = 0; at < contents.len && r == 0; at += PART_BYTES) {
        size_t left = contents.len - at;
        r = files_write(fd, bytes_of(contents.at + at, left < PART_BYTES ? left : PART_BYTES), at);
    }
    return r;
}

static int write_file(const struct works *w, uint32_t number) {
    char name[NAME_ROOM];
    name_file(number, name);
    int fd = openat(w->folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    if (fd < 0)
        return -errno;
    int r = write_parts(fd, w->config->contents);
    return close(fd) < 0 && r == 0 ? -errno : r;
}

/* A child of the other thread has our descriptor until it executes its own program: till then it is a busy one. */
static int execute(const struct works *w, uint32_t number) {
    char name[NAME_ROOM], path[4096];
    char *argv[] = {path, NULL};
    int r;
    name_file(number, name);
    snprintf(path, sizeof path, "%s/%s", w->config->folder, name);
    do
        r = posix_spawn(&w->pids[number], path, NULL, NULL, argv, environ);
    while (r == ETXTBSY);
    if (r != 0)
        w->pids[number] = 0;
    return -r;
}

static void *work(void *arg) {
    struct works *w = arg;
    uint32_t number;
    while (w->error == 0 && (number = w->next++) < w->config->files) {
        note(w, write_file(w, number));
        if (w->error == 0 && w->config->execute)
            note(w, execute(w, number));
    }
    return NULL;
}

static void reap_all(struct works *w) {
    for (uint32_t i = 0; i < w->config->files; i++) {
        int status;
        pid_t pid = 0;
        while (w->pids[i] > 0 && (pid = waitpid(w->pids[i], &status, 0)) < 0 && errno == EINTR)
            ;
        if (w->pids[i] > 0)
            note(w, pid < 0 ? -errno : status == 0 ? 0 : -EPROTO);
    }
}

static int run(struct works *w, uint32_t threads, uint64_t *ret_ns) {
    pthread_t helpers[FLOOR_THREADS_MAX];
    uint32_t count = 0;
    uint64_t began = clock_ns();
    while (count + 1 < threads && pthread_create(&helpers[count], NULL, work, w) == 0)
        count++;
    work(w);
    for (uint32_t i = 0; i < count; i++)
        pthread_join(helpers[i], NULL);
    reap_all(w);
    uint64_t ended = clock_ns();
    if (count + 1 < threads)
        note(w, -EAGAIN);
    if (w->error == 0)
        *ret_ns = ended - began;
    return w->error;
}

int floor_write(const struct floor_files *c, uint64_t *ret_ns) {
    struct works w = {.config = c};
    uint32_t threads = c->threads ? c->threads : FLOOR_THREADS;
    if (c->files > FLOOR_PROCESSES_MAX || threads > FLOOR_THREADS_MAX)
        return -EINVAL;
    w.folder = open(c->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w.folder < 0)
        return -errno;
    w.pids = calloc((size_t)c->files + 1, sizeof *w.pids);
    int r = w.pids == NULL ? -ENOMEM : run(&w, threads, ret_ns);
    for (uint32_t i = 0; i < c->files; i++) {
        char name[NAME_ROOM];
        name_file(i, name);
        unlinkat(w.folder, name, 0);
    }
    free(w.pids);
    close(w.folder);
    return r;
}
