/* SPDX-License-Identifier: MIT */
/* A command's talk with the machine manager: see session.h. */
#include "client/session.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/list.h"
#include "base/units.h"
#include "client/keys.h"
#include "os/guide.h"
#include "os/links.h"

enum { HEAD_BYTES = 256, FRAME_BYTES_MAX = 1 << 20 };

#define PAUSE_MIN_NS (10 * NS_PER_MS)
#define PAUSE_MAX_NS (500 * NS_PER_MS)
/* A manager that is there may be busy: it gets at least so long to answer. */
#define SILENCE_NS (10 * NS_PER_S)

/* Something that was said and is to be answered. */
struct request {
    struct list at;
    uint16_t type;
    bool once; /* not to be said again: it is drawn anew in the manager's next life */
    uint64_t id[2];
    uint64_t since; /* said, or 0 */
    session_answered *answered;
    session_rows *rows;
    session_copied *copied;
    session_offered *offered;
    bool long_lasting; /* it was heard, and the rest takes its time */
    void *context;
    size_t len;
    uint8_t body[];
};

struct followed {
    struct list at;
    uint32_t job;
    uint32_t value;
    session_answered *then;
    void *context;
};

struct session {
    struct session_config config;
    struct guide *guide; /* NULL: links are open */
    struct links *links;
    struct link_counts counts;
    uint32_t link; /* 0: not up */
    bool opening;
    bool lost;
    uint64_t open_at; /* when to try again, 0: not waiting for that */
    uint64_t pause;
    uint64_t down_since;
    uint64_t up_first;
    bool met_other; /* the manager is of another version */
    struct session_other other;
    uint64_t id[2]; /* of the last request */
    struct list requests;
    struct list follows;
    struct nodeset none;
    struct nodeset sets[2]; /* what arrives is decoded into */
    void *set_storage;
};

/* ---- requests ---- */

static void transmit(struct session *s, uint16_t type, struct bytes head, struct bytes tail) {
    struct effect_send send = {
        .links = &s->link, .link_count = 1, .type = type, .head = head, .tail = tail};
    if (s->link != 0)
        links_send(s->links, &send);
}

static void say(struct session *s, struct request *r) {
    if (s->link == 0)
        return;
    r->since = s->config.loop->now;
    transmit(s, r->type, bytes_of(r->body, r->len), (struct bytes){0});
}

static void draw(struct session *s, uint64_t id[2]) {
    s->id[1]++;
    id[0] = s->id[0];
    id[1] = s->id[1];
}

static void forget(struct request *r) {
    list_remove(&r->at);
    free(r);
}

/* `cap` is more than the message can take. */
static struct request *request_new(struct session *s, uint16_t type, union message *m,
                                   const uint64_t id[2], size_t cap, int *ret_error) {
    struct request *r = malloc(sizeof *r + cap);
    *ret_error = -ENOMEM;
    if (r == NULL)
        return NULL;
    *r = (struct request){.type = type, .id = {id[0], id[1]}};
    long len = message_encode(type, m, room_of(r->body, cap));
    if (len < 0 || (size_t)len > message_rule(type)->max_bytes) {
        *ret_error = -E2BIG;
        free(r);
        return NULL;
    }
    r->len = (size_t)len;
    list_init(&r->at);
    list_push_back(&s->requests, &r->at);
    *ret_error = 0;
    return r;
}

static size_t set_room(const struct session *s) {
    return HEAD_BYTES + nodeset_bytes(s->config.cluster->nodes);
}

static struct nodeset *some_set(struct session *s, struct nodeset *set) {
    return set != NULL ? set : &s->none;
}

/* What is answered by one ANSWER; NULL and -errno if it cannot be. */
static struct request *post(struct session *s, uint16_t type, union message *m,
                            const uint64_t number[2], size_t cap, session_answered *then,
                            void *context, int *ret_error) {
    struct request *r = request_new(s, type, m, number, cap, ret_error);
    if (r == NULL)
        return NULL;
    r->answered = then;
    r->context = context;
    say(s, r);
    return r;
}

