/* SPDX-License-Identifier: MIT */
/* What a file of the cache was like: see mark.h. */
#include "os/mark.h"

#include <errno.h>

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "os/files.h"

uint64_t mark_check(const uint8_t head[MARK_HEAD_BYTES]) {
    struct hash h;
    hash_init(&h, MARK_TABLE_MAGIC);
    hash_bytes(&h, head, MARK_CHECK_AT);
    return hash_done(&h);
}

bool mark_load(const uint8_t head[MARK_HEAD_BYTES], struct mark *ret) {
    if (load_le64(head) != MARK_TABLE_MAGIC || load_le64(head + MARK_CHECK_AT) != mark_check(head))
        return false;
    *ret = (struct mark){.bytes = load_le64(head + MARK_AT),
                         .mtime_ns = load_le64(head + MARK_AT + 8),
                         .ctime_ns = load_le64(head + MARK_AT + 16),
                         .inode = load_le64(head + MARK_AT + 24),
                         .boot = load_le64(head + MARK_AT + 32)};
    return true;
}

static bool load_beside(const char *path, struct mark *ret) {
    char table[PATH_MAX];
    uint8_t head[MARK_HEAD_BYTES];
    const char *slash = strrchr(path, '/');
    int folder = slash == NULL ? 0 : (int)(slash + 1 - path);
    int n = snprintf(table, sizeof table, "%.*s%s", folder, path, MARK_TABLE_NAME);
    int fd = n < 0 || n >= (int)sizeof table ? -1 : open(table, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool good = files_read_all(fd, room_of(head, sizeof head), 0) == 0 && mark_load(head, ret);
    close(fd);
    return good;
}

bool mark_holds(const char *path, const struct stat *now) {
    struct mark m;
    return load_beside(path, &m) && m.bytes == (uint64_t)now->st_size &&
           m.mtime_ns == files_mtime_ns(now) && m.ctime_ns == files_ctime_ns(now) &&
           m.inode == now->st_ino;
}

int mark_look(const char *path) {
    struct stat st;
    if (lstat(path, &st) < 0)
        return -errno;
    return S_ISREG(st.st_mode) && mark_holds(path, &st) ? 0 : -ESTALE;
}
