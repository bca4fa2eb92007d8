/* SPDX-License-Identifier: MIT */
/* The links of one node: see links.h.
 *
 *   ours:    connecting -> greeting (HELLO sent on every lane) -> up (answered)
 *   theirs:  stranger -> half (some lanes have said HELLO) -> up (all have; answered)
 *   both:    up -> ending (the peer has closed some lanes) -> down (it has closed all)
 *
 * A link that cannot be opened is told of at the end of the turn, never from within an effect. */
#include "os/links.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/idtable.h"
#include "base/text.h"
#include "base/units.h"
#include "os/hello.h"
#include "os/release.h"
#include "wire/message.h"

enum { WARNING_MAX = 384 };
enum { LINKS_MAX = 65536, STRANGERS_MAX = 512, HALVES_MAX = 512, ACCEPTS_AT_ONCE = 64 };

/* For a peer to say HELLO, or to answer it, unless the configuration says otherwise. */
#define HELLO_NS (5 * NS_PER_S)

/* A client that does not read is left with less than a node: there are more of them, and whoever
 * asks for much can come again. */
#define CLIENT_BYTES_MAX (64 * MIB)

/* A daemon of another version tries again and again: the log need not say so each time. */
#define OTHER_PAUSE_NS (60 * NS_PER_S)

/* How long to leave the listener alone when there are no descriptors left. */
#define ACCEPT_PAUSE_NS (100 * NS_PER_MS)

struct link {
    struct list at;  /* in links->pending until it is up; in links->ending when a lane is over */
    uint32_t number; /* 0 until it is up */
    uint32_t peer;
    bool ours;
    bool failed; /* ours: could not be opened */
    bool sought; /* ours: where to is not known yet */
    bool near;   /* ours: by the manager's socket on this machine */
    enum purpose purpose;
    uint32_t party;    /* whose key it is sealed by: the peer, or which client it is */
    struct address to; /* ours, to a peer that is in no book */
    uint64_t cookie;   /* ours: the machine's */
    uint64_t token;    /* the opener's name for it */
    uint64_t since;
    struct gate gate;
    uint32_t sequence[LANES];
    struct conn *lanes[LANES];
    bool greeted[LANES];
};

struct links {
    struct links_config config;
    struct conns conns;
    struct source listener, near;
    bool far_listener;  /* and who comes to it is to be sealed */
    bool near_failed;   /* we are not let in there */
    uint64_t accept_at; /* 0, or when to listen again */
    struct list strangers;
    uint32_t stranger_count;
    struct list pending;
    uint32_t half_count; /* of the pending, those of others */
    struct list ending;
    struct idtable ids;
    void *id_storage;
    struct link **table;
    uint64_t tokens;
    uint64_t other_until;  /* until then nothing is said of peers of another version, */
    uint32_t other_number; /* if it is that release */
};

/* ---- link objects ---- */

static struct link *link_new(struct links *l, bool ours, uint32_t peer, enum purpose purpose) {
    struct link *k = calloc(1, sizeof *k);
    if (k == NULL)
        return NULL;
    k->ours = ours;
    k->peer = k->party = peer;
    k->purpose = purpose;
    k->since = l->config.loop->now;
    list_init(&k->at);
    list_push_back(&l->pending, &k->at);
    l->half_count += !ours;
    return k;
}

static void not_pending(struct links *l, struct link *k) {
    list_remove(&k->at);
    if (k->number == 0 && !k->ours)
        l->half_count--;
}

static void link_free(struct links *l, struct link *k, bool gently) {
    for (int lane = 0; lane < LANES; lane++) {
        if (k->lanes[lane] == NULL)
            continue;
        k->lanes[lane]->owner = NULL;
        if (gently)
            conn_close(k->lanes[lane]);
        else
            conn_abort(k->lanes[lane]);
    }
    not_pending(l, k);
    if (k->number != 0) {
        l->table[idtable_index_of(k->number)] = NULL;
        idtable_free(&l->ids, k->number);
    }
    free(k);
}

static struct link *find(const struct links *l, uint32_t number) {
    uint32_t index;
    return idtable_get(&l->ids, number, &index) < 0 ? NULL : l->table[index];
}

static struct links *links_of(const struct conn *c) {
    return CONTAINER_OF(c->all, struct links, conns);
}

static struct input describe(const struct links *l, const struct link *k, enum input_kind kind) {
    struct input in = {.kind = kind, .now = l->config.loop->now};
    in.link = (struct input_link){.link = k->number,
                                  .peer = k->peer,
                                  .cookie = k->ours ? k->cookie : 0,
                                  .role = purpose_role(k->purpose, k->ours),
                                  .life = k->gate.life};
    return in;
}

