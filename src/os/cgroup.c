/* SPDX-License-Identifier: MIT */
/* Cgroups for runs: see cgroup.h. */
#include "os/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/units.h"
#include "os/spawn.h"

enum { CGROUP2_MAGIC = 0x63677270 };
enum { SPARE = 2 };
enum { PATIENCE_MS = 10, PATIENCE_TIMES = 200 }; /* for what was killed to be gone */

/* ---- where ---- */

/* The rest of the first line of a file that has `key` before it; false if there is none. */
static bool line_after(const char *path, const char *key, char *rest, size_t size) {
    FILE *f = fopen(path, "re");
    char line[PATH_MAX + 64];
    bool found = false;
    while (f != NULL && !found && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, key, strlen(key)) == 0) {
            line[strcspn(line, "\n")] = '\0';
            found = snprintf(rest, size, "%s", line + strlen(key)) < (int)size;
        }
    if (f != NULL)
        fclose(f);
    return found;
}

/* mountinfo: id parent device ROOT PLACE options ... - TYPE source options */
static bool find_mount(char *path, size_t size) {
    FILE *f = fopen("/proc/self/mountinfo", "re");
    char line[2 * PATH_MAX], root[PATH_MAX], place[PATH_MAX];
    bool found = false;
    while (f != NULL && !found && fgets(line, sizeof line, f) != NULL) {
        if (strstr(line, " - cgroup2 ") == NULL ||
            sscanf(line, "%*s %*s %*s %4095s %4095s", root, place) != 2)
            continue;
        found = strcmp(root, "/") == 0 && snprintf(path, size, "%s", place) < (int)size;
    }
    if (f != NULL)
        fclose(f);
    return found;
}

int cgroup_own(char *path, size_t size) {
    char mount[PATH_MAX], below[PATH_MAX];
    if (!find_mount(mount, sizeof mount) ||
        !line_after("/proc/self/cgroup", "0::", below, sizeof below))
        return -ENOENT;
    bool top = strcmp(below, "/") == 0;
    return snprintf(path, size, "%s%s", mount, top ? "" : below) < (int)size ? 0 : -ENAMETOOLONG;
}

/* ---- one cgroup ---- */

static int put(int folder, const char *name, const char *value) {
    int fd = openat(folder, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = write(fd, value, strlen(value)) < 0 ? -errno : 0;
    close(fd);
    return r;
}

static bool says_empty(int events) {
    char text[256];
    ssize_t n = pread(events, text, sizeof text - 1, 0);
    if (n < 0)
        return errno == ENODEV; /* it is gone altogether */
    text[n] = '\0';
    return strstr(text, "populated 0") != NULL;
}

bool cgroup_empty(const struct cgroup *c) {
    return says_empty(c->events.fd);
}

typedef bool dealing(const void *context, pid_t who);

/* Goes through the numbers in a file: how many were dealt with, or -errno. */
static int each(int folder, const char *file, dealing *deal, const void *context) {
    int fd = openat(folder, file, O_RDONLY | O_CLOEXEC);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    int count = 0, who;
    if (f == NULL) {
        int r = -errno;
        if (fd >= 0)
            close(fd);
        return r;
    }
    while (fscanf(f, "%d", &who) == 1)
        count += who > 0 && deal(context, who);
    fclose(f);
    return count;
}

static bool send_signal(const void *number, pid_t pid) {
    return kill(pid, *(const int *)number) == 0;
}

/* The processes in the cgroup itself are sent a signal; those born meanwhile may miss it. */
static int signal_all(int folder, int number) {
    int r = each(folder, "cgroup.procs", send_signal, &number);
    return r < 0 ? r : 0;
}

int cgroup_signal_in(int folder, int number) {
    return signal_all(folder, number);
}

/* In the groups below it, one for each process. */
static int each_below(int folder, const char *file, dealing *deal, const void *context) {
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), count = 0;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        int r = -errno;
        if (fd >= 0)
            close(fd);
        return r;
    }
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        int below = e->d_type != DT_DIR || e->d_name[0] == '.'
                        ? -1
                        : openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int n = below < 0 ? 0 : each(below, file, deal, context);
        count += n > 0 ? n : 0;
        if (below >= 0)
            close(below);
    }
    closedir(dir);
    return count;
}

