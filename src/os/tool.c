/* SPDX-License-Identifier: MIT */
/* The command that a helper runs: see tool.h. */
#include "os/tool.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/list.h"
#include "base/units.h"
#include "base/words.h"
#include "os/piped.h"
#include "os/sweep.h"

#define GRACE_NS (2 * NS_PER_S)
enum { WORDS_MAX = 64 };

void tool_init(struct tool *t, struct loop *loop, const struct tool_events *events) {
    *t = (struct tool){.loop = loop, .events = events};
    t->in.fd = t->out.fd = t->err.fd = -1;
}

static void kill_one(void *context, struct descendant d) {
    struct tool *t = context;
    if (!t->events->spares(t->events->context, d.top))
        kill(d.pid, SIGKILL);
}

/* What has left its session is found among our descendants. Twice: one may have been born meanwhile. */
static void kill_all(struct tool *t) {
    struct sweep s = {.at = NULL};
    for (int i = 0; i < 2; i++)
        sweep_all(&s, kill_one, t);
    sweep_fini(&s);
}

static void end_if_over(struct tool *t) {
    if (t->over || !t->begun || t->pid != 0 || t->out.fd >= 0 || t->err.fd >= 0)
        return;
    if (t->kill_at != 0) /* it was asked to end: so was whoever has nothing of it open any more */
        kill_all(t);
    t->over = true;
    t->kill_at = 0;
    t->events->over(t->events->context);
}

/* ---- Output ------------------------------------------------------------------------------------ */

static void read_output(struct tool *t, struct source *s, int stream) {
    uint8_t piece[TOOL_PIECE];
    ssize_t n = read(s->fd, piece, sizeof piece);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0) {
        t->events->wrote(t->events->context, stream, bytes_of(piece, (size_t)n));
        return;
    }
    loop_close(t->loop, s);
    end_if_over(t);
}

static void out_ready(struct source *s, uint32_t events) {
    (void)events;
    read_output(CONTAINER_OF(s, struct tool, out), s, 1);
}

static void err_ready(struct source *s, uint32_t events) {
    (void)events;
    read_output(CONTAINER_OF(s, struct tool, err), s, 2);
}

void tool_hush(struct tool *t, bool hush) {
    struct source *both[] = {&t->out, &t->err};
    for (int i = 0; i < 2 && hush != t->hushed; i++)
        if (both[i]->fd >= 0)
            loop_change(t->loop, both[i], hush ? 0 : EPOLLIN);
    t->hushed = hush;
}

/* ---- Input ------------------------------------------------------------------------------------- */

/* What it has not read it never will. */
static void stop_typing(struct tool *t) {
    loop_close(t->loop, &t->in);
    spool_fini(&t->typed);
    t->events->took(t->events->context, UINT64_MAX);
}

static void flush(struct tool *t) {
    size_t before = t->typed.to - t->typed.from;
    if (spool_write(&t->typed, t->in.fd) < 0) {
        stop_typing(t);
        return;
    }
    size_t left = t->typed.to - t->typed.from;
    t->taken += before - left;
    if (left == 0 && t->typed_end) {
        stop_typing(t);
        return;
    }
    if ((left > 0) != t->writing)
        loop_change(t->loop, &t->in, left > 0 ? EPOLLOUT : 0);
    t->writing = left > 0;
    if (left < before)
        t->events->took(t->events->context, t->taken);
}

static void in_ready(struct source *s, uint32_t events) {
    struct tool *t = CONTAINER_OF(s, struct tool, in);
    if (events & EPOLLERR)
        stop_typing(t);
    else
        flush(t);
}

/* Before it has begun, what is typed waits for it. */
void tool_type(struct tool *t, struct bytes bytes) {
    if (t->begun && t->in.fd < 0)
        return;
    t->typed_end = t->typed_end || bytes.len == 0;
    if (spool_add(&t->typed, bytes) < 0)
        stop_typing(t);
    else if (t->begun)
        flush(t);
}

/* ---- Beginning and end ------------------------------------------------------------------------- */

