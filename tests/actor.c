/* SPDX-License-Identifier: MIT */
/* A process that does as its arguments say (sim/act.h), in the real world. */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "sim/act.h"

/* What a sanitizer has to say goes where a play's words go. It cannot look for leaks in a pid namespace, where
 * /proc has other numbers. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_leaks=0:handle_segv=0";
}

enum { PIECE = 16384, WORDS = 4096, CONFUSED = 2 };

struct stage {
    uint64_t written[3]; /* by descriptor */
    volatile sig_atomic_t term_status;
};

static struct stage stage; /* the handler needs it */

static void on_term(int number) {
    (void)number;
    _exit(stage.term_status);
}

static void hang(void) {
    for (;;)
        pause();
}

static void run(uint64_t ns) {
    struct timespec left = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

static void put(int fd, const uint8_t *at, size_t len) {
    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            _exit(CONFUSED);
        at += n;
        len -= (size_t)n;
    }
}

static void write_pattern(int fd, uint64_t count) {
    uint8_t piece[PIECE];
    while (count > 0) {
        size_t n = count < PIECE ? (size_t)count : PIECE;
        for (size_t i = 0; i < n; i++)
            piece[i] = act_byte(stage.written[fd] + i);
        put(fd, piece, n);
        stage.written[fd] += n;
        count -= n;
    }
}

/* Reads so many bytes, or all there are; to be copied or dropped. */
static void read_input(uint64_t count, bool copy) {
    uint8_t piece[PIECE];
    while (count > 0) {
        ssize_t n = read(STDIN_FILENO, piece, count < PIECE ? (size_t)count : PIECE);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        if (copy)
            put(STDOUT_FILENO, piece, (size_t)n);
        count -= (uint64_t)n;
    }
}

/* The grandchild goes on, nobody's child, in no session that we know of. */
static void fork_away(void) {
    if (fork() != 0)
        _exit(0);
    setsid();
    if (fork() != 0)
        _exit(0);
}

static void catch_term(uint64_t status) {
    stage.term_status = (int)status;
    signal(SIGTERM, on_term);
}

static void perform(const struct act *a) {
    switch (a->kind) {
    case ACT_RUN:
        run(a->low);
        break;
    case ACT_HANG:
        hang();
        break;
    case ACT_WRITE:
        write_pattern(STDOUT_FILENO, a->number);
        break;
    case ACT_ERROR:
        write_pattern(STDERR_FILENO, a->number);
        break;
    case ACT_READ:
        read_input(a->number, false);
        break;
    case ACT_CAT:
        read_input(UINT64_MAX, true);
        break;
    case ACT_EXIT:
        _exit((int)a->number);
    case ACT_SIGNAL:
        raise((int)a->number);
        break;
    case ACT_IGNORE_TERM:
        signal(SIGTERM, SIG_IGN);
        break;
    case ACT_CATCH_TERM:
        catch_term(a->number);
        break;
    case ACT_FORK:
        if (fork() == 0)
            hang();
        break;
    case ACT_FORK_AWAY:
        fork_away();
        break;
    case ACT_RANK: /* main's affair */
    case ACT_KINDS:
        break;
    }
}

/* Is the next word for somebody else? */
static bool for_another(const struct act *a) {
    const char *rank = getenv("STORM_RANK");
    return a->kind == ACT_RANK && (rank == NULL || strtoull(rank, NULL, 10) != a->number);
}

int main(int argc, char **argv) {
    char words[WORDS];
    size_t len = 0, at = 0;
    struct rlimit none = {0};
    struct act act;
    int r;
    setrlimit(RLIMIT_CORE, &none);
    for (int i = 1; i < argc; i++) {
        size_t n = strlen(argv[i]) + 1;
        if (n > sizeof words - len)
            return CONFUSED;
        memcpy(words + len, argv[i], n);
        len += n;
    }
    bool skip = false;
    while ((r = act_next(bytes_of(words, len), &at, &act)) > 0) {
        if (!skip)
            perform(&act);
        skip = for_another(&act);
    }
    return r < 0 ? CONFUSED : 0;
}