int session_submit(struct session *s, const struct message_submit *asked, session_answered *then,
                   void *context) {
    union message m = {.submit = *asked};
    int error;
    draw(s, m.submit.request);
    m.submit.on = some_set(s, asked->on);
    m.submit.exclude = some_set(s, asked->exclude);
    size_t cap = 2 * set_room(s) + asked->name.len + asked->files.len + asked->inputs.len +
                 asked->spec.len + asked->reservation.len + asked->after.len + asked->need.len +
                 asked->sections.len + asked->classes.len;
    post(s, MESSAGE_SUBMIT, &m, m.submit.request, cap, then, context, &error);
    return error;
}

static struct request *act(struct session *s, const struct message_act *asked,
                           session_answered *then, void *context, int *ret_error) {
    union message m = {.act = *asked};
    draw(s, m.act.request);
    m.act.nodes = some_set(s, asked->nodes);
    size_t cap = set_room(s) + asked->jobs.len + asked->text.len + asked->ranks.len;
    return post(s, MESSAGE_ACT, &m, m.act.request, cap, then, context, ret_error);
}

int session_act(struct session *s, const struct message_act *m, session_answered *then,
                void *context) {
    int error;
    act(s, m, then, context, &error);
    return error;
}

int session_reserve(struct session *s, const struct message_reserve *asked, session_answered *then,
                    void *context) {
    union message m = {.reserve = *asked};
    int error;
    draw(s, m.reserve.request);
    m.reserve.nodes = some_set(s, asked->nodes);
    size_t cap = set_room(s) + asked->name.len;
    post(s, MESSAGE_RESERVE, &m, m.reserve.request, cap, then, context, &error);
    return error;
}

int session_do(struct session *s, uint32_t job, enum verb verb, uint32_t value,
               session_answered *then, void *context) {
    uint8_t jobs[4];
    store_le32(jobs, job);
    struct message_act m = {
        .verb = (uint8_t)verb, .value = value, .jobs = bytes_of(jobs, sizeof jobs)};
    return session_act(s, &m, then, context);
}

int session_ask(struct session *s, const struct message_ask *asked, session_rows *then,
                void *context) {
    union message m = {.ask = *asked};
    int error;
    draw(s, m.ask.request);
    struct request *r = request_new(s, MESSAGE_ASK, &m, m.ask.request, HEAD_BYTES, &error);
    if (r == NULL)
        return error;
    r->rows = then;
    r->context = context;
    say(s, r);
    return 0;
}

int session_copy(struct session *s, const struct message_copy *asked, session_copied *then,
                 void *context) {
    union message m = {.copy = *asked};
    int error;
    draw(s, m.copy.request);
    size_t cap = set_room(s) + asked->address.len + asked->descriptor.len;
    struct request *r = request_new(s, MESSAGE_COPY, &m, m.copy.request, cap, &error);
    if (r == NULL)
        return error;
    r->copied = then;
    r->context = context;
    say(s, r);
    return 0;
}

int session_offer(struct session *s, const struct message_offer *asked, session_offered *then,
                  void *context) {
    union message m = {.offer = *asked};
    int error;
    draw(s, m.offer.request);
    size_t cap = set_room(s) + asked->path.len;
    struct request *r = request_new(s, MESSAGE_OFFER, &m, m.offer.request, cap, &error);
    if (r == NULL)
        return error;
    r->offered = then;
    r->long_lasting = true;
    r->context = context;
    say(s, r);
    return 0;
}

void session_offer_end(struct session *s, const void *context) {
    LIST_EACH_SAFE (at, &s->requests) {
        struct request *r = CONTAINER_OF(at, struct request, at);
        if (r->offered != NULL && r->context == context)
            forget(r);
    }
}

/* ---- followed jobs ---- */

