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
#include "os/keyring.h"
#include "os/node.h"
#include "os/plan.h"
#include "os/watch_internal.h"

/* A daemon inherits its stdio and its listening sockets, nothing else. */
enum { FD_LISTENER = 3, FD_MOVER, FD_FIRST_OTHER };

const char *ward_name(const struct ward *w, char out[32]) {
    if (w->kind == WARD_MANAGER)
        snprintf(out, 32, "the machine manager");
    else if (w->kind == WARD_SCRIBE)
        snprintf(out, 32, "the scribe");
    else if (w->kind == WARD_TENDER)
        snprintf(out, 32, "the tender");
    else
        snprintf(out, 32, "n%" PRIu32 "'s %s", w->node,
                 w->kind == WARD_NODE ? "manager" : "launcher");
    return out;
}

/* The next free port at our address; the socket and the address that it has. */
static int open_door(const struct watch_config *c, struct address *ret) {
    *ret = c->at;
    return address_listen_within(ret, c->port_first, c->port_last);
}

static int open_doors(struct watch *w) {
    const struct watch_config *c = w->config;
    struct address mover;
    for (uint32_t i = 0; i < c->count; i++) {
        bool ours = c->at.len > 0;
        w->doors[i].node = ours ? open_door(c, &w->book[c->first + i]) : -1;
        w->doors[i].mover = ours && w->doors[i].node >= 0 ? open_door(c, &mover) : -1;
        if (ours && w->doors[i].mover < 0)
            return w->doors[i].node < 0 ? w->doors[i].node : w->doors[i].mover;
    }
    return 0;
}

int watch_listen(struct watch *w) {
    const struct watch_config *c = w->config;
    struct address *at = &w->book[c->prim.limits.nodes];
    int fd = -1;
    if (c->manager)
        fd = c->at.len > 0 ? open_door(c, at) : address_listen(at);
    if (c->manager && fd < 0)
        return fd;
    w->manager_listener = fd;
    return open_doors(w);
}

/* ---- in the new process ---- */

static void begin(pid_t parent, int listener, int flags) {
    child_follow(parent);
    child_forget_signals();
    child_place(listener, FD_LISTENER, flags);
    child_close_from(FD_LISTENER + 1);
}

enum { ENVIRONMENT_MAX = 7 };

/* The environment is made, never inherited. Sanitizers have their say by theirs, and tests of the mover of files by
 * theirs: see worth_beside in porter_files.c. How many GPUs there are may have been said, too. */
static void make_environment(char *out[ENVIRONMENT_MAX]) {
    static char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    static const char *const kept[] = {"ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS",
                                       "STORM_TEST_WRITER", "STORM_GPUS"};
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
    if (c->links == TRANSPORT_TCP && c->host.s_addr != 0 &&
        inet_ntop(AF_INET, &c->host, host, sizeof host) != NULL)
        snprintf(out, cap, EAR_MULTICAST "%s", host);
    else
        snprintf(out, cap, "%s", strobe->local.sun_path);
}

/* Tests have their say: they want to see what becomes of a limit that cannot be kept. */
static bool name_rations(const struct watch *w, uint32_t node, char out[PATH_MAX]) {
    const char *told = getenv("STORM_TEST_RATIONS");
    if (told != NULL)
        return snprintf(out, PATH_MAX, "%s", told) < PATH_MAX;
    return w->rations[0] != '\0' &&
           snprintf(out, PATH_MAX, "%s/n%" PRIu32, w->rations, node) < PATH_MAX;
}

/* How processes of other machines reach those of this one: at the address that its daemons are at, or, if that is any, at the one
 * that the manager sees. False: there are no other machines. */
static bool name_machine(const struct watch_config *c, char out[INET6_ADDRSTRLEN]) {
    struct address seen = c->at;
    address_host(&seen, out);
    bool any = strcmp(out, "0.0.0.0") == 0 || strcmp(out, "::") == 0;
    if (any && address_towards(&c->manager_at, &seen) == 0)
        address_host(&seen, out);
    return out[0] != '\0' && strcmp(out, "0.0.0.0") != 0 && strcmp(out, "::") != 0;
}

