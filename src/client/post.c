/* SPDX-License-Identifier: MIT */
/* Messages between the processes of a program: who is called, who is let in, what waits for whom. See post.h. */
#include "client/post.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>

#include "os/address.h"

enum { TRIES_MAX = 10, DELAY_FIRST_MS = 5, DELAY_MAX_MS = 1000, END_MS = 5000 };

/* ---- what is sent ---- */

static void cargo_drop(struct cargo *c) {
    if (c != NULL && --c->refs == 0)
        free(c);
}

static struct cargo *cargo_new(struct bytes data) {
    struct cargo *c = malloc(sizeof *c + data.len);
    if (c == NULL)
        return NULL;
    c->refs = 1;
    c->len = data.len;
    if (data.len > 0)
        memcpy(c->data, data.at, data.len);
    return c;
}

static const char *words_of(int error) {
    return error == ESRCH    ? "there is no such process, or it has ended"
           : error == EAGAIN ? "a process does not take what it is sent"
                             : "the process cannot be reached";
}

static void finish(struct steward *s, struct call *c) {
    struct letter *l = letter_add(s, c, CARMI_SENT);
    if (l != NULL) {
        l->message.process = c->process;
        l->message.count = c->count;
    }
    if (c->error != 0)
        letter_failed(s, l, c->error, bytes_from_str(words_of(c->error)));
    call_end(c);
}

/* Of many one may end meanwhile: that is no failure. */
static void settle(struct steward *s, carmi_request call, int error) {
    struct call *c = call_find(s, call);
    if (c == NULL)
        return;
    c->count += error == 0;
    if (error != 0 && (c->process != 0 || error == EAGAIN))
        c->error = error;
    if (--c->waits == 0)
        finish(s, c);
}

void post_settle(struct post *p, struct peer *peer, struct sending *s, int error) {
    peer->held -= s->held;
    list_remove(&s->at);
    settle(p->steward, s->call, error);
    cargo_drop(s->cargo);
    free(s);
}

/* ---- peers ---- */

static struct peer *peer_find(const struct post *p, carmi_process id) {
    LIST_EACH (l, &p->peers) {
        struct peer *peer = CONTAINER_OF(l, struct peer, at);
        if (peer->id == id)
            return peer;
    }
    return NULL;
}

static struct peer *peer_get(struct post *p, carmi_process id) {
    struct peer *peer = peer_find(p, id);
    if (peer != NULL)
        return peer;
    peer = calloc(1, sizeof *peer);
    if (peer == NULL) {
        p->steward->failed = true;
        return NULL;
    }
    peer->id = id;
    list_init(&peer->queue);
    list_push_back(&p->peers, &peer->at);
    return peer;
}

static void fail_queue(struct post *p, struct peer *peer, int error) {
    peer->seeking = false;
    peer->tries = 0;
    LIST_EACH_SAFE (l, &peer->queue)
        post_settle(p, peer, CONTAINER_OF(l, struct sending, at), error);
}

static void set_timer(struct post *p) {
    struct itimerspec at = {.it_value = {.tv_sec = (time_t)(p->delay_ms / 1000),
                                         .tv_nsec = (long)(p->delay_ms % 1000) * 1000000}};
    timerfd_settime(p->timer, 0, &at, NULL);
}

static void rest(struct post *p, struct peer *peer) {
    peer->seeking = true;
    peer->book = 0;
    set_timer(p);
}

void post_timer(struct post *p) {
    p->delay_ms = p->delay_ms < DELAY_MAX_MS / 2 ? 2 * p->delay_ms : DELAY_MAX_MS;
    LIST_EACH (l, &p->peers) {
        struct peer *peer = CONTAINER_OF(l, struct peer, at);
        if (peer->seeking && peer->book == 0)
            peer->book = book_want(p->steward);
    }
}

/* Another connection with the same process, that it has made itself. */
static struct link *other_link(const struct post *p, const struct peer *peer) {
    LIST_EACH (l, &p->links) {
        struct link *link = CONTAINER_OF(l, struct link, at);
        if (link->peer == peer && link->up && !link->lost)
            return link;
    }
    return NULL;
}

