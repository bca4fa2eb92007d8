/* SPDX-License-Identifier: MIT */
/* storm doctor: what this machine lacks, and how to get it.
 *
 * Every check tries what STORM will do rather than reading what should be possible, where trying leaves no
 * trace. "fail" is what STORM cannot do without, "warn" what it can do less well without. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/fabrics.h"
#include "os/companion.h"
#include "cli/complain.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/pulse.h"
#include "cli/terminal.h"
#include "os/confine.h"
#include "os/grounds.h"
#include "os/ration.h"
#include "os/claim.h"
#include "os/detect.h"
#include "os/loop.h"
#include "os/pen.h"

enum verdict { VERDICT_OK, VERDICT_WARN, VERDICT_FAIL, VERDICTS };

static const char *const verdict_names[VERDICTS] = {"ok", "warn", "fail"};

/* Nodes that a machine should have room for. */
enum { NODES_WANTED = 1024 };

/* For a manager to say how its cluster is. */
#define ANSWER_NS (2 * NS_PER_S)

struct doctor {
    bool json;
    struct json out;
    uint32_t found[VERDICTS];
};

/* One line; `advice` is NULL if there is nothing to do. */
__attribute__((format(printf, 5, 6))) static void tell(struct doctor *d, const char *what,
                                                       enum verdict verdict, const char *advice,
                                                       const char *format, ...) {
    static const enum tint tints[VERDICTS] = {TINT_GOOD, TINT_HEAD, TINT_BAD};
    char words[CLUSTER_PATH_MAX + 128];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    d->found[verdict]++;
    if (!d->json) {
        printf("%s%-4s%s  %-18s %s\n", terminal_tint(stdout, tints[verdict]),
               verdict_names[verdict], terminal_tint(stdout, TINT_NONE), what, words);
        if (advice != NULL)
            printf("                          -> %s\n", advice);
        return;
    }
    json_open(&d->out, NULL, '{');
    json_word(&d->out, "name", what);
    json_word(&d->out, "state", verdict_names[verdict]);
    json_word(&d->out, "words", words);
    if (advice != NULL)
        json_word(&d->out, "advice", advice);
    else
        json_null(&d->out, "advice");
    json_close(&d->out, '}');
}

/* ---- the kernel ---- */

static void check_kernel(struct doctor *d) {
    struct utsname name;
    int major = 0, minor = 0;
    uname(&name);
    if (sscanf(name.release, "%d.%d", &major, &minor) != 2)
        tell(d, "kernel", VERDICT_WARN, "Linux 5.14 or later is known to do", "%s", name.release);
    else if (major < 5 || (major == 5 && minor < 7))
        tell(d, "kernel", VERDICT_FAIL, "use Linux 5.14 or later", "%s is too old", name.release);
    else if (major == 5 && minor < 14)
        tell(d, "kernel", VERDICT_WARN, "use Linux 5.14 or later",
             "%s cannot end a control group at once", name.release);
    else
        tell(d, "kernel", VERDICT_OK, NULL, "%s", name.release);
}

/* As jobs would ask for it. */
static void check_machine(struct doctor *d) {
    char words[512];
    struct traits t;
    struct traits_report r = detect_machine();
    r.values[TRAITS_SPEED] = detect_speed();
    void *storage = malloc(traits_bytes(1, TRAITS_BUILT_IN));
    if (storage == NULL)
        return;
    traits_init(&t, 1, TRAITS_BUILT_IN, storage);
    traits_hear(&t, 0, &r);
    traits_format(&t, 0, words, sizeof words);
    tell(d, "machine", VERDICT_OK, NULL, "%s", words);
    free(storage);
}

static void check_calls(struct doctor *d) {
    static const char advice[] = "a filter forbids it; run outside of that container or sandbox";
    int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (fd < 0)
        tell(d, "pidfd", VERDICT_FAIL, advice, "%s", strerror(errno));
    else
        tell(d, "pidfd", VERDICT_OK, NULL, "processes can be named by descriptors");
    if (fd >= 0)
        close(fd);
    long r = syscall(SYS_clone3, NULL, 0);
    if (r < 0 && errno == EINVAL)
        tell(d, "clone3", VERDICT_OK, NULL, "processes can be started in their group");
    else
        tell(d, "clone3", VERDICT_FAIL, advice, "%s", strerror(errno));
}

