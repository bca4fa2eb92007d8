/* SPDX-License-Identifier: MIT */
/* Files as a whole: see files.h. */
#include "os/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"

int files_write(int fd, struct bytes bytes, uint64_t offset) {
    while (bytes.len > 0) {
        ssize_t n = pwrite(fd, bytes.at, bytes.len, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        bytes = bytes_of(bytes.at + n, bytes.len - (size_t)n);
        offset += (uint64_t)n;
    }
    return 0;
}

int files_replace(const char *path, struct bytes bytes) {
    char fresh[PATH_MAX];
    int n = snprintf(fresh, sizeof fresh, "%s.new", path);
    if (n < 0 || (size_t)n >= sizeof fresh)
        return -ENAMETOOLONG;
    unlink(fresh); /* somebody may have died while he wrote it */
    int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int r = files_write(fd, bytes, 0);
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (close(fd) < 0 && r == 0)
        r = -errno;
    if (r == 0 && rename(fresh, path) < 0)
        r = -errno;
    if (r < 0)
        unlink(fresh);
    return r;
}

int files_sync(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int r = fd < 0 || fsync(fd) < 0 ? -errno : 0;
    if (fd >= 0)
        close(fd);
    return r;
}

int files_open_again(int fd, int flags) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, flags | O_NOCTTY | O_CLOEXEC);
    return again < 0 ? -errno : again;
}

long files_read(int fd, struct room room, uint64_t offset) {
    size_t done = 0;
    while (done < room.len) {
        ssize_t n = pread(fd, room.at + done, room.len - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (long)done;
}

int files_read_all(int fd, struct room room, uint64_t offset) {
    long n = files_read(fd, room, offset);
    return n < 0 ? (int)n : (size_t)n < room.len ? -ENODATA : 0;
}

int files_text(const char *path, size_t max, char **ret) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    char *text = malloc(max); /* pages that are never touched cost nothing */
    long len = text == NULL ? -ENOMEM : files_read(fd, room_of((uint8_t *)text, max), 0);
    close(fd);
    if (len >= 0 && ((size_t)len == max || memchr(text, '\0', (size_t)len) != NULL))
        len = -EBADMSG;
    if (len < 0) {
        free(text);
        return (int)len;
    }
    text[len] = '\0';
    *ret = text;
    return 0;
}

int files_folder(int folder, const char *name, unsigned mode) {
    if (mkdirat(folder, name, mode) < 0 && errno != EEXIST)
        return -errno;
    int fd = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static bool is_dots(const char *name) {
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* A folder whose owner may not read it, or take anything out of it, is made to let him. */
static int open_to_empty(int folder, const char *name) {
    const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    struct stat s;
    int fd = openat(folder, name, how);
    if (fd < 0 && errno == EACCES && fstatat(folder, name, &s, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(s.st_mode) && fchmodat(folder, name, 0700, 0) == 0)
        fd = openat(folder, name, how);
    if (fd >= 0 && fstat(fd, &s) == 0 && (s.st_mode & 0300) != 0300)
        fchmod(fd, 0700); /* if that fails, so does what comes next */
    return fd;
}

void files_remove(int folder, const char *name) {
    if (unlinkat(folder, name, 0) == 0 || errno == ENOENT)
        return;
    int fd = open_to_empty(folder, name);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL && fd >= 0)
        close(fd);
    if (dir == NULL)
        return;
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        if (!is_dots(e->d_name))
            files_remove(fd, e->d_name);
    closedir(dir);
    unlinkat(folder, name, AT_REMOVEDIR);
}

static uint64_t ns_of(const struct timespec *t) {
    return (uint64_t)t->tv_sec * NS_PER_S + (uint64_t)t->tv_nsec;
}

uint64_t files_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return ns_of(&t);
}

uint64_t files_mtime_ns(const struct stat *s) {
    return ns_of(&s->st_mtim);
}

uint64_t files_ctime_ns(const struct stat *s) {
    return ns_of(&s->st_ctim);
}
