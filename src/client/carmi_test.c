/* SPDX-License-Identifier: MIT */
/* Tests of CARMI's calls: the library at one end of a line, and here, at the other, whoever answers. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "client/carmi_inside.h"
#include "tap.h"
#include "wire/bundle.h"
#include "wire/classes.h"
#include "wire/spec.h"

enum { OWN = 3, HOST = 40, TAG = 5 };

struct bench {
    struct carmi carmi;
    struct line far; /* the launcher's end */
    uint64_t storage[2][8];
    struct nodeset sets[2];
    union message heard;
    uint8_t body[LINE_FRAME_MAX];
};

static void say(struct bench *b, uint16_t type, const union message *m) {
    static uint8_t body[LINE_FRAME_MAX];
    long len = type == MESSAGE_NONE ? 0 : message_encode(type, m, room_of(body, sizeof body));
    CHECK(len >= 0);
    CHECK_EQ(line_say(&b->far, type, bytes_of(body, (size_t)len)), 1);
}

/* The next frame of the library: its type, MESSAGE_NONE also if there is none. */
static uint16_t next(struct bench *b) {
    uint16_t type = MESSAGE_NONE;
    struct bytes body;
    carmi_pump(&b->carmi);
    if (line_hear(&b->far, &type, &body) <= 0)
        return MESSAGE_NONE;
    memcpy(b->body, body.at, body.len);
    CHECK(type == MESSAGE_NONE ||
          message_decode(type, bytes_of(b->body, body.len), b->sets, &b->heard) == 0);
    return type;
}

static bool asks(struct bench *b, enum subject subject, uint32_t job) {
    return next(b) == MESSAGE_ASK && b->heard.ask.subject == subject && b->heard.ask.job == job;
}

static bool acts(struct bench *b, enum verb verb, uint32_t job) {
    return next(b) == MESSAGE_ACT && b->heard.act.verb == verb && b->heard.act.jobs.len >= 4 &&
           load_le32(b->heard.act.jobs.at) == job;
}

struct sheet {
    uint8_t rows[4096];
    size_t len;
};

static void add_row(struct sheet *s, uint32_t job, enum job_kind kind, enum job_state state) {
    struct job_row row = {.job = job,
                          .kind = (uint8_t)kind,
                          .state = (uint8_t)state,
                          .parent = kind == JOB_ALLOC ? OWN : 0,
                          .name = bytes_from_str("any"),
                          .node_list = bytes_from_str("n1")};
    long len = job_row_encode(&row, room_of(s->rows + s->len, sizeof s->rows - s->len));
    CHECK(len > 0);
    s->len += (size_t)len;
}

static void add_over(struct sheet *s, uint32_t job) {
    struct job_row row = {
        .job = job, .kind = JOB_STEP, .state = STATE_FAILED, .status = 3, .ended_ns = 1};
    long len = job_row_encode(&row, room_of(s->rows + s->len, sizeof s->rows - s->len));
    CHECK(len > 0);
    s->len += (size_t)len;
}

/* To what was heard last. */
static void answer_rows(struct bench *b, const struct sheet *s) {
    union message m = {.rows = {.request = {b->heard.ask.request[0], b->heard.ask.request[1]},
                                .subject = b->heard.ask.subject,
                                .last = true,
                                .rows = s == NULL ? (struct bytes){0} : bytes_of(s->rows, s->len)}};
    say(b, MESSAGE_ROWS, &m);
}

static void answer(struct bench *b, const uint64_t request[2], enum answer code, uint32_t job,
                   uint32_t count) {
    union message m = {.answer = {.request = {request[0], request[1]},
                                  .code = (uint8_t)code,
                                  .job = job,
                                  .count = count,
                                  .text = bytes_from_str(code == ANSWER_DONE ? "" : "no")}};
    say(b, MESSAGE_ANSWER, &m);
}

static void news(struct bench *b, uint32_t job, enum job_state state) {
    union message m = {.news = {.job = job,
                                .run = run_of(job, 1),
                                .state = (uint8_t)state,
                                .settled = state_over(state),
                                .nodes = &b->sets[0],
                                .waiting = &b->sets[1]}};
    nodeset_clear(&b->sets[0]);
    nodeset_clear(&b->sets[1]);
    say(b, MESSAGE_NEWS, &m);
}

/* How every conversation begins; the rows are what there is. */
static void greet(struct bench *b, const struct sheet *s) {
    CHECK(acts(b, VERB_FOLLOW, OWN));
    CHECK_EQ(b->heard.act.value, 4);
    answer(b, b->heard.act.request, ANSWER_DONE, OWN, 1);
    CHECK(asks(b, SUBJECT_JOBS, 0));
    answer_rows(b, s);
}

static void start(struct bench *b) {
    int ends[2];
    memset(b, 0, sizeof *b);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    b->carmi.line = (struct line){.fd = ends[0], .frame = malloc(LINE_FRAME_MAX)};
    b->far = (struct line){.fd = ends[1], .frame = malloc(LINE_FRAME_MAX)};
    b->carmi.epoll = epoll_create1(EPOLL_CLOEXEC);
    b->carmi.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event e = {.events = EPOLLIN};
    epoll_ctl(b->carmi.epoll, EPOLL_CTL_ADD, ends[0], &e);
    epoll_ctl(b->carmi.epoll, EPOLL_CTL_ADD, b->carmi.event, &e);
    CHECK_EQ(steward_init(&b->carmi.steward, 77, OWN), 0);
    for (int i = 0; i < 2; i++)
        nodeset_init(&b->sets[i], 64, b->storage[i]);
}

/* The one class that there is, to who asks. */
static void answer_classes(struct bench *b) {
    uint8_t one[64];
    struct host_class given = {.least = 1, .most = 2, .ppn = 2, .name = bytes_from_str("given")};
    CHECK(asks(b, SUBJECT_CLASSES, OWN));
    long len = class_store(&given, room_of(one, sizeof one));
    union message m = {.rows = {.request = {b->heard.ask.request[0], b->heard.ask.request[1]},
                                .subject = SUBJECT_CLASSES,
                                .last = true,
                                .rows = bytes_of(one, (size_t)len)}};
    say(b, MESSAGE_ROWS, &m);
}

