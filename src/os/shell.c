/* SPDX-License-Identifier: MIT */
/* A remote shell that runs a helper: see shell.h. */
#include "os/shell.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.h"
#include "os/piped.h"

#define GRACE_NS (5 * NS_PER_S) /* a helper needs some of it to end its command */

enum {
    WORDS_MAX = 64, /* in a connector */
    LINE_MAX_ = 1024,
    TEXT_MAX = 16 * 1024, /* all of them */
    READ_BYTES = 64 * 1024,
    RESTS_MAX = 64 /* reads of what has ended */
};

/* ---- The end ----------------------------------------------------------------------------------- */

/* Nothing will come any more. The words are complete when all pipes are closed and the process is gone. */
static void end_if_over(struct shell *s) {
    if (s->told || s->out.fd >= 0 || s->err.fd >= 0 || s->pid != 0)
        return;
    s->told = true;
    s->state = SHELL_OVER;
    s->events->ended(s->events->context, s);
}

void shell_drop(struct shell *s, enum hop_why why, const char *words) {
    if (s->state == SHELL_OVER)
        return;
    s->state = SHELL_OVER;
    s->why = why;
    if (words != NULL)
        snprintf(s->words, sizeof s->words, "%s", words);
    loop_close(s->loop, &s->in);
    loop_close(s->loop, &s->out);
    loop_close(s->loop, &s->err);
    if (s->pid > 0 && !s->reaped) {
        kill(-s->pid, SIGTERM);
        s->kill_at = s->loop->now + GRACE_NS;
    }
    end_if_over(s);
}

/* A connector may be another user's (sudo), or hang in the kernel: then it cannot be killed, and is left to itself. */
void shell_tick(struct shell *s) {
    if (s->kill_at == 0 || s->loop->now < s->kill_at)
        return;
    s->kill_at = 0;
    if (s->forced)
        s->pid = 0;
    if (s->pid > 0) {
        kill(-s->pid, SIGKILL);
        s->forced = true;
        s->kill_at = s->loop->now + GRACE_NS;
    }
    end_if_over(s);
}

/* ---- What comes -------------------------------------------------------------------------------- */

static void send_helper(struct shell *s, const char *processor) {
    if (strcmp(processor, s->helper->processor) != 0) {
        char words[SHELL_WORDS_MAX];
        snprintf(words, sizeof words, "its processor is %s; the helper is for %s", processor,
                 s->helper->processor);
        shell_drop(s, HOP_UNFIT, words);
        return;
    }
    s->state = SHELL_SENDING;
    s->sent = true;
    s->why = HOP_UNFIT; /* if it ends now, it could not be kept there */
    if (spool_add(&s->outgoing, s->helper->program) < 0)
        shell_drop(s, HOP_REFUSED, "there is no memory here");
}

static void read_greeting(struct shell *s) {
    char processor[GREETING_PROCESSOR_MAX];
    size_t used = 0;
    switch (greeting_read(spool_bytes(&s->incoming), &used, processor)) {
    case GREETING_MORE:
        break;
    case GREETING_NONE:
        shell_drop(s, HOP_REFUSED, "what answers is no shell");
        break;
    case GREETING_NEED:
        spool_drop(&s->incoming, used);
        if (s->state == SHELL_GREETING)
            send_helper(s, processor);
        break;
    case GREETING_READY:
        spool_drop(&s->incoming, used);
        s->state = SHELL_TALKING;
        s->why = HOP_LOST;
        s->words[0] = '\0';
        s->events->greeted(s->events->context, s);
        break;
    }
}

static void read_frames(struct shell *s) {
    struct frame f;
    while (s->state == SHELL_TALKING) {
        long n = frame_read(spool_bytes(&s->incoming), true, &f);
        if (n == 0)
            return;
        if (n < 0 || !s->events->heard(s->events->context, s, &f)) {
            shell_drop(s, HOP_LOST, "its helper says what it must not");
            return;
        }
        spool_drop(&s->incoming, (size_t)n);
    }
}

/* False: there is nothing now. */
static bool read_out(struct shell *s) {
    long n = spool_read(&s->incoming, s->out.fd, READ_BYTES);
    if (n == -EAGAIN)
        return false;
    if (n <= 0) {
        loop_close(s->loop, &s->out);
        loop_close(s->loop, &s->in);
        end_if_over(s);
        return false;
    }
    if (s->state == SHELL_GREETING || s->state == SHELL_SENDING)
        read_greeting(s);
    read_frames(s);
    return true;
}

static void out_ready(struct source *source, uint32_t events) {
    (void)events;
    read_out(CONTAINER_OF(source, struct shell, out));
}

/* The last line that is not empty is the reason, if one is asked for. */
static void keep_line(struct shell *s, const char *line, size_t len) {
    while (len > 0 && (line[len - 1] == '\r' || line[len - 1] == ' '))
        len--;
    if (len == 0 || s->state == SHELL_OVER)
        return;
    len = len < sizeof s->words - 1 ? len : sizeof s->words - 1;
    for (size_t i = 0; i < len; i++)
        s->words[i] = (unsigned char)line[i] >= ' ' && line[i] != 0x7f ? line[i] : '?';
    s->words[len] = '\0';
}

/* False: there is nothing now. */
static bool read_err(struct shell *s) {
    char text[4096];
    ssize_t n = read(s->err.fd, text, sizeof text);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (n <= 0) {
        loop_close(s->loop, &s->err);
        end_if_over(s);
        return false;
    }
    for (char *at = text, *end = text + n; at < end;) {
        char *stop = memchr(at, '\n', (size_t)(end - at));
        stop = stop == NULL ? end : stop;
        keep_line(s, at, (size_t)(stop - at));
        at = stop + 1;
    }
    return true;
}