static bool check_groups(struct doctor *d) {
    char name[64];
    struct grounds g;
    snprintf(name, sizeof name, "storm-doctor-%d", (int)getpid());
    int r = grounds_make(&g, name);
    if (r == 0) {
        *strrchr(g.path, '/') = '\0';
        tell(d, "control groups", VERDICT_OK, NULL, "jobs are held together below %s", g.path);
        snprintf(g.path + strlen(g.path), sizeof g.path - strlen(g.path), "/%s", name);
        grounds_remove(g.path);
    } else if (r == -ENOENT) {
        tell(d, "control groups", VERDICT_WARN, "mount them: mount -t cgroup2 none /sys/fs/cgroup",
             "version 2 is not mounted");
    } else {
        tell(d, "control groups", VERDICT_WARN,
             "get a group of your own: systemd-run --user --scope -p Delegate=yes storm up",
             "not for this user (%s)", strerror(-r));
    }
    return r == 0;
}

static bool check_namespaces(struct doctor *d) {
    struct pens_trouble t;
    int r = pens_try(&t);
    if (r == 0)
        tell(d, "pid namespaces", VERDICT_OK, NULL, "allowed");
    else
        tell(d, "pid namespaces", VERDICT_WARN,
             "only matters without control groups: sysctl user.max_user_namespaces and "
             "user.max_pid_namespaces",
             "not for this user (%s)", t.words);
    return r == 0;
}

/* As a launcher finds it, and everything is as before. */
static enum ration_means try_rations(void) {
    char name[64], ground[PATH_MAX], place[PATH_MAX] = "", node[PATH_MAX];
    struct grounds g;
    struct cgroups pool;
    struct rations r;
    snprintf(name, sizeof name, "storm-doctor-%d", (int)getpid());
    bool legacy = ration_ground(name, ground) == 0 &&
                  snprintf(place, sizeof place, "%s/n0", ground) < (int)sizeof place;
    bool grouped = grounds_make(&g, name) == 0, pooled = false;
    if (grouped) {
        grounds_node_path(&g, 0, node);
        pooled = cgroups_init(&pool, node) == 0;
    }
    rations_init(&r, legacy ? place : NULL);
    enum ration_means means = rations_means(&r, pooled ? &pool : NULL);
    rations_fini(&r);
    if (legacy)
        ration_remove(ground);
    if (pooled)
        cgroups_fini(&pool);
    if (grouped)
        grounds_remove(g.path);
    return means;
}

static void check_memory(struct doctor *d) {
    enum ration_means means = try_rations();
    if (means == RATION_NONE)
        tell(d, "memory limits", VERDICT_WARN,
             "have the memory controller delegated: systemd-run --user --scope -p Delegate=yes "
             "storm up; as root, boot with cgroup_enable=memory",
             "no memory controller for this user: --mem limits only what each process allocates");
    else
        tell(d, "memory limits", VERDICT_OK, NULL, "by control groups, version %d",
             means == RATION_UNIFIED ? 2 : 1);
}

static void check_confines(struct doctor *d) {
    bool groups = check_groups(d);
    bool namespaces = check_namespaces(d);
    if (groups || namespaces)
        tell(d, "jobs", VERDICT_OK, NULL, "%s",
             guarantee_text(groups ? GUARANTEE_CGROUP : GUARANTEE_NAMESPACE));
    else
        tell(d, "jobs", VERDICT_WARN, "either of the two above helps", "%s",
             guarantee_text(GUARANTEE_SUBREAPER));
}

/* Does it work in a process of its own? 0 or errno. */
static int attempt(int (*what)(void)) {
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        return errno;
    if (pid == 0)
        _exit(what() < 0 ? errno : 0);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
}

static int try_real_time(void) {
    struct sched_param p = {.sched_priority = 1};
    return sched_setscheduler(0, SCHED_FIFO, &p);
}

static void check_privileges(struct doctor *d) {
    int error = attempt(try_real_time);
    if (error == 0)
        tell(d, "real-time priority", VERDICT_OK, NULL, "allowed");
    else
        tell(d, "real-time priority", VERDICT_WARN,
             "only matters for quanta below 2 ms: set rtprio in /etc/security/limits.conf",
             "not for this user (%s)", strerror(error));
}