static void begin(struct bench *b) {
    struct sheet s = {.len = 0};
    start(b);
    add_row(&s, OWN, JOB_RUN, STATE_RUNNING);
    CHECK(!b->carmi.steward.ready);
    greet(b, &s);
    CHECK_EQ(next(b), MESSAGE_NONE);
    CHECK(b->carmi.steward.ready && b->carmi.steward.head == OWN);
}

static void finish(struct bench *b) {
    steward_fini(&b->carmi.steward);
    line_close(&b->carmi.line);
    line_close(&b->far);
    close(b->carmi.epoll);
    close(b->carmi.event);
}

/* The next message is of this kind and request, with so many hosts; it is kept in `ret`. */
static bool tells(struct bench *b, carmi_request request, enum carmi_kind kind, size_t hosts,
                  struct carmi_message *ret) {
    struct pollfd one = {.fd = carmi_fd(&b->carmi), .events = POLLIN};
    CHECK_EQ(poll(&one, 1, 0), 1);
    return carmi_next(&b->carmi, ret) == 1 && ret->request == request && ret->kind == kind &&
           ret->host_count == hosts && ret->tag == TAG;
}

static bool silent(struct bench *b) {
    struct carmi_message m;
    struct pollfd one = {.fd = carmi_fd(&b->carmi), .events = POLLIN};
    return carmi_next(&b->carmi, &m) == 0 && poll(&one, 1, 0) == 0;
}

/* Hosts that are asked for: the request to the manager is in b->heard. */
static carmi_request grow(struct bench *b, unsigned count, unsigned increment) {
    carmi_request r = carmi_addhosts(&b->carmi, "given", count, increment, TAG);
    answer_classes(b);
    CHECK_EQ(next(b), MESSAGE_SUBMIT);
    CHECK(b->heard.submit.parent == OWN && b->heard.submit.kind == JOB_ALLOC &&
          b->heard.submit.ppn == 2);
    return r;
}

static void test_groups(void) {
    static struct bench b;
    struct carmi_message m;
    begin(&b);
    carmi_request r = grow(&b, 5, 2);
    CHECK(b.heard.submit.array_last == 5 && b.heard.submit.together == 2);
    answer(&b, b.heard.submit.request, ANSWER_DONE, HOST, 5);
    news(&b, HOST + 1, STATE_RUNNING);
    news(&b, HOST + 2, STATE_RUNNING);
    CHECK(silent(&b));
    news(&b, HOST, STATE_RUNNING);
    CHECK(tells(&b, r, CARMI_HOSTS_ADDED, 2, &m) && m.hosts[0] == HOST && m.hosts[1] == HOST + 1);
    CHECK(!m.last && silent(&b));
    news(&b, HOST + 4, STATE_RUNNING);
    CHECK(tells(&b, r, CARMI_HOSTS_ADDED, 1, &m) && m.hosts[0] == HOST + 4 && !m.last);
    news(&b, HOST + 3, STATE_KILLED); /* somebody has ended it: the other of its group is there */
    CHECK(tells(&b, r, CARMI_HOSTS_ADDED, 1, &m) && m.hosts[0] == HOST + 2 && m.last);
    CHECK(!m.success && m.error == ECANCELED); /* who reads the last knows whether all came */
    CHECK_EQ(carmi_wait(&b.carmi, r, &m, 0), -ESRCH);
    finish(&b);
}

/* Of three the one at this place is ended while it waits: first, in between, or behind the others. */
static void one_is_missing(uint32_t when) {
    static struct bench b;
    struct carmi_message m = {0};
    begin(&b);
    carmi_request r = grow(&b, 3, 1);
    answer(&b, b.heard.submit.request, ANSWER_DONE, HOST, 3);
    size_t hosts = 0, messages = 0;
    for (uint32_t i = 0; i < 3; i++)
        news(&b, HOST + i, i == when ? STATE_KILLED : STATE_RUNNING);
    for (; carmi_next(&b.carmi, &m) == 1; messages++) {
        hosts += m.host_count;
        CHECK(m.request == r && m.success == !m.last);
    }
    CHECK(hosts == 2 && messages == (when == 2 ? 3 : 2));
    CHECK(m.last && m.error == ECANCELED && m.host_count == (when == 2 ? 0 : 1));
    finish(&b);
}

static void test_one_is_missing(void) {
    for (uint32_t when = 0; when < 3; when++)
        one_is_missing(when);
}

/* What happens to a host before its group is told is told behind that, or not at all. */
static void test_before_its_group_is_told(void) {
    static struct bench b;
    struct carmi_message m;
    begin(&b);
    carmi_request lost = carmi_delete_notify(&b.carmi, 0, NULL, TAG);
    carmi_request held = carmi_suspend_notify(&b.carmi, 0, NULL, TAG);
    carmi_request r = grow(&b, 4, 2);
    answer(&b, b.heard.submit.request, ANSWER_DONE, HOST, 4);
    news(&b, HOST, STATE_RUNNING);
    news(&b, HOST, STATE_SUSPENDED);
    news(&b, HOST + 2, STATE_RUNNING);
    news(&b, HOST + 2, STATE_KILLED);
    CHECK(silent(&b));
    news(&b, HOST + 1, STATE_RUNNING);
    CHECK(tells(&b, r, CARMI_HOSTS_ADDED, 2, &m) && m.success && !m.last);
    CHECK(tells(&b, held, CARMI_HOSTS_SUSPENDED, 1, &m) && m.hosts[0] == HOST && silent(&b));
    news(&b, HOST + 3, STATE_RUNNING);
    CHECK(tells(&b, r, CARMI_HOSTS_ADDED, 1, &m) && m.hosts[0] == HOST + 3 && m.last);
    CHECK(!m.success && m.error == ECANCELED && silent(&b));
    news(&b, HOST + 3, STATE_KILLED);
    CHECK(tells(&b, lost, CARMI_HOSTS_DELETED, 1, &m) && m.hosts[0] == HOST + 3);
    finish(&b);
}

