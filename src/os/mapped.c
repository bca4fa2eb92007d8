/* SPDX-License-Identifier: MIT */
/* Looking at a file where the system has it: see mapped.h. */
#include "os/mapped.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

/* Each part costs three calls, but what is mapped counts as memory of ours, for some. Around a page that is touched the kernel maps a few others,
 * aligned; and what it keeps in one larger unit (up to LARGE_BYTES) it maps as a whole, if addresses are aligned as places in the file are. */
#define PART_BYTES   ((uint64_t)2 << 20)
#define ALIGNS_BYTES ((uint64_t)64 << 10)
#define LARGE_BYTES  ((uint64_t)2 << 20)

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14; headers may be older */
#endif

/* ---- being cut short ---- */

/* Where a thread goes on that touches what a file has no more. A handler is given nothing else to know it by. */
static _Thread_local sigjmp_buf *volatile landing;

static void on_bus(int signal_number) {
    if (landing != NULL)
        siglongjmp(*landing, 1);
    signal(signal_number, SIG_DFL); /* not ours: it happens again, and is the end */
}

static void catch_bus(void) {
    struct sigaction a = {.sa_handler = on_bus, .sa_flags = SA_NODEFER}, is;
    sigemptyset(&a.sa_mask);
    if (sigaction(SIGBUS, NULL, &is) == 0 && is.sa_handler != on_bus)
        sigaction(SIGBUS, &a, NULL);
}

int mapped_try(int (*look)(void *context), void *context) {
    sigjmp_buf here;
    volatile int r = -ESTALE;
    catch_bus();
    if (sigsetjmp(here, 0) == 0) {
        landing = &here;
        r = look(context);
    }
    landing = NULL;
    return r;
}

struct copy {
    const uint8_t *from;
    struct room out;
};

static int copy(void *context) {
    const struct copy *c = context;
    memcpy(c->out.at, c->from, c->out.len);
    return 0;
}

int mapped_copy(const uint8_t *from, struct room out) {
    return mapped_try(copy, &(struct copy){from, out});
}

/* ---- parts ---- */

static struct bytes within(const struct mapped *m, uint64_t from, size_t len) {
    bool there = m->at != NULL && from >= m->from && from + len <= m->from + m->bytes;
    return there ? bytes_of(m->at + (from - m->from), len) : (struct bytes){0};
}

/* Where so much of a file from there on would lie well. Nothing is there, or was a moment ago: if it is not free any more it lies
 * elsewhere, which is as good but for its speed. Not held with something that is replaced: a file that refuses to be mapped would leave a hole. */
static void *address_for(struct mapped *m, uint64_t low) {
    size_t bytes = PART_BYTES + LARGE_BYTES;
    if (m->place == 0) {
        void *free =
            mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (free == MAP_FAILED)
            return NULL;
        munmap(free, bytes);
        m->place = (uintptr_t)free;
    }
    return (void *)(m->place + (low - m->place) % LARGE_BYTES);
}

struct bytes mapped_part(struct mapped *m, int fd, uint64_t size, uint64_t from, size_t len) {
    uint64_t before = from > MAPPED_BEFORE ? from - MAPPED_BEFORE : 0;
    if (len == 0 || from > size || len > size - from)
        return (struct bytes){0};
    if (before >= m->from && within(m, from, len).len > 0)
        return within(m, from, len);
    uint64_t low = before / ALIGNS_BYTES * ALIGNS_BYTES, high = low + PART_BYTES;
    high = high < from + len ? from + len : high;
    high = high < size ? high : size;
    mapped_end(m);
    if (high - low > SIZE_MAX)
        return (struct bytes){0};
    void *at =
        mmap(address_for(m, low), (size_t)(high - low), PROT_READ, MAP_SHARED, fd, (off_t)low);
    if (at == MAP_FAILED)
        return (struct bytes){0};
    m->at = at;
    m->from = low;
    m->bytes = (size_t)(high - low);
    madvise(at, m->bytes,
            MADV_SEQUENTIAL); /* it is looked at once, which makes no page dearer than others */
    if (m->settled)
        madvise(at, m->bytes, MADV_POPULATE_READ); /* in one call; if not, one by one */
    return within(m, from, len);
}

void mapped_end(struct mapped *m) {
    if (m->at != NULL)
        munmap(m->at, m->bytes);
    *m = (struct mapped){.place = m->place, .settled = m->settled};
}
