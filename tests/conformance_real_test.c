/* SPDX-License-Identifier: MIT */
/* The conformance scripts on real processes: a process for each node, links over Unix and TCP
 * sockets.
 *
 * What the simulator promises (NAME.history) must come about here too, byte for byte. A play mostly
 * waits for heartbeats, so a few go on at once, each in a process of its own. */
#include <sys/wait.h>

#include "conformance/suite.h"
#include "conformance/theatre_real.h"

enum { AT_ONCE = 3, PLAYS_MAX = 1024 };

struct play {
    char title[512];
    pid_t pid;
    FILE *words; /* what it has to say if it fails */
};

static struct play plays[PLAYS_MAX];
static uint32_t begun, told;
static int status_of_play;

static void report_status(void) {
    CHECK_EQ(status_of_play, 0);
}

/* In the order in which they began. */
static void report_one(void) {
    struct play *p = &plays[told++];
    char line[1024];
    while (waitpid(p->pid, &status_of_play, 0) < 0 && errno == EINTR)
        ;
    rewind(p->words);
    while (fgets(line, sizeof line, p->words) != NULL)
        fputs(line, stdout);
    fclose(p->words);
    tap_run(p->title, report_status);
}

static void begin_play(const char *name, const struct theatre *theatre, uint64_t seeds) {
    if (begun - told == AT_ONCE)
        report_one();
    ASSERT(begun < PLAYS_MAX);
    struct play *p = &plays[begun++];
    snprintf(p->title, sizeof p->title, "%s, %s", name, theatre->name);
    p->words = tmpfile();
    ASSERT(p->words != NULL);
    fflush(stdout);
    p->pid = fork();
    ASSERT(p->pid >= 0);
    if (p->pid > 0)
        return;
    dup2(fileno(p->words), STDOUT_FILENO);
    tap_current_fail = 0; /* of a play before */
    theatre_of_test = theatre;
    seed_count = seeds;
    play_script();
    fflush(stdout);
    _exit(tap_current_fail != 0);
}

int main(int argc, char **argv) {
    static const struct theatre *const theatres[] = {&theatre_unix, &theatre_tcp};
    bool found = suite_each(argc, argv, theatres, 2, 1, begin_play);
    while (told < begun)
        report_one();
    return tap_finish() || !found;
}