static void test_refused(void) {
    static struct bench b;
    struct carmi_message m;
    begin(&b);
    carmi_request r = grow(&b, 1, 1);
    answer(&b, b.heard.submit.request, ANSWER_REFUSED, 0, 0);
    CHECK(tells(&b, r, CARMI_HOSTS_ADDED, 0, &m) && !m.success && m.last && m.error == EINVAL);
    CHECK_STR(m.text, "no");
    r = grow(&b, 2, 2);
    answer(&b, b.heard.submit.request, ANSWER_DONE, HOST, 2);
    news(&b, HOST, STATE_KILLED);
    news(&b, HOST + 1, STATE_KILLED);
    CHECK(tells(&b, r, CARMI_HOSTS_ADDED, 0, &m) && !m.success && m.last);
    finish(&b);
}

/* Too many talk to the manager: that is said once, and nothing is asked for again and again. */
static void test_no_room_for_one_more(void) {
    static struct bench b;
    struct carmi_message m;
    start(&b);
    CHECK(acts(&b, VERB_FOLLOW, OWN));
    answer(&b, b.heard.act.request, ANSWER_FULL, 0, 0);
    say(&b, MESSAGE_NONE, NULL); /* as to a stranger, because of what came behind */
    CHECK(asks(&b, SUBJECT_JOBS, 0));
    CHECK_EQ(carmi_next(&b.carmi, &m), -EAGAIN);
    CHECK(!b.carmi.steward.ready);
    uint16_t type;
    struct bytes body;
    while (line_hear(&b.far, &type, &body) == 1)
        CHECK(type != MESSAGE_NONE);
    CHECK_EQ(carmi_receive(&b.carmi, &m, 0), -EAGAIN);
    finish(&b);
}

static void test_it_begins_anew(void) {
    static struct bench b;
    struct carmi_message m;
    begin(&b);
    carmi_request r = grow(&b, 1, 1);
    uint64_t number = b.heard.submit.request[1];
    say(&b, MESSAGE_NONE, NULL);
    carmi_pump(&b.carmi);
    uint16_t type;
    struct bytes body;
    CHECK(line_hear(&b.far, &type, &body) == 1 && type == MESSAGE_NONE);
    struct sheet s = {.len = 0};
    add_row(&s, OWN, JOB_RUN, STATE_RUNNING);
    add_row(&s, HOST, JOB_ALLOC, STATE_RUNNING); /* it was heard the first time */
    CHECK(acts(&b, VERB_FOLLOW, OWN));
    CHECK(asks(&b, SUBJECT_JOBS, 0));
    answer_rows(&b, &s);
    CHECK_EQ(next(&b), MESSAGE_SUBMIT);
    CHECK_EQ(b.heard.submit.request[1], number);
    CHECK(silent(&b)); /* perhaps another has asked for that host */
    answer(&b, b.heard.submit.request, ANSWER_DONE, HOST, 1);
    CHECK(tells(&b, r, CARMI_HOSTS_ADDED, 1, &m) && m.last);
    news(&b, HOST, STATE_RUNNING);
    CHECK(silent(&b));
    finish(&b);
}

static void test_what_is_lost_meanwhile(void) {
    static struct bench b;
    struct carmi_message m;
    begin(&b);
    grow(&b, 2, 1);
    answer(&b, b.heard.submit.request, ANSWER_DONE, HOST, 2);
    news(&b, HOST, STATE_RUNNING);
    news(&b, HOST + 1, STATE_RUNNING);
    while (carmi_next(&b.carmi, &m) == 1)
        ;
    carmi_request lost = carmi_delete_notify(&b.carmi, 0, NULL, TAG);
    carmi_request held = carmi_suspend_notify(&b.carmi, 0, NULL, TAG);
    say(&b, MESSAGE_NONE, NULL);
    CHECK_EQ(next(&b), MESSAGE_NONE);
    struct sheet s = {.len = 0};
    add_row(&s, OWN, JOB_RUN, STATE_RUNNING);
    add_row(&s, HOST + 1, JOB_ALLOC, STATE_SUSPENDED);
    greet(&b, &s);
    CHECK(asks(&b, SUBJECT_JOB, HOST)); /* how has it ended? */
    CHECK(tells(&b, held, CARMI_HOSTS_SUSPENDED, 1, &m) && m.hosts[0] == HOST + 1);
    answer_rows(&b, NULL);
    CHECK(tells(&b, lost, CARMI_HOSTS_DELETED, 1, &m) && m.hosts[0] == HOST && !m.last);
    finish(&b);
}

static void test_hosts_that_others_have_asked_for(void) {
    static struct bench b;
    struct carmi_message m;
    struct sheet s = {.len = 0};
    begin(&b);
    carmi_request comes = carmi_add_notify(&b.carmi, NULL, TAG);
    news(&b, HOST, STATE_RUNNING);
    CHECK(asks(&b, SUBJECT_JOB, HOST));
    add_row(&s, HOST, JOB_ALLOC, STATE_RUNNING);
    answer_rows(&b, &s);
    CHECK(tells(&b, comes, CARMI_HOSTS_ADDED, 1, &m) && !m.last);
    carmi_request later = carmi_add_notify(&b.carmi, NULL, TAG); /* it is there already */
    CHECK(tells(&b, later, CARMI_HOSTS_ADDED, 1, &m) && m.hosts[0] == HOST);
    CHECK(carmi_cancel_request(&b.carmi, comes, TAG) > 0);
    CHECK(carmi_next(&b.carmi, &m) == 1 && m.kind == CARMI_CANCELLED && m.success);
    CHECK(silent(&b));
    finish(&b);
}