static void peer_stir(struct post *p, struct peer *peer) {
    if (list_empty(&peer->queue) || peer->seeking)
        return;
    if (peer->link == NULL)
        peer->link = other_link(p, peer);
    if (peer->link != NULL && peer->link->up) {
        link_write(peer->link);
    } else if (peer->link == NULL) {
        p->delay_ms = DELAY_FIRST_MS;
        peer->seeking = true;
        peer->book = book_want(p->steward);
    }
}

/* ---- calling ---- */

static bool is_near(const struct post *p, const struct acquaintance *e) {
    LIST_EACH (l, &p->steward->book) {
        const struct acquaintance *own = CONTAINER_OF(l, struct acquaintance, at);
        if (own->id == p->self)
            return own->node == e->node;
    }
    return false;
}

static void hail(struct link *l, const struct acquaintance *e) {
    struct peer_hello hello = {
        .from = l->post->self, .to = e->id, .token = {e->reach.token[0], e->reach.token[1]}};
    link_hail(l, &hello);
}

static void call_failed(struct post *p, struct peer *peer) {
    if (peer->gone)
        fail_queue(p, peer, ESRCH);
    else if (++peer->tries >= TRIES_MAX)
        fail_queue(p, peer, EHOSTUNREACH);
    else
        rest(p, peer);
}

static void call(struct post *p, struct peer *peer, const struct acquaintance *e) {
    struct address at;
    int done;
    bool near = is_near(p, e) && !peer->far;
    post_address(near, &e->reach, &at);
    int fd = address_connect(&at, &done);
    peer->seeking = false;
    peer->link = fd < 0 ? NULL : link_new(p, fd, true, peer);
    if (peer->link == NULL) {
        peer->far = near;
        call_failed(p, peer);
        return;
    }
    address_be_patient(fd);
    peer->link->near = near;
    hail(peer->link, e);
}

static const struct acquaintance *entry_of(const struct post *p, carmi_process id) {
    LIST_EACH (l, &p->steward->book) {
        const struct acquaintance *e = CONTAINER_OF(l, struct acquaintance, at);
        if (e->id == id)
            return e;
    }
    return NULL;
}

static void look(struct post *p, struct peer *peer) {
    const struct acquaintance *e = entry_of(p, peer->id);
    if (list_empty(&peer->queue)) {
        peer->seeking = false; /* what was for it was cancelled */
    } else if (e != NULL) {
        call(p, peer, e);
    } else if (peer->gone) {
        fail_queue(p, peer, ESRCH);
    } else {
        errand_ask(p->steward, ERRAND_PEER, SUBJECT_JOB, (uint32_t)peer->id, 0);
        rest(p, peer);
    }
}

/* Nothing more comes but what is on its way. If its node is gone, too, nobody says that the connection has ended. */
static void expect_end(const struct post *p, uint32_t job) {
    int most_ms = END_MS;
    LIST_EACH (l, &p->links) {
        const struct link *link = CONTAINER_OF(l, struct link, at);
        if (link->peer != NULL && (uint32_t)link->peer->id == job)
            setsockopt(link->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &most_ms, sizeof most_ms);
    }
}

/* A job that is there may have no process of that rank. */
static void on_job(void *context, uint32_t job, uint32_t procs) {
    struct post *p = context;
    LIST_EACH (l, &p->peers) {
        struct peer *peer = CONTAINER_OF(l, struct peer, at);
        if (peer->seeking && (uint32_t)peer->id == job && peer->id >> 32 >= procs)
            fail_queue(p, peer, ESRCH);
    }
    if (procs == 0)
        expect_end(p, job);
}

/* ---- links ---- */

bool post_hello(struct link *l, const struct peer_hello *hello) {
    struct post *p = l->post;
    if (hello->to != p->self || hello->from == p->self || hello->token[0] != p->reach.token[0] ||
        hello->token[1] != p->reach.token[1])
        return false;
    l->peer = peer_get(p, hello->from);
    if (l->peer == NULL)
        return false;
    struct peer_hello answered = *hello;
    link_hail(l, &answered);
    post_up(l);
    return true;
}

void post_up(struct link *l) {
    struct peer *peer = l->peer;
    l->up = true;
    peer->gone = false;
    if (peer->link == NULL || peer->link == l) {
        peer->link = l;
        peer->seeking = peer->far = false;
        peer->tries = 0;
    }
    if (peer->link == l)
        link_write(l);
}