static void err_ready(struct source *source, uint32_t events) {
    (void)events;
    read_err(CONTAINER_OF(source, struct shell, err));
}

/* The connector has ended. What it has left running may hold its pipes open: what is in them now is all that counts. */
static void read_rest(struct shell *s) {
    for (int i = 0; i < RESTS_MAX && s->out.fd >= 0 && read_out(s); i++)
        continue;
    for (int i = 0; i < RESTS_MAX && s->err.fd >= 0 && read_err(s); i++)
        continue;
    loop_close(s->loop, &s->in);
    loop_close(s->loop, &s->out);
    loop_close(s->loop, &s->err);
}

bool shell_reaped(struct shell *s, pid_t pid, int status) {
    if (s->pid != pid)
        return false;
    s->reaped = true; /* its number may be another's by now */
    read_rest(s);
    s->pid = 0;
    if (s->words[0] == '\0' && s->state != SHELL_TALKING) {
        if (WIFSIGNALED(status))
            snprintf(s->words, sizeof s->words, "the remote shell was killed by signal %d",
                     WTERMSIG(status));
        else
            snprintf(s->words, sizeof s->words, "the remote shell ended with status %d",
                     WEXITSTATUS(status));
    }
    end_if_over(s);
    return true;
}

/* ---- What goes --------------------------------------------------------------------------------- */

static void flush(struct shell *s) {
    if (s->in.fd < 0)
        return;
    if (spool_write(&s->outgoing, s->in.fd) < 0) {
        loop_close(s->loop, &s->in); /* why, we shall read */
        return;
    }
    bool left = shell_backlog(s) > 0;
    if (left != s->writing)
        loop_change(s->loop, &s->in, left ? EPOLLOUT : 0);
    s->writing = left;
}

static void in_ready(struct source *source, uint32_t events) {
    struct shell *s = CONTAINER_OF(source, struct shell, in);
    if (events & EPOLLERR)
        loop_close(s->loop, &s->in); /* nobody reads it */
    else
        flush(s);
}

void shell_say(struct shell *s, const struct frame *f) {
    uint8_t head[FRAME_HEAD];
    if (s->state != SHELL_TALKING || s->in.fd < 0)
        return;
    frame_head(f, head);
    if (spool_add(&s->outgoing, bytes_of(head, sizeof head)) < 0 ||
        spool_add(&s->outgoing, f->body) < 0)
        shell_drop(s, HOP_LOST, "there is no memory here");
}

void shell_settle(struct shell *s) {
    if (shell_backlog(s) > 0 && !s->writing)
        flush(s);
}

void shell_hush(struct shell *s, bool hush) {
    if (s->out.fd >= 0 && s->hushed != hush)
        loop_change(s->loop, &s->out, hush ? 0 : EPOLLIN);
    s->hushed = hush;
}

/* ---- The beginning ----------------------------------------------------------------------------- */

/* The connector's words in `text`, one behind the other. */
static int compose(struct bytes connector, struct bytes host, struct bytes line,
                   char text[TEXT_MAX], const char *argv[WORDS_MAX + 1]) {
    struct greeting_words words = {.left = connector};
    size_t at = 0;
    int n = 0;
    for (;;) {
        struct text t;
        text_init(&t, text + at, TEXT_MAX - at);
        if (!greeting_word(&words, host, line, &t))
            break;
        if (n == WORDS_MAX || t.cut)
            return -E2BIG;
        argv[n++] = text + at;
        at += t.len + 1;
    }
    argv[n] = NULL;
    return 0;
}

static int start(struct shell *s, struct bytes connector, struct bytes host) {
    char line[LINE_MAX_], text[TEXT_MAX];
    const char *argv[WORDS_MAX + 1];
    struct text t;
    struct piped p;
    text_init(&t, line, sizeof line);
    greeting_line(&t, s->helper->digest, s->helper->program.len);
    int r = compose(connector, host, bytes_of(line, t.len), text, argv);
    if (r == 0)
        r = piped_start(&(struct piped_order){.argv = argv, .files = s->events->files}, &p);
    if (r < 0)
        return r;
    s->pid = p.pid;
    const int results[] = {loop_adopt(s->loop, &s->in, p.in, in_ready, 0),
                           loop_adopt(s->loop, &s->out, p.out, out_ready, EPOLLIN),
                           loop_adopt(s->loop, &s->err, p.err, err_ready, EPOLLIN)};
    return results[0] < 0 ? results[0] : results[1] < 0 ? results[1] : results[2];
}

struct shell *shell_new(struct loop *loop, const struct shell_events *events,
                        const struct shell_helper *helper, struct bytes connector,
                        struct bytes host, int *ret_error) {
    struct shell *s = calloc(1, sizeof *s);
    *ret_error = -ENOMEM;
    if (s == NULL)
        return NULL;
    s->loop = loop;
    s->events = events;
    s->helper = helper;
    s->why = HOP_REFUSED;
    s->in.fd = s->out.fd = s->err.fd = -1;
    list_init(&s->at);
    *ret_error = start(s, connector, host);
    if (*ret_error == 0)
        return s;
    shell_free(s);
    return NULL;
}

void shell_free(struct shell *s) {
    if (s == NULL)
        return;
    list_remove(&s->at);
    loop_close(s->loop, &s->in);
    loop_close(s->loop, &s->out);
    loop_close(s->loop, &s->err);
    if (s->pid > 0 && kill(-s->pid, SIGKILL) == 0)
        waitpid(s->pid, NULL, 0);
    spool_fini(&s->outgoing);
    spool_fini(&s->incoming);
    free(s);
}