static int follow_now(struct session *s, const struct followed *f) {
    uint8_t jobs[4];
    int error;
    store_le32(jobs, f->job);
    struct message_act m = {
        .verb = VERB_FOLLOW, .value = f->value, .jobs = bytes_of(jobs, sizeof jobs)};
    struct request *r = act(s, &m, f->then, f->context, &error);
    if (r != NULL)
        r->once = true;
    return error;
}

int session_follow(struct session *s, uint32_t job, uint32_t value, bool known,
                   session_answered *then, void *context) {
    struct followed *f = calloc(1, sizeof *f);
    if (f == NULL)
        return -ENOMEM;
    *f = (struct followed){.job = job, .value = value, .then = then, .context = context};
    list_init(&f->at);
    list_push_back(&s->follows, &f->at);
    return s->link != 0 && !known ? follow_now(s, f) : 0;
}

void session_unfollow(struct session *s, uint32_t job) {
    LIST_EACH_SAFE (at, &s->follows) {
        struct followed *f = CONTAINER_OF(at, struct followed, at);
        if (f->job != job)
            continue;
        list_remove(&f->at);
        free(f);
        if (s->link != 0)
            session_do(s, job, VERB_UNFOLLOW, 0, NULL, NULL);
    }
}

/* ---- streams ---- */

void session_taken(struct session *s, const struct message_taken *t) {
    uint8_t body[HEAD_BYTES];
    union message m = {.taken = *t};
    long len = message_encode(MESSAGE_TAKEN, &m, room_of(body, sizeof body));
    ASSERT(len > 0);
    transmit(s, MESSAGE_TAKEN, bytes_of(body, (size_t)len), (struct bytes){0});
}

/* The bytes are what is left of the message: they need not be copied behind its head. */
void session_typed(struct session *s, const struct message_typed *t) {
    uint8_t body[HEAD_BYTES];
    union message m = {.typed = *t};
    m.typed.bytes.len = 0;
    long len = message_encode(MESSAGE_TYPED, &m, room_of(body, sizeof body));
    ASSERT(len > 0);
    transmit(s, MESSAGE_TYPED, bytes_of(body, (size_t)len), t->bytes);
}

/* ---- what arrives ---- */

static struct request *find(struct session *s, const uint64_t id[2]) {
    LIST_EACH (at, &s->requests) {
        struct request *r = CONTAINER_OF(at, struct request, at);
        if (r->id[0] == id[0] && r->id[1] == id[1])
            return r;
    }
    return NULL;
}

static void on_answer(struct session *s, const struct message_answer *a) {
    struct request *r = find(s, a->request);
    if (r == NULL || r->type == MESSAGE_ASK)
        return;
    session_answered *then = r->answered;
    session_copied *copied = r->copied;
    void *context = r->context;
    forget(r);
    if (then != NULL)
        then(context, a);
    if (copied != NULL)
        copied(context, NULL, a);
}

static void on_copied(struct session *s, const struct message_copied *m) {
    struct request *r = find(s, m->request);
    if (r == NULL || r->copied == NULL)
        return;
    session_copied *then = r->copied;
    void *context = r->context;
    r->long_lasting = true;
    if (m->over)
        forget(r);
    then(context, m, NULL);
}

static void on_offered(struct session *s, const struct message_offered *m) {
    const struct request *r = find(s, m->request);
    if (r != NULL && r->offered != NULL)
        r->offered(r->context, m);
}

static void on_rows(struct session *s, const struct message_rows *m) {
    struct request *r = find(s, m->request);
    if (r == NULL || r->type != MESSAGE_ASK)
        return;
    session_rows *then = r->rows;
    void *context = r->context;
    forget(r);
    if (then != NULL)
        then(context, m);
}

/* ---- up and down ---- */

static void on_up(struct session *s, uint32_t link) {
    s->link = link;
    s->opening = false;
    s->pause = PAUSE_MIN_NS;
    if (s->up_first == 0)
        s->up_first = clock_ns();
    LIST_EACH_SAFE (at, &s->requests) {
        struct request *r = CONTAINER_OF(at, struct request, at);
        if (r->once)
            forget(r);
        else
            say(s, r);
    }
    LIST_EACH (at, &s->follows)
        follow_now(s, CONTAINER_OF(at, struct followed, at));
    if (s->config.up != NULL)
        s->config.up(s->config.context);
}