/* ---- limits ---- */

static uint64_t hard_limit(int which) {
    struct rlimit r;
    if (getrlimit((__rlimit_resource_t)which, &r) < 0 || r.rlim_max == RLIM_INFINITY)
        return UINT64_MAX;
    return r.rlim_max;
}

static uint64_t read_number(const char *path) {
    uint64_t value = UINT64_MAX;
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return value;
    if (fscanf(f, "%" SCNu64, &value) != 1)
        value = UINT64_MAX;
    fclose(f);
    return value;
}

static void tell_room(struct doctor *d, const char *what, uint64_t limit, uint64_t nodes,
                      const char *advice) {
    char text[24] = "no limit";
    if (limit != UINT64_MAX)
        snprintf(text, sizeof text, "%" PRIu64, limit);
    if (nodes >= NODES_WANTED)
        tell(d, what, VERDICT_OK, NULL, "%s: room for %d nodes and more", text, NODES_WANTED);
    else
        tell(d, what, nodes < 2 ? VERDICT_FAIL : VERDICT_WARN, advice,
             "%s: room for %" PRIu64 " nodes", text, nodes);
}

/* The manager may have a link of two lanes to each node; a node has a manager and a launcher beside
 * what it runs. */
static void check_limits(struct doctor *d) {
    enum { FILES_OTHER = 256, PROCESSES_OTHER = 256 };
    uint64_t files = hard_limit(RLIMIT_NOFILE);
    uint64_t processes = geteuid() == 0 ? UINT64_MAX : hard_limit(RLIMIT_NPROC);
    uint64_t pid_max = read_number("/proc/sys/kernel/pid_max");
    tell_room(d, "open files", files, files < FILES_OTHER ? 0 : (files - FILES_OTHER) / 2,
              "raise the hard limit: nofile in /etc/security/limits.conf");
    tell_room(d, "processes", processes,
              processes < PROCESSES_OTHER ? 0 : (processes - PROCESSES_OTHER) / 3,
              "raise the hard limit: nproc in /etc/security/limits.conf");
    tell_room(d, "process numbers", pid_max,
              pid_max < PROCESSES_OTHER ? 0 : (pid_max - PROCESSES_OTHER) / 3,
              "as root: sysctl kernel.pid_max=4194304");
}

/* ---- the installation ---- */

static void check_programs(struct doctor *d) {
    static const char *const names[] = {"storm-mm", "storm-pl"};
    char path[PATH_MAX];
    for (size_t i = 0; i < 2; i++) {
        if (companion_find(names[i], path, sizeof path) == 0)
            tell(d, names[i], VERDICT_OK, NULL, "%s", path);
        else
            tell(d, names[i], VERDICT_FAIL, "install STORM as a whole",
                 "neither beside storm nor in ../libexec/storm");
    }
}

/* Files go by streams without it, and nothing is lost by that where no network can write into memory. */
static void check_fabric(struct doctor *d) {
    struct fabrics f;
    char words[256] = "";
    int r = fabrics_list(&f);
    if (r < 0) {
        tell(d, "fabric", VERDICT_OK, NULL, "%s; files go by streams",
             r == -ENOENT ? "none: built without libfabric" : "libfabric has no provider for it");
        return;
    }
    for (uint32_t i = 0; i < f.count; i++) {
        size_t len = strlen(words);
        snprintf(words + len, sizeof words - len, "%s%s%s", len > 0 ? ", " : "", f.names[i],
                 fabrics_real(f.names[i]) ? " (writes into memory)" : "");
    }
    tell(d, "fabric", VERDICT_OK, NULL, "for storm cp --fabric ofi:PROVIDER: %s", words);
}

/* The folder itself, or where it would be made. */
static bool check_home(struct doctor *d, char home[CLUSTER_PATH_MAX]) {
    char path[CLUSTER_PATH_MAX];
    int r = cluster_home(home, CLUSTER_PATH_MAX);
    if (r < 0) {
        tell(d, "STORM_HOME", VERDICT_FAIL, "set STORM_HOME to a folder of yours", "%s",
             strerror(-r));
        return false;
    }
    snprintf(path, sizeof path, "%s", home);
    while (access(path, F_OK) < 0 && errno == ENOENT && strrchr(path, '/') > path)
        *strrchr(path, '/') = '\0';
    bool whole = strcmp(path, home) == 0;
    if (access(path, W_OK | X_OK) == 0)
        tell(d, "STORM_HOME", VERDICT_OK, NULL, "%s%s", home, whole ? "" : " (made when needed)");
    else
        tell(d, "STORM_HOME", VERDICT_FAIL, "set STORM_HOME to a folder of yours", "%s: %s", path,
             strerror(errno));
    return whole;
}