static void test_cancelled_before_it_is_answered(void) {
    static struct bench b;
    struct carmi_message m;
    begin(&b);
    carmi_request r = grow(&b, 1, 1);
    uint64_t request[2] = {b.heard.submit.request[0], b.heard.submit.request[1]};
    carmi_cancel_request(&b.carmi, r, TAG);
    CHECK(carmi_next(&b.carmi, &m) == 1 && m.success);
    answer(&b, request, ANSWER_DONE, HOST, 1);
    CHECK(acts(&b, VERB_END, HOST)); /* it is given back */
    CHECK(silent(&b));
    finish(&b);
}

/* That it is given back is not heard: the manager dies. What there is then was not asked for by anybody else. */
static void test_cancelled_before_a_new_life(void) {
    static struct bench b;
    struct carmi_message m;
    struct sheet s = {.len = 0};
    begin(&b);
    carmi_add_notify(&b.carmi, NULL, TAG);
    carmi_request r = grow(&b, 1, 1);
    uint64_t request[2] = {b.heard.submit.request[0], b.heard.submit.request[1]};
    carmi_cancel_request(&b.carmi, r, TAG);
    CHECK(carmi_next(&b.carmi, &m) == 1 && m.success);
    answer(&b, request, ANSWER_DONE, HOST, 1);
    CHECK(acts(&b, VERB_END, HOST));
    say(&b, MESSAGE_NONE, NULL);
    CHECK_EQ(next(&b), MESSAGE_NONE);
    add_row(&s, OWN, JOB_RUN, STATE_RUNNING);
    add_row(&s, HOST, JOB_ALLOC, STATE_RUNNING);
    greet(&b, &s);
    CHECK(acts(&b, VERB_END, HOST));
    CHECK(silent(&b));
    news(&b, HOST, STATE_DONE);
    CHECK(silent(&b));
    CHECK(list_empty(&b.carmi.steward.hosts));
    finish(&b);
}

static void test_given_back(void) {
    static struct bench b;
    struct carmi_message m;
    begin(&b);
    carmi_request lost = carmi_delete_notify(&b.carmi, 0, NULL, TAG);
    grow(&b, 2, 2);
    answer(&b, b.heard.submit.request, ANSWER_DONE, HOST, 2);
    news(&b, HOST, STATE_RUNNING);
    news(&b, HOST + 1, STATE_RUNNING);
    CHECK_EQ(carmi_next(&b.carmi, &m), 1);
    const carmi_host both[] = {HOST, HOST + 1};
    carmi_request r = carmi_delhosts(&b.carmi, 2, both, TAG);
    CHECK(acts(&b, VERB_END, HOST) && b.heard.act.jobs.len == 8);
    news(&b, HOST, STATE_DONE);
    CHECK(silent(&b));
    news(&b, HOST + 1, STATE_DONE);
    CHECK(tells(&b, r, CARMI_HOSTS_DELETED, 2, &m) && m.success && m.last);
    CHECK(silent(&b)); /* nothing was lost */
    CHECK(list_empty(&b.carmi.steward.hosts));
    CHECK(carmi_cancel_request(&b.carmi, lost, TAG) > 0);
    finish(&b);
}

/* The conversation begins anew before that was heard: one is there yet. */
static void test_given_back_again(void) {
    static struct bench b;
    struct carmi_message m;
    struct sheet s = {.len = 0};
    begin(&b);
    grow(&b, 2, 2);
    answer(&b, b.heard.submit.request, ANSWER_DONE, HOST, 2);
    news(&b, HOST, STATE_RUNNING);
    news(&b, HOST + 1, STATE_RUNNING);
    CHECK_EQ(carmi_next(&b.carmi, &m), 1);
    const carmi_host both[] = {HOST, HOST + 1};
    carmi_request r = carmi_delhosts(&b.carmi, 2, both, TAG);
    CHECK(acts(&b, VERB_END, HOST));
    say(&b, MESSAGE_NONE, NULL);
    CHECK_EQ(next(&b), MESSAGE_NONE);
    add_row(&s, OWN, JOB_RUN, STATE_RUNNING);
    add_row(&s, HOST + 1, JOB_ALLOC, STATE_RUNNING);
    greet(&b, &s);
    CHECK(asks(&b, SUBJECT_JOB, HOST));
    answer_rows(&b, NULL);
    CHECK(acts(&b, VERB_END, HOST + 1) && b.heard.act.jobs.len == 4);
    news(&b, HOST + 1, STATE_DONE);
    CHECK(tells(&b, r, CARMI_HOSTS_DELETED, 2, &m) && m.success && m.last);
    finish(&b);
}

/* So many hosts, all here. */
static void begin_with_many(struct bench *b, uint32_t count) {
    struct carmi_message m;
    begin(b);
    grow(b, count, count);
    answer(b, b->heard.submit.request, ANSWER_DONE, HOST, count);
    for (uint32_t i = 0; i < count; i++) {
        news(b, HOST + i, STATE_RUNNING);
        CHECK_EQ(next(b), MESSAGE_NONE);
    }
    CHECK(carmi_next(&b->carmi, &m) == 1 && m.host_count == count);
}

static carmi_request give_back_many(struct bench *b, uint32_t count) {
    carmi_host all[1000];
    for (uint32_t i = 0; i < count; i++)
        all[i] = HOST + i;
    return carmi_delhosts(&b->carmi, count, all, TAG);
}

/* The manager takes 512 at once. */
static void test_many_are_given_back(void) {
    static struct bench b;
    struct carmi_message m;
    size_t told = 0;
    begin_with_many(&b, 1000);
    carmi_request r = give_back_many(&b, 1000);
    while (next(&b) == MESSAGE_ACT) {
        CHECK(b.heard.act.verb == VERB_END && b.heard.act.jobs.len <= 4 * 512);
        told += b.heard.act.jobs.len / 4;
        answer(&b, b.heard.act.request, ANSWER_DONE, HOST, 1);
    }
    CHECK_EQ(told, 1000);
    for (uint32_t i = 0; i < 1000; i++) {
        news(&b, HOST + i, STATE_DONE);
        CHECK_EQ(next(&b), MESSAGE_NONE);
    }
    CHECK(tells(&b, r, CARMI_HOSTS_DELETED, 1000, &m) && m.success);
    finish(&b);
}

