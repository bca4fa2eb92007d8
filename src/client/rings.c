/* SPDX-License-Identifier: MIT */
/* Two rings of bytes in memory that two processes share: see rings.h. */
#include "client/rings.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PAGE = 4096,
    MEMORY_BYTES = PAGE + 2 * RINGS_BYTES,
    SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW
};

_Static_assert(2 * sizeof(struct ring) <= PAGE, "both begin in the first page");

static int map(struct rings *r, int fd, bool ours) {
    uint8_t *at = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return -errno;
    struct ring *both = (struct ring *)(void *)at;
    *r = (struct rings){.out = &both[ours ? 0 : 1],
                        .in = &both[ours ? 1 : 0],
                        .out_bytes = at + PAGE + (ours ? 0 : RINGS_BYTES),
                        .in_bytes = at + PAGE + (ours ? RINGS_BYTES : 0),
                        .memory = at};
    return 0;
}

int rings_make(struct rings *r) {
    int fd = memfd_create("storm-carmi", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    int e = ftruncate(fd, MEMORY_BYTES) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0 ? -errno
                                                                                 : map(r, fd, true);
    if (e < 0) {
        close(fd);
        return e;
    }
    return fd;
}

/* Sealed: one that could be made shorter would kill whoever reads it. */
int rings_take(struct rings *r, int fd) {
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0 || st.st_size != MEMORY_BYTES)
        return -EBADMSG;
    return map(r, fd, false);
}

void rings_free(struct rings *r) {
    if (r->memory != NULL)
        munmap(r->memory, MEMORY_BYTES);
    *r = (struct rings){0};
}

/* A part may go round the end. */
static void copy_in(uint8_t *ring, uint64_t at, const uint8_t *from, size_t len) {
    size_t place = at % RINGS_BYTES;
    size_t first = RINGS_BYTES - place < len ? RINGS_BYTES - place : len;
    memcpy(ring + place, from, first);
    if (len > first)
        memcpy(ring, from + first, len - first);
}

static void copy_out(const uint8_t *ring, uint64_t at, uint8_t *to, size_t len) {
    size_t place = at % RINGS_BYTES;
    size_t first = RINGS_BYTES - place < len ? RINGS_BYTES - place : len;
    memcpy(to, ring + place, first);
    if (len > first)
        memcpy(to + first, ring, len - first);
}

long rings_write(struct rings *r, const void *from, size_t len) {
    uint64_t held = r->written - atomic_load_explicit(&r->out->read, memory_order_acquire);
    if (held > RINGS_BYTES)
        return -EBADMSG;
    size_t n = RINGS_BYTES - held < len ? (size_t)(RINGS_BYTES - held) : len;
    if (n == 0)
        return 0;
    copy_in(r->out_bytes, r->written, from, n);
    r->written += n;
    atomic_store(&r->out->written, r->written);
    return (long)n;
}

long rings_read(struct rings *r, void *to, size_t len) {
    uint64_t held = atomic_load_explicit(&r->in->written, memory_order_acquire) - r->read;
    if (held > RINGS_BYTES)
        return -EBADMSG;
    size_t n = held < len ? (size_t)held : len;
    if (n == 0)
        return 0;
    copy_out(r->in_bytes, r->read, to, n);
    r->read += n;
    atomic_store(&r->in->read, r->read);
    return (long)n;
}

/* The order matters: who waits says so and then looks, who writes writes and then looks who waits. */
bool rings_wait_in(struct rings *r) {
    atomic_store(&r->in->reader_waits, 1);
    return atomic_load(&r->in->written) != r->read;
}

/* For half of it: one is not woken for every byte. */
bool rings_wait_out(struct rings *r) {
    atomic_store(&r->out->writer_waits, 1);
    return r->written - atomic_load(&r->out->read) <= RINGS_BYTES / 2;
}

void rings_go_on(struct rings *r) {
    atomic_store_explicit(&r->in->reader_waits, 0, memory_order_relaxed);
    atomic_store_explicit(&r->out->writer_waits, 0, memory_order_relaxed);
}

bool rings_ready(const struct rings *r) {
    return atomic_load_explicit(&r->in->written, memory_order_acquire) != r->read;
}

bool rings_roomy(const struct rings *r) {
    uint64_t read = atomic_load_explicit(&r->out->read, memory_order_acquire);
    return r->written - read <= RINGS_BYTES / 2;
}

static bool wakes(_Atomic uint32_t *waits, bool there_is) {
    return atomic_load(waits) != 0 && there_is && atomic_exchange(waits, 0) != 0;
}

bool rings_wake(struct rings *r) {
    bool reader = wakes(&r->out->reader_waits, r->written != atomic_load(&r->out->read));
    bool writer =
        wakes(&r->in->writer_waits, atomic_load(&r->in->written) - r->read <= RINGS_BYTES / 2);
    return reader || writer;
}
