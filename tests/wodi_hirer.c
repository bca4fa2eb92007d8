/* SPDX-License-Identifier: MIT */
/* A master that hires its workers, or one of these, for e2e/wodi_fire.py; with the library as users have it.
 *
 *     wodi_hirer RECORD FOLDER CYCLES STEPS WORKERS MS go|complete        wodi_hirer worker MS
 *
 * Its record outlives it, a line at a time: b NODE (it has begun), g CYCLE STEP (a result was received), a CYCLE STEP (and the call after
 * that has returned, which acknowledges), e CYCLE (the cycle was ended), r CYCLE (it had been, in a former life), d (done), x ERROR.
 * It says that it is complete only if it is told to: who is started again after that would begin anew. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "storm/wodi.h"

struct plan {
    int record;
    char *folder, *ms;
    uint64_t cycles, steps;
    unsigned workers;
    int complete;
};

static uint64_t answer_to(uint64_t question) {
    return question * 6364136223846793005u + 1442695040888963407u;
}

/* ---- a worker ---- */

/* Steps are of different lengths, each of the same in all lives. */
static int work(void *context, struct wodi_worker *w, const struct wodi_event *e) {
    uint64_t question, ms = *(const uint64_t *)context;
    if (e->bytes != sizeof question)
        return -EBADMSG;
    memcpy(&question, e->data, sizeof question);
    uint64_t result = answer_to(question);
    struct timespec t = {.tv_nsec = (long)(1000000 * (1 + (result >> 32) % (2 * ms)))};
    nanosleep(&t, NULL);
    return wodi_sendresult(w, (uint32_t)e->step, &result, sizeof result);
}

static int be_worker(const char *text) {
    const struct wodi_worker_options options = {0};
    const struct wodi_callbacks callbacks = {.work = work};
    uint64_t ms = strtoull(text, NULL, 10);
    return wodi_worker(&options, &callbacks, &ms) < 0;
}

/* ---- the master ---- */

static void tell(const struct plan *p, char what, uint64_t cycle, uint64_t step) {
    char line[64];
    int len = snprintf(line, sizeof line, "%c %" PRIu64 " %" PRIu64 "\n", what, cycle, step);
    if (write(p->record, line, (size_t)len) != len)
        _exit(98);
}

static void tell_word(const struct plan *p, char what, const char *word) {
    char line[128];
    int len = snprintf(line, sizeof line, "%c %.100s\n", what, word);
    if (write(p->record, line, (size_t)len) != len)
        _exit(98);
}

static int send_all(const struct plan *p, struct wodi *w, uint64_t cycle) {
    int status = 0;
    for (uint64_t step = 1; step <= p->steps && status == 0; step++) {
        uint64_t question = cycle * 1000 + step;
        status = wodi_sendwork(w, step, &question, sizeof question);
    }
    return status;
}

static int receive_all(const struct plan *p, struct wodi *w, uint64_t cycle) {
    struct wodi_result got;
    uint64_t last = 0;
    int status;
    while ((status = wodi_rcvresult(w, &got)) == 1) {
        uint64_t expected = answer_to(cycle * 1000 + got.step);
        if (got.cycle != cycle || got.status != got.step || got.bytes != sizeof expected ||
            memcmp(got.data, &expected, sizeof expected) != 0)
            return -EBADMSG;
        if (last != 0)
            tell(p, 'a', cycle, last);
        tell(p, 'g', cycle, got.step);
        last = got.step;
    }
    if (last != 0 && status == 0)
        tell(p, 'a', cycle, last);
    return status;
}

static int run_cycle(const struct plan *p, struct wodi *w, uint64_t cycle) {
    int status = wodi_begin_cycle(w, cycle, &cycle, sizeof cycle, p->steps);
    if (status == 1)
        tell(p, 'r', cycle, 0);
    if (status != 0)
        return status;
    status = send_all(p, w, cycle);
    if (status == 0)
        status = receive_all(p, w, cycle);
    if (status == 0)
        status = wodi_end_cycle(w, cycle, &cycle, sizeof cycle);
    if (status >= 0)
        tell(p, 'e', cycle, 0);
    return status;
}

static int be_master(const struct plan *p, char *self) {
    char role[] = "worker";
    char *worker[] = {self, role, p->ms, NULL};
    const struct wodi_class class = {.need = p->workers, .least = 1};
    const struct wodi_options options = {
        .worker = worker, .folder = p->folder, .name = "fire", .classes = &class, .class_count = 1};
    struct wodi *w;
    int status = wodi_init(&w, &options);
    if (status < 0)
        return status;
    for (uint64_t cycle = 1; cycle <= p->cycles && status >= 0; cycle++)
        status = run_cycle(p, w, cycle);
    if (status >= 0 && p->complete)
        return wodi_complete(w);
    wodi_free(w);
    return status;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "worker") == 0)
        return be_worker(argv[2]);
    if (argc != 8)
        return 2;
    struct plan p = {.record = open(argv[1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600),
                     .folder = argv[2],
                     .cycles = strtoull(argv[3], NULL, 10),
                     .steps = strtoull(argv[4], NULL, 10),
                     .workers = (unsigned)strtoul(argv[5], NULL, 10),
                     .ms = argv[6],
                     .complete = strcmp(argv[7], "complete") == 0};
    const char *node = getenv("STORM_NODE");
    tell_word(&p, 'b', node ? node : "?");
    int status = be_master(&p, argv[0]);
    tell_word(&p, status < 0 ? 'x' : 'd', status < 0 ? strerror(-status) : "");
    return status < 0;
}