static void count_refusal(struct links *l, enum refusal why) {
    if (why != REFUSAL_NONE)
        l->config.counts->refused[why]++;
}

/* The link is gone, and not by our machine's doing. */
static void link_lost(struct links *l, struct link *k) {
    struct input in = describe(l, k, INPUT_LINK_DOWN);
    enum purpose purpose = k->purpose;
    bool tell = k->number != 0 || k->ours;
    if (k->ours && k->number == 0 && !k->sought && l->config.missed != NULL)
        l->config.missed(l->config.guide, k->party);
    l->near_failed = l->near_failed || (k->near && k->number == 0);
    link_free(l, k, false);
    if (tell)
        l->config.feed(l->config.context, purpose, &in);
}

static bool all_greeted(const struct link *k) {
    for (int lane = 0; lane < LANES; lane++)
        if (message_lane_used(k->purpose, (enum lane)lane) && !k->greeted[lane])
            return false;
    return true;
}

static void link_up(struct links *l, struct link *k) {
    uint32_t index, number;
    if (idtable_alloc(&l->ids, &number, &index) < 0) {
        link_lost(l, k);
        return;
    }
    not_pending(l, k);
    k->number = number;
    l->table[index] = k;
    struct input in = describe(l, k, INPUT_LINK_UP);
    l->config.feed(l->config.context, k->purpose, &in);
}

/* ---- frames out ---- */

static struct header header_of(struct links *l, struct link *k, uint16_t type, uint32_t epoch,
                               size_t length) {
    enum lane lane = (enum lane)message_rule(type)->lane;
    return (struct header){.magic = HEADER_MAGIC,
                           .version = HEADER_VERSION,
                           .lane = (uint8_t)lane,
                           .type = type,
                           .length = (uint32_t)length,
                           .sequence = ++k->sequence[lane],
                           .epoch = epoch,
                           .node = l->config.self,
                           .life = l->config.life};
}

static void send_frame(struct links *l, struct link *k, uint16_t type, uint32_t epoch,
                       struct bytes head, struct bytes tail) {
    enum lane lane = (enum lane)message_rule(type)->lane;
    if (k->lanes[lane] == NULL)
        return; /* the peer has closed it, the link is about to go down */
    struct header h = header_of(l, k, type, epoch, head.len + tail.len);
    conn_send(k->lanes[lane], &h, head, tail);
}

/* HELLO is outside the count of a lane's frames. */
static struct header hello_header(const struct links *l, size_t length) {
    return (struct header){.magic = HEADER_MAGIC,
                           .version = HEADER_VERSION,
                           .lane = LANE_CONTROL,
                           .type = MESSAGE_HELLO,
                           .length = (uint32_t)length,
                           .sequence = 1,
                           .epoch = release_number,
                           .node = l->config.self,
                           .life = l->config.life};
}

static void send_hello(struct links *l, const struct link *k, struct conn *c) {
    uint8_t body[64];
    union message m = {.hello = {.key = {l->config.key[0], l->config.key[1]},
                                 .to = k->peer,
                                 .purpose = (uint8_t)k->purpose,
                                 .lane = (uint8_t)c->lane,
                                 .token = k->token}};
    long len = message_encode(MESSAGE_HELLO, &m, room_of(body, sizeof body));
    ASSERT(len > 0);
    struct header h = hello_header(l, (size_t)len);
    conn_send(c, &h, bytes_of(body, (size_t)len), (struct bytes){0});
}

void links_send(struct links *l, const struct effect_send *s) {
    for (uint32_t i = 0; i < s->link_count; i++) {
        struct link *k = find(l, s->links[i]);
        if (k != NULL)
            send_frame(l, k, s->type, s->epoch, s->head, s->tail);
    }
}

void links_put(struct links *l, const struct effect_put *p, struct bytes bytes) {
    uint8_t head[32];
    struct link *k = find(l, p->link);
    if (k == NULL)
        return;
    union message m = {
        .put = {.buffer = p->peer_buffer, .offset = p->peer_offset, .note = p->note}};
    long len = message_encode(MESSAGE_PUT, &m, room_of(head, sizeof head));
    ASSERT(len > 0);
    send_frame(l, k, MESSAGE_PUT, 0, bytes_of(head, (size_t)len), bytes);
}

