/* SPDX-License-Identifier: MIT */
/* A quick share of the campaign of jobs, and every seed that ever failed.
 *
 * `make soak` runs the full count. See campaign_test.c. */
#include "sim/campaign.h"

#include "sched/policies.h"
#include "sim/jobs_trial.h"
#include "tap.h"

#ifdef STORM_SLOW
enum { QUICK_SEEDS = 20, SHARED_SEEDS = 8 };
#else
enum { QUICK_SEEDS = 150, SHARED_SEEDS = 40 };
#endif

static void test_quick_share_holds_all_promises(void) {
    struct campaign_config c = {.seed_first = 1, .seed_count = QUICK_SEEDS, .kind = CAMPAIGN_JOBS};
    CHECK_EQ(campaign_run(&c, stderr), 0);
}

static void run_share(struct jobs_terms terms) {
    struct campaign_config c = {
        .seed_first = 1, .seed_count = SHARED_SEEDS, .kind = CAMPAIGN_JOBS, .terms = terms};
    CHECK_EQ(campaign_run(&c, stderr), 0);
}

static void test_so_does_a_share_where_slots_take_turns(void) {
    run_share((struct jobs_terms){.policy = &policy_gang});
    run_share((struct jobs_terms){.any = true});
}

static void test_the_same_seed_is_the_same_run(void) {
    const struct jobs_terms fcfs = {0};
    struct trial_result one, two;
    for (uint64_t seed = 3; seed < 6; seed++) {
        jobs_trial_run(seed, &fcfs, &one, NULL);
        jobs_trial_run(seed, &fcfs, &two, NULL);
        CHECK_EQ(one.hash, two.hash);
        CHECK_EQ(one.steps, two.steps);
    }
}

static void test_seeds_that_once_failed(void) {
    static const uint64_t kept[] = {
        106,   /* a new manager let hosts go on that others waited for */
        195,   /* hosts outlived a job whose submission was not kept */
        242,   /* the way to the output of a job that was over died with the manager */
        633,   /* a launch that failed was counted twice: nothing started any more */
        694,   /* what the log held of an attempt that came to nothing was in the way of others */
        930,   /* a new node manager denied what its launcher had */
        1138,  /* as 242 */
        1156,  /* a process had died, then its node: the job was done, with 0 */
        2776,  /* what had been killed before the manager died was done, with 0 */
        4051,  /* the lease of a former run ended the next one */
        4827,  /* a launch that was never decided ran for ever */
        5218,  /* ends were not repeated because they were asked for all the time */
        7798,  /* it was never heard that a job goes on */
        44390, /* what a former root had left undecided was started, ended, and then decided */
        48531, 800173, /* what was never decided was begun by a node whose manager had come back */
    };
    struct campaign_config c = {.kind = CAMPAIGN_JOBS};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        CHECK_EQ(campaign_seed(&c, kept[i], false, stderr), 0);
}

static void run_kept(struct jobs_terms terms, const uint64_t *kept, size_t count) {
    struct campaign_config c = {.kind = CAMPAIGN_JOBS, .terms = terms};
    for (size_t i = 0; i < count; i++)
        CHECK_EQ(campaign_seed(&c, kept[i], false, stderr), 0);
}

static void test_seeds_that_once_failed_under_other_policies(void) {
    static const uint64_t gang[] = {
        14,            /* a new manager told that what ran belonged to all slots */
        30,  173, 285, /* it told the slots of some; those of others were of its former life */
        537, /* a node came back when there were no strobes any more, and waited for one */
        289, /* its slots changed while it was on its way, and that came before it */
    };
    static const uint64_t any[] = {
        424,          /* what became of a condition was not in the log, as the disk was full */
        34,  96,  71, /* hosts took the place of an order after others had been promised it */
        109, 135,     /* a policy was chosen while the disk was full: a new manager did not know */
    };
    static const uint64_t conservative[] = {
        203}; /* hosts took longer than what they took the place of */
    run_kept((struct jobs_terms){.policy = &policy_conservative}, conservative, 1);
    run_kept((struct jobs_terms){.policy = &policy_gang}, gang, sizeof gang / sizeof *gang);
    run_kept((struct jobs_terms){.any = true}, any, sizeof any / sizeof *any);
}

int main(void) {
    TEST(test_quick_share_holds_all_promises);
    TEST(test_so_does_a_share_where_slots_take_turns);
    TEST(test_the_same_seed_is_the_same_run);
    TEST(test_seeds_that_once_failed);
    TEST(test_seeds_that_once_failed_under_other_policies);
    return tap_finish();
}