/* Those of the program itself are remembered: their job goes on without them. */
void post_sweep(struct post *p) {
    LIST_EACH_SAFE (l, &p->peers) {
        struct peer *peer = CONTAINER_OF(l, struct peer, at);
        bool wanted = !list_empty(&peer->queue) || peer->link != NULL ||
                      (uint32_t)peer->id == p->steward->head || other_link(p, peer) != NULL;
        if (wanted)
            continue;
        list_remove(&peer->at);
        free(peer);
    }
}

void post_over(struct link *l) {
    struct post *p = l->post;
    struct peer *peer = l->peer;
    p->untold -= l->received - l->told;
    if (peer == NULL) {
        link_free(l);
        return;
    }
    if (l->going != NULL)
        list_push_back(&l->unacked, &l->going->at);
    LIST_EACH_SAFE (s, &l->unacked)
        post_settle(p, peer, CONTAINER_OF(s, struct sending, at), ESRCH);
    bool was = peer->link == l, up = l->up, near = l->near;
    link_free(l);
    if (was) {
        peer->link = other_link(p, peer);
        peer->gone = peer->gone || (up && peer->link == NULL);
        peer->far = !up && near;
    }
    if (was && !up && peer->link == NULL)
        call_failed(p, peer);
    else
        peer_stir(p, peer);
}

/* ---- sending ---- */

static bool enqueue(struct post *p, struct peer *peer, const struct pending *what) {
    struct sending *s = calloc(1, sizeof *s);
    if (s == NULL) {
        p->steward->failed = true;
        return false;
    }
    *s = (struct sending){.cargo = what->cargo,
                          .call = what->call,
                          .tag = what->tag,
                          .held = what->cargo->len + POST_OVERHEAD};
    what->cargo->refs++;
    peer->held += s->held;
    list_push_back(&peer->queue, &s->at);
    peer_stir(p, peer);
    return true;
}

/* To ourselves. */
static void keep(struct post *p, const struct pending *what) {
    struct letter *l = letter_add(p->steward, &(struct call){.tag = (int)what->tag}, CARMI_DATA);
    uint8_t *data = l == NULL ? NULL : letter_data(p->steward, l, what->cargo->len);
    if (data == NULL)
        return;
    if (what->cargo->len > 0)
        memcpy(data, what->cargo->data, what->cargo->len);
    l->message.last = 0;
    l->message.process = p->self;
    l->message.data = data;
    l->message.bytes = what->cargo->len;
    p->inbox += what->cargo->len + POST_OVERHEAD;
}

static bool is_full(const struct post *p, carmi_process to, size_t len) {
    const struct peer *peer = peer_find(p, to);
    size_t held = to == p->self ? p->inbox : peer == NULL ? 0 : peer->held;
    return held > 0 && held + len > POST_HELD_MAX;
}

static void send_one(struct post *p, const struct pending *what) {
    struct peer *peer = what->to == p->self ? NULL : peer_get(p, what->to);
    if (what->to == p->self)
        keep(p, what);
    if (peer == NULL || !enqueue(p, peer, what))
        settle(p->steward, what->call, 0);
}

/* The call waits for one more until all were chosen. */
static void send_all(struct post *p, const struct pending *what) {
    struct call *c = call_find(p->steward, what->call);
    LIST_EACH (l, &p->steward->book) {
        const struct acquaintance *e = CONTAINER_OF(l, struct acquaintance, at);
        if (c == NULL || e->id == p->self ||
            (what->class_name != NULL && strcmp(what->class_name, e->class_name) != 0))
            continue;
        struct peer *peer = peer_get(p, e->id);
        bool full = is_full(p, e->id, what->cargo->len);
        c->waits++;
        if (full || peer == NULL || !enqueue(p, peer, what))
            settle(p->steward, what->call, EAGAIN);
    }
    if (c != NULL && --c->waits == 0)
        finish(p->steward, c);
}

static void pending_free(struct post *p, struct pending *what) {
    list_remove(&what->at);
    p->pending_bytes -= what->cargo->len + POST_OVERHEAD;
    cargo_drop(what->cargo);
    free(what->class_name);
    free(what);
}