void links_lend(struct links *l, const struct effect_put *p, struct bytes bytes, uint64_t tag,
                int fd, uint64_t offset) {
    uint8_t head[CONN_HEAD];
    struct link *k = find(l, p->link);
    struct conn *c = k == NULL ? NULL : k->lanes[LANE_BULK];
    if (c == NULL) {
        if (fd >= 0)
            close(fd);
        l->config.sent(l->config.context, tag);
        return;
    }
    union message m = {
        .put = {.buffer = p->peer_buffer, .offset = p->peer_offset, .note = p->note}};
    long len = message_encode(MESSAGE_PUT, &m, room_of(head, sizeof head));
    ASSERT(len == CONN_HEAD);
    struct header h = header_of(l, k, MESSAGE_PUT, 0, CONN_HEAD + bytes.len);
    conn_lend(c, &h, bytes_of(head, sizeof head), bytes, tag, fd, offset);
}

/* ---- HELLO ---- */

/* The answer to ours: from whom we have asked for, in the life that has answered on another lane,
 * and for this lane of this link. */
static bool hello_answers(const struct link *k, const struct conn *c, const struct message_hello *m,
                          const struct header *h) {
    return h->node == k->peer && (k->number == 0 || h->life == k->gate.life) &&
           m->token == k->token && m->lane == c->lane && m->purpose == k->purpose;
}

static void forget_stranger(struct links *l, struct conn *c) {
    list_remove(&c->place);
    l->stranger_count--;
}

/* Members too may leave only so many links half open. */
static void drop_oldest_half(struct links *l) {
    LIST_EACH (at, &l->pending) {
        struct link *k = CONTAINER_OF(at, struct link, at);
        if (!k->ours) {
            l->config.counts->strangers_dropped++;
            link_lost(l, k);
            return;
        }
    }
}

/* The link that this lane of a peer's belongs to, made if it is the first. */
static struct link *half_link(struct links *l, const struct message_hello *m,
                              const struct header *h) {
    LIST_EACH (at, &l->pending) {
        struct link *k = CONTAINER_OF(at, struct link, at);
        if (!k->ours && k->peer == h->node && k->token == m->token && k->gate.life == h->life &&
            k->purpose == m->purpose)
            return k;
    }
    if (l->half_count == HALVES_MAX)
        drop_oldest_half(l);
    struct link *k = link_new(l, false, h->node, (enum purpose)m->purpose);
    if (k == NULL)
        return NULL;
    k->token = m->token;
    gate_init(&k->gate, h->node, h->life, purpose_role(k->purpose, false));
    l->config.counts->accepted++;
    return k;
}

static void expect_bulk(const struct links *l, const struct link *k, struct conn *c) {
    if (k->purpose != PURPOSE_FILES)
        return;
    c->bulky = l->config.place != NULL;
    address_widen(c->source.fd);
}

static void welcome(struct links *l, struct conn *c, const struct message_hello *m,
                    const struct header *h) {
    struct link *k = half_link(l, m, h);
    forget_stranger(l, c);
    if (k == NULL || k->lanes[m->lane] != NULL) {
        count_refusal(l, REFUSAL_DUPLICATE);
        conn_abort(c);
        return;
    }
    c->owner = k;
    c->lane = (enum lane)m->lane;
    if (k->purpose == PURPOSE_CLIENT) {
        c->backlog_bytes_max = l->config.client_bytes_max;
        address_be_patient(c->source.fd); /* its user may have stopped it */
    }
    k->lanes[c->lane] = c;
    k->greeted[c->lane] = true;
    expect_bulk(l, k, c);
    if (!all_greeted(k))
        return;
    for (int lane = 0; lane < LANES; lane++)
        if (k->lanes[lane] != NULL)
            send_hello(l, k, k->lanes[lane]);
    link_up(l, k);
}

/* The peer answers when it has heard from all lanes, so one answer is enough: what it says next may
 * come on any lane. */
static void answered(struct links *l, struct conn *c, const struct header *h) {
    struct link *k = c->owner;
    k->greeted[c->lane] = true;
    if (k->number != 0)
        return;
    gate_init(&k->gate, h->node, h->life, purpose_role(k->purpose, true));
    link_up(l, k);
}

static void refuse(struct links *l, struct conn *c, enum refusal why);

static void warn(struct links *l, const struct conn *c, const char *what) {
    char text[WARNING_MAX], peer[ADDRESS_TEXT_MAX];
    if (l->config.warn == NULL)
        return;
    address_of_peer(c->source.fd, peer, sizeof peer);
    bool ours = c->ours || c->owner != NULL;
    snprintf(text, sizeof text, "%s %.*s: %s", ours ? "no link to" : "refused", ADDRESS_TEXT_MAX,
             peer, what);
    l->config.warn(l->config.context, text);
}