/* The manager's log is behind; then it does not know one of them, and ends none. */
static void test_giving_back_is_refused(void) {
    static struct bench b;
    struct carmi_message m;
    begin_with_many(&b, 2);
    carmi_request r = give_back_many(&b, 2);
    CHECK(acts(&b, VERB_END, HOST) && b.heard.act.jobs.len == 8);
    answer(&b, b.heard.act.request, ANSWER_FULL, 0, 1);
    CHECK(acts(&b, VERB_END, HOST) && b.heard.act.jobs.len == 8);
    answer(&b, b.heard.act.request, ANSWER_REFUSED, 0, 1);
    CHECK(acts(&b, VERB_END, HOST) && b.heard.act.jobs.len == 4);
    uint64_t unknown[2] = {b.heard.act.request[0], b.heard.act.request[1]};
    CHECK(acts(&b, VERB_END, HOST + 1));
    answer(&b, b.heard.act.request, ANSWER_DONE, HOST + 1, 1);
    news(&b, HOST + 1, STATE_DONE);
    answer(&b, unknown, ANSWER_REFUSED, 0, 1);
    CHECK(asks(&b, SUBJECT_JOB, HOST));
    answer_rows(&b, NULL);
    CHECK(tells(&b, r, CARMI_HOSTS_DELETED, 2, &m) && m.success && m.last);
    finish(&b);
}

static const char *attribute(const struct carmi_message *m, const char *name) {
    for (size_t i = 0; i < m->attribute_count; i++)
        if (strcmp(m->attributes[i].name, name) == 0)
            return m->attributes[i].value;
    return "";
}

/* Values of attributes may have blanks. */
static void test_what_a_host_is_like(void) {
    static struct bench b;
    struct carmi_message m;
    struct sheet host = {.len = 0}, nodes = {.len = 0};
    struct node_row row = {.name = bytes_from_str("n1"),
                           .traits = bytes_from_str("MODEL=\"Xeon Gold 6\" SPEED=2 NOTE=\"a\" X=")};
    begin(&b);
    carmi_request r = carmi_get_host_info(&b.carmi, HOST, TAG);
    CHECK(asks(&b, SUBJECT_JOB, HOST));
    add_row(&host, HOST, JOB_ALLOC, STATE_RUNNING);
    answer_rows(&b, &host);
    CHECK(asks(&b, SUBJECT_NODES, 0));
    nodes.len = (size_t)node_row_encode(&row, room_of(nodes.rows, sizeof nodes.rows));
    answer_rows(&b, &nodes);
    CHECK(tells(&b, r, CARMI_HOST_INFO, 1, &m) && m.attribute_count == 7 + 4);
    CHECK_STR(attribute(&m, "MODEL"), "Xeon Gold 6");
    CHECK_STR(attribute(&m, "SPEED"), "2");
    CHECK_STR(attribute(&m, "NOTE"), "a");
    CHECK_STR(attribute(&m, "X"), "");
    finish(&b);
}

static void test_a_process(void) {
    static struct bench b;
    struct carmi_message m;
    begin(&b);
    grow(&b, 1, 1);
    answer(&b, b.heard.submit.request, ANSWER_DONE, HOST, 1);
    news(&b, HOST, STATE_RUNNING);
    CHECK_EQ(carmi_next(&b.carmi, &m), 1);
    carmi_request r = carmi_class_spawn(&b.carmi, "true", NULL, "given", TAG);
    CHECK_EQ(next(&b), MESSAGE_SUBMIT);
    CHECK(b.heard.submit.kind == JOB_STEP && b.heard.submit.inside == HOST);
    answer(&b, b.heard.submit.request, ANSWER_DONE, HOST + 9, 1);
    news(&b, HOST + 9, STATE_RUNNING);
    CHECK(tells(&b, r, CARMI_SPAWNED, 1, &m) && m.process == HOST + 9 && !m.last);
    news(&b, HOST + 9, STATE_RUNNING);
    CHECK(silent(&b));
    news(&b, HOST + 9, STATE_DONE);
    CHECK(tells(&b, r, CARMI_EXITED, 1, &m) && m.last && m.status == 0);
    CHECK(acts(&b, VERB_UNFOLLOW, HOST + 9));
    CHECK_EQ(b.carmi.steward.tasks.next == &b.carmi.steward.tasks, 1);
    finish(&b);
}

/* A process that could not begin. */
static void failed(struct bench *b, uint32_t job, enum spawn_step step, int error) {
    nodeset_clear(&b->sets[0]);
    nodeset_clear(&b->sets[1]);
    union message m = {.news = {.job = job,
                                .run = run_of(job, 1),
                                .state = STATE_FAILED,
                                .settled = true,
                                .cause = CAUSE_FAILED,
                                .step = (uint8_t)step,
                                .value = (uint32_t)error,
                                .nodes = &b->sets[0],
                                .waiting = &b->sets[1]}};
    say(b, MESSAGE_NEWS, &m);
}

/* A file is ready, on node 5, to what was heard last. */
static void offered(struct bench *b, int error) {
    uint8_t manifest[256], descriptor[512];
    struct entry e = {
        .kind = ENTRY_FILE, .mode = 0755, .bytes = 3, .sum = {0xab}, .path = bytes_from_str("sh")};
    long len = entry_encode(&e, room_of(manifest, sizeof manifest));
    CHECK(len > 0);
    struct bundle bundle = {.goal = GOAL_SPOOL,
                            .bytes = (uint64_t)len + 3,
                            .manifest_bytes = (uint32_t)len,
                            .pieces = 1,
                            .page_pieces = 64,
                            .piece_bytes = (uint32_t)len + 3,
                            .pages = bytes_of("0123456789abcdef", 16),
                            .manifest = bytes_of(manifest, (size_t)len)};
    len = bundle_encode(&bundle, room_of(descriptor, sizeof descriptor));
    CHECK(len > 0);
    union message m = {
        .offered = {.request = {b->heard.offer.request[0], b->heard.offer.request[1]},
                    .node = 5,
                    .offer = 77,
                    .error = error,
                    .text = bytes_from_str(error == 0 ? "" : "it is gone"),
                    .descriptor = bytes_of(descriptor, error == 0 ? (size_t)len : 0)}};
    say(b, MESSAGE_OFFERED, &m);
}

