/* SPDX-License-Identifier: MIT */
/* Something is done on hosts, each with an input of its own: with a connector that stays on this machine. */
#include "cli/muster.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/list.h"
#include "base/units.h"
#include "tap.h"

enum { HOSTS = 6, WORDS = 64 };

struct scene {
    char home[32];
    struct loop loop;
    struct source signals;
    struct reach reach;
    struct muster *muster;
    char said[HOSTS][WORDS], why[HOSTS][WORDS];
    int status[HOSTS], over[HOSTS];
    uint32_t sent;
};

static void on_sent(void *context, uint32_t cookie) {
    struct scene *s = context;
    (void)cookie;
    s->sent++;
}

static void on_said(void *context, uint32_t cookie, const char *words) {
    struct scene *s = context;
    snprintf(s->said[cookie], WORDS, "%s", words);
}

static void on_over(void *context, uint32_t cookie, int status, const char *words) {
    struct scene *s = context;
    s->over[cookie]++;
    s->status[cookie] = status;
    snprintf(s->why[cookie], WORDS, "%s", words);
}

static void on_signal(struct source *source, uint32_t events) {
    struct scene *s = CONTAINER_OF(source, struct scene, signals);
    struct signalfd_siginfo info;
    int status;
    (void)events;
    while (read(source->fd, &info, sizeof info) == sizeof info)
        continue;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        muster_reaped(s->muster, pid, status);
}

static void scene_open(struct scene *s) {
    char words[256];
    sigset_t set;
    *s = (struct scene){.home = "/tmp/storm-muster-XXXXXX", .signals = {.fd = -1}};
    CHECK(mkdtemp(s->home) != NULL);
    snprintf(
        words, sizeof words,
        "sh -c 'test $1 != gone || { echo no way >&2; exit 1; }; HOME=%s/$1; export HOME; mkdir -p $HOME; exec sh -c \"$2\"' - "
        "%%h %%c",
        s->home);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    CHECK_EQ(loop_init(&s->loop), 0);
    CHECK_EQ(loop_adopt(&s->loop, &s->signals, signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
                        on_signal, EPOLLIN),
             0);
    CHECK_EQ(reach_connector(&s->reach, "test", words, NULL), 0);
    CHECK_EQ(reach_helper(&s->reach, "test"), 0);
}

static void scene_close(struct scene *s) {
    char command[64];
    muster_free(s->muster);
    loop_close(&s->loop, &s->signals);
    loop_fini(&s->loop);
    snprintf(command, sizeof command, "rm -rf %s", s->home);
    CHECK_EQ(system(command), 0);
}

static void play(struct scene *s, enum hop_shape shape, const char *const names[HOSTS],
                 const char *line) {
    int error;
    struct muster_config config = {.loop = &s->loop,
                                   .reach = &s->reach,
                                   .shape = shape,
                                   .line = line,
                                   .context = s,
                                   .sent = on_sent,
                                   .said = on_said,
                                   .over = on_over};
    s->muster = muster_new(&config, &error);
    CHECK(s->muster != NULL);
    for (uint32_t i = 0; i < HOSTS; i++) {
        char input[32];
        snprintf(input, sizeof input, "for %s %u\n", names[i], i);
        CHECK_EQ(muster_add(s->muster, names[i], i, strdup(input)), 0);
    }
    CHECK_EQ(muster_begin(s->muster), 0);
    for (muster_settle(s->muster); !muster_over(s->muster); muster_settle(s->muster))
        loop_turn(&s->loop, -1);
}

/* In a chain all but one are behind another who has had his input before. */
static void each_gets_his(enum hop_shape shape) {
    static const char *const names[HOSTS] = {"a", "b", "c", "d", "e", "f"};
    struct scene s;
    scene_open(&s);
    play(&s, shape, names, "cat");
    for (uint32_t i = 0; i < HOSTS; i++) {
        char want[32];
        snprintf(want, sizeof want, "for %s %u", names[i], i);
        CHECK_STR(s.said[i], want);
        CHECK_EQ(s.over[i], 1);
        CHECK_EQ(s.status[i], 0);
    }
    CHECK_EQ(s.sent, HOSTS);
    scene_close(&s);
}

static void test_chain(void) {
    each_gets_his(HOP_CHAIN);
}

static void test_flat(void) {
    each_gets_his(HOP_FLAT);
}

static void test_adaptive(void) {
    each_gets_his(HOP_ADAPTIVE);
}

static void test_failures(void) {
    static const char *const names[HOSTS] = {"a", "gone", "c", "d", "e", "f"};
    struct scene s;
    scene_open(&s);
    play(&s, HOP_FLAT, names,
         "read a b c; case $b in c) echo it fails >&2; exit 3;; d) kill -9 $$;; esac; echo ok");
    CHECK_STR(s.said[0], "ok");
    CHECK_EQ(s.status[1], MUSTER_NOT_REACHED);
    CHECK_STR(s.why[1], "no way");
    CHECK_EQ(s.status[2], 3);
    CHECK_STR(s.why[2], "it fails");
    CHECK_EQ(s.status[3], MUSTER_LOST);
    CHECK_STR(s.why[3], "it was ended by signal 9");
    for (uint32_t i = 0; i < HOSTS; i++)
        CHECK_EQ(s.over[i], 1);
    scene_close(&s);
}

int main(void) {
    TEST(test_chain);
    TEST(test_flat);
    TEST(test_adaptive);
    TEST(test_failures);
    return tap_finish();
}
