/* SPDX-License-Identifier: MIT */
/* Files that go down a tree: see parcels.h. */
#include "os/parcels.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "os/files.h"
#include "os/nest.h"

static void fail(struct parcels *p, struct parcel *a, const char *what, int error) {
    a->failed = true;
    if (p->trouble[0] == '\0')
        snprintf(p->trouble, sizeof p->trouble, "%.180s: %s%s%s",
                 a->path != NULL ? a->path : "a file", what, error != 0 ? ": " : "",
                 error != 0 ? strerror(-error) : "");
}

/* ---- Files that come --------------------------------------------------------------------------- */

static void forget_temporary(struct parcel *a) {
    if (a->temporary != NULL)
        unlink(a->temporary);
    free(a->temporary);
    a->temporary = NULL;
}

/* It will not be here, but goes on to others. */
static void keep_in_memory(struct parcels *p, struct parcel *a) {
    uint8_t piece[32 * 1024];
    int memory = memfd_create("storm-parcel", MFD_CLOEXEC), r = memory < 0 ? -errno : 0;
    for (uint64_t at = 0; r == 0 && at < a->have;) {
        size_t n = a->have - at < sizeof piece ? (size_t)(a->have - at) : sizeof piece;
        r = files_read_all(a->fd, room_of(piece, n), at);
        r = r < 0 ? r : files_write(memory, bytes_of(piece, n), at);
        at += n;
    }
    if (a->fd >= 0)
        close(a->fd);
    forget_temporary(a);
    a->fd = memory;
    if (r < 0)
        fail(p, a, "cannot be kept in memory either", r);
}

static char *text_from(struct bytes b) {
    return strndup((const char *)b.at, b.len);
}

static void open_temporary(struct parcels *p, struct parcel *a) {
    struct utsname name;
    uname(&name); /* hosts may share a folder, and a number of a process */
    if (a->path == NULL ||
        asprintf(&a->temporary, "%s.storm-%s-%d", a->path, name.nodename, (int)getpid()) < 0) {
        a->temporary = NULL;
        fail(p, a, "there is no memory", 0);
    } else {
        a->fd = open(a->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (a->fd < 0) {
            fail(p, a, "cannot be written", -errno);
            free(a->temporary); /* it is another's */
            a->temporary = NULL;
        }
    }
    if (a->fd < 0)
        keep_in_memory(p, a);
}

/* The folder of a program that is run next: whoever else could write to it could run another. */
static void make_nest(struct parcels *p, struct parcel *a) {
    char folder[PATH_MAX], why[NEST_WHY_MAX];
    const char *slash = a->path != NULL ? strrchr(a->path, '/') : NULL;
    if (slash == NULL || slash - a->path >= (long)sizeof folder)
        return;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - a->path), a->path);
    if (nest_make(folder, why) == 0)
        return;
    a->failed = true;
    if (p->trouble[0] == '\0')
        snprintf(p->trouble, sizeof p->trouble, "%s", why);
}

void parcels_expect(struct parcels *p, const struct task *t) {
    *p = (struct parcels){.count = t->put_count};
    for (uint32_t i = 0; i < t->put_count; i++) {
        struct parcel *a = &p->at[i];
        *a = (struct parcel){.fd = -1,
                             .bytes = t->put[i].bytes,
                             .mode = t->put[i].mode & 0777,
                             .path = text_from(t->put[i].path),
                             .sum = sum_new(DIGEST_SHA256)};
        if (t->put[i].mode & TASK_FILE_OWN)
            make_nest(p, a);
        if (a->failed)
            keep_in_memory(p, a);
        else
            open_temporary(p, a);
    }
}

static bool take_bytes(struct parcels *p, struct parcel *a, struct bytes bytes) {
    if (bytes.len == 0 || bytes.len > a->bytes - a->have)
        return false;
    int r = files_write(a->fd, bytes, a->have);
    if (r < 0 && !a->failed) {
        fail(p, a, "cannot be written", r);
        keep_in_memory(p, a);
        r = files_write(a->fd, bytes, a->have);
    }
    if (a->sum != NULL)
        sum_add(a->sum, bytes);
    a->have += bytes.len;
    return true;
}

/* A program that somebody can still write to cannot be executed: from now on it is only read. */
static void give_name(struct parcels *p, struct parcel *a) {
    int fd = open(a->temporary, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fchmod(a->fd, a->mode) < 0 || rename(a->temporary, a->path) < 0) {
        fail(p, a, "cannot get its name", -errno);
        if (fd >= 0)
            close(fd);
        forget_temporary(a);
    } else {
        close(a->fd);
        a->fd = fd;
        a->here = true;
        free(a->temporary);
        a->temporary = NULL;
    }
}

