/* SPDX-License-Identifier: MIT */
/* The claim on a cluster's folder: see claim.h. */
#include "os/claim.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char file_name[] = "lock";

static int path_of(const char *folder, char out[PATH_MAX]) {
    int n = snprintf(out, PATH_MAX, "%s/%s", folder, file_name);
    return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static struct flock whole(short type) {
    return (struct flock){.l_type = type, .l_whence = SEEK_SET};
}

/* A former holder may have removed the file between our opening and locking it. */
static bool still_there(int fd, const char *path) {
    struct stat ours, there;
    return fstat(fd, &ours) == 0 && stat(path, &there) == 0 && ours.st_ino == there.st_ino &&
           ours.st_dev == there.st_dev;
}

int claim_take(const char *folder) {
    char path[PATH_MAX];
    int r = path_of(folder, path);
    while (r == 0) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
            return -errno;
        struct flock f = whole(F_WRLCK);
        if (fcntl(fd, F_OFD_SETLK, &f) < 0)
            r = errno == EACCES || errno == EAGAIN ? -EBUSY : -errno;
        if (r == 0 && still_there(fd, path)) {
            if (ftruncate(fd, 0) == 0)
                return fd;
            r = -errno;
        }
        close(fd);
    }
    return r;
}

int claim_tell(int claim, const struct claim_holder *h) {
    char text[32];
    int len = snprintf(text, sizeof text, "%d %d\n", (int)h->sweeper, (int)h->watcher);
    return pwrite(claim, text, (size_t)len, 0) == len ? 0 : -EIO;
}

static void read_holder(int fd, struct claim_holder *ret) {
    char text[32] = "";
    int sweeper, watcher;
    ssize_t len = pread(fd, text, sizeof text - 1, 0);
    *ret = (struct claim_holder){0};
    if (len <= 0 || text[len - 1] != '\n' || sscanf(text, "%d %d", &sweeper, &watcher) != 2)
        return;
    *ret = (struct claim_holder){.sweeper = sweeper, .watcher = watcher};
}

int claim_look(const char *folder, struct claim_holder *ret) {
    char path[PATH_MAX];
    int r = path_of(folder, path);
    if (r < 0)
        return r;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    struct flock f = whole(F_RDLCK);
    if (fcntl(fd, F_OFD_GETLK, &f) < 0)
        r = -errno;
    else
        r = f.l_type != F_UNLCK;
    if (r == 1)
        read_holder(fd, ret);
    close(fd);
    return r;
}

void claim_remove(const char *folder) {
    char path[PATH_MAX];
    if (path_of(folder, path) == 0)
        unlink(path);
}
