/* SPDX-License-Identifier: MIT */
/* work_queue: a master of Work Queue (coop-computing-tools), to measure storm work beside: runs the command lines of its
 * standard input, and prints the seconds from when its workers were there to the last result.
 *
 *     cc -o work_queue work_queue.c -I/usr/include/cctools -lwork_queue -ldttools -lm -lz -lcrypto
 *     ./work_queue PORTFILE WORKERS < list        # then workers: work_queue_worker localhost $(cat PORTFILE)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <work_queue.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void wait_for_workers(struct work_queue *q, int count) {
    struct work_queue_stats s = {0};
    do {
        struct work_queue_task *none = work_queue_wait(q, 1);
        if (none)
            work_queue_task_delete(none);
        work_queue_get_stats(q, &s);
    } while (s.workers_connected < count);
}

int main(int argc, char **argv) {
    char line[65536];
    int failed = 0;
    struct work_queue *q = argc == 3 ? work_queue_create(0) : NULL;
    FILE *port = q ? fopen(argv[1], "w") : NULL;
    if (!port)
        return 2;
    fprintf(port, "%d\n", work_queue_port(q));
    fclose(port);
    wait_for_workers(q, atoi(argv[2]));
    double began = now();
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        struct work_queue_task *t = work_queue_task_create(line);
        work_queue_task_specify_cores(t, 1);
        work_queue_submit(q, t);
    }
    while (!work_queue_empty(q)) {
        struct work_queue_task *t = work_queue_wait(q, 5);
        if (!t)
            continue;
        failed += t->return_status != 0 || t->result != WORK_QUEUE_RESULT_SUCCESS;
        work_queue_task_delete(t);
    }
    printf("%.6f\n", now() - began);
    work_queue_delete(q);
    return failed > 0;
}
