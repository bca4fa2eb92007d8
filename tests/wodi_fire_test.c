/* SPDX-License-Identifier: MIT */
/* Exactly once under fire: real processes, and somebody is killed again and again.
 *
 *     wodi_fire_test STORM_WODI        STORM_WODI_ROUNDS: how many rounds (24)
 *
 * A master tells through a pipe what it has received, and what it knows to be acknowledged as the call after that has
 * returned. After every few lines one of them is killed, or all at once: a worker, the server, the master; or a worker stands
 * still for the rest of the round, but never all of them. Then it is started again. The pipe outlives them. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/random.h"
#include "storm/wodi.h"
#include "tap.h"

enum { WORKERS = 3, CYCLES = 3, STEPS = 150, FAULTS = 8 };

struct line {
    char what; /* 'g': got, 'a': acknowledged, 'd': done, 'x': failed */
    uint32_t cycle, step;
    int32_t status;
};

struct round {
    const char *program;
    char folder[64], environment[512];
    struct random random;
    pid_t server, master, workers[WORKERS];
    bool stopped[WORKERS];
    int pipe[2];
    uint32_t got[CYCLES + 1][STEPS + 1];
    bool acked[CYCLES + 1][STEPS + 1];
    bool remote; /* the master pretends to be elsewhere: no word of acknowledgements */
};

/* ---- the processes ---- */

static pid_t spawn(void) {
    pid_t pid = fork();
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}

static uint64_t answer_to(uint64_t question) {
    for (int i = 0; i < 20000; i++) /* it takes a while */
        question = question * 6364136223846793005u + 1442695040888963407u;
    return question;
}

static int work(void *context, struct wodi_worker *w, const struct wodi_event *e) {
    uint64_t question;
    (void)context;
    memcpy(&question, e->data, sizeof question);
    uint64_t result = answer_to(question);
    return wodi_sendresult(w, (uint32_t)e->step, &result, sizeof result);
}

static void be_worker(const struct round *r) {
    const struct wodi_worker_options options = {.server = r->environment, .patience_s = 60};
    const struct wodi_callbacks callbacks = {.work = work};
    _exit(wodi_worker(&options, &callbacks, NULL) < 0);
}

static void tell(const struct round *r, char what, uint64_t cycle, uint64_t step, int status) {
    struct line l = {
        .what = what, .cycle = (uint32_t)cycle, .step = (uint32_t)step, .status = status};
    if (write(r->pipe[1], &l, sizeof l) != sizeof l)
        _exit(1);
}

static int be_master_in_cycle(const struct round *r, struct wodi *w, uint64_t cycle) {
    struct wodi_result got;
    uint64_t last = 0;
    int status = wodi_begin_cycle(w, cycle, &cycle, sizeof cycle, STEPS);
    if (status != 0)
        return status;
    for (uint64_t step = 1; step <= STEPS && status == 0; step++) {
        uint64_t question = cycle * 1000 + step;
        status = wodi_sendwork(w, step, &question, sizeof question);
    }
    while (status >= 0 && (status = wodi_rcvresult(w, &got)) == 1) {
        uint64_t result;
        memcpy(&result, got.data, sizeof result);
        if (got.cycle != cycle || got.status != got.step ||
            result != answer_to(cycle * 1000 + got.step))
            return -EBADMSG;
        if (last)
            tell(r, 'a', cycle, last, 0);
        tell(r, 'g', cycle, got.step, 0);
        last = got.step;
    }
    if (last && status == 0)
        tell(r, 'a', cycle, last, 0);
    return status < 0 ? status : wodi_end_cycle(w, cycle, &cycle, sizeof cycle);
}

/* Only the last says that it is complete: a master that is started again after that would begin anew. */
static void be_master(const struct round *r, bool last) {
    const struct wodi_options options = {
        .server = r->environment, .name = "fire", .patience_s = 60};
    struct wodi *w;
    int status = wodi_init(&w, &options);
    for (uint64_t cycle = 1; cycle <= CYCLES && status >= 0; cycle++)
        status = be_master_in_cycle(r, w, cycle);
    if (status >= 0 && last)
        status = wodi_complete(w);
    tell(r, status < 0 ? 'x' : 'd', 0, 0, status);
    _exit(0);
}

