/* SPDX-License-Identifier: MIT */
/* Starting the daemons of a cluster: see watch.h.
 *
 * A node's socket listens before its process runs, and parents in the tree are started before their
 * children, so nobody finds a door closed at start. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/cast.h"
#include "os/child.h"
#include "os/home.h"
#include "os/hurry.h"
#include "os/node.h"
#include "os/plan.h"
#include "os/watch_internal.h"

/* A daemon inherits its stdio and its listening socket, nothing else. */
enum { FD_LISTENER = 3, FD_FIRST_OTHER };

const char *ward_name(const struct ward *w, char out[32]) {
    if (w->kind == WARD_MANAGER)
        snprintf(out, 32, "the machine manager");
    else if (w->kind == WARD_SCRIBE)
        snprintf(out, 32, "the scribe");
    else
        snprintf(out, 32, "n%" PRIu32 "'s %s", w->node,
                 w->kind == WARD_NODE ? "manager" : "launcher");
    return out;
}

int watch_listen(struct watch *w) {
    int fd = address_listen(&w->book[w->config->prim.limits.nodes]);
    w->manager_listener = fd;
    return fd < 0 ? fd : 0;
}

/* ---- in the new process ---- */

static void begin(pid_t parent, int listener, int flags) {
    child_follow(parent);
    child_forget_signals();
    child_place(listener, FD_LISTENER, flags);
    child_close_from(FD_FIRST_OTHER);
}

enum { ENVIRONMENT_MAX = 6 };

/* The environment is made, never inherited. Sanitizers have their say by theirs, and tests of the mover of files by
 * theirs: see worth_beside in porter_files.c. */
static void make_environment(char *out[ENVIRONMENT_MAX]) {
    static char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    static const char *const kept[] = {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS",
                                       "STORM_TEST_WRITER"};
    size_t count = 0;
    out[count++] = path;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        const char *value = getenv(kept[i]);
        ASSERT(count + 1 < ENVIRONMENT_MAX);
        if (value != NULL && asprintf(&out[count], "%s=%s", kept[i], value) > 0)
            count++;
    }
    out[count] = NULL;
}

static _Noreturn void execute(const char *program, const char *const *argv) {
    char *environment[ENVIRONMENT_MAX];
    make_environment(environment);
    execve(program, (char *const *)argv, environment);
    watch_log("%s: %s", program, strerror(errno));
    _exit(127);
}

static _Noreturn void become_manager(const struct watch *w, pid_t parent) {
    const struct watch_config *c = w->config;
    begin(parent, w->manager_listener, 0);
    const char *const argv[] = {"storm-mm", c->folder, "--listener", "3", NULL};
    execute(c->manager_program, argv);
}

/* Where a launcher hears strobes. */
static void name_ear(const struct watch_config *c, const struct address *strobe, char *out,
                     size_t cap) {
    char host[INET_ADDRSTRLEN];
    if (c->links == TRANSPORT_TCP && inet_ntop(AF_INET, &c->host, host, sizeof host) != NULL)
        snprintf(out, cap, EAR_MULTICAST "%s", host);
    else
        snprintf(out, cap, "%s", strobe->local.sun_path);
}

static _Noreturn void become_launcher(const struct watch *w, uint32_t node, pid_t parent) {
    const struct watch_config *c = w->config;
    struct address here = plan_launcher(node), strobe = plan_strobe(node);
    char number[16], home[16], first[16], pes[16], group[PATH_MAX],
        ear[sizeof strobe.local.sun_path];
    begin(parent, child_secret(c->key), 0);
    snprintf(number, sizeof number, "%" PRIu32, node);
    snprintf(home, sizeof home, "%" PRIu32, home_of(node, c->prim.limits.nodes, c->pes));
    snprintf(first, sizeof first, "%" PRIu32, home_first(node, c->prim.limits.nodes, c->pes));
    snprintf(pes, sizeof pes, "%" PRIu32, c->pes);
    name_ear(c, &strobe, ear, sizeof ear);
    const char *argv[24] = {"storm-pl",
                            "--socket",
                            here.local.sun_path,
                            "--strobe",
                            ear,
                            "--first",
                            first,
                            "--pes",
                            pes,
                            "--node",
                            number,
                            "--key-fd",
                            "3",
                            "--home",
                            home,
                            "--confine",
                            confine_name(c->confine)};
    size_t count = 17;
    if (w->grouped) {
        grounds_node_path(&w->group, node, group);
        argv[count++] = "--cgroup";
        argv[count++] = group;
    }
    if (c->each_program[0] != '\0') {
        argv[count++] = "--each";
        argv[count++] = c->each_program;
    }
    execute(c->launcher_program, argv);
}

/* Who is woken takes the processor from who wakes it, as a rule. When the machine manager wakes the managers of
 * many nodes that share a few processors, it would get to the next one only after the last has done its
 * work, and another processor would idle meanwhile. So in a crowd they wait for their turn. */
static void wait_for_turn(uint32_t nodes) {
    struct sched_param none = {0};
    if (sched_getscheduler(0) == SCHED_OTHER && home_crowded(nodes))
        sched_setscheduler(0, SCHED_BATCH, &none);
}

static _Noreturn void become_node(const struct watch *w, uint32_t node, int listener,
                                  pid_t parent) {
    struct home home;
    char name[24];
    begin(parent, listener, O_CLOEXEC);
    wait_for_turn(w->config->prim.limits.nodes);
    hurry(NULL);
    home_settle(&home, home_of(node, w->config->prim.limits.nodes, w->config->pes));
    snprintf(name, sizeof name, "storm-n%" PRIu32, node);
    prctl(PR_SET_NAME, name);
    struct node_config c = {.prim = w->config->prim,
                            .self = node,
                            .book = w->book,
                            .launcher = plan_launcher(node),
                            .listener = FD_LISTENER,
                            .links = w->config->links,
                            .host = w->config->host,
                            .key = {w->config->key[0], w->config->key[1]},
                            .lease_ns = w->config->lease_ns,
                            .prefix = w->config->prefix};
    node_live(&c);
}

static _Noreturn void become_scribe(const struct watch *w, pid_t parent) {
    begin(parent, -1, 0);
    prctl(PR_SET_NAME, "storm-scribe");
    _exit(w->config->scribe(w->config->context));
}

/* ---- in the watcher ---- */

/* The last one may have left its socket. */
static void unlink_launcher(uint32_t node) {
    struct address here = plan_launcher(node);
    unlink(here.local.sun_path);
}

int watch_start(struct watch *w, struct ward *ward) {
    int listener = -1;
    if (ward->kind == WARD_NODE)
        listener = address_listen(&w->book[ward->node]);
    if (ward->kind == WARD_NODE && listener < 0)
        return listener;
    if (ward->kind == WARD_LAUNCHER)
        unlink_launcher(ward->node);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        if (ward->kind == WARD_MANAGER)
            become_manager(w, parent);
        if (ward->kind == WARD_LAUNCHER)
            become_launcher(w, ward->node, parent);
        if (ward->kind == WARD_SCRIBE)
            become_scribe(w, parent);
        become_node(w, ward->node, listener, parent);
    }
    int r = pid < 0 ? -errno : 0;
    if (listener >= 0)
        close(listener);
    if (pid > 0)
        ward->pid = pid;
    return r;
}
