/* SPDX-License-Identifier: MIT */
/* Work steps by the second: see wodirate.h. */
#include "cli/wodirate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/companion.h"
#include "os/files.h"
#include "os/loop.h"
#include "os/piped.h"
#include "os/process.h"
#include "storm/wodi.h"

enum { PAYLOAD = 100, WINDOW = 2000, LINE_MAX_BYTES = 256, START_MS = 10000, BARE_SHARE = 10 };

/* A process of ours that ends with us. */
static pid_t fork_helper(void) {
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
    }
    return pid;
}

static void reap(pid_t pid) {
    if (pid > 0)
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            continue;
}

/* ---- the bare way ---- */

static bool pass(int from, int to) {
    char bytes[PAYLOAD];
    return recv(from, bytes, PAYLOAD, MSG_WAITALL) == PAYLOAD &&
           send(to, bytes, PAYLOAD, MSG_NOSIGNAL) == PAYLOAD;
}

static void be_middle(int near, int far) {
    while (pass(near, far) && pass(far, near))
        continue;
    _exit(0);
}

static void be_far(int near) {
    while (pass(near, near))
        continue;
    _exit(0);
}

static int time_bare(uint64_t count, uint64_t *ret_ns) {
    int a[2], b[2];
    char bytes[PAYLOAD] = {0};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, a) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, b) < 0)
        return -errno;
    pid_t middle = fork_helper();
    if (middle == 0)
        be_middle(a[1], b[0]);
    pid_t far = fork_helper();
    if (far == 0)
        be_far(b[1]);
    uint64_t began = clock_ns();
    int r = middle < 0 || far < 0 ? -EAGAIN : 0;
    for (uint64_t i = 0; i < count && r == 0; i++)
        if (send(a[0], bytes, PAYLOAD, MSG_NOSIGNAL) != PAYLOAD ||
            recv(a[0], bytes, PAYLOAD, MSG_WAITALL) != PAYLOAD)
            r = -EIO;
    *ret_ns = (clock_ns() - began) / count;
    for (int i = 0; i < 2; i++) {
        close(a[i]);
        close(b[i]);
    }
    if (middle > 0)
        kill(middle, SIGKILL);
    if (far > 0)
        kill(far, SIGKILL);
    reap(middle);
    reap(far);
    return r;
}

/* ---- the distributor ---- */

static int echo(void *context, struct wodi_worker *w, const struct wodi_event *e) {
    (void)context;
    return wodi_sendresult(w, 0, e->data, e->bytes);
}

static void be_worker(const char *server) {
    const struct wodi_worker_options options = {.server = server};
    const struct wodi_callbacks callbacks = {.work = echo};
    _exit(wodi_worker(&options, &callbacks, NULL) < 0);
}

static int start_server(const char *folder, bool sync, struct piped *ret,
                        char line[LINE_MAX_BYTES]) {
    char program[4096];
    const char *argv[] = {program, "--folder", folder, "--sync", sync ? "data" : "none", NULL};
    int r = companion_find("storm-wodi", program, sizeof program);
    if (r == 0)
        r = piped_start(&(struct piped_order){.argv = argv, .deaf = true}, ret);
    if (r < 0)
        return r;
    struct pollfd p = {.fd = ret->out, .events = POLLIN};
    ssize_t n = poll(&p, 1, START_MS) > 0 ? read(ret->out, line, LINE_MAX_BYTES - 1) : -1;
    line[n > 0 ? n : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return strncmp(line, "STORM_WODI=", 11) == 0 ? 0 : -EIO;
}

static int master(struct wodirate *r, struct wodi *w, pid_t server) {
    char payload[PAYLOAD] = {0};
    struct wodi_result result;
    uint64_t sent = 0, received = 0;
    int status = wodi_begin_cycle(w, 1, NULL, 0, 0);
    uint64_t began = clock_ns();
    while (status >= 0 && received < r->steps) {
        while (status >= 0 && sent < r->steps && sent - received < WINDOW)
            status = wodi_sendwork(w, ++sent, payload, sizeof payload);
        if (status >= 0)
            status = wodi_rcvresult(w, &result);
        if (status == 0)
            return -EIO; /* one is missing */
        if (++received == r->steps / 10)
            r->early_kb = process_private_bytes(server) / 1024;
    }
    r->ns = (clock_ns() - began) / r->steps;
    r->late_kb = process_private_bytes(server) / 1024;
    return status < 0 ? status : wodi_end_cycle(w, 1, NULL, 0);
}

static int time_steps(struct wodirate *r, const char *address, pid_t server) {
    const struct wodi_options options = {.server = address, .name = "rate"};
    pid_t pids[WODIRATE_WORKERS_MAX];
    struct wodi *w;
    for (uint32_t i = 0; i < r->workers; i++)
        if ((pids[i] = fork_helper()) == 0)
            be_worker(address);
    int status = wodi_init(&w, &options);
    if (status == 0) {
        status = master(r, w, server);
        if (status == 0)
            status = wodi_complete(w);
        else
            wodi_free(w);
    }
    /* One that came when all was over would wait for another master. */
    for (uint32_t i = 0; i < r->workers; i++) {
        if (pids[i] > 0)
            kill(pids[i], SIGKILL);
        reap(pids[i]);
    }
    return status;
}

int wodirate_run(struct wodirate *r) {
    const char *tmp = getenv("TMPDIR");
    char folder[80], line[LINE_MAX_BYTES];
    struct piped server = {.pid = 0};
    snprintf(folder, sizeof folder, "%.40s/storm-wodi-XXXXXX", tmp != NULL ? tmp : "/var/tmp");
    if (mkdtemp(folder) == NULL)
        return -errno;
    int status = start_server(folder, r->sync, &server, line);
    if (status == 0)
        status = time_steps(r, line + strlen("STORM_WODI="), server.pid);
    if (server.pid > 0) {
        kill(server.pid, SIGTERM);
        reap(server.pid);
        close(server.out);
        close(server.err);
    }
    files_remove(AT_FDCWD, folder);
    return status < 0 ? status : time_bare(r->steps / BARE_SHARE + 1000, &r->bare_ns);
}