/* With what goes before, and from the cache. */
static bool asks_with_files(struct bench *b) {
    union message copy;
    struct spec spec;
    if (next(b) != MESSAGE_SUBMIT)
        return false;
    CHECK_EQ(message_decode(MESSAGE_COPY, b->heard.submit.files, b->sets, &copy), 0);
    CHECK_EQ(spec_decode(b->heard.submit.spec, &spec), 0);
    CHECK(copy.copy.source == 5 && copy.copy.offer == 77 && copy.copy.address.len == 0);
    return spec.image.len > 6 && memcmp(spec.image.at, "ab/ab00", 7) == 0;
}

static carmi_request spawn(struct bench *b, uint32_t job) {
    carmi_request r = carmi_class_spawn(&b->carmi, "/bin/sh", NULL, "given", TAG);
    CHECK_EQ(next(b), MESSAGE_SUBMIT);
    CHECK(b->heard.submit.files.len == 0 && (b->heard.submit.flags & JOB_LOOK) != 0);
    answer(b, b->heard.submit.request, ANSWER_DONE, job, 1);
    return r;
}

static void begin_with_host(struct bench *b) {
    struct carmi_message m;
    begin(b);
    grow(b, 1, 1);
    answer(b, b->heard.submit.request, ANSWER_DONE, HOST, 1);
    news(b, HOST, STATE_RUNNING);
    CHECK_EQ(carmi_next(&b->carmi, &m), 1);
}

static void test_a_host_lacks_the_program(void) {
    static struct bench b;
    struct carmi_message m;
    begin_with_host(&b);
    carmi_request one = spawn(&b, HOST + 9), two = spawn(&b, HOST + 10);
    failed(&b, HOST + 9, SPAWN_HIDDEN, ENOENT);
    CHECK(acts(&b, VERB_UNFOLLOW, HOST + 9));
    CHECK_EQ(next(&b), MESSAGE_OFFER);
    struct message_offer asked = b.heard.offer;
    CHECK(asked.program && asked.path.len > 0 && asked.path.at[0] == '/');
    failed(&b, HOST + 10, SPAWN_HIDDEN, ENOENT); /* who waits for the same asks once */
    CHECK(acts(&b, VERB_UNFOLLOW, HOST + 10));
    CHECK_EQ(next(&b), MESSAGE_NONE);
    CHECK(silent(&b));
    b.heard.offer = asked;
    offered(&b, 0);
    CHECK(asks_with_files(&b));
    answer(&b, b.heard.submit.request, ANSWER_DONE, HOST + 11, 1);
    CHECK(asks_with_files(&b));
    answer(&b, b.heard.submit.request, ANSWER_DONE, HOST + 12, 1);
    news(&b, HOST + 11, STATE_RUNNING);
    CHECK(tells(&b, one, CARMI_SPAWNED, 1, &m) && m.process == HOST + 11 && !m.last);
    news(&b, HOST + 11, STATE_DONE);
    CHECK(tells(&b, one, CARMI_EXITED, 1, &m) && m.process == HOST + 11 && m.last);
    CHECK(acts(&b, VERB_UNFOLLOW, HOST + 11));
    failed(&b, HOST + 12, SPAWN_COPY, EIO); /* it is made ready anew */
    CHECK(acts(&b, VERB_UNFOLLOW, HOST + 12));
    CHECK_EQ(next(&b), MESSAGE_OFFER);
    offered(&b, -ENOENT);
    CHECK(tells(&b, two, CARMI_SPAWNED, 1, &m) && m.last && !m.success && m.error == ENOENT);
    CHECK_STR(m.text, "it is gone");
    finish(&b);
}

/* One that is not here either is as it ever was; and nothing is sent for other reasons. */
static void test_a_program_that_is_nowhere(void) {
    static struct bench b;
    struct carmi_message m;
    begin_with_host(&b);
    carmi_request r = carmi_class_spawn(&b.carmi, "/nowhere/at/all", NULL, "given", TAG);
    CHECK_EQ(next(&b), MESSAGE_SUBMIT);
    CHECK_EQ(b.heard.submit.flags & JOB_LOOK, 0);
    answer(&b, b.heard.submit.request, ANSWER_DONE, HOST + 9, 1);
    failed(&b, HOST + 9, SPAWN_PROGRAM, ENOENT);
    CHECK(tells(&b, r, CARMI_SPAWNED, 1, &m) && m.last && !m.success && m.error == ENOENT);
    CHECK(acts(&b, VERB_UNFOLLOW, HOST + 9));
    r = spawn(&b, HOST + 10);
    failed(&b, HOST + 10, SPAWN_FOLDER, ENOENT);
    CHECK(tells(&b, r, CARMI_SPAWNED, 1, &m) && m.last && !m.success && m.error == ENOENT);
    finish(&b);
}

/* One that could be executed, or not, ends while we begin anew: its news are said to who follows it, then comes what it has written. */
static void ends_meanwhile(struct bench *b, uint32_t error, const char *written) {
    struct sheet s = {.len = 0}, over = {.len = 0};
    say(b, MESSAGE_NONE, NULL);
    CHECK_EQ(next(b), MESSAGE_NONE);
    add_row(&s, OWN, JOB_RUN, STATE_RUNNING);
    add_row(&s, HOST, JOB_ALLOC, STATE_RUNNING);
    greet(b, &s);
    CHECK(acts(b, VERB_FOLLOW, HOST + 9) && b->heard.act.value == 1);
    nodeset_clear(&b->sets[0]);
    nodeset_clear(&b->sets[1]);
    union message m = {.news = {.job = HOST + 9,
                                .run = run_of(HOST + 9, 1),
                                .state = STATE_FAILED,
                                .settled = true,
                                .status = 3,
                                .cause = error == 0 ? 0 : CAUSE_FAILED,
                                .value = error,
                                .output = strlen(written),
                                .held = written[0] != '\0',
                                .nodes = &b->sets[0],
                                .waiting = &b->sets[1]}};
    uint64_t request[2] = {b->heard.act.request[0], b->heard.act.request[1]};
    say(b, MESSAGE_NEWS, &m);
    answer(b, request, ANSWER_DONE, HOST + 9, 1);
    CHECK(asks(b, SUBJECT_JOB, HOST + 9));
    add_over(&over, HOST + 9);
    answer_rows(b, &over);
}

