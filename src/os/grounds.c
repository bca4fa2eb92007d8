/* SPDX-License-Identifier: MIT */
/* A cluster's place among the control groups: see grounds.h. */
#include "os/grounds.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long the processes of a group may take to be gone once they are killed. */
enum { GONE_MS = 5000, DEPTH_MAX = 16 };

/* ---- where ---- */

int grounds_mount(char out[PATH_MAX]) {
    char line[2 * PATH_MAX], at[PATH_MAX];
    FILE *f = fopen("/proc/self/mountinfo", "re");
    int r = -ENOENT;
    if (f == NULL)
        return -errno;
    while (r < 0 && fgets(line, sizeof line, f) != NULL)
        if (strstr(line, " - cgroup2 ") != NULL &&
            sscanf(line, "%*s %*s %*s %*s %4095s", at) == 1) {
            snprintf(out, PATH_MAX, "%s", at);
            r = 0;
        }
    fclose(f);
    return r;
}

/* The group that we are in, below the mount. */
static int own_group(const char *mount, char out[PATH_MAX]) {
    char line[PATH_MAX];
    FILE *f = fopen("/proc/self/cgroup", "re");
    int r = -ENOENT;
    if (f == NULL)
        return -errno;
    while (r < 0 && fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, "0::/", 4) == 0) {
            line[strcspn(line, "\n")] = '\0';
            int n =
                snprintf(out, PATH_MAX, "%s%s", mount, strcmp(line + 3, "/") == 0 ? "" : line + 3);
            r = n < PATH_MAX ? 0 : -ENAMETOOLONG;
        }
    fclose(f);
    return r;
}

/* ---- files of a group ---- */

static int open_file(const char *group, const char *name, int flags) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", group, name) >= PATH_MAX)
        return -ENAMETOOLONG;
    int fd = open(path, flags | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int write_file(const char *group, const char *name, const char *text) {
    int fd = open_file(group, name, O_WRONLY);
    if (fd < 0)
        return fd;
    ssize_t len = (ssize_t)strlen(text);
    int r = write(fd, text, (size_t)len) == len ? 0 : -errno;
    close(fd);
    return r;
}

static bool populated(int events) {
    char text[256] = "";
    return pread(events, text, sizeof text - 1, 0) > 0 && strstr(text, "populated 1") != NULL;
}

/* The kernel says when the last process is gone. */
static void await_empty(const char *group) {
    int events = open_file(group, "cgroup.events", O_RDONLY);
    for (int i = 0; events >= 0 && i < GONE_MS / 100 && populated(events); i++) {
        struct pollfd p = {.fd = events, .events = POLLPRI};
        poll(&p, 1, 100);
    }
    if (events >= 0)
        close(events);
}

/* ---- making ---- */

/* A process that moves itself into it, as a launcher's children will. */
static int try_group(const char *path) {
    int kill_file = open_file(path, "cgroup.kill", O_WRONLY);
    if (kill_file < 0)
        return kill_file == -ENOENT ? -EOPNOTSUPP : kill_file;
    close(kill_file);
    int status = 0;
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0)
        _exit(-write_file(path, "cgroup.procs", "0"));
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? -WEXITSTATUS(status) : -EIO;
}

static int make_at(struct grounds *ret, const char *above, const char *name) {
    struct grounds g;
    if (snprintf(g.path, sizeof g.path, "%s/%s", above, name) >= PATH_MAX)
        return -ENAMETOOLONG;
    if (mkdir(g.path, 0755) < 0)
        return -errno;
    int r = try_group(g.path);
    if (r < 0)
        grounds_remove(g.path);
    else
        *ret = g;
    return r;
}

int grounds_make(struct grounds *ret, const char *name) {
    char mount[PATH_MAX], own[PATH_MAX];
    int r = grounds_mount(mount);
    if (r < 0)
        return r;
    r = make_at(ret, mount, name);
    if (r < 0 && own_group(mount, own) == 0 && strcmp(own, mount) != 0)
        r = make_at(ret, own, name);
    return r;
}

void grounds_node_path(const struct grounds *g, uint32_t node, char out[PATH_MAX]) {
    char name[16];
    snprintf(name, sizeof name, "/n%u", node);
    snprintf(out, PATH_MAX, "%.*s%s", (int)(PATH_MAX - sizeof name), g->path, name);
}

int grounds_make_node(const struct grounds *g, uint32_t node) {
    char path[PATH_MAX];
    grounds_node_path(g, node, path);
    return mkdir(path, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

void grounds_kill_node(const struct grounds *g, uint32_t node) {
    char path[PATH_MAX];
    grounds_node_path(g, node, path);
    write_file(path, "cgroup.kill", "1");
}

/* ---- removing ---- */

static void remove_below(int at, const char *name, int depth) {
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        if (e->d_type == DT_DIR && e->d_name[0] != '.' && depth < DEPTH_MAX)
            remove_below(fd, e->d_name, depth + 1);
    if (dir != NULL)
        closedir(dir);
    else if (fd >= 0)
        close(fd);
    unlinkat(at, name, AT_REMOVEDIR);
}

int grounds_remove(const char *path) {
    if (access(path, F_OK) < 0)
        return 0;
    write_file(path, "cgroup.kill", "1");
    await_empty(path);
    remove_below(AT_FDCWD, path, 0);
    return access(path, F_OK) < 0 ? 0 : -EBUSY;
}