/* Nobody will start a manager again whose watcher is gone: then there is no cluster. */
static bool hopeless(const struct session *s) {
    pid_t watcher = s->config.cluster->watcher;
    return s->up_first == 0 && watcher > 0 && kill(watcher, 0) < 0 && errno == ESRCH;
}

static void on_down(struct session *s) {
    uint64_t now = s->config.loop->now;
    if (s->link != 0)
        s->down_since = now;
    s->link = 0;
    s->opening = false;
    LIST_EACH (at, &s->requests) {
        struct request *r = CONTAINER_OF(at, struct request, at);
        r->since = 0;
        r->long_lasting = r->offered != NULL;
    }
    if (hopeless(s))
        s->config.patience_ns = 0;
    s->open_at = now + s->pause;
    loop_wake_at(s->config.loop, s->open_at); /* this may be after others have asked */
    s->pause = s->pause * 2 > PAUSE_MAX_NS ? PAUSE_MAX_NS : s->pause * 2;
}

static void on_message(struct session *s, const struct input_message *in) {
    union message m;
    const struct session_config *c = &s->config;
    if (message_decode(in->type, in->body, s->sets, &m) < 0) {
        links_close(s->links, s->link, REFUSAL_BODY);
        on_down(s);
        return;
    }
    if (in->type == MESSAGE_ANSWER)
        on_answer(s, &m.answer);
    else if (in->type == MESSAGE_ROWS)
        on_rows(s, &m.rows);
    else if (in->type == MESSAGE_COPIED)
        on_copied(s, &m.copied);
    else if (in->type == MESSAGE_OFFERED)
        on_offered(s, &m.offered);
    else if (in->type == MESSAGE_NEWS && c->news != NULL)
        c->news(c->context, &m.news);
    else if (in->type == MESSAGE_OUTPUT && c->output != NULL)
        c->output(c->context, &m.output);
    else if (in->type == MESSAGE_DRAINED && c->drained != NULL)
        c->drained(c->context, &m.drained);
    else if (in->type == MESSAGE_PIDS && c->pids != NULL)
        c->pids(c->context, &m.pids);
}

static void feed(void *context, enum purpose purpose, const struct input *in) {
    struct session *s = context;
    (void)purpose;
    if (in->kind == INPUT_LINK_UP)
        on_up(s, in->link.link);
    else if (in->kind == INPUT_LINK_DOWN)
        on_down(s);
    else if (in->kind == INPUT_MESSAGE && in->message.link == s->link)
        on_message(s, &in->message);
}

static void on_other(void *context, uint32_t protocol, uint32_t release) {
    struct session *s = context;
    s->met_other = true;
    s->other = (struct session_other){.protocol = protocol, .release = release};
}

static void connect_now(struct session *s) {
    struct effect_open open = {
        .node = s->config.cluster->root, .purpose = PURPOSE_CLIENT, .cookie = 1};
    s->open_at = 0;
    s->opening = true;
    links_open(s->links, &open);
}

/* ---- time ---- */

static void lose(struct session *s, enum session_loss why) {
    if (s->lost)
        return;
    s->lost = true;
    if (s->config.lost != NULL)
        s->config.lost(s->config.context, why);
}

static void watch_connection(struct session *s, uint64_t now) {
    uint64_t end = units_after(s->down_since, s->config.patience_ns);
    if (s->met_other || end <= now) {
        lose(s, s->met_other                          ? SESSION_OTHER
                : s->counts.refused[REFUSAL_SEAL] > 0 ? SESSION_STRANGER
                                                      : SESSION_NOBODY);
        return;
    }
    if (s->open_at != 0 && s->open_at <= now)
        connect_now(s);
    loop_wake_at(s->config.loop, s->open_at != 0 && s->open_at < end ? s->open_at : end);
}

