/* SPDX-License-Identifier: MIT */
/* Many seeds, shared among processes: see campaign.h.
 *
 * Share k of n has the seeds whose distance from the first leaves k when divided by n; the parent
 * reads the shares' pipes in turn, so it meets the results in order and a child never runs far
 * ahead. */
#include "sim/campaign.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "sim/files_trial.h"
#include "sim/trial.h"

enum { SHARES_MAX = 64, VIOLATIONS_SHOWN = 6 };

struct share {
    pid_t child;
    int pipe;
};

struct totals {
    uint64_t seeds, failed, asked, done, faults, steps;
    struct coverage coverage;
};

static void run_one(const struct campaign_config *c, uint64_t seed, struct trial_result *ret,
                    FILE *trace) {
    if (c->kind == CAMPAIGN_JOBS)
        jobs_trial_run(seed, &c->terms, ret, trace);
    else if (c->kind == CAMPAIGN_FILES)
        files_trial_run(seed, ret, trace);
    else
        trial_run(seed, ret, trace);
}

/* ---- Reporting ------------------------------------------------------------------------------ */

static void print_result(const struct trial_result *r, FILE *out) {
    fprintf(out,
            "seed %" PRIu64 ": %s, %" PRIu32 " nodes, %" PRIu32 " operations (%" PRIu32
            " done), %" PRIu32 " faults, %" PRIu32 " lives, %" PRIu64 " steps, %" PRIu64
            " ms, hash %016" PRIx64 "\n",
            r->seed, r->verdict.count ? "FAILED" : "ok", r->nodes, r->asked, r->done, r->faults,
            r->lives, r->steps, r->time_ns / 1000000, r->hash);
    if (r->verdict.count)
        verdict_print(&r->verdict, VIOLATIONS_SHOWN, out);
}

static void take(struct totals *t, const struct campaign_config *c, const struct trial_result *r,
                 FILE *out) {
    t->seeds++;
    t->asked += r->asked;
    t->done += r->done;
    t->faults += r->faults;
    t->steps += r->steps;
    t->failed += r->verdict.count > 0;
    coverage_merge(&t->coverage, &r->coverage);
    if (c->verbose || r->verdict.count)
        print_result(r, out);
    fflush(out);
}

static int conclude(const struct totals *t, const struct campaign_config *c, FILE *out) {
    if (c->kind != CAMPAIGN_PRIMITIVES) {
        fprintf(out,
                "%" PRIu64 " seeds, %" PRIu64 " failed; %" PRIu64 " %s (%" PRIu64 " done), %" PRIu64
                " faults, %" PRIu64 " steps\n",
                t->seeds, t->failed, t->asked, c->kind == CAMPAIGN_JOBS ? "jobs" : "bundles",
                t->done, t->faults, t->steps);
        return (int)t->failed;
    }
    uint32_t empty = coverage_empty(&t->coverage);
    coverage_print(&t->coverage, out);
    fprintf(out,
            "%" PRIu64 " seeds, %" PRIu64 " failed; %" PRIu64 " operations (%" PRIu64
            " done), %" PRIu64 " faults planned, %" PRIu64 " counted, %" PRIu32
            " fields of %d empty, %" PRIu64 " steps\n",
            t->seeds, t->failed, t->asked, t->done, t->faults, coverage_total(&t->coverage), empty,
            COVERAGE_CELLS, t->steps);
    return (int)t->failed + (c->cover && empty > 0);
}

/* ---- Shares --------------------------------------------------------------------------------- */

static bool write_all(int fd, const void *from, size_t len) {
    const uint8_t *at = from;
    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static bool read_all(int fd, void *to, size_t len) {
    uint8_t *at = to;
    while (len > 0) {
        ssize_t n = read(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static _Noreturn void work(const struct campaign_config *c, uint64_t from, uint32_t stride,
                           int fd) {
    struct trial_result r;
    for (uint64_t i = from; i < c->seed_count; i += stride) {
        run_one(c, c->seed_first + i, &r, NULL);
        if (!write_all(fd, &r, sizeof r))
            break;
    }
    _exit(0);
}

static void share_start(struct share *s, const struct campaign_config *c, uint64_t from,
                        uint32_t stride, FILE *out) {
    int fds[2];
    int failed = pipe(fds);
    ASSERT(failed == 0);
    fflush(out);
    s->child = fork();
    ASSERT(s->child >= 0);
    if (s->child == 0) {
        close(fds[0]);
        work(c, from, stride, fds[1]);
    }
    close(fds[1]);
    s->pipe = fds[0];
}

static void share_end(struct share *s) {
    close(s->pipe);
    while (waitpid(s->child, NULL, 0) < 0 && errno == EINTR)
        ;
}

static uint32_t choose_shares(const struct campaign_config *c) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t shares = c->processes;
    if (shares == 0)
        shares = processors > 0 ? (uint32_t)processors : 1;
    if (shares > SHARES_MAX)
        shares = SHARES_MAX;
    return shares > c->seed_count ? (uint32_t)c->seed_count : shares;
}

static void run_shared(const struct campaign_config *c, uint32_t count, struct totals *t,
                       FILE *out) {
    struct trial_result r;
    struct share shares[SHARES_MAX];
    for (uint32_t k = 0; k < count; k++)
        share_start(&shares[k], c, k, count, out);
    for (uint64_t i = 0; i < c->seed_count; i++) {
        struct share *s = &shares[i % count];
        if (!read_all(s->pipe, &r, sizeof r)) {
            r = (struct trial_result){.seed = c->seed_first + i};
            verdict_add(&r.verdict, "died", "the process that ran this seed ended early");
            share_end(s);
            share_start(s, c, i + count, count, out);
        }
        take(t, c, &r, out);
    }
    for (uint32_t k = 0; k < count; k++)
        share_end(&shares[k]);
}

int campaign_run(const struct campaign_config *config, FILE *out) {
    struct trial_result r;
    struct totals t = {0};
    uint32_t shares = choose_shares(config);
    if (shares > 1)
        run_shared(config, shares, &t, out);
    for (uint64_t i = 0; shares <= 1 && i < config->seed_count; i++) {
        run_one(config, config->seed_first + i, &r, NULL);
        take(&t, config, &r, out);
    }
    return conclude(&t, config, out);
}

int campaign_seed(const struct campaign_config *config, uint64_t seed, bool trace, FILE *out) {
    struct trial_result r;
    run_one(config, seed, &r, trace ? out : NULL);
    print_result(&r, out);
    if (r.verdict.count > VIOLATIONS_SHOWN)
        verdict_print(&r.verdict, VERDICT_LINES, out);
    return r.verdict.count > 0;
}