static int each_of(const struct cgroup *c, const char *file, dealing *deal, const void *context) {
    return c->divided ? each_below(c->folder, file, deal, context)
                      : each(c->folder, file, deal, context);
}

int cgroup_signal(const struct cgroup *c, int number) {
    int r = each_of(c, "cgroup.procs", send_signal, &number);
    return r < 0 ? r : 0;
}

int cgroup_each(const struct cgroup *c, dealing *deal, const void *context) {
    return each_of(c, "cgroup.threads", deal, context);
}

/* Kernels before 5.14 cannot end them at once. */
static int kill_all(int folder) {
    int r = put(folder, "cgroup.kill", "1");
    return r == -ENOENT ? signal_all(folder, SIGKILL) : r;
}

int cgroup_kill(struct cgroup *c) {
    c->killed = true;
    int r = put(c->folder, "cgroup.kill", "1");
    return r == -ENOENT ? cgroup_signal(c, SIGKILL) : r;
}

/* Gangs are switched by this a thousand times a second: the file stays open. */
int cgroup_freeze(struct cgroup *c, bool stop) {
    c->frozen = stop;
    if (c->freezer < 0)
        c->freezer = spawn_aside(openat(c->folder, "cgroup.freeze", O_WRONLY | O_CLOEXEC));
    if (c->freezer < 0)
        return -errno;
    return pwrite(c->freezer, stop ? "1" : "0", 1, 0) < 0 ? -errno : 0;
}

static uint64_t number_after(const char *text, const char *key) {
    const char *at = strstr(text, key);
    return at == NULL ? 0 : strtoull(at + strlen(key), NULL, 10);
}

/* Its numbers go on from run to run: what was there when the last one ended is not of this one. */
void cgroup_usage(struct cgroup *c, struct usage *ret) {
    char text[1024];
    ssize_t n = c->stat < 0 ? -1 : pread(c->stat, text, sizeof text - 1, 0);
    if (n > 0) {
        text[n] = '\0';
        c->spent[0] = number_after(text, "user_usec ") * NS_PER_US;
        c->spent[1] = number_after(text, "system_usec ") * NS_PER_US;
        ret->user_ns = c->spent[0] - c->before[0];
        ret->system_ns = c->spent[1] - c->before[1];
    }
    if (c->divided && c->peak < 0) /* then there is a controller of memory since it was made */
        c->peak = spawn_aside(openat(c->folder, "memory.peak", O_RDONLY | O_CLOEXEC));
    n = c->peak < 0 ? -1 : pread(c->peak, text, sizeof text - 1, 0);
    if (n > 0) {
        text[n] = '\0';
        ret->node_bytes = strtoull(text, NULL, 10);
    }
}

/* Older kernels cannot begin anew with the peak: then it is known of the first run only. */
static void usage_again(struct cgroup *c) {
    memcpy(c->before, c->spent, sizeof c->before);
    if (c->peak < 0 || pwrite(c->peak, "r", 1, 0) == 1)
        return;
    close(c->peak);
    c->peak = -1;
}

static void cgroup_free(struct cgroup *c) {
    if (c->folder >= 0)
        close(c->folder);
    if (c->events.fd >= 0)
        close(c->events.fd);
    if (c->freezer >= 0)
        close(c->freezer);
    if (c->stat >= 0)
        close(c->stat);
    if (c->peak >= 0)
        close(c->peak);
    free(c);
}

/* ---- removing ---- */

