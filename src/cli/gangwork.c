/* SPDX-License-Identifier: MIT */
/* What a process of a benched gang does: see gangwork.h. */
#include "cli/gangwork.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/bench.h"
#include "cli/complain.h"
#include "cli/gangnotes.h"
#include "cli/options.h"
#include "os/loop.h"

/* Shorter pauses are not noted. */
#define GAP_NS    (15 * NS_PER_US)
#define SET_BYTES ((size_t)MIB)

enum { STEPS = 400, GRAIN = 8, LINE = 64, LINES = 64, BLOCKS = 16, CORNERS = 4 };

static const char *const names[KERNELS] = {"compute", "cache", "pair", "wave"};

const char *gangkernel_name(enum gangkernel k) {
    return names[k];
}

bool gangkernel_find(const char *name, enum gangkernel *ret) {
    for (int k = 0; k < KERNELS; k++)
        if (strcmp(names[k], name) == 0) {
            *ret = (enum gangkernel)k;
            return true;
        }
    return false;
}

/* ---- who waits for whom ---- */

/* The grid is as square as the number of ranks allows. */
static uint32_t columns_of(uint32_t size) {
    uint32_t columns = 1;
    for (uint32_t c = 1; c * c <= size; c++)
        if (size % c == 0)
            columns = size / c;
    return columns;
}

static void wave_peers(uint32_t rank, uint32_t size, uint64_t unit, uint32_t ret[PEERS]) {
    uint32_t columns = columns_of(size), rows = size / columns;
    uint32_t x = rank % columns, y = rank / columns;
    uint64_t corner = unit / BLOCKS % CORNERS;
    bool east = corner & 1, south = corner >> 1; /* where the sweep begins */
    if (east ? x + 1 < columns : x > 0)
        ret[0] = east ? rank + 1 : rank - 1;
    if (south ? y + 1 < rows : y > 0)
        ret[1] = south ? rank + columns : rank - columns;
}

void gangwork_peers(enum gangkernel k, uint32_t rank, uint32_t size, uint64_t unit,
                    uint32_t ret[PEERS]) {
    ret[0] = ret[1] = NO_PEER;
    if (k == KERNEL_PAIR && (rank ^ 1) < size)
        ret[0] = rank ^ 1;
    if (k == KERNEL_WAVE)
        wave_peers(rank, size, unit, ret);
}

/* ---- work ---- */

struct worker {
    enum gangkernel kernel;
    const struct gangnotes *notes;
    uint32_t rank, size;
    uint8_t *set;
    size_t at; /* in the working set */
    uint64_t x;
};

/* About a microsecond. */
static uint64_t compute(uint64_t x) {
    for (int i = 0; i < STEPS; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

/* The next lines of the working set, read and written. */
static size_t touch(uint8_t *at, size_t from) {
    for (int i = 0; i < LINES; i++) {
        at[from]++;
        from = from + LINE < SET_BYTES ? from + LINE : 0;
    }
    return from;
}

static void spin(const struct gangwork *peer, uint64_t units) {
    while (atomic_load_explicit(&peer->units, memory_order_acquire) < units)
        ;
}

/* The pair: each needs what the other had after the unit before. The wave: who is upstream has done this block already. */
static void await_peers(const struct worker *w, uint64_t unit) {
    uint32_t peers[PEERS];
    if (w->kernel != KERNEL_PAIR && w->kernel != KERNEL_WAVE)
        return;
    gangwork_peers(w->kernel, w->rank, w->size, unit, peers);
    for (int i = 0; i < PEERS; i++)
        if (peers[i] != NO_PEER)
            spin(gangnotes_of(w->notes, peers[i]), w->kernel == KERNEL_PAIR ? unit : unit + 1);
}

static void do_unit(struct worker *w, uint64_t unit) {
    await_peers(w, unit);
    int times = w->kernel == KERNEL_PAIR || w->kernel == KERNEL_WAVE ? GRAIN : 1;
    for (int i = 0; i < times; i++)
        w->x = compute(w->x);
    if (w->kernel == KERNEL_CACHE)
        w->at = touch(w->set, w->at);
}

static uint64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static void work(struct worker *w, uint64_t units) {
    struct gangwork *own = gangnotes_of(w->notes, w->rank);
    uint64_t before = clock_ns(), cpu = cpu_ns();
    own->begun = w->x = before;
    for (uint64_t i = 0; i < units; i++) {
        do_unit(w, i);
        uint64_t now = clock_ns();
        if (now - before > GAP_NS && own->gaps < GANGWORK_GAPS)
            own->gap[own->gaps++] = (struct gangwork_gap){before, now};
        before = now;
        atomic_store_explicit(&own->units, i + 1, memory_order_release);
    }
    own->cpu_ns = cpu_ns() - cpu;
    own->done = before;
}

int gangwork_do(const struct gangnotes *notes, uint32_t rank, enum gangkernel k, uint64_t units) {
    struct worker w = {
        .kernel = k, .notes = notes, .rank = rank, .size = notes->count, .set = malloc(SET_BYTES)};
    if (w.set == NULL)
        return -ENOMEM;
    memset(w.set, 1, SET_BYTES);
    gangnotes_touch(notes, rank);
    work(&w, units);
    free(w.set);
    return 0;
}

static uint32_t number_of(const char *variable, uint32_t otherwise) {
    const char *text = getenv(variable);
    uint64_t value;
    return text != NULL && options_number(text, &value) && value < UINT32_MAX ? (uint32_t)value
                                                                              : otherwise;
}

int bench_gang_work(int argc, char **argv) {
    uint32_t rank = number_of("STORM_RANK", 0), size = number_of("STORM_SIZE", 1);
    uint64_t units;
    enum gangkernel kernel;
    struct gangnotes notes;
    if (argc != 4 || !gangkernel_find(argv[2], &kernel) || !options_number(argv[3], &units))
        return complain("bench", "gang-work: give FILE KERNEL UNITS");
    int r = rank >= size ? -EINVAL : gangnotes_open(&notes, argv[1], size);
    if (r == 0)
        r = gangwork_do(&notes, rank, kernel, units);
    if (r < 0)
        complain("bench", "gang-work: %s: %s", argv[1], strerror(-r));
    return r < 0 ? STATUS_FAILED : STATUS_OK;
}
