/* SPDX-License-Identifier: MIT */
/* What a process of a benched gang does: see gangwork.h. */
#include "cli/gangwork.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/bench.h"
#include "cli/complain.h"
#include "cli/options.h"
#include "os/loop.h"

/* Shorter pauses are not noted. */
#define GAP_NS (15 * NS_PER_US)

enum { STEPS = 400, LINE = 64, LINES = 64 };

/* About a microsecond. */
static uint64_t compute(uint64_t x) {
    for (int i = 0; i < STEPS; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}

/* The next lines of the working set, read and written. */
static size_t touch(uint8_t *at, size_t bytes, size_t from) {
    for (int i = 0; i < LINES; i++) {
        at[from]++;
        from = from + LINE < bytes ? from + LINE : 0;
    }
    return from;
}

static struct gangwork *map(const char *path, uint64_t rank) {
    int fd = open(path, O_RDWR | O_CLOEXEC);
    size_t bytes = align_up(sizeof(struct gangwork), 4096);
    void *at = fd < 0 ? MAP_FAILED
                      : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
                             (off_t)(rank * bytes));
    if (fd >= 0)
        close(fd);
    return at == MAP_FAILED ? NULL : at;
}

static void work(struct gangwork *w, uint64_t units, uint8_t *set, size_t bytes) {
    uint64_t before = clock_ns(), x = before;
    size_t at = 0;
    w->begun = before;
    for (uint64_t i = 0; i < units; i++) {
        x = compute(x);
        if (bytes > 0)
            at = touch(set, bytes, at);
        uint64_t now = clock_ns();
        if (now - before > GAP_NS && w->gaps < GANGWORK_GAPS)
            w->gap[w->gaps++] = (struct gangwork_gap){before, now};
        before = now;
        atomic_store_explicit(&w->units, i + 1, memory_order_relaxed);
    }
    w->done = before;
}

int bench_gang_work(int argc, char **argv) {
    const char *rank = getenv("STORM_RANK");
    uint64_t units, bytes;
    if (argc != 4 || !options_number(argv[2], &units) || !options_number(argv[3], &bytes))
        return complain("bench", "gang-work: give FILE UNITS BYTES");
    struct gangwork *w = map(argv[1], rank == NULL ? 0 : strtoull(rank, NULL, 10));
    uint8_t *set = calloc(1, bytes + 1);
    if (w == NULL || set == NULL) {
        complain("bench", "gang-work: %s: %s", argv[1], strerror(errno));
        return STATUS_FAILED;
    }
    memset(set, 1, bytes + 1);
    work(w, units, set, bytes);
    return STATUS_OK;
}