static void test_output_of_one_that_ended_meanwhile(void) {
    static struct bench b;
    struct carmi_message m;
    begin_with_host(&b);
    carmi_request r = spawn(&b, HOST + 9);
    news(&b, HOST + 9, STATE_RUNNING);
    CHECK(tells(&b, r, CARMI_SPAWNED, 1, &m));
    ends_meanwhile(&b, 0, "\n");
    CHECK(silent(&b));
    union message out = {.output = {.run = run_of(HOST + 9, 1), .stream = 1}};
    out.output.bytes = bytes_from_str("\n");
    say(&b, MESSAGE_OUTPUT, &out);
    CHECK(tells(&b, r, CARMI_EXITED, 1, &m) && m.success && m.last && m.status == 3);
    finish(&b);
}

static void test_one_that_could_not_begin_meanwhile(void) {
    static struct bench b;
    struct carmi_message m;
    begin_with_host(&b);
    carmi_request r = spawn(&b, HOST + 9);
    CHECK(silent(&b));
    ends_meanwhile(&b, EACCES, "");
    CHECK(tells(&b, r, CARMI_SPAWNED, 1, &m) && !m.success && m.last && m.error == EACCES);
    finish(&b);
}

static void ignore(int number) {
    (void)number;
}

/* As a profiler's: they come more often than the time is long. */
static void test_time_ends_among_signals(void) {
    static struct bench b;
    struct carmi_message m;
    const struct itimerval often = {.it_interval.tv_usec = 2000, .it_value.tv_usec = 2000};
    const struct itimerval never = {0};
    begin(&b);
    carmi_request lost = carmi_delete_notify(&b.carmi, 0, NULL, TAG);
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = ignore}, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    CHECK_EQ(carmi_receive(&b.carmi, &m, 50), 0);
    CHECK_EQ(carmi_wait(&b.carmi, lost, &m, 50), 0);
    setitimer(ITIMER_REAL, &never, NULL);
    finish(&b);
}

/* A class is defined or removed; with this answer. */
static void change(struct bench *b, enum verb verb, int error) {
    struct host_class h;
    size_t at = 0;
    CHECK(acts(b, verb, OWN) && class_next(b->heard.act.text, &at, &h) == 1);
    CHECK(bytes_equal(h.name, bytes_from_str("large")));
    answer(b, b->heard.act.request, error == 0 ? ANSWER_DONE : ANSWER_REFUSED, OWN,
           error == 0 ? 1 : (uint32_t)error);
}

static void test_classes_are_the_managers(void) {
    static struct bench b;
    struct carmi_message m;
    const struct carmi_class large = {.name = "large", .expression = "MEMORY>=1GB"};
    begin(&b);
    carmi_request r = carmi_define_class(&b.carmi, &large, TAG);
    CHECK(silent(&b));
    change(&b, VERB_DEFINE, 0);
    CHECK(tells(&b, r, CARMI_CLASS_DEFINED, 0, &m) && m.success && m.last);
    r = carmi_define_class(&b.carmi, &large, TAG);
    change(&b, VERB_DEFINE, EEXIST);
    CHECK(tells(&b, r, CARMI_CLASS_DEFINED, 0, &m) && !m.success && m.error == EEXIST);
    r = carmi_remove_class(&b.carmi, "large", TAG);
    say(&b, MESSAGE_NONE, NULL); /* what was not answered is said again */
    CHECK(acts(&b, VERB_UNDEFINE, OWN));
    CHECK_EQ(next(&b), MESSAGE_NONE);
    struct sheet s = {.len = 0};
    add_row(&s, OWN, JOB_RUN, STATE_RUNNING);
    greet(&b, &s);
    change(&b, VERB_UNDEFINE, EBUSY);
    CHECK(tells(&b, r, CARMI_CLASS_REMOVED, 0, &m) && !m.success && m.error == EBUSY);
    r = carmi_addhosts(&b.carmi, "large", 1, 1, TAG);
    CHECK_EQ(carmi_wait(&b.carmi, carmi_remove_class(&b.carmi, "large", TAG), &m, 0), 1);
    CHECK_EQ(m.error, EBUSY);
    answer_classes(&b); /* another has removed it */
    CHECK(tells(&b, r, CARMI_HOSTS_ADDED, 0, &m) && !m.success && m.error == EINVAL && m.last);
    r = carmi_add_notify(&b.carmi, "given", TAG);
    answer_classes(&b);
    CHECK(silent(&b) && steward_outstanding(&b.carmi.steward, r));
    finish(&b);
}

static void test_messages_of_one_request_are_found_among_others(void) {
    static struct bench b;
    struct carmi_message m;
    begin(&b);
    carmi_request one = carmi_get_class_definitions(&b.carmi, TAG);
    carmi_request two = carmi_define_class(&b.carmi, &(struct carmi_class){.name = ""}, TAG);
    answer_classes(&b);
    CHECK(carmi_wait(&b.carmi, two, &m, 0) == 1 && m.error == EINVAL);
    CHECK(tells(&b, one, CARMI_CLASSES, 0, &m) && m.class_count == 1);
    CHECK_STR(m.classes[0].name, "given");
    CHECK_EQ(carmi_wait(&b.carmi, one, &m, 0), -ESRCH);
    line_close(&b.far);
    CHECK(carmi_receive(&b.carmi, &m, -1) < 0); /* the launcher is gone */
    finish(&b);
}

/* ---- the bell ---- */

