/* SPDX-License-Identifier: MIT */
/* A file that is being sent: see original.h.
 *
 * Which type is the usual was measured: docs/decisions/0027-send-types.md. */
#include "os/original.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/units.h"
#include "os/files.h"
#include "os/mapped.h"

struct original {
    int fd;
    enum send_type type;
    uint32_t users;
    uint8_t *map; /* all of it; NULL: not mapped */
    uint64_t bytes;
    uint64_t low, high, handed; /* what was handed out since memory was last given back */
};

/* After so many bytes what was mapped is given back, or we would need as much memory as the file is large. What is still
 * to be sent of it is brought again. With what is touched the kernel may map all of the large page it
 * lies in. */
#define GIVEN_BACK_BYTES (8 * MIB)
#define AROUND_BYTES     (2 * MIB)

static const char *const names[SEND_TYPES] = {
    [SEND_USUAL] = "usual",       [SEND_READ] = "read",       [SEND_FILE] = "sendfile",
    [SEND_MMAP_ALL] = "mmap-all", [SEND_ONE_MAP] = "one-map", [SEND_MULTI_MAP] = "multi-map"};

bool send_type_parse(const char *name, enum send_type *ret) {
    for (enum send_type t = SEND_READ; t < SEND_TYPES; t++)
        if (strcmp(name, names[t]) == 0) {
            *ret = t;
            return true;
        }
    return false;
}

/* ---- copies out of a map ---- */

/* Maps what holds these bytes, copies them, and lets go. */
static int copy_mapping(const struct original *o, uint64_t from, struct room out) {
    uint64_t before = from % (uint64_t)sysconf(_SC_PAGESIZE);
    size_t len = out.len + (size_t)before;
    uint8_t *map = mmap(NULL, len, PROT_READ, MAP_SHARED, o->fd, (off_t)(from - before));
    if (map == MAP_FAILED)
        return -errno;
    int r = mapped_copy(map + before, out);
    munmap(map, len);
    return r;
}

/* ---- all of it ---- */

static bool maps_all(enum send_type t) {
    return t == SEND_FILE || t == SEND_MMAP_ALL || t == SEND_ONE_MAP;
}

/* The address space may be limited, and some file systems map nothing: then it is read. */
static void map_all(struct original *o) {
    if (o->bytes == 0 || o->bytes > SIZE_MAX)
        return;
    uint8_t *map = mmap(NULL, (size_t)o->bytes, PROT_READ, MAP_SHARED, o->fd, 0);
    if (map != MAP_FAILED)
        o->map = map;
}

int original_open(int fd, uint64_t bytes, enum send_type type, struct original **ret) {
    struct original *o = malloc(sizeof *o);
    if (o == NULL) {
        close(fd);
        return -ENOMEM;
    }
    if (type == SEND_USUAL)
        type = SEND_FILE;
    *o = (struct original){.fd = fd, .type = type, .users = 1, .bytes = bytes};
    if (maps_all(type))
        map_all(o);
    *ret = o;
    return 0;
}

struct original *original_hold(struct original *o) {
    o->users++;
    return o;
}

void original_drop(struct original *o) {
    if (o == NULL || --o->users > 0)
        return;
    if (o->map != NULL)
        munmap(o->map, (size_t)o->bytes);
    close(o->fd);
    free(o);
}

int original_fd(const struct original *o) {
    return o->fd;
}

static const uint8_t *hand_out(struct original *o, uint64_t from, size_t len) {
    uint64_t low = from / AROUND_BYTES * AROUND_BYTES, high = from + len + AROUND_BYTES;
    high = high < o->bytes ? high / AROUND_BYTES * AROUND_BYTES : o->bytes;
    if (o->handed >= GIVEN_BACK_BYTES)
        madvise(o->map + o->low, (size_t)(o->high - o->low), MADV_DONTNEED);
    if (o->handed == 0 || o->handed >= GIVEN_BACK_BYTES) {
        o->low = low;
        o->high = high;
        o->handed = 0;
    }
    o->low = low < o->low ? low : o->low;
    o->high = high > o->high ? high : o->high;
    o->handed += len;
    return o->map + from;
}

int original_read(struct original *o, uint64_t from, struct room out) {
    if (o->type == SEND_MULTI_MAP && out.len > 0)
        return copy_mapping(o, from, out);
    if (o->type == SEND_ONE_MAP && o->map != NULL)
        return mapped_copy(hand_out(o, from, out.len), out);
    int r = files_read_all(o->fd, out, from);
    return r == -ENODATA ? -ESTALE : r;
}

struct bytes original_part(struct original *o, uint64_t from, size_t len) {
    if ((o->type != SEND_FILE && o->type != SEND_MMAP_ALL) || o->map == NULL)
        return (struct bytes){0};
    return bytes_of(hand_out(o, from, len), len);
}

/* Where the system cannot send from this file it is sent from the map. */
int original_lend_fd(const struct original *o) {
    return o->type == SEND_FILE ? fcntl(o->fd, F_DUPFD_CLOEXEC, 0) : -1;
}
