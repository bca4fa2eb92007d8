/* SPDX-License-Identifier: MIT */
/* What a node leaves on a machine: see footprints.h. */
#include "cli/footprints.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "os/files.h"
#include "os/nest.h"

#define NOTE   "helper"
#define HELPER "/hop-"

/* Clocks of files and of processes tick in steps. */
#define TICK_NS (20 * NS_PER_MS)

/* ---- the helper ---- */

/* Fields of /proc/PID/stat, numbered as proc(5) does. */
enum { STAT_PARENT = 4, STAT_BEGAN = 22 };

static bool read_stat(pid_t pid, int field, uint64_t *ret) {
    char path[32], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (len <= 0)
        return false;
    text[len] = '\0';
    const char *at = strrchr(text, ')'); /* behind the name, which is field 2 */
    for (int i = 2; at != NULL && i < field; i++)
        at = strchr(at + 1, ' ');
    return at != NULL && sscanf(at, " %" SCNu64, ret) == 1;
}

/* The file that a process runs. */
static bool program_of(pid_t pid, char out[PATH_MAX]) {
    char path[32];
    static const char gone[] = " (deleted)";
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    ssize_t len = readlink(path, out, PATH_MAX - 1);
    if (len <= 0)
        return false;
    out[len] = '\0';
    size_t tail = sizeof gone - 1;
    if ((size_t)len > tail && strcmp(out + len - tail, gone) == 0)
        out[(size_t)len - tail] = '\0';
    return true;
}

/* The helper whose command we are; a shell may be between. */
static pid_t find_helper(char out[PATH_MAX]) {
    uint64_t pid = (uint64_t)getppid();
    for (int i = 0; i < 2 && pid > 1; i++) {
        const char *name = program_of((pid_t)pid, out) ? strrchr(out, '/') : NULL;
        if (name != NULL && strncmp(name, HELPER, strlen(HELPER)) == 0)
            return (pid_t)pid;
        if (!read_stat((pid_t)pid, STAT_PARENT, &pid))
            break;
    }
    return 0;
}

/* When a process began, in the calendar's time. */
static bool began(pid_t pid, uint64_t *ret) {
    uint64_t ticks;
    struct timespec up;
    long hertz = sysconf(_SC_CLK_TCK);
    if (hertz <= 0 || !read_stat(pid, STAT_BEGAN, &ticks) || clock_gettime(CLOCK_BOOTTIME, &up) < 0)
        return false;
    uint64_t booted = files_now_ns() - (uint64_t)up.tv_sec * NS_PER_S - (uint64_t)up.tv_nsec;
    *ret = booted + ticks * (NS_PER_S / (uint64_t)hertz);
    return true;
}

/* A helper that had to come was written by the very process that has become it. */
static bool came_just_now(char path[PATH_MAX]) {
    struct stat s;
    uint64_t since;
    pid_t helper = find_helper(path);
    return helper > 0 && stat(path, &s) == 0 && began(helper, &since) &&
           files_mtime_ns(&s) + TICK_NS >= since;
}

void footprints_note(const char *folder, bool known) {
    char path[PATH_MAX], note[PATH_MAX + 16];
    if (!came_just_now(path) && !(known && find_helper(path) > 0))
        return;
    snprintf(note, sizeof note, "%s/" NOTE, folder);
    int fd = open(note, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    ssize_t wrote = write(fd, path, strlen(path));
    close(fd);
    if (wrote < 0)
        unlink(note);
}

static bool is_noted(const char *folder, char out[PATH_MAX]) {
    char note[PATH_MAX + 16];
    snprintf(note, sizeof note, "%s/" NOTE, folder);
    int fd = open(note, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t len = fd < 0 ? -1 : read(fd, out, PATH_MAX - 1);
    if (fd >= 0)
        close(fd);
    if (len <= 0)
        return false;
    out[len] = '\0';
    return strstr(out, HELPER) != NULL;
}

bool footprints_noted(const char *folder) {
    char path[PATH_MAX];
    return is_noted(folder, path);
}

/* It, and the folders that it alone was in: those of the cache. */
static void remove_helper(char path[PATH_MAX]) {
    unlink(path);
    *strrchr(path, '/') = '\0';
    nest_leave(path, 2);
}

/* ---- the folder ---- */

/* Another node of the same cluster lives on this machine: its folder is called by its number. */
static bool has_others(int base) {
    bool found = false;
    int fd = openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    for (struct dirent *e; dir != NULL && !found && (e = readdir(dir)) != NULL;)
        found = strspn(e->d_name, "0123456789") == strlen(e->d_name);
    if (dir != NULL)
        closedir(dir);
    return found;
}

static int levels_of(const char *base) {
    char above[PATH_MAX];
    snprintf(above, sizeof above, "%s", base);
    char *slash = strrchr(above, '/');
    if (slash != NULL)
        *slash = '\0';
    slash = strrchr(above, '/');
    return slash != NULL && strncmp(slash, "/storm-", 7) == 0 ? 2 : 1; /* what we have made */
}

void footprints_remove(const char *base, const char *folder) {
    char helper[PATH_MAX], fresh[PATH_MAX];
    bool noted = is_noted(folder, helper);
    const char *name = strrchr(folder, '/');
    int fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && name != NULL)
        files_remove(fd, name + 1);
    if (fd >= 0 && !has_others(fd))
        files_remove(fd, "bin");
    if (fd >= 0)
        close(fd);
    nest_leave(base, levels_of(base));
    if (noted)
        remove_helper(helper);
    if (came_just_now(fresh))
        remove_helper(fresh);
}
