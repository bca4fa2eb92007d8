/* SPDX-License-Identifier: MIT */
/* Folders beneath a root: see beneath.h. */
#include "os/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FOLDER = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

/* The next part of the path at *at, which moves on. 1, 0 at the end, or -errno. */
static int next_part(const char **at, char part[NAME_MAX + 1]) {
    *at += strspn(*at, "/");
    size_t len = strcspn(*at, "/");
    if (len == 0)
        return 0;
    if (len > NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(part, *at, len);
    part[len] = '\0';
    *at += len;
    return strcmp(part, ".") == 0 || strcmp(part, "..") == 0 ? -EINVAL : 1;
}

/* Opens a folder in another. A link is told from other things that are no folders. */
static int enter(int folder, const char *part) {
    int fd = openat(folder, part, FOLDER);
    if (fd >= 0 || errno != ENOTDIR)
        return fd >= 0 ? fd : -errno;
    struct stat s;
    return fstatat(folder, part, &s, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(s.st_mode) ? -ELOOP
                                                                                     : -ENOTDIR;
}

/* Somebody else may make it at the same time; what counts is that it is there. */
static int make_and_enter(int folder, const char *part) {
    if (mkdirat(folder, part, 0755) < 0 && errno != EEXIST)
        return -errno;
    return enter(folder, part);
}

enum missing { REFUSE, STOP, MAKE };

static int walk(int root, const char *path, enum missing missing, size_t *ret_len) {
    char part[NAME_MAX + 1];
    const char *at = path;
    int r, fd = fcntl(root, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    *ret_len = 0;
    while ((r = next_part(&at, part)) > 0) {
        int next = enter(fd, part);
        if (next == -ENOENT && missing == MAKE)
            next = make_and_enter(fd, part);
        if (next == -ENOENT && missing == STOP)
            return fd;
        close(fd);
        if (next < 0)
            return next;
        fd = next;
        *ret_len = (size_t)(at - path);
    }
    if (r == 0)
        return fd;
    close(fd);
    return r;
}

int beneath_walk(int root, const char *path) {
    size_t len;
    return walk(root, path, REFUSE, &len);
}

int beneath_nearest(int root, const char *path, size_t *ret_len) {
    return walk(root, path, STOP, ret_len);
}

int beneath_make(int root, const char *path) {
    size_t len;
    return walk(root, path, MAKE, &len);
}

/* The kernel lets ".." pass where it does not lead out; we do not. */
static int check_parts(const char *path) {
    char part[NAME_MAX + 1];
    int r;
    while ((r = next_part(&path, part)) > 0)
        ;
    return r;
}

int beneath_open(int root, const char *path) {
    struct open_how how = {
        .flags = FOLDER, .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    int r = check_parts(path);
    if (r < 0)
        return r;
    path += strspn(path, "/");
    long fd = syscall(SYS_openat2, root, *path == '\0' ? "." : path, &how, sizeof how);
    if (fd >= 0)
        return (int)fd;
    /* Absent, or a filter that does not know it; and it says ENOTDIR of a link that is the last part. */
    if (errno == ENOSYS || errno == EPERM || errno == EAGAIN || errno == ENOTDIR)
        return beneath_walk(root, path);
    return -errno;
}