static bool is_refused(int bell) {
    struct carmi *c;
    char number[16];
    snprintf(number, sizeof number, "%d", bell);
    setenv("STORM_PETITION", number, 1);
    setenv("STORM_JOB_ID", "3", 1);
    return carmi_init(&c) == -ENOENT;
}

/* What has the bell's number now is another's: nothing is written there. */
static void test_what_is_no_bell(void) {
    const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
    int ends[2];
    char got;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        CHECK_EQ(socketpair(AF_UNIX, types[i] | SOCK_CLOEXEC, 0, ends), 0);
        CHECK(is_refused(ends[0]));
        CHECK(recv(ends[1], &got, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
        close(ends[0]);
        close(ends[1]);
        CHECK(is_refused(ends[0]));
    }
    CHECK_EQ(pipe(ends), 0);
    CHECK(is_refused(ends[1]));
    close(ends[0]);
    close(ends[1]);
    unsetenv("STORM_PETITION");
    unsetenv("STORM_JOB_ID");
}

/* ---- who can be reached ---- */

enum { OTHER = 41 };

struct heard {
    uint32_t books, ended;
};

static void on_book(void *context) {
    ((struct heard *)context)->books++;
}

static void on_job(void *context, uint32_t job, uint32_t procs) {
    if (procs == 0)
        ((struct heard *)context)->ended = job;
}

static const struct steward_ear ear = {.book = on_book, .job = on_job};
static const struct message_reach reach = {.token = {5, 6}, .port = 7};

static void add_peer(struct sheet *s, uint32_t job, uint32_t rank, uint32_t number) {
    struct peer_row row = {.place = (uint32_t)s->len,
                           .job = job,
                           .rank = rank,
                           .number = number,
                           .reach = {.port = (uint16_t)(100 + number)},
                           .name = bytes_from_str("worker"),
                           .class_name = bytes_from_str("given")};
    long len = peer_row_encode(&row, room_of(s->rows + s->len, sizeof s->rows - s->len));
    CHECK(len > 0);
    s->len += (size_t)len;
}

static void listens(struct bench *b, struct heard *h) {
    begin(b);
    steward_listens(&b->carmi.steward, &reach, &ear, h);
    CHECK_EQ(next(b), MESSAGE_REACH);
    CHECK(b->heard.reach.token[0] == 5 && b->heard.reach.token[1] == 6 && b->heard.reach.port == 7);
}

static void test_a_book(void) {
    static struct bench b;
    struct heard h = {0};
    struct carmi_message m;
    struct sheet s = {.len = 0};
    listens(&b, &h);
    carmi_request one = carmi_peers(&b.carmi, TAG);
    CHECK(asks(&b, SUBJECT_PEERS, 0));
    carmi_request two = carmi_peers(&b.carmi, TAG); /* what is on its way may be older than that */
    add_peer(&s, OWN, 1, 4);
    add_peer(&s, OTHER, 0, 1);
    add_peer(&s, OWN, 1, 3); /* an older program of the same rank */
    answer_rows(&b, &s);
    CHECK(tells(&b, one, CARMI_PEERS, 0, &m) && m.process_count == 2);
    CHECK(m.processes[0].id == ((carmi_process)1 << 32 | OWN) && m.processes[1].id == OTHER);
    CHECK_STR(m.processes[1].executable, "worker");
    CHECK_EQ(h.books, 1);
    const struct acquaintance *e =
        CONTAINER_OF(list_first(&b.carmi.steward.book), struct acquaintance, at);
    CHECK_EQ(e->reach.port, 104);
    CHECK_STR(e->class_name, "given");
    CHECK(asks(&b, SUBJECT_PEERS, 0));
    answer_rows(&b, NULL);
    CHECK(tells(&b, two, CARMI_PEERS, 0, &m) && m.process_count == 0);
    finish(&b);
}

/* Where it is reached is said again, and the book is asked for from its beginning. */
static void test_a_book_begins_anew(void) {
    static struct bench b;
    struct heard h = {0};
    struct carmi_message m;
    struct sheet s = {.len = 0}, own = {.len = 0};
    listens(&b, &h);
    carmi_request one = carmi_peers(&b.carmi, TAG);
    CHECK(asks(&b, SUBJECT_PEERS, 0));
    say(&b, MESSAGE_NONE, NULL);
    CHECK_EQ(next(&b), MESSAGE_NONE);
    add_row(&own, OWN, JOB_RUN, STATE_RUNNING);
    greet(&b, &own);
    CHECK_EQ(next(&b), MESSAGE_REACH);
    CHECK(asks(&b, SUBJECT_PEERS, 0));
    add_peer(&s, OTHER, 0, 1);
    answer_rows(&b, &s);
    CHECK(tells(&b, one, CARMI_PEERS, 0, &m) && m.process_count == 1);
    news(&b, OTHER, STATE_DONE);
    carmi_pump(&b.carmi);
    CHECK_EQ(h.ended, OTHER);
    finish(&b);
}

int main(void) {
    TEST(test_groups);
    TEST(test_one_is_missing);
    TEST(test_before_its_group_is_told);
    TEST(test_refused);
    TEST(test_no_room_for_one_more);
    TEST(test_it_begins_anew);
    TEST(test_what_is_lost_meanwhile);
    TEST(test_hosts_that_others_have_asked_for);
    TEST(test_cancelled_before_it_is_answered);
    TEST(test_cancelled_before_a_new_life);
    TEST(test_given_back);
    TEST(test_given_back_again);
    TEST(test_many_are_given_back);
    TEST(test_giving_back_is_refused);
    TEST(test_what_a_host_is_like);
    TEST(test_a_process);
    TEST(test_a_host_lacks_the_program);
    TEST(test_a_program_that_is_nowhere);
    TEST(test_output_of_one_that_ended_meanwhile);
    TEST(test_one_that_could_not_begin_meanwhile);
    TEST(test_time_ends_among_signals);
    TEST(test_classes_are_the_managers);
    TEST(test_messages_of_one_request_are_found_among_others);
    TEST(test_what_is_no_bell);
    TEST(test_a_book);
    TEST(test_a_book_begins_anew);
    return tap_finish();
}