/* A line in which no character means anything to a shell, and whose first word is none that only shells know. */
static bool is_plain(const char *line) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _./:,@%+=-";
    const char *first = line + strspn(line, " ");
    size_t len = strcspn(first, " ");
    return strspn(line, plain) == strlen(line) && len > 0 && memchr(first, '=', len) == NULL &&
           (len != 4 || strncmp(first, "time", 4) != 0);
}

/* Without a shell: that is as costly as most commands. -ENOENT: it may be something of the shell's. */
static int start_plain(const struct tool *t, const char *line, bool deaf, struct piped *ret) {
    char *copy = is_plain(line) ? strdup(line) : NULL, *words[WORDS_MAX + 1];
    int count = copy != NULL ? words_split(copy, words, WORDS_MAX) : -ENOENT;
    int r = -ENOENT;
    if (count > 0)
        r = piped_start(&(struct piped_order){.argv = (const char *const *)words,
                                              .session = true,
                                              .deaf = deaf,
                                              .files = t->files},
                        ret);
    free(copy);
    return r;
}

static int start_shell(const struct tool *t, const char *line, bool deaf, struct piped *ret) {
    const char *shell = getenv("SHELL");
    const char *argv[] = {shell != NULL && shell[0] == '/' ? shell : "/bin/sh", "-c", line, NULL};
    return piped_start(
        &(struct piped_order){.argv = argv, .session = true, .deaf = deaf, .files = t->files}, ret);
}

int tool_start(struct tool *t, const char *line, bool deaf) {
    struct piped p;
    int r = start_plain(t, line, deaf, &p);
    if (r < 0)
        r = start_shell(t, line, deaf, &p);
    if (r < 0)
        return r;
    const int results[] = {p.in < 0 ? 0 : loop_adopt(t->loop, &t->in, p.in, in_ready, 0),
                           loop_adopt(t->loop, &t->out, p.out, out_ready, EPOLLIN),
                           loop_adopt(t->loop, &t->err, p.err, err_ready, EPOLLIN)};
    for (int i = 0; i < 3 && r == 0; i++)
        r = results[i];
    if (r < 0) { /* nobody would hear of it */
        kill(-p.pid, SIGKILL);
        tool_fini(t);
        return r;
    }
    t->begun = true;
    t->pid = p.pid;
    if (p.in >= 0)
        flush(t);
    return 0;
}

void tool_signal(struct tool *t, int signal) {
    if (t->pid > 0)
        kill(-t->pid, signal);
}

void tool_end(struct tool *t) {
    if (!t->begun || t->over || t->kill_at != 0)
        return;
    tool_signal(t, SIGTERM);
    tool_signal(t, SIGCONT);
    t->kill_at = t->loop->now + GRACE_NS;
}

/* It cannot be killed (it is another user's by now, or hangs in the kernel): nobody waits for it any longer. */
static void abandon(struct tool *t) {
    t->kill_at = 0;
    t->pid = 0;
    t->status = SIGKILL;
    loop_close(t->loop, &t->in);
    loop_close(t->loop, &t->out);
    loop_close(t->loop, &t->err);
    end_if_over(t);
}

void tool_tick(struct tool *t) {
    if (t->kill_at == 0 || t->loop->now < t->kill_at)
        return;
    if (t->forced) {
        abandon(t);
        return;
    }
    t->forced = true;
    t->kill_at = t->loop->now + GRACE_NS;
    tool_signal(t, SIGKILL);
    kill_all(t);
}

bool tool_reaped(struct tool *t, pid_t pid, int status) {
    if (t->pid != pid)
        return false;
    t->pid = 0;
    t->status = status;
    if (t->in.fd >= 0)
        stop_typing(t);
    end_if_over(t);
    return true;
}

void tool_fini(struct tool *t) {
    loop_close(t->loop, &t->in);
    loop_close(t->loop, &t->out);
    loop_close(t->loop, &t->err);
    spool_fini(&t->typed);
    if (t->pid > 0)
        kill(-t->pid, SIGKILL);
}
