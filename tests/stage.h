/* SPDX-License-Identifier: MIT */
/* A cluster of this machine for tests that use it as people do: by the command, from outside.
 *
 * A stage is a home of its own in a temporary folder with one cluster in it. Commands run with a limit of
 * time; daemons are found as children of the cluster's watcher; what jobs have left behind is looked for
 * in their control groups and, wherever it went, by the environment that every process of a job has. */
#pragma once

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.h"
#include "os/loop.h"
#include "tap.h"

enum { STAGE_PATH = 512, STAGE_NODES_MAX = 64, STAGE_DAEMONS_MAX = 2 * STAGE_NODES_MAX + 2 };
enum { STAGE_COMM = 16, STAGE_ARGS = 64, STAGE_TEXT = 16 * 1024, STAGE_LINE = 64 };

struct stage_daemon {
    pid_t pid;
    char name[STAGE_COMM]; /* storm-mm, storm-n3, storm-pl n3, storm-scribe */
};

struct stage {
    char storm[PATH_MAX]; /* the command */
    char self[PATH_MAX];  /* this program, for jobs */
    char home[STAGE_PATH];
    char group[STAGE_PATH]; /* empty: none */
    pid_t watcher;
    uint32_t nodes, pes;
    struct stage_daemon daemons[STAGE_DAEMONS_MAX];
    uint32_t daemon_count;
};

/* ---- files ---- */

/* All of a file, or as much as fits, with a zero behind it; how much, 0 if it cannot be read. */
static inline size_t stage_read(const char *path, char *out, size_t cap) {
    size_t len = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && len < cap - 1) {
        ssize_t got = read(fd, out + len, cap - 1 - len);
        if (got <= 0)
            break;
        len += (size_t)got;
    }
    if (fd >= 0)
        close(fd);
    out[len] = '\0';
    return len;
}

static inline void stage_print(const char *what, const char *text) {
    printf("# ---- %s\n", what);
    for (const char *at = text; *at != '\0';) {
        size_t len = strcspn(at, "\n");
        printf("# %.*s\n", (int)len, at);
        at += len + (at[len] == '\n');
    }
    fflush(stdout);
}

static inline uint64_t stage_number(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? strtoull(text, NULL, 10) : otherwise;
}

/* ---- what processes write, and whoever reads it expects ---- */

static inline void stage_line(char out[STAGE_LINE + 1], uint32_t rank, uint32_t line) {
    snprintf(out, STAGE_LINE + 1, "rank %05" PRIu32 " line %08" PRIu32 " %08x %029x\n",
             rank % 100000, line % 100000000, (rank * 2654435761U) ^ (line * 40503U), line);
}

static inline void stage_put(const void *bytes, size_t len) {
    for (size_t at = 0; at < len;) {
        ssize_t put = write(STDOUT_FILENO, (const char *)bytes + at, len - at);
        if (put <= 0)
            _exit(97);
        at += (size_t)put;
    }
}

static inline void stage_put_lines(uint32_t rank, uint32_t lines) {
    static char text[512 * STAGE_LINE];
    for (uint32_t i = 0; i < lines; i++) {
        char line[STAGE_LINE + 1];
        stage_line(line, rank, i);
        memcpy(text + i % 512 * STAGE_LINE, line, STAGE_LINE);
        if (i % 512 == 511 || i + 1 == lines)
            stage_put(text, (i % 512 + 1) * (size_t)STAGE_LINE);
    }
}

/* ---- commands ---- */

struct stage_io {
    const char *in, *out, *err; /* files; NULL: /dev/null */
    const char *folder;         /* to work in; NULL: as we */
};

static inline void stage_open(const char *path, int flags, int fd) {
    int from = open(path == NULL ? "/dev/null" : path, flags | O_CLOEXEC, 0600);
    if (from < 0 || dup2(from, fd) < 0)
        _exit(99);
}

/* Starts a program in a process group of its own. */
static inline pid_t stage_start(char *const *argv, const struct stage_io *io) {
    pid_t pid = fork();
    if (pid != 0) {
        if (pid > 0)
            setpgid(pid, pid);
        return pid;
    }
    setpgid(0, 0);
    signal(SIGINT, SIG_DFL); /* whoever runs tests in the background may have it ignored */
    stage_open(io->in, O_RDONLY, 0);
    stage_open(io->out, O_WRONLY | O_CREAT | O_TRUNC, 1);
    stage_open(io->err, O_WRONLY | O_CREAT | O_TRUNC, 2);
    if (io->folder != NULL && chdir(io->folder) < 0)
        _exit(99);
    execv(argv[0], argv);
    _exit(99);
}

