/* SPDX-License-Identifier: MIT */
/* A cluster for a bench: see tempcluster.h. */
#include "cli/tempcluster.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "cli/complain.h"

/* ---- signals ---- */

static const int deadly[] = {SIGINT, SIGTERM, SIGHUP};

bool tempcluster_interrupted(void) {
    sigset_t pending;
    sigpending(&pending);
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        if (sigismember(&pending, deadly[i]) == 1)
            return true;
    return false;
}

static void hold_signals(sigset_t *ret_old) {
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        sigaddset(&set, deadly[i]);
    pthread_sigmask(SIG_BLOCK, &set, ret_old);
}

/* ---- the folder ---- */

static int make_home(struct tempcluster *t) {
    const char *tmp = getenv("TMPDIR");
    /* Sockets live there, and their paths are short. */
    if (tmp == NULL || tmp[0] != '/' || strlen(tmp) > 40)
        tmp = "/tmp";
    snprintf(t->home, sizeof t->home, "%s/storm-bench.XXXXXX", tmp);
    if (mkdtemp(t->home) == NULL) {
        int error = errno;
        complain("bench", "%s: %s; set TMPDIR to a folder that can be written", t->home,
                 strerror(error));
        return -error;
    }
    snprintf(t->setting, sizeof t->setting, "STORM_HOME=%s", t->home);
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at) {
    (void)st, (void)type, (void)at;
    remove(path);
    return 0;
}

static void remove_home(const struct tempcluster *t) {
    nftw(t->home, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- commands ---- */

static int spell(const struct tempcluster *t, const char *const *args,
                 const char *ret[TEMPCLUSTER_ARGS_MAX]) {
    int count = 0;
    ret[count++] = t->command;
    for (; *args != NULL; args++) {
        ASSERT(count < TEMPCLUSTER_ARGS_MAX - 1);
        ret[count++] = *args;
    }
    ret[count] = NULL;
    return count;
}

int tempcluster_run(const struct tempcluster *t, const char *const *args, char *output, size_t cap,
                    uint64_t *ret_ns) {
    const char *argv[TEMPCLUSTER_ARGS_MAX];
    spell(t, args, argv);
    struct errand e = {
        .argv = argv, .environment = t->environment, .output = output, .output_cap = cap};
    int r = errand_run(&e);
    if (tempcluster_interrupted())
        return -EINTR;
    if (r < 0) {
        complain("bench", "%s: %s; is it a storm command?", t->command, strerror(-r));
        return r;
    }
    if (e.status != 0) {
        complain("bench", "storm %s ended with status %d; it was to end with 0", args[0], e.status);
        return -EPROTO;
    }
    *ret_ns = e.ns;
    return 0;
}

/* All but the folder. */
static void forget(struct tempcluster *t) {
    free(t->environment);
    t->environment = NULL;
    pthread_sigmask(SIG_SETMASK, &t->mask, NULL);
}

int tempcluster_up(struct tempcluster *t, const char *command, uint32_t nodes,
                   const char *const *more) {
    char count[16];
    const char *args[TEMPCLUSTER_ARGS_MAX] = {"up", "--local", count};
    uint64_t ns;
    *t = (struct tempcluster){.command = command};
    snprintf(count, sizeof count, "%" PRIu32, nodes);
    for (int i = 3; more != NULL && *more != NULL; i++) {
        ASSERT(i < TEMPCLUSTER_ARGS_MAX - 1);
        args[i] = *more++;
    }
    int r = make_home(t);
    if (r < 0)
        return r;
    t->environment = errand_environment("STORM_", t->setting);
    if (t->environment == NULL) {
        remove_home(t);
        return -ENOMEM;
    }
    hold_signals(&t->mask);
    r = tempcluster_run(t, args, NULL, 0, &ns);
    if (r == -EPROTO || r == -EINTR)
        tempcluster_down(t);                    /* it may have come up half way */
    if (r < 0 && r != -EPROTO && r != -EINTR) { /* it was never run */
        remove_home(t);
        forget(t);
    }
    return r;
}

void tempcluster_down(struct tempcluster *t) {
    const char *argv[] = {t->command, "down", NULL};
    struct errand e = {.argv = argv, .environment = t->environment};
    int r = errand_run(&e);
    if (r < 0 || e.status != 0)
        complain("bench",
                 "the cluster in %s may still be there; try: STORM_HOME=%s storm down, then remove "
                 "the folder",
                 t->home, t->home);
    else
        remove_home(t);
    forget(t);
}
