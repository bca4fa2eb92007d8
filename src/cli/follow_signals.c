/* SPDX-License-Identifier: MIT */
/* What signals mean to a command that waits for a job: see follow.h. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/list.h"
#include "cli/complain.h"
#include "cli/follow.h"

#define AGAIN_NS (2 * NS_PER_S)    /* for the second Ctrl-C */
#define GRACE_NS (10 * NS_PER_S)   /* after the first: who is deaf is killed */
#define HINT_NS  (150 * NS_PER_MS) /* most jobs are gone by then */
#define BACK_NS  (850 * NS_PER_MS) /* the prompt is back after the second */
#define END_NS   (12 * NS_PER_S)   /* the job has its grace, and so have we */
#define STOP_NS  (300 * NS_PER_MS) /* for the job to hear of Ctrl-Z */

static void act(struct follow *f, enum verb verb, uint32_t value) {
    session_do(f->contact.session, f->job, verb, value, NULL, NULL);
}

static void leave(struct follow *f, int status) {
    f->status = status;
    f->done = true;
}

static void on_interrupt(struct follow *f, uint64_t now) {
    struct follow_signals *s = &f->signals;
    bool again = s->interrupted_at != 0 && now - s->interrupted_at < AGAIN_NS;
    if (f->over || (f->job == 0 && (again || !session_is_up(f->contact.session)))) {
        leave(f, STATUS_SIGNAL + SIGINT);
        return;
    }
    if (again && s->killed_at == 0) {
        s->killed_at = now;
        if (f->job != 0)
            act(f, VERB_KILL, 0);
        return;
    }
    s->interrupted_at = now;
    s->grace_until = s->grace_until == 0 ? now + GRACE_NS : s->grace_until;
    s->told = false;
    if (f->job != 0)
        act(f, VERB_SIGNAL, SIGINT);
}

static void on_end(struct follow *f, int signal, uint64_t now) {
    struct follow_signals *s = &f->signals;
    if (f->keep || f->over || f->job == 0 || s->ending != 0) {
        s->ending = signal;
        leave(f, STATUS_SIGNAL + signal);
        return;
    }
    s->ending = signal;
    s->ending_at = now;
    act(f, VERB_END, (uint32_t)signal);
}

static void on_suspended(void *context, const struct message_answer *a) {
    struct follow *f = context;
    (void)a;
    f->signals.stop_at = f->contact.loop.now;
}

static void on_stop(struct follow *f, uint64_t now) {
    f->signals.stop = true;
    f->signals.stop_at = now + STOP_NS;
    if (f->job == 0 || isatty(STDIN_FILENO) != 1)
        f->signals.stop_at = now;
    else
        session_do(f->contact.session, f->job, VERB_SUSPEND, 0, on_suspended, f);
}

static void on_size(struct follow *f) {
    uint8_t jobs[4];
    struct message_act m = {.verb = VERB_SIZE, .jobs = bytes_of(jobs, sizeof jobs)};
    store_le32(jobs, f->job);
    if (f->wish->pty && f->job != 0 && rawtty_size(STDIN_FILENO, &m.value, &m.more))
        session_act(f->contact.session, &m, NULL, NULL);
}

static void on_signal(struct follow *f, int signal) {
    uint64_t now = f->contact.loop.now;
    if (signal == SIGINT)
        on_interrupt(f, now);
    else if (signal == SIGTERM || signal == SIGHUP)
        on_end(f, signal, now);
    else if (signal == SIGTSTP)
        on_stop(f, now);
    else if (signal == SIGWINCH)
        on_size(f);
}

static void ready(struct source *source, uint32_t events) {
    struct follow *f = CONTAINER_OF(source, struct follow, signals.source);
    struct signalfd_siginfo info;
    (void)events;
    while (read(source->fd, &info, sizeof info) == (ssize_t)sizeof info)
        on_signal(f, (int)info.ssi_signo);
}

/* Stops this process as Ctrl-Z would have; the job goes on with it. */
static void stop_here(struct follow *f) {
    f->signals.stop = false;
    rawtty_end(&f->tty);
    session_flush(f->contact.session);
    kill(getpid(), SIGSTOP);
    if (f->wish->pty)
        rawtty_begin(&f->tty, STDIN_FILENO);
    if (f->job != 0)
        act(f, VERB_RESUME, 0);
}

static void still_ending(struct follow *f) {
    if (f->nodes[0] != '\0')
        complain(NULL, "job %" PRIu32 " still ending on %s; see: storm show %" PRIu32, f->job,
                 f->nodes, f->job);
    else
        complain(NULL, "job %" PRIu32 " still ending; see: storm show %" PRIu32, f->job, f->job);
    leave(f, STATUS_STORM);
}

/* Whether that moment has come; if not, it will be waited for. */
static bool is_due(struct follow *f, uint64_t at) {
    if (at <= f->contact.loop.now)
        return true;
    loop_wake_at(&f->contact.loop, at);
    return false;
}

void signals_settle(struct follow *f) {
    struct follow_signals *s = &f->signals;
    if (s->stop && is_due(f, s->stop_at))
        stop_here(f);
    if (f->over || f->done || f->job == 0)
        return;
    /* Who has asked twice wants the prompt; who has waited for the grace waits a moment more. */
    uint64_t back_ns = s->lapsed ? END_NS : BACK_NS;
    if (s->killed_at != 0 && is_due(f, s->killed_at + back_ns)) {
        still_ending(f);
        return;
    }
    if (s->ending_at != 0 && is_due(f, s->ending_at + END_NS)) {
        still_ending(f);
        return;
    }
    if (s->interrupted_at != 0 && !s->told && is_due(f, s->interrupted_at + HINT_NS)) {
        s->told = true;
        if (s->killed_at == 0)
            complain(NULL,
                     "interrupt sent to job %" PRIu32 "; again within 2 s to kill it, which "
                     "happens in 10 s anyway",
                     f->job);
    }
    if (s->grace_until != 0 && s->killed_at == 0 && is_due(f, s->grace_until)) {
        s->killed_at = f->contact.loop.now;
        s->lapsed = true;
        act(f, VERB_KILL, 0);
    }
}

static void signal_set(sigset_t *set) {
    static const int which[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH};
    sigemptyset(set);
    for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
        struct sigaction now;
        /* Who started us may have had a signal ignored, as nohup does: it stays so. */
        if (sigaction(which[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(set, which[i]);
    }
}

void signals_begin(struct follow *f) {
    sigset_t set;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTTIN, SIG_IGN);
    signal_set(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    f->signals.source = (struct source){.fd = fd, .ready = ready};
    if (fd >= 0 && loop_add(&f->contact.loop, &f->signals.source, EPOLLIN) < 0) {
        close(fd);
        f->signals.source.fd = -1;
    }
    if (f->wish->pty)
        rawtty_begin(&f->tty, STDIN_FILENO);
}

void signals_end(struct follow *f) {
    if (f->signals.source.fd < 0)
        return;
    loop_remove(&f->contact.loop, &f->signals.source);
    close(f->signals.source.fd);
    f->signals.source.fd = -1;
}
