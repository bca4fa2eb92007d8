/* SPDX-License-Identifier: MIT */
/* Files that hold keys: see keyring.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/keyring.h"
#include "os/files.h"

static int wrong(char why[256], int status, const char *path, const char *what) {
    snprintf(why, 256, "%.150s: %.100s", path, what);
    return status;
}

/* Whoever else could read a key has it, and whoever could write one can make us believe him. */
static int judge(const struct stat *at, const char *path, char why[256]) {
    char what[128];
    if (!S_ISREG(at->st_mode))
        return wrong(why, -EINVAL, path, "no file");
    if (at->st_uid != geteuid()) {
        snprintf(what, sizeof what, "belongs to user %u; a key must belong to who uses it, user %u",
                 at->st_uid, geteuid());
        return wrong(why, -EPERM, path, what);
    }
    if ((at->st_mode & 077) != 0) {
        snprintf(what, sizeof what,
                 "others may use it (mode %04o); a key must be 0600: chmod 600 it",
                 at->st_mode & 07777);
        return wrong(why, -EPERM, path, what);
    }
    if (at->st_size > KEYFILE_TEXT_MAX)
        return wrong(why, -EBADMSG, path, "too long for a key");
    return 0;
}

int keyring_load(const char *path, struct keyfile *ret, char why[256]) {
    char text[KEYFILE_TEXT_MAX + 1];
    struct stat at;
    /* Not blocking: what is no file may be a pipe. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return wrong(why, -errno, path,
                     errno == ELOOP ? "a symbolic link; a key must be a file" : strerror(errno));
    int r = fstat(fd, &at) < 0 ? wrong(why, -errno, path, strerror(errno)) : judge(&at, path, why);
    if (r == 0) {
        long len = files_read(fd, room_of(text, sizeof text), 0);
        r = (int)(len < 0 ? len : keyfile_parse(bytes_of(text, (size_t)len), ret));
        if (r < 0)
            wrong(why, r, path,
                  r == -EPROTONOSUPPORT ? "a key of another version of STORM"
                  : r == -EBADMSG       ? "holds no key"
                                        : strerror(-r));
    }
    OPENSSL_cleanse(text, sizeof text);
    close(fd);
    return r;
}

int keyring_load_node(const char *master, uint32_t seat, uint32_t node, struct keyfile *ret,
                      char why[256]) {
    struct keyfile file;
    struct keyring *k = NULL;
    int r = keyring_load(master, &file, why);
    if (r < 0)
        return r;
    const struct keyring_config config = {
        .file = &file, .self = seat, .seat_first = seat, .seats = 1};
    r = keyring_new(&config, &k);
    if (r == 0)
        r = keyring_issue_node(k, node, ret);
    if (r < 0)
        wrong(why, r, master, r == -EINVAL ? "no master key" : strerror(-r));
    keyring_free(k);
    OPENSSL_cleanse(&file, sizeof file);
    return r;
}

int keyring_save(const char *path, const struct keyfile *f, char why[256]) {
    char text[KEYFILE_TEXT_MAX], beside[PATH_MAX];
    if (snprintf(beside, sizeof beside, "%s.new", path) >= (int)sizeof beside)
        return wrong(why, -ENAMETOOLONG, path, "too long a name");
    unlink(beside); /* of one that was interrupted */
    int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return wrong(why, -errno, beside, strerror(errno));
    size_t len = keyfile_write(f, text);
    int r = files_write(fd, bytes_of(text, len), 0);
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    OPENSSL_cleanse(text, sizeof text);
    close(fd);
    if (r == 0 && rename(beside, path) < 0)
        r = -errno;
    if (r < 0) {
        unlink(beside);
        wrong(why, r, path, strerror(-r));
    }
    return r;
}