static void warn_of_name(struct links *l, const struct conn *c, uint32_t claimed) {
    char text[WARNING_MAX], name[IDENTITY_TEXT_MAX];
    identity_format(c->sealer->who(c->seal), name);
    if (claimed == NO_NODE)
        snprintf(text, sizeof text, "says it is a client, with the key of %s", name);
    else
        snprintf(text, sizeof text, "says it is node %u, with the key of %s", claimed, name);
    warn(l, c, text);
}

static void on_hello(struct links *l, struct conn *c, const struct header *h, struct bytes body) {
    union message m;
    struct link *k = c->owner;
    if (message_decode(MESSAGE_HELLO, body, NULL, &m) < 0) {
        refuse(l, c, REFUSAL_BODY);
    } else if (!hello_named(c, &m.hello, h)) {
        warn_of_name(l, c, h->node);
        refuse(l, c, REFUSAL_SENDER);
    } else if (!hello_fits(&l->config, &m.hello) ||
               !(k != NULL ? hello_answers(k, c, &m.hello, h)
                           : hello_welcome(&l->config, c, &m.hello, h))) {
        refuse(l, c, REFUSAL_SENDER);
    } else if (k == NULL) {
        welcome(l, c, &m.hello, h);
    } else {
        answered(l, c, h);
    }
}

/* ---- another version ---- */

static void warn_of_other(struct links *l, const struct conn *c, const struct header *h) {
    char text[WARNING_MAX], theirs[RELEASE_TEXT_MAX];
    uint64_t now = l->config.loop->now;
    if (h->epoch == l->other_number && now < l->other_until)
        return;
    l->other_number = h->epoch;
    l->other_until = now + OTHER_PAUSE_NS;
    snprintf(text, sizeof text, "it is STORM %s (protocol %u), this is %s (protocol %u)",
             release_text(h->epoch, theirs), h->version, release_version, HEADER_VERSION);
    warn(l, c, text);
}

/* A first frame of another version. Whoever has sent it unasked is answered by the header of ours: it will not understand that either,
 * but can tell why. */
static void meet_other(struct links *l, struct conn *c, const struct header *h) {
    warn_of_other(l, c, h);
    if (l->config.other != NULL)
        l->config.other(l->config.context, h->version, h->epoch);
    if (c->owner != NULL)
        return;
    struct header ours = hello_header(l, 0);
    conn_send(c, &ours, (struct bytes){0}, (struct bytes){0});
    conn_flush(c);
}

/* ---- what connections tell ---- */

static bool is_up(const struct link *k) {
    return k != NULL && k->number != 0;
}

/* Closes a connection, and with it its link, for what the peer has done. */
static void refuse(struct links *l, struct conn *c, enum refusal why) {
    struct link *k = c->owner;
    count_refusal(l, why);
    if (k != NULL) {
        link_lost(l, k);
        return;
    }
    forget_stranger(l, c);
    conn_abort(c);
}

static enum refusal judge(struct conn *c, const struct header *h) {
    struct links *l = links_of(c);
    struct link *k = c->owner;
    if (k != NULL && k->greeted[c->lane]) {
        if (h->lane != c->lane && h->magic == HEADER_MAGIC)
            return REFUSAL_LANE;
        enum refusal r = gate_check(&k->gate, h, l->config.frame_bytes_max);
        if (r == REFUSAL_DUPLICATE) /* ends nothing, so nobody else will count it */
            count_refusal(l, r);
        return r;
    }
    struct gate stranger;
    gate_init(&stranger, h->node, h->life, ROLE_STRANGER);
    enum refusal r = gate_check(&stranger, h, l->config.frame_bytes_max);
    if (r == REFUSAL_VERSION)
        meet_other(l, c, h);
    return r;
}

static void on_put(struct links *l, struct conn *c, struct link *k, struct bytes body) {
    union message m;
    enum refusal why = REFUSAL_BODY;
    uint32_t number = k->number;
    if (message_decode(MESSAGE_PUT, body, NULL, &m) == 0)
        why = l->config.put(l->config.context, number, &m.put);
    if (why != REFUSAL_NONE && c->owner != NULL)
        refuse(l, c, why);
}