/* Waits for a child until a moment: its exit status, 128 + signal, or -ETIMEDOUT while it runs. */
static inline int stage_wait(pid_t pid, uint64_t until_ns) {
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    uint64_t now = clock_ns();
    int ready = poll(&p, 1, now < until_ns ? (int)((until_ns - now) / NS_PER_MS + 1) : 0);
    int status;
    close(fd);
    if (ready <= 0)
        return -ETIMEDOUT;
    if (waitpid(pid, &status, 0) != pid)
        return -ECHILD;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Words, ended by NULL, behind `storm`; the list is good until the next call. */
static inline char **stage_words(struct stage *s, va_list args) {
    static char *argv[STAGE_ARGS];
    size_t count = 0;
    argv[count++] = s->storm;
    for (char *word = va_arg(args, char *); word != NULL && count < STAGE_ARGS - 1;
         word = va_arg(args, char *))
        argv[count++] = word;
    argv[count] = NULL;
    return argv;
}

static inline pid_t stage_begin(struct stage *s, const struct stage_io *io, ...) {
    va_list args;
    va_start(args, io);
    pid_t pid = stage_start(stage_words(s, args), io);
    va_end(args);
    return pid;
}

/* Runs `storm WORDS`; its status, or -ETIMEDOUT if it was not there after 20 s and was killed. What it
 * printed, complaints behind the rest, is in `out`. */
static inline int stage_storm(struct stage *s, char out[STAGE_TEXT], ...) {
    char path[2][STAGE_PATH + 8];
    va_list args;
    for (int i = 0; i < 2; i++)
        snprintf(path[i], sizeof path[i], "%s/say%d", s->home, i);
    struct stage_io io = {.out = path[0], .err = path[1]};
    va_start(args, out);
    pid_t pid = stage_start(stage_words(s, args), &io);
    va_end(args);
    int status = stage_wait(pid, clock_ns() + 20 * NS_PER_S);
    if (status == -ETIMEDOUT) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    size_t len = stage_read(path[0], out, STAGE_TEXT);
    stage_read(path[1], out + len, STAGE_TEXT - len);
    return status;
}

/* ---- daemons ---- */

/* Parent and state of a process; false if there is none. */
static inline bool stage_stat(pid_t pid, pid_t *ret_parent, char *ret_state,
                              char name[STAGE_COMM]) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    if (stage_read(path, text, sizeof text) == 0)
        return false;
    const char *open = strchr(text, '('), *close = strrchr(text, ')');
    if (open == NULL || close == NULL || close < open)
        return false;
    snprintf(name, STAGE_COMM, "%.*s", (int)(close - open - 1), open + 1);
    int parent = 0;
    if (sscanf(close + 1, " %c %d", ret_state, &parent) != 2)
        return false;
    *ret_parent = parent;
    return true;
}

/* Who looks after the cluster just now. */
static inline void stage_look(struct stage *s) {
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)s->watcher, (int)s->watcher);
    stage_read(path, text, sizeof text);
    s->daemon_count = 0;
    for (char *at = text; *at != '\0' && s->daemon_count < STAGE_DAEMONS_MAX;) {
        struct stage_daemon *d = &s->daemons[s->daemon_count];
        pid_t parent;
        char state;
        d->pid = (pid_t)strtol(at, &at, 10);
        at += strspn(at, " \n");
        if (stage_stat(d->pid, &parent, &state, d->name) && parent == s->watcher && state != 'Z')
            s->daemon_count++;
    }
}

/* 0 if there is none of that name; see stage_look. */
static inline pid_t stage_daemon(const struct stage *s, const char *name) {
    for (uint32_t i = 0; i < s->daemon_count; i++)
        if (strcmp(s->daemons[i].name, name) == 0)
            return s->daemons[i].pid;
    return 0;
}

static inline uint32_t stage_descriptors(pid_t pid) {
    char path[64];
    uint32_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    while (dir != NULL && readdir(dir) != NULL)
        count++;
    if (dir != NULL)
        closedir(dir);
    return count < 2 ? 0 : count - 2; /* itself and its parent */
}

/* What they are, for whoever has to find the one that should not be there. */
static inline void stage_tell_descriptors(pid_t pid) {
    char path[320], to[128];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        snprintf(path, sizeof path, "/proc/%d/fd/%s", (int)pid, e->d_name);
        ssize_t len = readlink(path, to, sizeof to - 1);
        if (len > 0)
            printf("#   %s -> %.*s\n", e->d_name, (int)len, to);
    }
    if (dir != NULL)
        closedir(dir);
}

/* ---- what is left of jobs ---- */

/* Whether a process belongs to a job of this stage; zombies have no environment. */
static inline bool stage_owns(const struct stage *s, pid_t pid) {
    static char text[256 * 1024];
    char path[64], home[STAGE_PATH + 16];
    bool job = false, ours = false;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    size_t len = stage_read(path, text, sizeof text);
    snprintf(home, sizeof home, "STORM_HOME=%s", s->home);
    for (size_t at = 0; at < len; at += strlen(text + at) + 1) {
        job = job || strncmp(text + at, "STORM_JOB_ID=", 13) == 0;
        ours = ours || strcmp(text + at, home) == 0;
    }
    return job && ours;
}

