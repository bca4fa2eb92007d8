/* SPDX-License-Identifier: MIT */
/* The watcher: see watch.h. */
#include "os/detect.h"
#include "os/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "os/child.h"
#include "os/claim.h"
#include "os/loop.h"
#include "os/pen.h"
#include "os/plan.h"
#include "os/ration.h"
#include "os/remains.h"
#include "os/watch_internal.h"

/* Descriptors that sweeper and watcher keep beside their stdio. */
enum { FD_CLAIM = 3, FD_READY, FD_FIRST_OTHER };

/* A daemon that dies young once is started again at once, then after a pause that grows. */
#define YOUNG_NS     (1 * NS_PER_S)
#define PAUSE_MIN_NS (50 * NS_PER_MS)
#define PAUSE_MAX_NS (5 * NS_PER_S)

/* For a daemon to end by itself. */
#define LAUNCHER_GRACE_NS (1 * NS_PER_S)
#define MANAGER_GRACE_NS  (3 * NS_PER_S)

#define SWEEPER_NAME "storm-sweep"

/* For watcher and sweeper to end everything. */
enum { END_MS = 10000 };

void watch_log(const char *format, ...) {
    char words[512], when[32];
    va_list args;
    time_t now = time(NULL);
    struct tm tm;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    localtime_r(&now, &tm);
    strftime(when, sizeof when, "%F %T", &tm);
    fprintf(stderr, "%s storm-watch: %s\n", when, words);
}

/* ---- deaths ---- */

static struct ward *find_ward(const struct watch *w, pid_t pid) {
    for (uint32_t i = 0; i < w->count; i++)
        if (w->wards[i].pid == pid)
            return &w->wards[i];
    return NULL;
}

static bool is_ward(void *context, pid_t pid) {
    return find_ward(context, pid) != NULL;
}

static void plan_restart(struct ward *ward, uint64_t now) {
    if (now - ward->born >= YOUNG_NS)
        ward->pause_ns = 0;
    ward->start_at = now + ward->pause_ns;
    ward->pause_ns = ward->pause_ns == 0                 ? PAUSE_MIN_NS
                     : ward->pause_ns * 2 > PAUSE_MAX_NS ? PAUSE_MAX_NS
                                                         : ward->pause_ns * 2;
}

static void died(struct watch *w, struct ward *ward, int status) {
    char name[32];
    uint64_t now = clock_ns();
    ward->pid = 0;
    if (ward->kind == WARD_LAUNCHER && w->grouped)
        grounds_kill_node(&w->group, ward->node);
    if (w->ending)
        return;
    plan_restart(ward, now);
    watch_log("%s ended (%s %d) after %" PRIu64 " ms; started again %s", ward_name(ward, name),
              WIFSIGNALED(status) ? "signal" : "status",
              WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
              (now - ward->born) / NS_PER_MS, ward->start_at == now ? "at once" : "in a while");
}

/* What is left of a launcher that dies comes to us: its processes die with it. So does what they leave
 * in turn. */
static void reap(struct watch *w) {
    bool strangers = false;
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        struct ward *ward = find_ward(w, pid);
        strangers = strangers || ward == NULL || ward->kind == WARD_LAUNCHER;
        if (ward != NULL)
            died(w, ward, status);
    }
    if (strangers)
        remains_strangers(is_ward, w);
}

/* ---- starting ---- */

static int start(struct watch *w, struct ward *ward) {
    ward->born = clock_ns();
    ward->start_at = 0;
    return watch_start(w, ward);
}

/* Starts what is due; returns when the next is, UINT64_MAX if none. */
static uint64_t start_due(struct watch *w) {
    uint64_t next = UINT64_MAX, now = clock_ns();
    for (uint32_t i = 0; i < w->count; i++) {
        struct ward *ward = &w->wards[i];
        if (ward->start_at != 0 && ward->start_at <= now) {
            char name[32];
            int r = start(w, ward);
            if (r < 0) {
                watch_log("%s cannot be started: %s", ward_name(ward, name), strerror(-r));
                ward->start_at = now + PAUSE_MAX_NS;
            }
        }
        if (ward->start_at != 0 && ward->start_at < next)
            next = ward->start_at;
    }
    return next;
}

