/* SPDX-License-Identifier: MIT */
/* Master and workers by WoDi: sums of squares, in cycles.
 *
 *     cc -o wodi wodi.c -lstorm
 *     storm run ./wodi                                    # it asks for hosts, and its workers run there
 *
 * Or by hand, on any machine:
 *
 *     storm-wodi --folder /tmp/wodi &                     # prints STORM_WODI=...: export it
 *     ./wodi worker & ./wodi worker & ./wodi
 *
 * Kill any of them, the server too, and start it again: the sums stay the same. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <storm/wodi.h>

enum { CYCLES = 3, STEPS = 100 };

static int work(void *context, struct wodi_worker *w, const struct wodi_event *event) {
    uint64_t n, sum = 0;
    (void)context;
    memcpy(&n, event->data, sizeof n);
    for (uint64_t i = 1; i <= n; i++)
        sum += i * i;
    return wodi_sendresult(w, 0, &sum, sizeof sum);
}

static int worker(void) {
    const struct wodi_worker_options options = {0};
    const struct wodi_callbacks callbacks = {.work = work};
    return wodi_worker(&options, &callbacks, NULL);
}

static int cycle(struct wodi *w, uint64_t number) {
    int status = wodi_begin_cycle(w, number, NULL, 0, STEPS);
    if (status != 0)
        return status; /* 1: a former life of this program has done it */
    for (uint64_t step = 1; step <= STEPS && status == 0; step++) {
        uint64_t n = number * 1000 * step;
        status = wodi_sendwork(w, step, &n, sizeof n);
    }
    uint64_t total = 0;
    struct wodi_result r;
    while (status >= 0 && (status = wodi_rcvresult(w, &r)) == 1) {
        uint64_t sum;
        memcpy(&sum, r.data, sizeof sum);
        total += sum;
    }
    if (status == 0)
        status = wodi_end_cycle(w, number, NULL, 0);
    if (status >= 0)
        printf("cycle %" PRIu64 ": %" PRIu64 "\n", number, total);
    return status;
}

static int master(char *program) {
    char *worker[] = {program, "worker", NULL};
    const struct wodi_class class = {.need = 4, .least = 1};
    const struct wodi_options options = {
        .classes = &class, .class_count = 1, .fewest = 1, .worker = worker};
    struct wodi *w;
    int status = wodi_init(&w, &options);
    if (status < 0)
        return status;
    for (uint64_t number = 1; number <= CYCLES && status >= 0; number++)
        status = cycle(w, number);
    if (status < 0) {
        wodi_free(w);
        return status;
    }
    return wodi_complete(w);
}

int main(int argc, char **argv) {
    const char *role = argc > 1 ? argv[1] : "master";
    if (argc > 2 || (strcmp(role, "master") != 0 && strcmp(role, "worker") != 0)) {
        fprintf(stderr, "usage: wodi [master|worker]\n");
        return 2;
    }
    int status = strcmp(role, "master") == 0 ? master(argv[0]) : worker();
    if (status < 0)
        fprintf(stderr, "wodi: %s\n", strerror(-status));
    return status < 0;
}
