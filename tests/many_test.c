/* SPDX-License-Identifier: MIT */
/* A thousand real node processes come up and answer a COMPARE-AND-WRITE.
 *
 * What a simulation of a million nodes cannot tell: that a machine carries this many daemons, that
 * all of them find their place when they start at the same moment, and that nothing is left when
 * the cluster ends. No claim about speed: the deadlines are only there to end a hopeless run. */
#include <signal.h>
#include <sys/resource.h>

#include "troupe.h"

/* How many nodes, and what memory each may need. */
#if defined(__SANITIZE_ADDRESS__)
enum { MANY = 256 };
#define NODE_BYTES (16 * MIB)
#else
enum { MANY = 1024 };
#define NODE_BYTES (2 * MIB)
#endif

/* Hundreds of processes share two processors while they start: a heartbeat of a second leaves each
 * of them three seconds for a turn before anybody takes it for dead. */
#define PERIOD_NS (1 * NS_PER_S)
#define UP_NS     (120 * NS_PER_S)
#define ANSWER_NS (60 * NS_PER_S)

/* Memory that processes may have, 0 if the system does not tell. */
static uint64_t available_bytes(void) {
    unsigned long long kib = 0;
    char line[128];
    FILE *f = fopen("/proc/meminfo", "re");
    while (f != NULL && kib == 0 && fgets(line, sizeof line, f) != NULL)
        sscanf(line, "MemAvailable: %llu kB", &kib);
    if (f != NULL)
        fclose(f);
    return kib * KIB;
}

static const char *reason_not_to(void) {
    struct rlimit processes, files;
    uint64_t bytes = available_bytes();
    if (getrlimit(RLIMIT_NPROC, &processes) == 0 && processes.rlim_cur < MANY + 64)
        return "RLIMIT_NPROC allows fewer processes";
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_max < 4 * (rlim_t)MANY)
        return "RLIMIT_NOFILE allows fewer open files";
    if (bytes != 0 && bytes < MANY * NODE_BYTES)
        return "there is not enough memory for so many processes";
    return NULL;
}

static void test_a_thousand_nodes_answer_a_compare(void) {
    struct troupe_config config = {.nodes = MANY,
                                   .tree = {.shape = SHAPE_KARY, .arity = 16},
                                   .links = TRANSPORT_TCP,
                                   .period_ns = PERIOD_NS};
    uint64_t begin = clock_ns();
    struct troupe *t = troupe_start(&config);
    if (t == NULL)
        return;
    uint64_t started = clock_ns();
    CHECK(TROUPE_WITHIN(t, UP_NS, troupe_all_up(t)));
    CHECK_EQ(puppets_up_count(t->puppets), t->universe);
    uint64_t up = clock_ns();
    const struct puppet_op *x = troupe_ask(t, t->root, NULL, NO_NODE, op_compare(7, ANSWER_NS));
    if (CHECK(TROUPE_WITHIN(t, ANSWER_NS, op_ended(x)))) {
        CHECK_EQ(x->completion.outcome, OUTCOME_DONE);
        printf("## %u processes: started in %.1f s, all members after %.1f s, a compare with a "
               "write over all in %.1f ms\n",
               t->universe, (double)(started - begin) / 1e9, (double)(up - begin) / 1e9,
               (double)(x->answered_ns - x->asked_ns) / 1e6);
    }
    pid_t *pids = calloc(t->universe, sizeof *pids);
    for (uint32_t n = 0; pids != NULL && n < t->universe; n++) {
        CHECK_EQ(crew_lives(t->crew, n), 1);
        pids[n] = crew_pid(t->crew, n);
        CHECK(pids[n] > 0);
    }
    uint32_t universe = t->universe;
    troupe_free(t);
    for (uint32_t n = 0; pids != NULL && n < universe; n++)
        CHECK(kill(pids[n], 0) < 0);
    free(pids);
}

int main(void) {
    const char *reason = reason_not_to();
    if (reason != NULL)
        SKIP("test_a_thousand_nodes_answer_a_compare", reason);
    else
        TEST(test_a_thousand_nodes_answer_a_compare);
    return tap_finish();
}