static const char *advice(int error) {
    switch (-error) {
    case EAGAIN:
        return "too many processes; raise the limit (ulimit -u, kernel.pid_max) or start fewer nodes";
    case EMFILE:
    case ENFILE:
        return "raise the limit of open files (ulimit -n)";
    case ENOMEM:
        return "free memory, or start fewer nodes";
    case EADDRINUSE:
        return "somebody else listens there; end it, or use another cluster name, or more ports";
    case EADDRNOTAVAIL:
        return "this machine has no such address";
    default:
        return "see storm doctor";
    }
}

static int trouble_say(struct watch_trouble *t, const char *what, int error) {
    snprintf(t->words, sizeof t->words, "%s: %s; %s", what, strerror(-error), advice(error));
    return error;
}

static int start_all(struct watch *w, struct watch_trouble *t) {
    char name[32];
    for (uint32_t i = 0; i < w->count; i++) {
        int r = start(w, &w->wards[i]);
        if (r < 0)
            return trouble_say(t, ward_name(&w->wards[i], name), r);
    }
    return 0;
}

/* ---- the watcher's life ---- */

static void add_ward(struct watch *w, enum ward_kind kind, uint32_t node) {
    w->wards[w->count++] = (struct ward){.kind = kind, .node = node};
}

/* Where virtual nodes are follows from their number; where others are, only the manager's address is known. */
static void make_book(struct watch *w) {
    const struct watch_config *c = w->config;
    uint32_t nodes = c->prim.limits.nodes;
    for (uint32_t i = 0; i <= nodes && c->at.len == 0; i++)
        w->book[i] = plan_address(i, c->links, c->host);
    if (c->manager_at.len > 0)
        w->book[nodes] = c->manager_at;
}

static int make_wards(struct watch *w) {
    const struct watch_config *c = w->config;
    w->wards = calloc(2 * (size_t)c->count + WARD_KINDS, sizeof *w->wards);
    w->book = calloc((size_t)c->prim.limits.nodes + 1, sizeof *w->book);
    w->doors = calloc((size_t)c->count + 1, sizeof *w->doors);
    if (w->wards == NULL || w->book == NULL || w->doors == NULL)
        return -ENOMEM;
    if (c->manager)
        add_ward(w, WARD_MANAGER, 0);
    for (uint32_t i = 0; i < c->count; i++) {
        add_ward(w, WARD_LAUNCHER, c->first + i);
        add_ward(w, WARD_NODE, c->first + i);
    }
    if (c->manager)
        add_ward(w, WARD_SCRIBE, 0);
    if (c->tender != NULL)
        add_ward(w, WARD_TENDER, 0);
    make_book(w);
    return 0;
}

