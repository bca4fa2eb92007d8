/* SPDX-License-Identifier: MIT */
/* storm-hop: the helper of `storm exec` on a host.
 *
 *     storm-hop                          is a hop: frames come on standard input, frames go to standard output
 *     storm-hop --install PATH DIGEST    takes that name, if it is what it should be
 *
 * It is sent ahead to hosts where there is nothing but a shell, so it is one static program that needs nothing. When its
 * input ends before it is done, whoever started it is gone, and so is all that it has started. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/list.h"
#include "os/child.h"
#include "os/limb.h"
#include "os/self.h"

#define BACKLOG_MAX (256 * 1024) /* that waits to go up before we stop reading */
enum { READ_BYTES = 64 * 1024 };

struct helper {
    struct loop loop;
    struct source in, out, signals;
    struct spool incoming, outgoing;
    struct shell_helper self;
    uint8_t *task_bytes; /* what `task` borrows from */
    struct task task;
    struct limb *limb; /* NULL until there is a task */
    bool writing, alone;
    uint64_t files; /* that we might have open, at first */
};

static void on_up(void *context, const struct frame *f) {
    struct helper *h = context;
    uint8_t head[FRAME_HEAD];
    frame_head(f, head);
    if (spool_add(&h->outgoing, bytes_of(head, sizeof head)) < 0 ||
        spool_add(&h->outgoing, f->body) < 0)
        h->alone = true;
}

static bool is_full(void *context) {
    struct helper *h = context;
    return h->outgoing.to - h->outgoing.from > BACKLOG_MAX;
}

static int take_task(struct helper *h, struct bytes body) {
    h->task_bytes = malloc(body.len);
    if (h->task_bytes == NULL)
        return -ENOMEM;
    memcpy(h->task_bytes, body.at, body.len);
    int r = task_read(bytes_of(h->task_bytes, body.len), &h->task);
    if (r < 0)
        return r;
    h->limb = limb_new(&(struct limb_config){.loop = &h->loop,
                                             .task = &h->task,
                                             .helper = &h->self,
                                             .files = h->files,
                                             .context = h,
                                             .up = on_up,
                                             .full = is_full});
    return h->limb == NULL ? -ENOMEM : 0;
}

/* 0, or why we cannot go on. */
static int obey(struct helper *h, const struct frame *f) {
    if (f->kind == FRAME_TASK)
        return h->limb == NULL ? take_task(h, f->body) : -EPROTO;
    return h->limb != NULL && limb_told(h->limb, f) ? 0 : -EPROTO;
}

static void in_ready(struct source *s, uint32_t events) {
    struct helper *h = CONTAINER_OF(s, struct helper, in);
    struct frame f;
    (void)events;
    long n = spool_read(&h->incoming, h->in.fd, READ_BYTES);
    if (n == -EAGAIN)
        return;
    h->alone = h->alone || n <= 0;
    while (!h->alone && (n = frame_read(spool_bytes(&h->incoming), false, &f)) != 0) {
        h->alone = n < 0 || obey(h, &f) < 0;
        if (n > 0)
            spool_drop(&h->incoming, (size_t)n);
    }
    if (h->alone)
        loop_remove(&h->loop, &h->in);
}

static void out_ready(struct source *s, uint32_t events) {
    struct helper *h = CONTAINER_OF(s, struct helper, out);
    if (events & (EPOLLERR | EPOLLHUP)) { /* nobody reads it, and that will not change */
        h->alone = true;
        loop_remove(&h->loop, s);
        s->fd = -1;
    }
}

static void signals_ready(struct source *s, uint32_t events) {
    struct helper *h = CONTAINER_OF(s, struct helper, signals);
    struct signalfd_siginfo info;
    int status;
    (void)events;
    while (read(s->fd, &info, sizeof info) == sizeof info)
        if (info.ssi_signo != SIGCHLD)
            h->alone = true;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        if (h->limb != NULL)
            limb_reaped(h->limb, pid, status);
}

static void flush(struct helper *h) {
    bool full = is_full(h);
    if (spool_write(&h->outgoing, 1) < 0) {
        h->alone = true;
        spool_fini(&h->outgoing);
    }
    bool left = h->outgoing.to > h->outgoing.from;
    if (left != h->writing && h->out.fd >= 0)
        loop_change(&h->loop, &h->out, left ? EPOLLOUT : 0);
    h->writing = left;
    if (full && !is_full(h)) /* there is room again, and nothing else may tell */
        loop_wake_at(&h->loop, h->loop.now);
}

static int prepare(struct helper *h) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG,
          0); /* a connector that became us had one; we see to our command first */
    fcntl(0, F_SETFL, O_NONBLOCK);
    fcntl(1, F_SETFL, O_NONBLOCK);
    h->in = (struct source){.fd = 0, .ready = in_ready};
    h->out = (struct source){.fd = 1, .ready = out_ready};
    h->signals = (struct source){.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
                                 .ready = signals_ready};
    int r = h->signals.fd < 0 ? -errno : loop_init(&h->loop);
    r = r < 0 ? r : loop_add(&h->loop, &h->in, EPOLLIN);
    r = r < 0 ? r : loop_add(&h->loop, &h->out, 0);
    r = r < 0 ? r : loop_add(&h->loop, &h->signals, EPOLLIN);
    r = r < 0 ? r : self_helper(&h->self);
    self_used();
    return r;
}

static int serve(struct helper *h) {
    bool stopped = false;
    if (spool_add(&h->outgoing, bytes_from_str(GREETING_HERE)) < 0)
        return 1;
    for (;;) {
        if (h->alone && !stopped && h->limb != NULL) {
            stopped = true;
            limb_stop(h->limb);
        }
        if (h->limb != NULL)
            limb_settle(h->limb);
        flush(h);
        bool done = h->limb != NULL ? limb_over(h->limb) : h->alone;
        if (done && (h->alone || h->outgoing.to == h->outgoing.from))
            return 0;
        loop_turn(&h->loop, -1);
    }
}

int main(int argc, char **argv) {
    static struct helper h;
    if (argc == 4 && strcmp(argv[1], "--install") == 0)
        return self_install(argv[2], argv[3]);
    if (argc != 1) {
        fprintf(stderr, "storm-hop: it is started by storm exec, without arguments\n");
        return 2;
    }
    h.files = child_raise_limits(); /* a pipe or three to each child */
    int r = prepare(&h);
    if (r < 0) {
        fprintf(stderr, "storm-hop: %s\n", strerror(-r));
        return 1;
    }
    r = serve(&h);
    limb_free(h.limb); /* what has come in part goes, too */
    return r;
}