static void start_server(struct round *r) {
    int out[2];
    char line[512] = "", address[80];
    snprintf(address, sizeof address, "tcp:127.0.0.1:0");
    if (pipe(out) != 0)
        return;
    r->server = spawn();
    if (r->server == 0) {
        dup2(out[1], 1);
        /* A small journal, so that it is made anew often. */
        execl(r->program, r->program, "--folder", r->folder, "--journal", "8",
              r->remote ? "--listen" : NULL, address, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    FILE *f = fdopen(out[0], "r");
    CHECK(f && fgets(line, sizeof line, f) && strncmp(line, "STORM_WODI=", 11) == 0);
    line[strcspn(line, "\n")] = 0;
    snprintf(r->environment, sizeof r->environment, "%s", line + (*line ? 11 : 0));
    if (f)
        fclose(f);
}

static void start_worker(struct round *r, int i) {
    r->stopped[i] = false;
    r->workers[i] = spawn();
    if (r->workers[i] == 0)
        be_worker(r);
}

static void start_master(struct round *r, bool last) {
    r->master = spawn();
    if (r->master == 0)
        be_master(r, last);
}

static void end_process(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* ---- what happens to them ---- */

static bool others_stand_still(const struct round *r, int i) {
    for (int k = 0; k < WORKERS; k++)
        if (k != i && !r->stopped[k])
            return false;
    return true;
}

static void misfortune(struct round *r) {
    uint64_t what = random_below(&r->random, 8);
    int i = (int)random_below(&r->random, WORKERS);
    bool server = what == 3 || what == 4 || what == 7, master = what == 5 || what == 6 || what == 7;
    if (what < 2 || r->stopped[i]) {
        end_process(r->workers[i]);
        start_worker(r, i);
    } else if (what == 2 && !others_stand_still(r, i)) {
        kill(r->workers[i], SIGSTOP);
        r->stopped[i] = true;
    }
    if (server)
        end_process(r->server);
    if (master)
        end_process(r->master);
    if (server)
        start_server(r);
    if (master)
        start_master(r, false);
}

/* False: it is over, or wrong. */
static bool take_line(struct round *r, bool *ret_good) {
    struct line l;
    if (!CHECK(read(r->pipe[0], &l, sizeof l) == sizeof l))
        return false;
    if (l.what == 'd' || l.what == 'x') {
        if (l.what == 'x')
            printf("# the master: %s\n", strerror(-l.status));
        *ret_good = l.what == 'd';
        return false;
    }
    if (l.what == 'a') {
        r->acked[l.cycle][l.step] = true;
    } else {
        r->got[l.cycle][l.step]++;
        if (!CHECK(!r->acked[l.cycle][l.step]))
            printf("# cycle %u, step %u came after it was acknowledged\n", l.cycle, l.step);
    }
    return true;
}

static void judge(const struct round *r) {
    for (int cycle = 1; cycle <= CYCLES; cycle++)
        for (int step = 1; step <= STEPS; step++)
            CHECK(r->got[cycle][step] >= 1);
}

static void run_round(const char *program, uint64_t seed) {
    struct round *r = calloc(1, sizeof *r);
    char command[128];
    bool good = false;
    r->program = program;
    random_init(&r->random, seed);
    r->remote = seed % 3 == 0;
    snprintf(r->folder, sizeof r->folder, "/tmp/wodi_fire.XXXXXX");
    if (!CHECK(mkdtemp(r->folder) && pipe(r->pipe) == 0))
        return;
    start_server(r);
    for (int i = 0; i < WORKERS; i++)
        start_worker(r, i);
    start_master(r, false);
    uint32_t faults = FAULTS;
    uint64_t lines = 0, next = random_between(&r->random, 1, 200);
    while (take_line(r, &good))
        if (++lines >= next && faults > 0) {
            faults--;
            next += random_between(&r->random, 1, 200);
            misfortune(r);
        }
    end_process(r->master);
    if (CHECK(good)) {
        start_master(r, true);
        CHECK(!take_line(r, &good)); /* it finds everything done */
        end_process(r->master);
    }
    end_process(r->server);
    for (int i = 0; i < WORKERS; i++)
        end_process(r->workers[i]);
    if (CHECK(good))
        judge(r);
    else
        printf("# seed %llu\n", (unsigned long long)seed);
    snprintf(command, sizeof command, "rm -rf %s", r->folder);
    CHECK(system(command) == 0);
    close(r->pipe[0]);
    close(r->pipe[1]);
    free(r);
}

static const char *server_program;

static void test_exactly_once_under_fire(void) {
    const char *text = getenv("STORM_WODI_ROUNDS");
    uint64_t rounds = text ? strtoull(text, NULL, 10) : 24;
    for (uint64_t seed = 1; seed <= rounds && !tap_current_fail; seed++)
        run_round(server_program, seed);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        SKIP("test_exactly_once_under_fire", "the path of storm-wodi is missing");
        return tap_finish();
    }
    server_program = argv[1];
    TEST(test_exactly_once_under_fire);
    return tap_finish();
}