static void on_book(void *context) {
    struct post *p = context;
    LIST_EACH_SAFE (l, &p->pendings) {
        struct pending *what = CONTAINER_OF(l, struct pending, at);
        if (what->book > p->steward->books)
            break;
        if (what->to == 0)
            send_all(p, what);
        else
            send_one(p, what);
        pending_free(p, what);
    }
    LIST_EACH_SAFE (l, &p->peers) {
        struct peer *peer = CONTAINER_OF(l, struct peer, at);
        if (peer->seeking && peer->book != 0 && peer->book <= p->steward->books)
            look(p, peer);
    }
}

const struct steward_ear post_ear = {.book = on_book, .job = on_job};

/* Behind a broadcast that waits all else waits, too: messages to one process do not overtake each other. */
static int defer(struct post *p, const struct pending *what, const char *class_name) {
    struct pending *copy = malloc(sizeof *copy);
    char *name = class_name == NULL ? NULL : strdup(class_name);
    if (copy == NULL || (class_name != NULL && name == NULL)) {
        free(copy);
        free(name);
        return -ENOMEM;
    }
    *copy = *what;
    copy->class_name = name;
    what->cargo->refs++;
    p->pending_bytes += what->cargo->len + POST_OVERHEAD;
    list_push_back(&p->pendings, &copy->at);
    return 0;
}

int post_send(struct post *p, struct call *call, carmi_process to, struct bytes data) {
    if (is_full(p, to, data.len + p->pending_bytes) ||
        (p->pending_bytes > 0 && p->pending_bytes + data.len > POST_HELD_MAX))
        return -EAGAIN;
    struct pending what = {
        .cargo = cargo_new(data), .call = call->id, .tag = (uint32_t)call->tag, .to = to};
    if (what.cargo == NULL)
        return -ENOMEM;
    int r = 0;
    call->process = to;
    call->waits = 1;
    if (list_empty(&p->pendings))
        send_one(p, &what);
    else
        r = defer(p, &what, NULL);
    cargo_drop(what.cargo);
    return r;
}

int post_broadcast(struct post *p, struct call *call, const char *class_name, struct bytes data) {
    if (p->pending_bytes > 0 && p->pending_bytes + data.len > POST_HELD_MAX)
        return -EAGAIN;
    struct pending what = {.cargo = cargo_new(data), .call = call->id, .tag = (uint32_t)call->tag};
    if (what.cargo == NULL)
        return -ENOMEM;
    call->waits = 1;
    what.book = book_want(p->steward);
    int r = defer(p, &what, class_name);
    cargo_drop(what.cargo);
    return r;
}

void post_cancel(struct post *p, carmi_request call) {
    LIST_EACH_SAFE (l, &p->pendings) {
        struct pending *what = CONTAINER_OF(l, struct pending, at);
        if (what->call == call)
            pending_free(p, what);
    }
    LIST_EACH (l, &p->peers) {
        struct peer *peer = CONTAINER_OF(l, struct peer, at);
        LIST_EACH_SAFE (k, &peer->queue) {
            struct sending *s = CONTAINER_OF(k, struct sending, at);
            if (s->call != call)
                continue;
            peer->held -= s->held;
            list_remove(&s->at);
            cargo_drop(s->cargo);
            free(s);
        }
    }
}

void post_forget(struct post *p) {
    LIST_EACH_SAFE (l, &p->links) {
        struct link *link = CONTAINER_OF(l, struct link, at);
        if (link->going != NULL)
            list_push_back(&link->unacked, &link->going->at);
        LIST_EACH_SAFE (k, &link->unacked) {
            struct sending *s = CONTAINER_OF(k, struct sending, at);
            cargo_drop(s->cargo);
            free(s);
        }
        link_free(link);
    }
    LIST_EACH_SAFE (l, &p->pendings)
        pending_free(p, CONTAINER_OF(l, struct pending, at));
    LIST_EACH_SAFE (l, &p->peers) {
        struct peer *peer = CONTAINER_OF(l, struct peer, at);
        LIST_EACH_SAFE (k, &peer->queue) {
            struct sending *s = CONTAINER_OF(k, struct sending, at);
            cargo_drop(s->cargo);
            free(s);
        }
        free(peer);
    }
}