/* The first of them was said first. */
static void watch_silence(struct session *s, uint64_t now) {
    uint64_t patience = s->config.patience_ns > SILENCE_NS ? s->config.patience_ns : SILENCE_NS;
    const struct request *first = NULL;
    LIST_EACH (at, &s->requests) {
        const struct request *r = CONTAINER_OF(at, struct request, at);
        if (first == NULL && !r->long_lasting)
            first = r;
    }
    if (first == NULL)
        return;
    uint64_t end = units_after(first->since, patience);
    if (end <= now)
        lose(s, SESSION_SILENT);
    else
        loop_wake_at(s->config.loop, end);
}

void session_flush(struct session *s) {
    links_settle(s->links);
}

static void turn(struct session *s, int timeout_ms) {
    uint64_t now = s->config.loop->now;
    if (!s->lost && s->link == 0)
        watch_connection(s, now);
    else if (!s->lost)
        watch_silence(s, now);
    links_settle(s->links);
    if (!s->lost)
        loop_turn(s->config.loop, timeout_ms);
}

void session_turn(struct session *s) {
    turn(s, -1);
}

void session_peek(struct session *s) {
    turn(s, 0);
}

/* ---- beginning and end ---- */

static int make_sets(struct session *s) {
    uint32_t nodes = s->config.cluster->nodes;
    size_t bytes = nodeset_bytes(nodes);
    s->set_storage = malloc(3 * bytes);
    if (s->set_storage == NULL)
        return -ENOMEM;
    nodeset_init(&s->none, nodes, s->set_storage);
    for (int i = 0; i < 2; i++)
        nodeset_init(&s->sets[i], nodes, (uint8_t *)s->set_storage + (size_t)(i + 1) * bytes);
    return 0;
}

static int make_links(struct session *s) {
    const struct cluster *c = s->config.cluster;
    struct links_config config = {.loop = s->config.loop,
                                  .self = NO_NODE,
                                  .life = (uint32_t)s->id[0],
                                  .key = {c->key[0], c->key[1]},
                                  .book = &c->manager,
                                  .near = c->near.len > 0 ? &c->near : NULL,
                                  .first = c->root,
                                  .nodes = 1,
                                  .listener = -1,
                                  .frame_bytes_max = FRAME_BYTES_MAX,
                                  .counts = &s->counts,
                                  .other = on_other,
                                  .feed = feed,
                                  .context = s};
    int r = c->sealed ? keys_guide(c, false, &s->guide) : 0;
    if (r < 0)
        return r;
    if (s->guide != NULL)
        guide_lead(s->guide, &config);
    s->links = links_new(&config);
    return s->links == NULL ? -ENOMEM : 0;
}

struct session *session_new(const struct session_config *config) {
    struct session *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->config = *config;
    s->pause = PAUSE_MIN_NS;
    s->down_since = config->loop->now;
    list_init(&s->requests);
    list_init(&s->follows);
    int r = make_sets(s);
    if (r == 0 && getrandom(s->id, sizeof s->id, 0) != (ssize_t)sizeof s->id)
        r = -errno;
    if (r == 0)
        r = make_links(s);
    if (r < 0) {
        session_free(s);
        errno = -r;
        return NULL;
    }
    connect_now(s);
    return s;
}

void session_free(struct session *s) {
    if (s == NULL)
        return;
    links_free(s->links);
    guide_free(s->guide);
    LIST_EACH_SAFE (at, &s->requests)
        forget(CONTAINER_OF(at, struct request, at));
    LIST_EACH_SAFE (at, &s->follows)
        free(CONTAINER_OF(at, struct followed, at));
    free(s->set_storage);
    free(s);
}

bool session_other(const struct session *s, struct session_other *ret) {
    *ret = s->other;
    return s->met_other;
}

bool session_is_up(const struct session *s) {
    return s->link != 0;
}

uint64_t session_up_ns(const struct session *s) {
    return s->up_first;
}