/* The head of a put; its body is not there yet, or lies at `at`. */
static bool put_head(const uint8_t *head, const uint8_t *at, size_t len, union message *ret) {
    if (message_decode(MESSAGE_PUT, bytes_of(head, CONN_HEAD), NULL, ret) < 0)
        return false;
    ret->put.body = bytes_of(at, len);
    return true;
}

static uint8_t *on_place(struct conn *c, const struct header *h, const uint8_t *head, size_t len) {
    struct links *l = links_of(c);
    const struct link *k = c->owner;
    union message m;
    if (h->type != MESSAGE_PUT || !is_up(k) || !put_head(head, NULL, len, &m))
        return NULL;
    return l->config.place(l->config.context, k->number, &m.put);
}

static void on_placed(struct conn *c, const struct header *h, const uint8_t *head, size_t len) {
    struct links *l = links_of(c);
    const struct link *k = c->owner;
    union message m;
    (void)h;
    if (!put_head(head, NULL, len, &m))
        return;
    l->config.counts->messages++;
    const uint8_t *at = l->config.place(l->config.context, k->number, &m.put);
    m.put.body.at = at;
    if (at != NULL) /* otherwise it is not wanted any more */
        l->config.put(l->config.context, k->number, &m.put);
}

static ssize_t on_draw(struct conn *c, const uint8_t *head, size_t len, size_t done) {
    struct links *l = links_of(c);
    const struct link *k = c->owner;
    union message m;
    if (l->config.draw == NULL || !put_head(head, NULL, len, &m))
        return -EOPNOTSUPP;
    return l->config.draw(l->config.context, k->number, c->source.fd, &m.put, done);
}

static void on_returned(struct conn *c, const struct loan *loan) {
    const struct links *l = links_of(c);
    l->config.sent(l->config.context, loan->tag);
}

static void on_frame(struct conn *c, const struct header *h, struct bytes body) {
    struct links *l = links_of(c);
    struct link *k = c->owner;
    if (h->type == MESSAGE_HELLO) {
        on_hello(l, c, h, body);
        return;
    }
    if (!is_up(k)) { /* before all lanes have been greeted there is nothing to say */
        refuse(l, c, REFUSAL_ROLE);
        return;
    }
    l->config.counts->messages++;
    if (h->type == MESSAGE_PUT) {
        on_put(l, c, k, body);
        return;
    }
    struct input in = {.kind = INPUT_MESSAGE, .now = l->config.loop->now};
    in.message = (struct input_message){
        .link = k->number, .peer = k->peer, .epoch = h->epoch, .type = h->type, .body = body};
    l->config.feed(l->config.context, k->purpose, &in);
}

static void on_connected(struct conn *c) {
    struct link *k = c->owner;
    send_hello(links_of(c), k, c);
}

static bool last_lane(const struct link *k, enum lane lane) {
    for (int i = 0; i < LANES; i++)
        if (i != (int)lane && k->lanes[i] != NULL)
            return false;
    return true;
}

/* A peer that closes a link closes all its lanes, and what it has sent before on the others may not
 * have been read yet: the link is down when the last of them ends. */
static void on_ended(struct conn *c, enum refusal why) {
    struct links *l = links_of(c);
    struct link *k = c->owner;
    if (c->seal != NULL && (why == REFUSAL_SEAL || why == REFUSAL_EPOCH))
        warn(l, c, c->sealer->reason(c->seal));
    if (why != REFUSAL_NONE || c->broken || !is_up(k) || last_lane(k, c->lane)) {
        refuse(l, c, why);
        return;
    }
    k->lanes[c->lane] = NULL;
    c->owner = NULL;
    conn_abort(c);
    if (list_linked(&k->at))
        return;
    k->since = l->config.loop->now;
    list_push_back(&l->ending, &k->at);
    loop_wake_at(l->config.loop, k->since + l->conns.linger_ns);
}

/* ---- opening, accepting, closing ---- */

/* A flood of strangers must not keep out those who belong here: the oldest makes room. */
static bool drop_oldest_stranger(struct links *l) {
    if (l->stranger_count == 0)
        return false;
    struct conn *oldest = CONTAINER_OF(list_first(&l->strangers), struct conn, place);
    l->config.counts->strangers_dropped++;
    forget_stranger(l, oldest);
    conn_abort(oldest);
    return true;
}