/* Where each daemon keeps what it must not forget. */
static int make_folders(const struct watch *w) {
    char name[16];
    const struct watch_config *c = w->config;
    if (c->manager && mkdir("mm", 0700) < 0 && errno != EEXIST)
        return -errno;
    for (uint32_t i = c->first; i < c->first + c->count; i++) {
        snprintf(name, sizeof name, "n%" PRIu32, i);
        if (mkdir(name, 0700) < 0 && errno != EEXIST)
            return -errno;
        int r = w->grouped ? grounds_make_node(&w->group, i) : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

static int open_signals(struct watch *w) {
    sigset_t set;
    child_forget_signals();
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_SETMASK, &set, NULL);
    w->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return w->signals < 0 ? -errno : 0;
}

/* Waits for signals; true if one asks us to end. */
static bool wait_signals(struct watch *w, int timeout_ms) {
    struct signalfd_siginfo info;
    struct pollfd p = {.fd = w->signals, .events = POLLIN};
    bool end = false;
    poll(&p, 1, timeout_ms);
    while (read(w->signals, &info, sizeof info) == sizeof info)
        end = end || info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT;
    reap(w);
    return end;
}

static int ms_until(uint64_t at) {
    uint64_t now = clock_ns();
    if (at == UINT64_MAX)
        return -1;
    return at <= now ? 0 : (int)((at - now - 1) / NS_PER_MS + 1);
}

static bool any_runs(const struct watch *w, enum ward_kind kind) {
    for (uint32_t i = 0; i < w->count; i++)
        if (w->wards[i].kind == kind && w->wards[i].pid != 0)
            return true;
    return false;
}

static void signal_all(const struct watch *w, enum ward_kind kind, int signal) {
    for (uint32_t i = 0; i < w->count; i++)
        if (w->wards[i].kind == kind && w->wards[i].pid != 0)
            kill(w->wards[i].pid, signal);
}

static void end_kind(struct watch *w, enum ward_kind kind, uint64_t grace_ns) {
    uint64_t until = clock_ns() + grace_ns;
    if (grace_ns > 0)
        signal_all(w, kind, SIGTERM);
    while (any_runs(w, kind) && clock_ns() < until)
        wait_signals(w, ms_until(until));
    signal_all(w, kind, SIGKILL);
    while (any_runs(w, kind))
        wait_signals(w, -1);
}

static void end_all(struct watch *w) {
    w->ending = true;
    watch_log("the cluster is being ended");
    end_kind(w, WARD_TENDER, 0);
    end_kind(w, WARD_SCRIBE, 0);
    end_kind(w, WARD_NODE, 0);
    end_kind(w, WARD_LAUNCHER, LAUNCHER_GRACE_NS);
    end_kind(w, WARD_MANAGER, MANAGER_GRACE_NS);
}

static void watch_over(struct watch *w) {
    while (!wait_signals(w, ms_until(start_due(w))))
        ;
    end_all(w);
}

/* Once, before there is any node: all that are on this machine are alike. Several of them share it; how many processors each
 * has is what was said. */
static void look_at_machine(struct watch *w) {
    if (w->config->count == 0)
        return;
    struct traits_report r = detect_machine();
    r.values[TRAITS_SPEED] = detect_speed();
    if (w->config->manager)
        r.values[TRAITS_PROCESSORS] = w->config->pes;
    long len = traits_report_encode(&r, room_of(w->report, sizeof w->report));
    w->report_len = len < 0 ? 0 : (size_t)len;
}

static int prepare(struct watch *w, struct watch_trouble *t) {
    const struct watch_config *c = w->config;
    int r = make_wards(w);
    if (r == 0)
        r = open_signals(w);
    if (r < 0)
        return trouble_say(t, "the watcher", r);
    r = watch_listen(w);
    if (r < 0)
        return trouble_say(t, c->manager ? "the machine manager's socket" : "the node's sockets",
                           r);
    look_at_machine(w);
    r = make_folders(w);
    struct watch_news news = {.watcher = getpid(),
                              .guarantee = guarantee_name(w->guarantee),
                              .manager = &w->book[c->prim.limits.nodes]};
    if (r == 0)
        r = c->announce(c->context, &news);
    return r < 0 ? trouble_say(t, c->folder, r) : 0;
}

static _Noreturn void become_watcher(struct watch *w, pid_t parent) {
    struct watch_trouble t = {""};
    child_follow(parent);
    prctl(PR_SET_NAME, "storm-watch");
    remains_adopt();
    int r = prepare(w, &t);
    if (r == 0)
        r = start_all(w, &t);
    ssize_t told = write(FD_READY, r < 0 ? t.words : "ok", r < 0 ? strlen(t.words) : 2);
    close(FD_READY);
    if (r < 0 || told < 0) {
        watch_log("%s", t.words);
        _exit(1);
    }
    watch_log("cluster %s runs: %" PRIu32 " nodes here, %s", w->config->name, w->config->count,
              guarantee_text(w->guarantee));
    watch_over(w);
    _exit(0);
}

/* ---- the sweeper ---- */

enum { GROUP_NAME_MAX = 128 };

/* Machines that share their groups may not share numbers of processes. */
static void name_group(const struct watch *w, char out[GROUP_NAME_MAX]) {
    snprintf(out, GROUP_NAME_MAX, "storm-%s-%" PRIu32 "-%d", w->config->name, w->config->first,
             (int)getpid());
}

/* Nothing is made there before a job asks for a limit. */
static void find_rations(struct watch *w) {
    char name[GROUP_NAME_MAX];
    name_group(w, name);
    if (ration_ground(name, w->rations) < 0 ||
        remains_note_rations(w->config->folder, w->rations) < 0)
        w->rations[0] = '\0';
}

static int make_group(struct watch *w) {
    char name[GROUP_NAME_MAX];
    name_group(w, name);
    int r = grounds_make(&w->group, name);
    w->grouped = r == 0;
    if (w->grouped)
        r = remains_note_group(w->config->folder, w->group.path);
    if (r < 0)
        watch_log("no control group: %s", strerror(-r));
    return r;
}

/* What is to hold the processes of a job together: the launchers do the same. False: what was asked for
 * cannot be had. */
static bool choose_guarantee(struct watch *w, struct watch_trouble *t) {
    enum confine c = w->config->confine;
    struct pens_trouble why = {""};
    int r = 0;
    w->guarantee = GUARANTEE_SUBREAPER;
    if (c == CONFINE_AUTO || c == CONFINE_CGROUP)
        r = make_group(w);
    if (w->grouped)
        w->guarantee = GUARANTEE_CGROUP;
    else if (r < 0)
        snprintf(why.words, sizeof why.words, "control groups cannot be made: %s", strerror(-r));
    if (!w->grouped && (c == CONFINE_AUTO || c == CONFINE_NAMESPACE)) {
        if (pens_try(&why) == 0)
            w->guarantee = GUARANTEE_NAMESPACE;
        else
            watch_log("no pid namespace: %s", why.words);
    }
    snprintf(t->words, sizeof t->words, "--confine %s: %s; use another, or see storm doctor",
             confine_name(c), why.words);
    return confine_met(c, w->guarantee);
}

/* Whether it has ended by itself, and well. */
static bool await(pid_t pid) {
    pid_t got;
    int status = -1;
    do
        got = waitpid(-1, &status, 0);
    while (got != pid && (got > 0 || errno == EINTR));
    return got == pid && status == 0;
}

/* Signals that a terminal or a careless kill may send must not end it before the rest. */
static void stay_alive(void) {
    child_forget_signals();
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
}

static _Noreturn void become_sweeper(const struct watch_config *c) {
    struct watch w = {.config = c, .manager_listener = -1, .signals = -1};
    struct watch_trouble t;
    prctl(PR_SET_NAME, SWEEPER_NAME);
    stay_alive();
    remains_adopt();
    if (!choose_guarantee(&w, &t)) {
        ssize_t told = write(FD_READY, t.words, strlen(t.words));
        watch_log("%s", t.words);
        claim_remove(c->folder);
        _exit(told < 0);
    }
    find_rations(&w);
    pid_t self = getpid();
    pid_t pid = fork();
    if (pid == 0)
        become_watcher(&w, self);
    close(FD_READY);
    claim_tell(FD_CLAIM, &(struct claim_holder){.sweeper = self, .watcher = pid});
    bool well = pid > 0 && await(pid);
    remains_children();
    remains_folder(c->folder);
    claim_remove(c->folder);
    _exit(well ? 0 : 1);
}

/* ---- in the command ---- */

static int open_log(void) {
    int fd = open("log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    return fd < 0 ? -errno : fd;
}

static void say(int ready, const char *what, int error) {
    struct watch_trouble t;
    trouble_say(&t, what, error);
    ssize_t told = write(ready, t.words, strlen(t.words));
    _exit(told < 0);
}

/* Leaves the terminal, the session and everything else of the command. */
static _Noreturn void daemonise(const struct watch_config *c, int claim, int ready) {
    if (setsid() < 0 || chdir(c->folder) < 0)
        say(ready, c->folder, -errno);
    umask(077);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int log = open_log();
    if (null < 0 || log < 0)
        say(ready, "log", log < 0 ? log : -EIO);
    pid_t pid = fork();
    if (pid < 0)
        say(ready, "fork", -errno);
    if (pid > 0)
        _exit(0);
    int from[] = {null, log, log, claim, ready};
    for (int i = 0; i < 5; i++) /* out of the way of the places first */
        from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, FD_FIRST_OTHER);
    for (int i = 0; i < 5; i++)
        child_place(from[i], i, i < FD_CLAIM ? 0 : O_CLOEXEC);
    child_close_from(FD_FIRST_OTHER);
    child_raise_limits();
    become_sweeper(c);
}

/* What the watcher has to say: "ok", a complaint, or nothing because it has died. */
static int hear(int ready, struct watch_trouble *t) {
    size_t len = 0;
    ssize_t n;
    while (len < sizeof t->words - 1 &&
           ((n = read(ready, t->words + len, sizeof t->words - 1 - len)) > 0 ||
            (n < 0 && errno == EINTR)))
        len += n > 0 ? (size_t)n : 0;
    t->words[len] = '\0';
    if (strcmp(t->words, "ok") == 0)
        return 0;
    if (len == 0)
        snprintf(t->words, sizeof t->words, "the watcher died; see its log");
    return -EIO;
}

int watch_launch(const struct watch_config *c, int claim, struct watch_trouble *t) {
    int ready[2];
    if (pipe2(ready, O_CLOEXEC) < 0)
        return trouble_say(t, "pipe", -errno);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        daemonise(c, claim, ready[1]);
    close(ready[1]);
    int r = pid < 0 ? trouble_say(t, "fork", -errno) : hear(ready[0], t);
    close(ready[0]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return r;
}

/* ---- ending ---- */

static bool gone_within(int pidfd, int ms) {
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    return poll(&p, 1, ms) > 0;
}

/* What the kernel says of a process in a line "key:\tvalue". */
static bool has_status(pid_t pid, const char *key, const char *value) {
    char path[32], line[128], wanted[64];
    bool has = false;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    snprintf(wanted, sizeof wanted, "%s:\t%s\n", key, value);
    FILE *f = fopen(path, "re");
    while (f != NULL && !has && fgets(line, sizeof line, f) != NULL)
        has = strcmp(line, wanted) == 0;
    if (f != NULL)
        fclose(f);
    return has;
}

/* Numbers of processes are used again: what we have opened must be what it was taken for. */
static int open_process(pid_t pid, const char *key, const char *value) {
    int fd = pid <= 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd >= 0 && !has_status(pid, key, value)) {
        close(fd);
        return -1;
    }
    return fd;
}

static void send_to(int pidfd, int signal) {
    if (pidfd >= 0)
        syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
}

/* First kindly; then without the watcher's help; then without the sweeper's. */
static void end_processes(int sweeper, int watcher) {
    send_to(watcher, SIGTERM);
    if (gone_within(sweeper, END_MS))
        return;
    send_to(watcher, SIGKILL);
    send_to(sweeper, SIGCONT);
    if (gone_within(sweeper, END_MS))
        return;
    send_to(sweeper, SIGKILL);
    gone_within(sweeper, END_MS);
}

/* Somebody who claims the folder and has not said who it is, is about to: a cluster that is being
 * brought up. */
int watch_look(const char *folder, struct claim_holder *h) {
    int r;
    uint64_t until = clock_ns() + END_MS * NS_PER_MS;
    while ((r = claim_look(folder, h)) == 1 && h->sweeper == 0) {
        if (clock_ns() > until)
            return -ETIMEDOUT;
        poll(NULL, 0, 10);
    }
    return r;
}

/* Whoever held it is gone or going. */
static int take_over(const char *folder) {
    uint64_t until = clock_ns() + END_MS * NS_PER_MS;
    int claim;
    while ((claim = claim_take(folder)) == -EBUSY && clock_ns() < until)
        poll(NULL, 0, 10);
    if (claim < 0)
        return claim == -ENOENT ? 0 : claim;
    remains_folder(folder);
    claim_remove(folder);
    close(claim);
    return 0;
}

int watch_end(const char *folder) {
    struct claim_holder h;
    char parent[16];
    int r = watch_look(folder, &h);
    if (r <= 0)
        return r;
    snprintf(parent, sizeof parent, "%d", (int)h.sweeper);
    int sweeper = open_process(h.sweeper, "Name", SWEEPER_NAME);
    int watcher = open_process(h.watcher, "PPid", parent);
    r = 0;
    if (sweeper >= 0 && kill(h.sweeper, 0) < 0 && errno == EPERM)
        r = -EPERM;
    else if (sweeper >= 0)
        end_processes(sweeper, watcher);
    if (sweeper >= 0)
        close(sweeper);
    if (watcher >= 0)
        close(watcher);
    return r < 0 ? r : take_over(folder);
}