/* ---- clusters ---- */

static void check_running(struct doctor *d, const char *what, const char *folder) {
    struct cluster c = {0};
    struct cluster_trouble trouble;
    struct cluster_row row;
    int r = cluster_load(&c, folder, &trouble);
    struct pulse *p = r < 0 ? NULL : pulse_new(&c);
    if (r < 0)
        tell(d, what, VERDICT_WARN, "is it just coming up? if not: storm down", "its file: %s",
             strerror(-r));
    else if (p == NULL || !pulse_ask(p, clock_ns() + ANSWER_NS, &row))
        tell(d, what, VERDICT_WARN, "see its log; storm down ends it all the same",
             "its manager does not answer (log: %s/log)", folder);
    else
        tell(d, what, row.up == row.nodes ? VERDICT_OK : VERDICT_WARN,
             row.up == row.nodes ? NULL : "storm nodes shows which are missing",
             "%" PRIu32 " of %" PRIu32 " nodes up, %" PRIu32 " jobs running, %" PRIu32
             " queued; jobs are held by: %s",
             row.up, row.nodes, row.running, row.queued, c.guarantee);
    pulse_free(p);
    cluster_free(&c);
}

static void check_cluster(struct doctor *d, const char *home, const char *name) {
    char folder[CLUSTER_PATH_MAX + 256], file[CLUSTER_PATH_MAX + 272], what[64];
    struct claim_holder holder;
    snprintf(folder, sizeof folder, "%s/%s", home, name);
    snprintf(file, sizeof file, "%s/cluster", folder);
    snprintf(what, sizeof what, "cluster %.48s", name);
    int r = claim_look(folder, &holder);
    if (r == 1)
        check_running(d, what, folder);
    else if (r < 0 && r != -ENOTDIR)
        tell(d, what, VERDICT_WARN, "is it another user's?", "%s", strerror(-r));
    else if (access(file, F_OK) == 0)
        tell(d, what, VERDICT_WARN, "storm down takes it away, storm up uses it again",
             "left behind by a crash");
}

static void check_clusters(struct doctor *d, const char *home) {
    struct dirent **names;
    int count = scandir(home, &names, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (names[i]->d_name[0] != '.')
            check_cluster(d, home, names[i]->d_name);
        free(names[i]);
    }
    if (count >= 0)
        free(names);
}

static void examine(struct doctor *d) {
    char home[CLUSTER_PATH_MAX];
    check_kernel(d);
    check_machine(d);
    check_calls(d);
    check_confines(d);
    check_memory(d);
    check_privileges(d);
    check_limits(d);
    check_programs(d);
    check_fabric(d);
    if (check_home(d, home))
        check_clusters(d, home);
}

int doctor_main(int argc, char **argv) {
    struct doctor d = {.out.out = stdout};
    const struct option table[] = {{"json", OPTION_FLAG, &d.json, NULL, "as one JSON object"}, {0}};
    int count = options_parse(table, argc, argv);
    if (count == OPTIONS_HELP) {
        puts(
            "usage: storm doctor [--json]\n"
            "\n"
            "Examines what STORM needs of this machine, and the clusters that are there; says what\n"
            "to do where something is amiss. Exit status: 0, or 1 if something fails.\n");
        options_print(table, stdout);
        return STATUS_OK;
    }
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    if (count > 0)
        return complain("doctor", "what is \"%s\" for? leave it out", argv[1]);
    if (d.json) {
        json_open(&d.out, NULL, '{');
        json_open(&d.out, "checks", '[');
    }
    examine(&d);
    if (d.json) {
        json_close(&d.out, ']');
        json_bool(&d.out, "ok", d.found[VERDICT_FAIL] == 0);
        json_close(&d.out, '}');
        putchar('\n');
    }
    return d.found[VERDICT_FAIL] == 0 ? STATUS_OK : STATUS_FAILED;
}
