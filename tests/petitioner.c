/* SPDX-License-Identifier: MIT */
/* A program of a job that talks to the machine manager by the lowest means there are; for tests/e2e/petition.py.
 *
 *     petitioner lines        for each line of input: asks for its own job's row, and prints its state
 *     petitioner many COUNT   asks so often, many at once
 *     petitioner deaf         asks and never listens, until nothing goes out any more; then does what it should
 *     petitioner noise        rings with nonsense, then talks nonsense
 *     petitioner crowd        opens lines until it is turned away, and says how many these were */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/line.h"
#include "wire/message.h"
#include "wire/row.h"

enum { AT_ONCE = 100, CROWD_MAX = 4096 };

struct talk {
    struct line line;
    uint64_t said, answered;
    uint32_t state; /* of our job, as was heard last */
};

static void fail(const char *what, int error) {
    printf("%s: %s\n", what, strerror(-error));
    exit(1);
}

static int ask(struct talk *t, uint64_t number) {
    uint8_t body[256];
    union message m = {.ask = {.request = {number, 7},
                               .subject = SUBJECT_JOB,
                               .job = (uint32_t)atol(getenv("STORM_JOB_ID"))}};
    long len = message_encode(MESSAGE_ASK, &m, room_of(body, sizeof body));
    return line_say(&t->line, MESSAGE_ASK, bytes_of(body, (size_t)len));
}

static void hear(struct talk *t) {
    uint16_t type;
    struct bytes body;
    union message m;
    struct job_row row;
    size_t at = 0;
    int r = line_hear(&t->line, &type, &body);
    if (r < 0)
        fail("hear", r);
    if (r > 0 && type == MESSAGE_NONE) {
        t->said = t->answered;
        r = line_say(&t->line, MESSAGE_NONE, (struct bytes){0});
        if (r <= 0)
            fail("begin", r);
    }
    if (r == 0 || type != MESSAGE_ROWS)
        return;
    if (message_decode(type, body, NULL, &m) < 0 || job_row_next(m.rows.rows, &at, &row) <= 0)
        fail("rows", -EBADMSG);
    if (m.rows.request[0] != t->answered + 1)
        fail("order", -EBADMSG);
    t->answered++;
    t->state = row.state;
}

/* Answers come in order, as the questions do. */
static void ask_until(struct talk *t, uint64_t count) {
    while (t->answered < count) {
        while (t->said < count && t->said - t->answered < AT_ONCE && ask(t, t->said + 1) > 0)
            t->said++;
        line_wait(&t->line, false, -1);
        hear(t);
    }
}

static void lines(struct talk *t) {
    char line[64];
    while (fgets(line, sizeof line, stdin) != NULL) {
        ask_until(t, t->answered + 1);
        printf("%s\n", state_name((enum job_state)t->state));
        fflush(stdout);
    }
}

static void many(struct talk *t, uint64_t count) {
    ask_until(t, count);
    printf("%llu answers\n", (unsigned long long)t->answered);
}

/* Is there no room to speak for a while? If the launcher is only slow, nothing of what follows is harder. */
static bool stalls(const struct talk *t) {
    struct pollfd one = {.fd = t->line.fd, .events = POLLOUT};
    return poll(&one, 1, 500) == 0;
}

static void deaf(struct talk *t) {
    do {
        while (ask(t, t->said + 1) > 0)
            t->said++;
    } while (!stalls(t));
    printf("stalled\n");
    fflush(stdout);
    ask_until(t, t->said);
    printf("%s\n", state_name((enum job_state)t->state));
}

static void ring_nonsense(void) {
    int bell = atoi(getenv("STORM_PETITION")), out[2];
    static const char text[300] = "who is there?";
    union {
        char room[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    struct iovec part = {.iov_base = (void *)(uintptr_t)text, .iov_len = 8};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    if (pipe(out) < 0)
        fail("pipe", -errno);
    memcpy(CMSG_DATA(c), (const int[]){out[0], out[0]}, 2 * sizeof(int));
    for (int i = 0; i < 50; i++) {
        uint8_t hello[BELL_BYTES] = {BELL_VERSION};
        part.iov_base = i % 2 ? (void *)hello : (void *)(uintptr_t)text; /* a pipe is no line */
        c->cmsg_len = CMSG_LEN((i % 3 ? 1 : 2) * sizeof(int));           /* nor are two of them */
        send(bell, text, (size_t)(i * 6), MSG_DONTWAIT);
        sendmsg(bell, &message, MSG_DONTWAIT);
    }
    close(out[0]);
    struct pollfd closed = {.fd = out[1]};
    poll(&closed, 1, -1); /* the other end has been closed by whoever got it */
}

/* What is no frame ends the line; a frame that is no message is answered. */
static void talk_nonsense(void) {
    struct talk t = {0};
    uint16_t type;
    struct bytes body;
    union message m;
    if (line_open(&t.line) < 0 || send(t.line.fd, "no", 2, 0) < 0)
        fail("open", -errno);
    while (line_wait(&t.line, false, -1) && line_hear(&t.line, &type, &body) > 0)
        ;
    line_close(&t.line);
    if (line_open(&t.line) < 0)
        fail("open", -errno);
    line_say(&t.line, MESSAGE_ENDS, bytes_from_str("nonsense"));
    line_wait(&t.line, false, -1);
    if (line_hear(&t.line, &type, &body) <= 0 || message_decode(type, body, NULL, &m) < 0)
        fail("hear", -EBADMSG);
    printf("%.*s\n", (int)m.answer.text.len, (const char *)m.answer.text.at);
    line_close(&t.line);
}

static void crowd(void) {
    static struct talk talks[CROWD_MAX];
    int in = 0;
    for (int i = 0; i < CROWD_MAX && line_open(&talks[i].line) == 0; i++) {
        if (ask(&talks[i], 1) < 0)
            break;
        line_wait(&talks[i].line, false, -1);
        uint16_t type;
        struct bytes body;
        if (line_hear(&talks[i].line, &type, &body) <= 0)
            break;
        in++;
    }
    printf("%d were let in\n", in);
}

int main(int argc, char **argv) {
    struct talk t = {0};
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "noise") == 0) {
        ring_nonsense();
        talk_nonsense();
        return 0;
    }
    if (strcmp(what, "crowd") == 0) {
        crowd();
        return 0;
    }
    int r = line_open(&t.line);
    if (r < 0)
        fail("open", r);
    if (strcmp(what, "lines") == 0)
        lines(&t);
    else if (strcmp(what, "many") == 0 && argc > 2)
        many(&t, strtoull(argv[2], NULL, 10));
    else if (strcmp(what, "deaf") == 0)
        deaf(&t);
    line_close(&t.line);
    return 0;
}