static _Noreturn void become_launcher(const struct watch *w, uint32_t node, pid_t parent) {
    const struct watch_config *c = w->config;
    struct address here = plan_launcher(node), strobe = plan_strobe(node);
    char number[16], home[16], first[16], pes[16], spared[16], group[PATH_MAX], rations[PATH_MAX],
        ear[sizeof strobe.local.sun_path], machine[INET6_ADDRSTRLEN];
    begin(parent, child_secret(c->key), 0);
    snprintf(number, sizeof number, "%" PRIu32, node);
    snprintf(home, sizeof home, "%" PRIu32, home_of(node - c->first, c->count, c->pes));
    snprintf(first, sizeof first, "%" PRIu32, home_first(node - c->first, c->count, c->pes));
    snprintf(pes, sizeof pes, "%" PRIu32, c->pes);
    name_ear(c, &strobe, ear, sizeof ear);
    const char *argv[30] = {"storm-pl",
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
    if (c->system_cores > 0) {
        snprintf(spared, sizeof spared, "%" PRIu32, c->system_cores);
        argv[count++] = "--system-cores";
        argv[count++] = spared;
    }
    if (name_rations(w, node, rations)) {
        argv[count++] = "--rations";
        argv[count++] = rations;
    }
    if (c->each_program[0] != '\0') {
        argv[count++] = "--each";
        argv[count++] = c->each_program;
    }
    if (name_machine(c, machine)) {
        argv[count++] = "--at";
        argv[count++] = machine;
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

/* Where the manager is, is also what keys are made of; elsewhere a node has its own and no other. */
static int find_key(const struct watch_config *c, uint32_t node, struct keyfile *ret,
                    char why[256]) {
    return c->manager ? keyring_load_node("master.key", c->prim.limits.nodes, node, ret, why)
                      : keyring_load("node.key", ret, why);
}

/* Where this node is found, and by which key: others ask for that, and so does it. */
static void ask_about(const struct watch *w, struct node_config *c, struct keyfile *secret) {
    const struct watch_config *config = w->config;
    struct address here = w->book[c->self];
    char why[256] = "";
    c->asks = true;
    c->alone = !config->manager;
    if (c->mover_listener < 0) {
        here = plan_mover(c->self, config->links, config->host);
        c->mover_listener = address_listen(&here);
    }
    int r = config->sealed ? find_key(config, c->self, secret, why) : 0;
    if (r < 0 || c->mover_listener < 0) {
        watch_log("n%" PRIu32 ": %s", c->self, r < 0 ? why : strerror(-c->mover_listener));
        _exit(1);
    }
    c->secret = config->sealed ? secret : NULL;
    address_host(config->at.len > 0 ? &config->at : &here, c->address);
}

static _Noreturn void become_node(const struct watch *w, uint32_t node, struct doors doors,
                                  pid_t parent) {
    const struct watch_config *config = w->config;
    struct home home;
    struct keyfile secret;
    char name[24];
    child_follow(parent);
    child_forget_signals();
    child_place(doors.node, FD_LISTENER, O_CLOEXEC);
    child_place(doors.mover, FD_MOVER, O_CLOEXEC);
    child_close_from(FD_FIRST_OTHER);
    wait_for_turn(config->count);
    hurry(NULL);
    home_settle(&home, home_of(node - config->first, config->count, config->pes));
    snprintf(name, sizeof name, "storm-n%" PRIu32, node);
    prctl(PR_SET_NAME, name);
    struct node_config c = {.prim = config->prim,
                            .self = node,
                            .book = w->book,
                            .launcher = plan_launcher(node),
                            .listener = FD_LISTENER,
                            .mover_listener = doors.mover < 0 ? -1 : FD_MOVER,
                            .links = config->links,
                            .host = config->host,
                            .key = {config->key[0], config->key[1]},
                            .lease_ns = config->lease_ns,
                            .roster = config->roster,
                            .report = bytes_of(w->report, w->report_len)};
    if (config->asks)
        ask_about(w, &c, &secret);
    node_live(&c);
}

static _Noreturn void become_scribe(const struct watch *w, pid_t parent) {
    begin(parent, -1, 0);
    prctl(PR_SET_NAME, "storm-scribe");
    _exit(w->config->scribe(w->config->context));
}

/* Remote shells find what they need in the environment of whoever has brought the cluster up. */
static _Noreturn void become_tender(const struct watch *w, pid_t parent) {
    begin(parent, -1, 0);
    prctl(PR_SET_NAME, "storm-tender");
    _exit(w->config->tender(w->config->context));
}

/* ---- in the watcher ---- */

/* The last one may have left its socket. */
static void unlink_launcher(uint32_t node) {
    struct address here = plan_launcher(node);
    unlink(here.local.sun_path);
}

/* Sockets that stay are only lent. */
static int take_doors(const struct watch *w, uint32_t node, struct doors *ret) {
    *ret = w->doors[node - w->config->first];
    if (ret->node < 0)
        ret->node = address_listen(&w->book[node]);
    return ret->node < 0 ? ret->node : 0;
}

static _Noreturn void become(const struct watch *w, const struct ward *ward, struct doors doors,
                             pid_t parent) {
    switch (ward->kind) {
    case WARD_MANAGER:
        become_manager(w, parent);
    case WARD_LAUNCHER:
        become_launcher(w, ward->node, parent);
    case WARD_SCRIBE:
        become_scribe(w, parent);
    case WARD_TENDER:
        become_tender(w, parent);
    default:
        become_node(w, ward->node, doors, parent);
    }
}

int watch_start(struct watch *w, struct ward *ward) {
    struct doors doors = {.node = -1, .mover = -1};
    int r = ward->kind == WARD_NODE ? take_doors(w, ward->node, &doors) : 0;
    if (r < 0)
        return r;
    if (ward->kind == WARD_LAUNCHER)
        unlink_launcher(ward->node);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0)
        become(w, ward, doors, parent);
    r = pid < 0 ? -errno : 0;
    if (ward->kind == WARD_NODE && w->doors[ward->node - w->config->first].node < 0)
        close(doors.node);
    if (pid > 0)
        ward->pid = pid;
    return r;
}