/* Where a link leads to, NULL if nowhere. */
static const struct address *destination(const struct links *l, const struct link *k) {
    const struct links_config *c = &l->config;
    if (k->purpose == PURPOSE_LAUNCHER)
        return k->peer == c->self ? c->launcher : NULL;
    if (k->purpose == PURPOSE_MOVER)
        return k->peer == c->self ? c->mover : NULL;
    if (k->to.len != 0)
        return &k->to;
    return links_in_book(&l->config, k->peer) ? &c->book[k->peer - c->first] : NULL;
}

/* NULL: no memory, or no key for this node. */
static struct conn *sealed_conn(struct links *l, int fd, bool ours, uint32_t to) {
    const struct sealer *sealer = l->config.sealer;
    struct seal *seal =
        ours ? sealer->connect(sealer->seals, fd, to) : sealer->accept(sealer->seals, fd);
    if (seal == NULL)
        return NULL;
    struct conn *c = conn_new_sealed(&l->conns, fd, ours, sealer, seal);
    if (c == NULL)
        sealer->free(seal);
    return c;
}

/* The manager's socket on this machine, if there is one. */
static int connect_near(const struct links *l, const struct link *k, int *ret_done) {
    bool fits = k->purpose == PURPOSE_CLIENT || k->purpose == PURPOSE_LODGE;
    if (l->config.near == NULL || l->near_failed || !fits)
        return -EADDRNOTAVAIL;
    return address_connect(l->config.near, ret_done);
}

static int open_lane(struct links *l, struct link *k, enum lane lane) {
    int done, fd = connect_near(l, k, &done);
    const struct address *to = fd >= 0 ? l->config.near : destination(l, k);
    k->near |= fd >= 0;
    while (fd < 0) {
        fd = to == NULL ? -EADDRNOTAVAIL : address_connect(to, &done);
        if (fd < 0 && (fd != -EMFILE || !drop_oldest_stranger(l)))
            return fd;
    }
    bool sealed = l->config.sealer != NULL && address_is_far(to);
    struct conn *c = sealed ? sealed_conn(l, fd, true, k->party) : conn_new(&l->conns, fd, !done);
    if (c == NULL) {
        close(fd);
        return -ENOMEM;
    }
    c->owner = k;
    c->lane = lane;
    expect_bulk(l, k, c);
    k->lanes[lane] = c;
    if (done && !sealed)
        send_hello(l, k, c);
    return 0;
}

/* What is no address leads nowhere. That of a client may say which it is: "tcp:10.0.0.1:4711#7". */
static void take_address(struct link *k, struct bytes address) {
    char text[ADDRESS_TEXT_MAX], *mark;
    uint64_t client;
    if (address.len == 0 || address.len >= sizeof text)
        return;
    memcpy(text, address.at, address.len);
    text[address.len] = '\0';
    mark = strrchr(text, '#');
    if (mark != NULL && text_scan_u64(mark + 1, &client) > 0 && client < CLIENT_PARTIES) {
        k->party = client_party(client);
        *mark = '\0';
    }
    if (address_parse(&k->to, text) < 0)
        k->to.len = 0;
}

/* Only nodes of other machines, and clients of which we are to have a key, are asked for; the manager's seat is where we ask. */
static bool must_seek(const struct links *l, const struct link *k) {
    if (l->config.seek == NULL)
        return false;
    if (k->to.len != 0)
        return l->config.sealer != NULL && k->party != k->peer;
    return (k->purpose == PURPOSE_TREE || k->purpose == PURPOSE_SLOT ||
            k->purpose == PURPOSE_FILES) &&
           links_in_book(&l->config, k->peer) && l->config.book[k->peer - l->config.first].len == 0;
}

static void open_lanes(struct links *l, struct link *k) {
    for (int lane = 0; lane < LANES && !k->failed; lane++)
        if (message_lane_used(k->purpose, (enum lane)lane))
            k->failed = open_lane(l, k, (enum lane)lane) < 0;
    loop_wake_at(l->config.loop, k->failed ? l->config.loop->now : k->since + l->config.hello_ns);
}

/* A client's address was given, only its key was missing. */
static void found(struct link *k, const struct address *at) {
    k->sought = false;
    if (k->to.len == 0)
        k->to = *at;
}

void links_know(struct links *l, uint32_t peer, const struct address *at) {
    LIST_EACH (each, &l->pending) {
        struct link *k = CONTAINER_OF(each, struct link, at);
        if (!k->sought || k->party != peer)
            continue;
        if (at != NULL) {
            found(k, at);
            open_lanes(l, k);
        } else {
            k->failed = true;
            loop_wake_at(l->config.loop, l->config.loop->now);
        }
    }
}

