/* SPDX-License-Identifier: MIT */
/* Notes of a benched job: see gangnotes.h. */
#include "cli/gangnotes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/sort.h"

enum { PAGE = 4096 };

static size_t bytes_of_one(void) {
    return align_up(sizeof(struct gangwork), PAGE);
}

static int map(struct gangnotes *n, const char *path, uint32_t count, int flags) {
    *n = (struct gangnotes){.count = count};
    if ((size_t)snprintf(n->path, sizeof n->path, "%s", path) >= sizeof n->path)
        return -ENAMETOOLONG;
    int fd = open(path, flags | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    size_t bytes = count * bytes_of_one();
    int r = (flags & O_CREAT) && ftruncate(fd, (off_t)bytes) < 0 ? -errno : 0;
    void *at = r < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (r == 0 && at == MAP_FAILED)
        r = -errno;
    close(fd);
    n->at = r < 0 ? NULL : at;
    return r;
}

int gangnotes_make(struct gangnotes *n, const char *path, uint32_t count) {
    return map(n, path, count, O_CREAT | O_EXCL);
}

int gangnotes_open(struct gangnotes *n, const char *path, uint32_t count) {
    return map(n, path, count, 0);
}

void gangnotes_fini(struct gangnotes *n) {
    if (n->at == NULL)
        return;
    munmap(n->at, n->count * bytes_of_one());
    unlink(n->path);
    n->at = NULL;
}

struct gangwork *gangnotes_of(const struct gangnotes *n, uint32_t rank) {
    return (struct gangwork *)(void *)(n->at + rank * bytes_of_one());
}

void gangnotes_clear(struct gangnotes *n) {
    for (uint32_t i = 0; i < n->count; i++) {
        struct gangwork *w = gangnotes_of(n, i);
        w->begun = w->done = w->gaps = 0;
        atomic_store(&w->units, 0);
    }
}

void gangnotes_touch(const struct gangnotes *n, uint32_t rank) {
    memset(gangnotes_of(n, rank)->gap, 0, sizeof(struct gangwork_gap[GANGWORK_GAPS]));
}

bool gangnotes_span(const struct gangnotes *n, struct gangspan *ret) {
    *ret = (struct gangspan){.from = UINT64_MAX};
    for (uint32_t i = 0; i < n->count; i++) {
        const struct gangwork *w = gangnotes_of(n, i);
        if (w->done == 0)
            return false;
        ret->from = w->begun < ret->from ? w->begun : ret->from;
        ret->to = w->done > ret->to ? w->done : ret->to;
    }
    return n->count > 0;
}

/* ---- shares ---- */

static uint64_t ran_in(const struct gangwork *w, struct gangspan s) {
    uint64_t paused = 0;
    for (uint64_t i = 0; i < w->gaps; i++) {
        uint64_t from = w->gap[i].from > s.from ? w->gap[i].from : s.from;
        uint64_t to = w->gap[i].to < s.to ? w->gap[i].to : s.to;
        paused += to > from ? to - from : 0;
    }
    return s.to - s.from - paused;
}

/* While all of them were there. */
static bool together(const struct gangnotes *jobs, uint32_t count, struct gangspan *ret) {
    *ret = (struct gangspan){.to = UINT64_MAX};
    for (uint32_t j = 0; j < count; j++)
        for (uint32_t i = 0; i < jobs[j].count; i++) {
            const struct gangwork *w = gangnotes_of(&jobs[j], i);
            ret->from = w->begun > ret->from ? w->begun : ret->from;
            ret->to = w->done < ret->to ? w->done : ret->to;
        }
    return ret->from < ret->to && ret->to != UINT64_MAX;
}

bool gangnotes_shares(const struct gangnotes *jobs, uint32_t count, uint32_t *ret_least,
                      uint32_t *ret_most) {
    struct gangspan s;
    uint64_t sum = 0, least = UINT64_MAX, most = 0, processes = 0;
    if (!together(jobs, count, &s))
        return false;
    for (uint32_t j = 0; j < count; j++)
        for (uint32_t i = 0; i < jobs[j].count; i++) {
            uint64_t ran = ran_in(gangnotes_of(&jobs[j], i), s);
            sum += ran;
            least = ran < least ? ran : least;
            most = ran > most ? ran : most;
            processes++;
        }
    uint64_t mean = sum / processes;
    if (mean == 0)
        return false;
    *ret_least = (uint32_t)(least * 1000 / mean);
    *ret_most = (uint32_t)(most * 1000 / mean);
    return true;
}

/* ---- switches ---- */

static const struct gangwork_gap *next_pause(const struct gangwork *w, uint64_t *from,
                                             uint64_t least_ns) {
    for (; *from < w->gaps; ++*from)
        if (w->gap[*from].to - w->gap[*from].from >= least_ns)
            return &w->gap[(*from)++];
    return NULL;
}

/* The pause of this process that was on at that time, or began within `near` of it. */
static const struct gangwork_gap *pause_at(const struct gangwork *w, uint64_t *from, uint64_t at,
                                           uint64_t near, uint64_t least_ns) {
    for (; *from < w->gaps && w->gap[*from].to + near < at; ++*from)
        ;
    for (uint64_t i = *from; i < w->gaps && w->gap[i].from < at + near; i++)
        if (w->gap[i].to - w->gap[i].from >= least_ns && w->gap[i].to + near >= at)
            return &w->gap[i];
    return NULL;
}

uint32_t gangnotes_switches(const struct gangnotes *from, const struct gangnotes *to,
                            uint64_t least_ns, uint64_t *ret_ns, uint32_t cap) {
    enum { RANKS = 64 };
    uint64_t first = 0, others[RANKS] = {0}, comers[RANKS] = {0};
    uint32_t count = 0;
    const struct gangwork_gap *leaves;
    if (from->count > RANKS || to->count > RANKS)
        return 0;
    while (count < cap && (leaves = next_pause(gangnotes_of(from, 0), &first, least_ns)) != NULL) {
        uint64_t begin = leaves->from, end = 0, near = least_ns / 2;
        bool whole = true;
        for (uint32_t i = 1; i < from->count && whole; i++) {
            const struct gangwork_gap *g =
                pause_at(gangnotes_of(from, i), &others[i], leaves->from + near, near, least_ns);
            whole = g != NULL;
            begin = whole && g->from < begin ? g->from : begin;
        }
        for (uint32_t i = 0; i < to->count && whole; i++) {
            const struct gangwork_gap *g =
                pause_at(gangnotes_of(to, i), &comers[i], leaves->from, near, least_ns);
            whole = g != NULL;
            end = whole && g->to > end ? g->to : end;
        }
        if (whole && end > begin)
            ret_ns[count++] = end - begin;
    }
    sort_u64(ret_ns, count);
    return count;
}