static bool take_end(struct parcels *p, struct parcel *a, struct bytes digest) {
    uint8_t found[32];
    if (a->here || a->have != a->bytes || digest.len != sizeof a->digest || a->sum == NULL)
        return false;
    memcpy(a->digest, digest.at, sizeof a->digest);
    sum_end(a->sum, found);
    a->sum = NULL;
    if (memcmp(found, a->digest, sizeof found) != 0) {
        fail(p, a, "was spoiled on its way", 0);
        forget_temporary(a);
    } else if (!a->failed) {
        give_name(p, a);
    }
    return true;
}

bool parcels_take(struct parcels *p, const struct frame *f) {
    if (f->number >= p->count)
        return false;
    struct parcel *a = &p->at[f->number];
    return f->flag == FRAME_END ? take_end(p, a, f->body) : take_bytes(p, a, f->body);
}

bool parcels_settled(const struct parcels *p) {
    bool settled = true;
    for (uint32_t i = 0; i < p->count && settled; i++)
        settled = p->at[i].here || p->at[i].failed;
    return settled;
}

/* ---- Files that we have ------------------------------------------------------------------------ */

static int sum_of(int fd, uint64_t bytes, uint8_t ret[32]) {
    uint8_t piece[64 * 1024];
    struct sum *sum = sum_new(DIGEST_SHA256);
    int r = sum == NULL ? -ENOMEM : 0;
    for (uint64_t at = 0; r == 0 && at < bytes;) {
        size_t n = bytes - at < sizeof piece ? (size_t)(bytes - at) : sizeof piece;
        r = files_read_all(fd, room_of(piece, n), at);
        sum_add(sum, bytes_of(piece, n));
        at += n;
    }
    sum_end(sum, r == 0 ? ret : NULL);
    return r;
}

int parcels_add(struct parcels *p, const char *path, struct task_file *ret) {
    struct stat st;
    if (p->count == TASK_FILES_MAX)
        return -E2BIG;
    struct parcel *a = &p->at[p->count];
    *a = (struct parcel){.fd = open(path, O_RDONLY | O_CLOEXEC)};
    int r = a->fd < 0 || fstat(a->fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EISDIR;
    if (r == 0) {
        a->bytes = a->have = (uint64_t)st.st_size;
        a->mode = (uint16_t)(st.st_mode & 0777);
        r = sum_of(a->fd, a->bytes, a->digest);
    }
    if (r < 0) {
        if (a->fd >= 0)
            close(a->fd);
        return r;
    }
    a->here = true;
    p->count++;
    ret->bytes = a->bytes;
    ret->mode = a->mode;
    return 0;
}

/* ---- On to others ------------------------------------------------------------------------------ */

/* That all of it came is known: the digest is. */
static bool is_whole(const struct parcel *a) {
    return a->have == a->bytes && (a->here || (a->failed && a->sum == NULL));
}

bool parcels_have(const struct parcels *p, const struct parcels_mark *m) {
    return m->file < p->count && (m->at < p->at[m->file].have || is_whole(&p->at[m->file]));
}

bool parcels_next(struct parcels *p, struct parcels_mark *m, struct room room, struct frame *ret) {
    if (m->file >= p->count)
        return false;
    struct parcel *a = &p->at[m->file];
    *ret = (struct frame){.kind = FRAME_PUT, .number = m->file};
    if (m->at < a->have) {
        size_t n = a->have - m->at < room.len ? (size_t)(a->have - m->at) : room.len;
        int r = files_read_all(a->fd, room_of(room.at, n), m->at);
        if (r < 0) { /* it must not wait for ever: what it gets instead has not the right digest */
            fail(p, a, "cannot be read", r);
            memset(room.at, 0, n);
        }
        m->at += n;
        ret->body = bytes_of(room.at, n);
        return true;
    }
    if (!is_whole(a))
        return false;
    ret->flag = FRAME_END;
    ret->body = bytes_of(a->digest, sizeof a->digest);
    *m = (struct parcels_mark){.file = m->file + 1};
    return true;
}

void parcels_fini(struct parcels *p) {
    for (uint32_t i = 0; i < p->count; i++) {
        struct parcel *a = &p->at[i];
        if (a->fd >= 0)
            close(a->fd);
        forget_temporary(a);
        sum_end(a->sum, NULL);
        free(a->path);
    }
    p->count = 0;
}