void links_open(struct links *l, const struct effect_open *open) {
    struct link *k = link_new(l, true, open->node, open->purpose);
    ASSERT(k != NULL);
    k->cookie = open->cookie;
    k->token = ++l->tokens;
    take_address(k, open->address);
    l->config.counts->opened++;
    k->sought = must_seek(l, k);
    struct address at = {0};
    if (k->sought && l->config.seek(l->config.guide, k->party, &at))
        found(k, &at);
    if (!k->sought)
        open_lanes(l, k);
    else
        loop_wake_at(l->config.loop, k->since + l->config.hello_ns);
}

void links_close(struct links *l, uint32_t number, enum refusal why) {
    struct link *k = find(l, number);
    count_refusal(l, why);
    if (k != NULL)
        link_free(l, k, true);
}

static void admit_stranger(struct links *l, int fd, bool far) {
    struct conn *c = far ? sealed_conn(l, fd, false, NO_NODE) : conn_new(&l->conns, fd, false);
    if (c == NULL) {
        close(fd);
        return;
    }
    if (l->stranger_count == STRANGERS_MAX)
        drop_oldest_stranger(l);
    list_push_back(&l->strangers, &c->place);
    l->stranger_count++;
    loop_wake_at(l->config.loop, c->since + l->config.hello_ns);
}

static void accept_from(struct links *l, struct source *s, bool far) {
    for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
        int fd = address_accept(s->fd);
        if (fd == -EAGAIN)
            return;
        if (fd == -EMFILE && drop_oldest_stranger(l))
            continue;
        if (fd == -EMFILE || fd == -ENFILE || fd == -ENOBUFS || fd == -ENOMEM) {
            l->accept_at = l->config.loop->now + ACCEPT_PAUSE_NS;
            loop_change(l->config.loop, s, 0);
            loop_wake_at(l->config.loop, l->accept_at);
            return;
        }
        if (fd >= 0)
            admit_stranger(l, fd, far);
    }
}

static void accept_some(struct source *s, uint32_t events) {
    struct links *l = CONTAINER_OF(s, struct links, listener);
    (void)events;
    accept_from(l, s, l->far_listener);
}

static void accept_near(struct source *s, uint32_t events) {
    struct links *l = CONTAINER_OF(s, struct links, near);
    (void)events;
    accept_from(l, s, false);
}

/* ---- beginning, every turn, end ---- */

/* A node's links are told apart by the node. Clients all have the same number, so nobody may guess
 * what another calls his. */
static uint64_t first_token(const struct links_config *config) {
    uint64_t token = 0;
    if (config->self == NO_NODE) {
        ssize_t got = getrandom(&token, sizeof token, 0);
        ASSERT(got == sizeof token);
    }
    return token;
}

static int begin_listening(struct links *l) {
    int r = 0;
    if (l->listener.fd >= 0)
        r = loop_add(l->config.loop, &l->listener, l->config.closed ? 0 : EPOLLIN);
    if (r == 0 && l->near.fd >= 0)
        r = loop_add(l->config.loop, &l->near, EPOLLIN);
    return r;
}

void links_listen(struct links *l) {
    if (!l->config.closed)
        return;
    l->config.closed = false;
    if (l->listener.fd >= 0 && l->accept_at == 0)
        loop_change(l->config.loop, &l->listener, EPOLLIN);
}

struct links *links_new(const struct links_config *config) {
    struct links *l = calloc(1, sizeof *l);
    if (l == NULL)
        return NULL;
    l->config = *config;
    if (l->config.hello_ns == 0)
        l->config.hello_ns = HELLO_NS;
    if (l->config.client_bytes_max == 0)
        l->config.client_bytes_max = CLIENT_BYTES_MAX;
    l->tokens = first_token(config);
    list_init(&l->strangers);
    list_init(&l->pending);
    list_init(&l->ending);
    l->id_storage = malloc(idtable_bytes(LINKS_MAX));
    l->table = calloc(LINKS_MAX, sizeof *l->table);
    int r = conns_init(&l->conns, config->loop);
    l->conns.judge = judge;
    l->conns.frame = on_frame;
    l->conns.connected = on_connected;
    l->conns.ended = on_ended;
    l->conns.place = on_place;
    l->conns.placed = on_placed;
    l->conns.draw = on_draw;
    l->conns.returned = on_returned;
    l->far_listener =
        config->sealer != NULL && config->listener >= 0 && address_socket_is_far(config->listener);
    l->listener = (struct source){.fd = config->listener, .ready = accept_some};
    l->near = (struct source){.fd = config->near_listener > 0 ? config->near_listener : -1,
                              .ready = accept_near};
    if (l->id_storage == NULL || l->table == NULL || r < 0 || begin_listening(l) < 0) {
        links_free(l);
        return NULL;
    }
    idtable_init(&l->ids, LINKS_MAX, l->id_storage);
    return l;
}

