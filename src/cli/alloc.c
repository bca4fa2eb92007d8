/* SPDX-License-Identifier: MIT */
/* storm alloc: holds nodes while a command runs here; storm run inside it stays on them. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/list.h"
#include "cli/command.h"
#include "cli/complain.h"
#include "cli/contact.h"
#include "cli/epilogue.h"
#include "cli/wish.h"

struct alloc {
    struct contact contact;
    char **argv;
    uint32_t job;
    bool granted, over;
    int status; /* the command's */
    int taken;  /* the job was ended by others while the command ran: its status */
    pid_t child;
    struct source ended; /* a pidfd */
    char nodes[4096];
};

static void on_news(void *context, const struct message_news *n) {
    struct alloc *a = context;
    if (n->job != a->job || a->over)
        return;
    if (n->state == STATE_RUNNING && !a->granted) {
        contact_meet(&a->contact, n->nodes);
        cluster_format_nodes(&a->contact.cluster, n->nodes, a->nodes, sizeof a->nodes);
        a->granted = true;
    }
    if (!state_over((enum job_state)n->state) && !n->settled)
        return;
    a->over = true;
    if (a->child > 0) {
        epilogue_print(&a->contact.cluster, n, &(struct epilogue){0});
        complain(NULL, "job %" PRIu32 " is over; %s is told by SIGHUP", a->job, a->argv[0]);
        a->taken = n->status == 0 ? STATUS_STORM : (int)(n->status & 0xff);
        kill(a->child, SIGHUP);
    } else if (!a->granted) {
        epilogue_print(&a->contact.cluster, n, &(struct epilogue){0});
        a->status = (int)(n->status & 0xff);
    }
}

static void on_lost(void *context, enum session_loss why) {
    struct alloc *a = context;
    a->over = true;
    if (a->child <= 0)
        a->status = contact_lost(&a->contact, why);
}

static void on_followed(void *context, const struct message_answer *m) {
    struct alloc *a = context;
    if (m->code == ANSWER_DONE || a->over)
        return;
    complain(NULL, "job %" PRIu32 " is not known to the manager any more; see: storm ps", a->job);
    a->over = true;
    if (a->child <= 0)
        a->status = STATUS_STORM;
}

static void on_answer(void *context, const struct message_answer *m) {
    struct alloc *a = context;
    a->job = m->job;
    if (m->code != ANSWER_DONE) {
        a->status = contact_refused("alloc", m);
        a->over = true;
        return;
    }
    session_follow(a->contact.session, a->job, 1, true, on_followed, a);
}

static void on_ended(struct source *s, uint32_t events) {
    struct alloc *a = CONTAINER_OF(s, struct alloc, ended);
    int status;
    (void)events;
    if (waitpid(a->child, &status, WNOHANG) != a->child)
        return;
    a->status = WIFSIGNALED(status) ? STATUS_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
    loop_remove(&a->contact.loop, s);
    close(s->fd);
    s->fd = -1;
    a->child = 0;
}

static void run_child(const struct alloc *a) {
    char job[16];
    snprintf(job, sizeof job, "%" PRIu32, a->job);
    setenv("STORM_JOB_ID", job, 1);
    setenv("STORM_NODES", a->nodes, 1);
    setenv("STORM_CLUSTER", a->contact.cluster.name, 1);
    setenv("STORM_INSIDE", "1", 1);
    signal(SIGINT, SIG_DFL);
    execvp(a->argv[0], a->argv);
    int error = errno;
    complain(a->argv[0], "%s", strerror(error));
    _exit(error == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_RUN);
}

static int start(struct alloc *a) {
    fprintf(stderr, "storm: job %" PRIu32 " holds %s\n", a->job, a->nodes);
    fflush(NULL);
    signal(SIGINT, SIG_IGN); /* it is the command's */
    a->child = fork();
    if (a->child == 0)
        run_child(a);
    int fd = a->child < 0 ? -1 : (int)syscall(SYS_pidfd_open, a->child, 0);
    a->ended = (struct source){.fd = fd, .ready = on_ended};
    if (fd >= 0 && loop_add(&a->contact.loop, &a->ended, EPOLLIN) == 0)
        return 0;
    complain("alloc", "%s", strerror(errno));
    return STATUS_STORM;
}

/* The nodes are given back; the manager has a second to say that they are. */
static void give_back(struct alloc *a) {
    struct loop *loop = &a->contact.loop;
    uint64_t end = loop->now + NS_PER_S;
    if (a->job != 0 && !a->over)
        session_do(a->contact.session, a->job, VERB_KILL, 0, NULL, NULL);
    while (a->granted && !a->over && loop->now < end) {
        loop_wake_at(loop, end);
        session_turn(a->contact.session);
    }
}

static int hold(struct alloc *a, const struct order *o) {
    struct session_config callbacks = {
        .patience_ns = PATIENCE_WAITING, .context = a, .news = on_news, .lost = on_lost};
    int r = contact_begin(&a->contact, &callbacks);
    if (r != 0)
        return r;
    r = session_submit(a->contact.session, &o->submit, on_answer, a);
    while (r == 0 && !a->granted && !a->over)
        session_turn(a->contact.session);
    if (r == 0 && a->granted)
        r = start(a);
    while (r == 0 && a->child > 0)
        session_turn(a->contact.session);
    give_back(a);
    contact_close(&a->contact);
    if (r != 0)
        return STATUS_STORM;
    return a->status == 0 ? a->taken
                          : a->status; /* a command that ignores the signal may end well */
}

static int help(const struct option *table) {
    puts("usage: storm alloc [OPTIONS] [COMMAND [ARGUMENTS]]\n"
         "\n"
         "Waits for nodes and holds them while the command (a shell, if none is given) runs here.\n"
         "storm run inside it uses these nodes.");
    options_print(table, stdout);
    return STATUS_OK;
}

int alloc_main(int argc, char **argv) {
    static char shell[] = "/bin/sh", nothing[] = "/bin/true";
    struct wish w = {0};
    struct option table[WISH_OPTIONS_MAX];
    wish_table(&w, WISH_ALLOC, table);
    int count = options_parse_leading(table, argc, argv);
    if (count == OPTIONS_HELP)
        return help(table);
    if (count == OPTIONS_WRONG)
        return STATUS_USAGE;
    char *own = getenv("SHELL"), *fallback[] = {own != NULL && *own != '\0' ? own : shell, NULL};
    char *program[] = {nothing, NULL}; /* the manager is told of some program: it is not run */
    struct order *o = calloc(1, sizeof *o);
    struct alloc *a = calloc(1, sizeof *a);
    ASSERT(o != NULL && a != NULL);
    a->argv = count > 0 ? argv + 1 : fallback;
    w.name = w.name != NULL ? w.name : a->argv[0];
    int r = contact_find(&a->contact.cluster, w.cluster);
    if (r == 0)
        r = order_make(o, &w, WISH_ALLOC, &a->contact.cluster, program);
    if (r == 0)
        r = hold(a, o);
    order_fini(o);
    cluster_free(&a->contact.cluster);
    free(o);
    free(a);
    return r;
}