/* Calls for every process there is. */
static inline uint32_t stage_count(const struct stage *s,
                                   bool (*counts)(const struct stage *s, pid_t pid)) {
    uint32_t count = 0;
    DIR *dir = opendir("/proc");
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        if (isdigit((unsigned char)e->d_name[0]))
            count += counts(s, (pid_t)atoi(e->d_name));
    if (dir != NULL)
        closedir(dir);
    return count;
}

/* A zombie below the watcher or one of its daemons. */
static inline bool stage_zombie(const struct stage *s, pid_t pid) {
    pid_t parent;
    char state, name[STAGE_COMM];
    if (!stage_stat(pid, &parent, &state, name) || state != 'Z')
        return false;
    bool ours = parent == s->watcher;
    for (uint32_t i = 0; i < s->daemon_count; i++)
        ours = ours || parent == s->daemons[i].pid;
    return ours;
}

/* Processes in control groups below this one. */
static inline uint32_t stage_grouped(const char *group) {
    char path[STAGE_PATH + 300], text[4096];
    uint32_t count = 0;
    DIR *dir = opendir(group);
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        if (e->d_type != DT_DIR || e->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s/cgroup.procs", group, e->d_name);
        stage_read(path, text, sizeof text);
        for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
            count++;
        path[strlen(path) - strlen("/cgroup.procs")] = '\0';
        count += stage_grouped(path);
    }
    if (dir != NULL)
        closedir(dir);
    return count;
}

/* ---- beginning and end ---- */

/* The value of a line of the cluster's file. */
static inline void stage_setting(const struct stage *s, const char *key, char *out, size_t cap) {
    char path[STAGE_PATH + 32], text[4096], mark[32];
    snprintf(path, sizeof path, "%s/local/cluster", s->home);
    stage_read(path, text, sizeof text);
    snprintf(mark, sizeof mark, "\n%s ", key);
    const char *at = strstr(text, mark);
    *out = '\0';
    if (at != NULL) {
        at += strlen(mark);
        snprintf(out, cap, "%.*s", (int)strcspn(at, "\n"), at);
    }
}

static inline void stage_init(struct stage *s, const char *storm) {
    const char *tmp = getenv("TMPDIR");
    *s = (struct stage){0};
    if (realpath(storm, s->storm) == NULL)
        snprintf(s->storm, sizeof s->storm, "%s", storm);
    if (readlink("/proc/self/exe", s->self, sizeof s->self - 1) < 0)
        _exit(99);
    snprintf(s->home, sizeof s->home, "%s/storm-stage-XXXXXX", tmp != NULL ? tmp : "/tmp");
    if (mkdtemp(s->home) == NULL)
        _exit(99);
    setenv("STORM_HOME", s->home, 1);
    unsetenv("STORM_CLUSTER");
    setenv("NO_COLOR", "1", 1);
    setenv("ASAN_OPTIONS", "detect_leaks=0", 0); /* many short processes: see tests/meson.build */
}

static inline bool stage_up(struct stage *s, uint32_t nodes, uint32_t pes, char *orphan) {
    static char said[STAGE_TEXT];
    char local[16], each[16], text[64], path[STAGE_PATH + 32];
    snprintf(local, sizeof local, "%" PRIu32, nodes);
    snprintf(each, sizeof each, "%" PRIu32, pes);
    int status =
        stage_storm(s, said, "up", "--local", local, "--pes", each, "--orphan", orphan, NULL);
    if (!CHECK_EQ(status, 0)) {
        stage_print("storm up", said);
        return false;
    }
    s->nodes = nodes;
    s->pes = pes;
    stage_setting(s, "watcher", text, sizeof text);
    s->watcher = (pid_t)atoi(text);
    snprintf(path, sizeof path, "%s/local/cgroup", s->home);
    stage_read(path, s->group, sizeof s->group);
    s->group[strcspn(s->group, "\n")] = '\0';
    stage_look(s);
    return CHECK(s->watcher > 1) && CHECK(s->daemon_count >= 2 * nodes + 1);
}

static inline void stage_log(const struct stage *s) {
    static char text[256 * 1024];
    char path[STAGE_PATH + 32];
    snprintf(path, sizeof path, "%s/local/log", s->home);
    size_t len = stage_read(path, text, sizeof text);
    stage_print("log", text + (len > 3000 ? len - 3000 : 0));
}

static inline void stage_down(struct stage *s) {
    static char said[STAGE_TEXT];
    if (!CHECK_EQ(stage_storm(s, said, "down", NULL), 0))
        stage_print("storm down", said);
    for (int i = 0; i < 100 && stage_count(s, stage_owns) > 0; i++)
        poll(NULL, 0, 50);
    CHECK_EQ(stage_count(s, stage_owns), 0);
}

/* A home in which something went wrong stays for whoever looks into it. */
static inline void stage_leave(const struct stage *s, bool keep) {
    char command[STAGE_PATH + 16];
    if (keep) {
        printf("# left behind: %s\n", s->home);
        return;
    }
    snprintf(command, sizeof command, "rm -rf %s", s->home);
    if (system(command) != 0)
        printf("# %s stays\n", s->home);
}