void links_free(struct links *l) {
    if (l == NULL)
        return;
    IDTABLE_EACH (i, &l->ids)
        link_free(l, l->table[i], true);
    LIST_EACH_SAFE (at, &l->pending)
        link_free(l, CONTAINER_OF(at, struct link, at), false);
    LIST_EACH_SAFE (at, &l->strangers)
        conn_abort(CONTAINER_OF(at, struct conn, place));
    conns_fini(&l->conns);
    if (l->listener.fd >= 0)
        close(l->listener.fd);
    if (l->near.fd >= 0)
        close(l->near.fd);
    free(l->id_storage);
    free(l->table);
    free(l);
}

static void drop_late_strangers(struct links *l, uint64_t now) {
    struct list *at;
    while ((at = list_first(&l->strangers)) != NULL) {
        const struct conn *c = CONTAINER_OF(at, struct conn, place);
        if (now - c->since < l->config.hello_ns) {
            loop_wake_at(l->config.loop, c->since + l->config.hello_ns);
            return;
        }
        drop_oldest_stranger(l);
    }
}

/* Machines may open further links when they hear of one that has failed. If those fail as well they
 * are told in the next turn: others have their turn in between. */
static void drop_failed(struct links *l, uint64_t now) {
    LIST_EACH_SAFE (at, &l->pending) {
        struct link *k = CONTAINER_OF(at, struct link, at);
        if (!k->failed && now - k->since < l->config.hello_ns) {
            loop_wake_at(l->config.loop, k->since + l->config.hello_ns);
            continue;
        }
        l->config.counts->strangers_dropped += !k->ours;
        link_lost(l, k);
    }
}

/* A peer that has closed one lane and keeps another has had its time. */
static void drop_ending(struct links *l, uint64_t now) {
    struct list *at;
    while ((at = list_first(&l->ending)) != NULL) {
        struct link *k = CONTAINER_OF(at, struct link, at);
        if (now - k->since < l->conns.linger_ns) {
            loop_wake_at(l->config.loop, k->since + l->conns.linger_ns);
            return;
        }
        link_lost(l, k);
    }
}

void links_settle(struct links *l) {
    uint64_t now = l->config.loop->now;
    if (l->accept_at != 0 && l->accept_at <= now) {
        l->accept_at = 0;
        loop_change(l->config.loop, &l->listener, l->config.closed ? 0 : EPOLLIN);
        if (l->near.fd >= 0)
            loop_change(l->config.loop, &l->near, EPOLLIN);
    } else if (l->accept_at != 0) {
        loop_wake_at(l->config.loop, l->accept_at);
    }
    drop_failed(l, now);
    drop_ending(l, now);
    drop_late_strangers(l, now);
    conns_settle(&l->conns);
}

static const struct conn *any_lane(const struct links *l, uint32_t number) {
    const struct link *k = find(l, number);
    for (int lane = 0; k != NULL && lane < LANES; lane++)
        if (k->lanes[lane] != NULL)
            return k->lanes[lane];
    return NULL;
}

const struct identity *links_who(const struct links *l, uint32_t link) {
    const struct conn *c = any_lane(l, link);
    return c == NULL || c->seal == NULL ? NULL : c->sealer->who(c->seal);
}

void links_review(struct links *l, bool (*good)(void *context, const struct identity *id),
                  void *context) {
    IDTABLE_EACH (i, &l->ids) {
        struct link *k = l->table[i];
        const struct identity *id = k->ours ? NULL : links_who(l, k->number);
        if (id != NULL && !good(context, id)) {
            count_refusal(l, REFUSAL_SEAL);
            link_lost(l, k);
        }
    }
}

bool links_peer_address(const struct links *l, uint32_t link, struct address *ret) {
    const struct conn *c = any_lane(l, link);
    *ret = (struct address){.len = sizeof ret->in6};
    return c != NULL && getpeername(c->source.fd, &ret->any, &ret->len) == 0;
}

uint32_t links_count(const struct links *l) {
    return idtable_count(&l->ids);
}

uint64_t links_bytes_in(const struct links *l) {
    return l->conns.bytes_in;
}

uint64_t links_bytes_out(const struct links *l) {
    return l->conns.bytes_out;
}
