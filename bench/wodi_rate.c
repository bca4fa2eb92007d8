/* SPDX-License-Identifier: MIT */
/* wodi_rate: work steps that do nothing, by the second, through master, server and workers, each a process of its own.
 *
 *     wodi_rate STORM_WODI [--steps N] [--workers N] [--sync data|none] [--window N] [--seconds S]
 *
 * In the same run, for comparison: the same bytes sent to and fro through three processes, one message at a time, which is
 * what a distributor without batches could reach at best. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <storm/wodi.h>

enum { PAYLOAD = 100, WORKERS_MAX = 64 };

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- the bare way ---- */

static void pass_on(int from, int to, int back) {
    char bytes[PAYLOAD];
    for (;;) {
        if (read(from, bytes, PAYLOAD) != PAYLOAD || write(to, bytes, PAYLOAD) != PAYLOAD)
            _exit(0);
        if (back >= 0 &&
            (read(back, bytes, PAYLOAD) != PAYLOAD || write(from, bytes, PAYLOAD) != PAYLOAD))
            _exit(0);
    }
}

static double bare_rate(uint64_t count) {
    int a[2], b[2];
    char bytes[PAYLOAD] = {0};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, a) || socketpair(AF_UNIX, SOCK_STREAM, 0, b))
        exit(1);
    pid_t middle = fork();
    if (middle == 0) {
        close(a[0]);
        close(b[1]);
        pass_on(a[1], b[0], b[0]);
    }
    pid_t far = fork();
    if (far == 0) {
        close(a[0]);
        close(a[1]);
        close(b[0]);
        pass_on(b[1], b[1], -1);
    }
    close(a[1]);
    close(b[0]);
    close(b[1]);
    uint64_t began = now_ns();
    for (uint64_t i = 0; i < count; i++)
        if (write(a[0], bytes, PAYLOAD) != PAYLOAD || read(a[0], bytes, PAYLOAD) != PAYLOAD)
            exit(1);
    double rate = (double)count * 1e9 / (double)(now_ns() - began);
    close(a[0]);
    kill(middle, SIGKILL);
    kill(far, SIGKILL);
    waitpid(middle, NULL, 0);
    waitpid(far, NULL, 0);
    return rate;
}

/* ---- the distributor ---- */

static int echo(void *context, struct wodi_worker *w, const struct wodi_event *e) {
    (void)context;
    return wodi_sendresult(w, 0, e->data, e->bytes);
}

static void be_worker(void) {
    const struct wodi_worker_options options = {0};
    const struct wodi_callbacks callbacks = {.work = echo};
    _exit(wodi_worker(&options, &callbacks, NULL) < 0);
}

static pid_t start_server(const char *program, const char *folder, const char *sync) {
    int out[2];
    char line[512];
    if (pipe(out) != 0)
        exit(1);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(out[1], 1);
        close(out[0]);
        close(out[1]);
        execl(program, program, "--folder", folder, "--sync", sync, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    FILE *f = fdopen(out[0], "r");
    if (!f || !fgets(line, sizeof line, f) || strncmp(line, "STORM_WODI=", 11) != 0)
        exit(1);
    line[strcspn(line, "\n")] = 0;
    setenv("STORM_WODI", line + 11, 1);
    fclose(f);
    return pid;
}

static void check(int status, const char *what) {
    if (status < 0) {
        fprintf(stderr, "wodi_rate: %s: %s\n", what, strerror(-status));
        exit(1);
    }
}

/* Kilobytes of its memory that a process has in use; -1: not known. */
static long memory_of(pid_t pid) {
    char path[64], line[256];
    long kilobytes = -1;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "RssAnon:", 8) == 0)
            kilobytes = strtol(line + 8, NULL, 10);
    if (f)
        fclose(f);
    return kilobytes;
}

static double wodi_rate(uint64_t steps, uint64_t window, pid_t server) {
    long early = -1;
    const struct wodi_options options = {.name = "rate"};
    struct wodi *w;
    struct wodi_result r;
    char payload[PAYLOAD] = {0};
    uint64_t sent = 0, received = 0;
    check(wodi_init(&w, &options), "init");
    check(wodi_begin_cycle(w, 1, NULL, 0, 0), "begin");
    uint64_t began = now_ns();
    while (received < steps) {
        while (sent < steps && sent - received < window)
            check(wodi_sendwork(w, ++sent, payload, sizeof payload), "send");
        int status = wodi_rcvresult(w, &r);
        check(status, "receive");
        if (++received == steps / 10)
            early = memory_of(server);
        if (status == 0 || r.bytes != PAYLOAD) {
            fprintf(stderr, "wodi_rate: a result is missing\n");
            exit(1);
        }
    }
    double rate = (double)steps * 1e9 / (double)(now_ns() - began);
    printf("memory  %ld kB of the server after a tenth of the steps, %ld kB after all\n", early,
           memory_of(server));
    check(wodi_end_cycle(w, 1, NULL, 0), "end");
    check(wodi_complete(w), "complete");
    return rate;
}

int main(int argc, char **argv) {
    uint64_t steps = 200000, window = 2000;
    int workers = 2;
    const char *sync = "data";
    for (int i = 2; i + 1 < argc; i += 2) {
        uint64_t n = strtoull(argv[i + 1], NULL, 10);
        if (strcmp(argv[i], "--steps") == 0)
            steps = n;
        else if (strcmp(argv[i], "--window") == 0)
            window = n;
        else if (strcmp(argv[i], "--workers") == 0 && n > 0 && n <= WORKERS_MAX)
            workers = (int)n;
        else if (strcmp(argv[i], "--sync") == 0)
            sync = argv[i + 1];
    }
    char folder[] = "/var/tmp/wodi_rate.XXXXXX", path[256];
    if (argc < 2 || !mkdtemp(folder)) {
        fprintf(
            stderr,
            "usage: wodi_rate STORM_WODI [--steps N] [--workers N] [--sync data|none] [--window N]\n");
        return 2;
    }
    pid_t server = start_server(argv[1], folder, sync), pids[WORKERS_MAX];
    for (int i = 0; i < workers; i++)
        if ((pids[i] = fork()) == 0)
            be_worker();
    double rate = wodi_rate(steps, window, server);
    for (int i = 0; i < workers; i++)
        waitpid(pids[i], NULL, 0);
    snprintf(path, sizeof path, "%s/journal", folder);
    struct stat st;
    long long journal = stat(path, &st) == 0 ? (long long)st.st_size : -1;
    kill(server, SIGTERM);
    waitpid(server, NULL, 0);
    double bare = bare_rate(steps / 10 + 1000);
    printf("steps/s %.0f  (%d workers, %" PRIu64
           " steps of %d bytes, sync %s, journal %lld bytes at the end)\n",
           rate, workers, steps, PAYLOAD, sync, journal);
    printf("bare    %.0f round trips/s through three processes; ratio %.2f\n", bare, rate / bare);
    snprintf(path, sizeof path, "rm -rf %s", folder);
    return system(path) != 0;
}