/* Those below go first; how deep they can be is the kernel's business. */
static int remove_tree(int above, const char *name) {
    if (unlinkat(above, name, AT_REMOVEDIR) == 0)
        return 0;
    int fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL)
        return -errno;
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        if (e->d_type == DT_DIR && e->d_name[0] != '.')
            remove_tree(fd, e->d_name);
    closedir(dir);
    return unlinkat(above, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

/* Ends what is in it and waits a moment for that, then removes it. */
static int clear(int above, const char *name) {
    int folder = openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -errno;
    int events = openat(folder, "cgroup.events", O_RDONLY | O_CLOEXEC);
    if (!says_empty(events))
        kill_all(folder);
    for (int i = 0; i < PATIENCE_TIMES && !says_empty(events); i++) {
        struct pollfd p = {.fd = events, .events = POLLPRI};
        poll(&p, 1, PATIENCE_MS);
    }
    close(events);
    close(folder);
    return remove_tree(above, name);
}

/* ---- the pool ---- */

/* Whoever is born in a cgroup must have been allowed to write there. If the kernel does not know the file yet
 * it makes itself a picture of it for the question, each time; from now on it does. */
static void acquaint(const struct cgroup *c) {
    faccessat(c->folder, "cgroup.procs", W_OK, 0);
}

static struct cgroup *make(struct cgroups *p) {
    struct cgroup *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    list_init(&c->link);
    c->folder = c->freezer = c->stat = c->peak = c->events.fd = -1;
    snprintf(c->name, sizeof c->name, "run%u", p->count++);
    if (mkdirat(p->folder, c->name, 0755) == 0) {
        c->folder = spawn_aside(openat(p->folder, c->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (c->folder >= 0)
            c->events.fd = spawn_aside(openat(c->folder, "cgroup.events", O_RDONLY | O_CLOEXEC));
        if (c->events.fd >= 0) {
            acquaint(c);
            c->stat = spawn_aside(openat(c->folder, "cpu.stat", O_RDONLY | O_CLOEXEC));
            c->peak = spawn_aside(openat(c->folder, "memory.peak", O_RDWR | O_CLOEXEC));
            return c;
        }
        unlinkat(p->folder, c->name, AT_REMOVEDIR);
    }
    cgroup_free(c);
    return NULL;
}

void cgroups_stock(struct cgroups *p) {
    uint32_t have = 0;
    LIST_EACH (l, &p->spare)
        have++;
    for (struct cgroup *c; p->folder >= 0 && have < SPARE && (c = make(p)) != NULL; have++)
        list_push_back(&p->spare, &c->link);
}

static void clear_all(struct cgroups *p) {
    int fd = openat(p->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        if (e->d_type == DT_DIR && e->d_name[0] != '.')
            clear(p->folder, e->d_name);
    if (dir != NULL)
        closedir(dir);
}

int cgroups_init(struct cgroups *p, const char *path) {
    struct statfs at;
    *p = (struct cgroups){.folder = -1};
    list_init(&p->spare);
    p->path = strdup(path);
    if (p->path == NULL)
        return -ENOMEM;
    p->made = mkdir(path, 0755) == 0;
    p->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = p->folder < 0 ? -errno : 0;
    if (r == 0 && (fstatfs(p->folder, &at) < 0 || (long)at.f_type != CGROUP2_MAGIC))
        r = -EMEDIUMTYPE;
    if (r == 0) {
        clear_all(p);
        cgroups_stock(p);
        if (list_empty(&p->spare))
            r = -EACCES;
    }
    if (r < 0)
        cgroups_fini(p);
    return r;
}

void cgroups_fini(struct cgroups *p) {
    for (struct list *l; (l = list_pop_front(&p->spare)) != NULL;) {
        struct cgroup *c = CONTAINER_OF(l, struct cgroup, link);
        clear(p->folder, c->name);
        cgroup_free(c);
    }
    if (p->folder >= 0)
        close(p->folder);
    if (p->made)
        rmdir(p->path);
    free(p->path);
    p->path = NULL;
    p->folder = -1;
}

struct cgroup *cgroups_take(struct cgroups *p) {
    struct list *l = list_pop_front(&p->spare);
    if (l != NULL)
        return CONTAINER_OF(l, struct cgroup, link);
    return p->folder < 0 ? NULL : make(p);
}

/* A folder whose number of links is not 2 has others below it, which the run has made. */
static bool reusable(struct cgroup *c) {
    struct stat st;
    if (c->killed || c->divided || (c->frozen && cgroup_freeze(c, false) < 0))
        return false;
    return fstat(c->folder, &st) == 0 && st.st_nlink == 2;
}

void cgroups_give(struct cgroups *p, struct cgroup *c, struct loop *l) {
    if (c->watched)
        loop_remove(l, &c->events);
    c->watched = false;
    if (reusable(c)) {
        usage_again(c);
        list_push_front(&p->spare, &c->link);
        return;
    }
    clear(p->folder, c->name);
    cgroup_free(c);
}
