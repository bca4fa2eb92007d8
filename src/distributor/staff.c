/* SPDX-License-Identifier: MIT */
/* Workers that a server hires: see staff.h. */
#include "distributor/staff.h"

#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "client/carmi_open.h"

/* It is looked at most so often, and not for more than such a share of the time. */
enum { LOOK_NS = 100000000, LOOK_SHARE = 50 };
enum { JUDGE_NS = 200000000, END_MS = 10000 };

/* What a message is about: a tag is one of these, times PROFILE_CLASSES_MAX, plus the class. */
enum topic {
    TOPIC_NONE,
    TOPIC_ADDED,
    TOPIC_STRAY, /* one that this life has not asked for */
    TOPIC_BACK,
    TOPIC_LOST,
    TOPIC_RESTS,
    TOPIC_GOES_ON,
    TOPIC_WORKER,
    TOPIC_END
};

static int tag_of(enum topic topic, uint32_t class) {
    return (int)topic * PROFILE_CLASSES_MAX + (int)class;
}

bool staff_class_parse(struct staff *t, const char *text) {
    unsigned long n[3];
    if (t->class_count == PROFILE_CLASSES_MAX)
        return false;
    for (int i = 0; i < 3; i++) {
        char *end;
        errno = 0;
        n[i] = strtoul(text, &end, 10);
        if (*text < '0' || *text > '9' || *end != ':' || errno != 0 || n[i] > UINT32_MAX)
            return false;
        text = end + 1;
    }
    if (n[0] > n[1] || n[1] == 0)
        return false;
    struct staff_class *c = &t->classes[t->class_count++];
    *c = (struct staff_class){
        .hire = {.least = (uint32_t)n[0], .most = (uint32_t)n[1], .rest_ns = HIRE_REST_NS},
        .processors = (uint32_t)n[2],
        .expression = text};
    return true;
}

/* ---- hosts ---- */

/* The earlier of two times, 0 is none. */
static void sooner(uint64_t *at, uint64_t other) {
    if (other != 0 && (*at == 0 || other < *at))
        *at = other;
}

static struct staff_host *host_find(struct staff *t, carmi_host id) {
    for (uint32_t i = 0; i < t->host_count; i++)
        if (t->hosts[i].id == id)
            return &t->hosts[i];
    return NULL;
}

static void host_forget(struct staff *t, struct staff_host *h) {
    desk_host_gone(t->server->desk, h->id, &t->server->deeds);
    server_carry_out(t->server);
    t->classes[h->class].hire.here -= !h->rests && !h->leaving;
    *h = t->hosts[--t->host_count];
    t->stirred = true;
}

static void host_back(struct staff *t, struct staff_host *h) {
    t->classes[h->class].hire.here -= !h->rests && !h->leaving;
    h->leaving = true;
    carmi_delhosts(t->carmi, 1, &h->id, tag_of(TOPIC_BACK, h->class));
    t->stirred = true;
}

static void host_rests(struct staff *t, struct staff_host *h, bool rests) {
    desk_host_rests(t->server->desk, h->id, rests);
    struct hire *hire = &t->classes[h->class].hire;
    if (h->rests != rests && !h->leaving)
        hire->here = rests ? hire->here - 1 : hire->here + 1;
    h->rests = rests;
    t->stirred = true;
    sooner(&t->judge_at, h->ended);
}

/* ---- workers ---- */

static void hopeless(struct staff *t, const char *why) {
    fprintf(stderr, "storm-wodi: %s: %s; no more are started\n", t->command[0], why);
    t->status = -ECHILD;
}

/* It has the environment of this process: what is its own is set there. */
static void worker_start(struct staff *t, struct staff_host *h) {
    char number[24];
    snprintf(number, sizeof number, "%u", h->class);
    setenv("STORM_WODI_CLASS", number, 1);
    snprintf(number, sizeof number, "%llu", (unsigned long long)h->id);
    setenv("STORM_WODI_HOST", number, 1);
    h->began = t->server->loop.now;
    h->ended = 0;
    h->worker = carmi_host_spawn(t->carmi, t->command[0], t->command, h->id,
                                 tag_of(TOPIC_WORKER, h->class));
    if (h->worker < 0)
        hopeless(t, strerror((int)-h->worker));
}

static void worker_ended(struct staff *t, const struct carmi_message *m) {
    struct staff_host *h = NULL;
    for (uint32_t i = 0; i < t->host_count && h == NULL; i++)
        if (t->hosts[i].worker == m->request)
            h = &t->hosts[i];
    if (h == NULL)
        return;
    h->ended = t->server->loop.now;
    sooner(&t->judge_at, h->ended + JUDGE_NS);
    if (!m->success)
        snprintf(t->why, sizeof t->why, "%s (%s)", m->text, strerror(m->error));
    else
        snprintf(t->why, sizeof t->why,
                 "workers end as soon as they start, the last with status %d", m->status);
}

static void judge(struct staff *t, struct staff_host *h) {
    uint64_t results = desk_results(t->server->desk, h->class), lived = h->ended - h->began;
    h->ended = 0;
    switch (hire_ended(&t->classes[h->class].hire, &h->early, lived, results)) {
    case HIRE_AGAIN:
        worker_start(t, h);
        break;
    case HIRE_BACK:
        host_back(t, h);
        break;
    case HIRE_HOPELESS:
        hopeless(t, t->why);
        break;
    }
}

static void judge_all(struct staff *t) {
    uint64_t now = t->server->loop.now;
    t->judge_at = 0;
    for (uint32_t i = 0; i < t->host_count; i++) {
        struct staff_host *h = &t->hosts[i];
        if (h->ended == 0 || h->leaving || h->rests)
            continue; /* nothing can be started where all stands still */
        if (now >= h->ended + JUDGE_NS)
            judge(t, h);
        else
            sooner(&t->judge_at, h->ended + JUDGE_NS);
    }
}

/* ---- what CARMI tells ---- */

static struct staff_request *request_find(struct staff_class *c, carmi_request id) {
    for (uint32_t i = 0; i < STAFF_REQUESTS_MAX; i++)
        if (c->requests[i].id == id)
            return &c->requests[i];
    return NULL;
}

static void request_forget(struct staff_class *c, struct staff_request *r) {
    c->hire.coming -= r->left;
    *r = (struct staff_request){0};
}

static void came(struct staff *t, uint32_t class, carmi_host id) {
    struct staff_class *c = &t->classes[class];
    if (t->host_count == t->host_cap) {
        carmi_delhosts(t->carmi, 1, &id, tag_of(TOPIC_NONE, class));
        return;
    }
    struct staff_host *h = &t->hosts[t->host_count++];
    *h = (struct staff_host){.id = id, .class = class};
    c->hire.here++;
    c->told = false;
    worker_start(t, h);
}

static void refused(struct staff *t, struct staff_class *c, const struct carmi_message *m) {
    c->not_before = t->server->loop.now + c->hire.rest_ns;
    if (!c->told)
        fprintf(stderr, "storm-wodi: hosts%s%s: %s (%s)\n", *c->expression ? " like " : "",
                c->expression, m->text, strerror(m->error));
    c->told = true;
    if (t->host_count == 0 && m->error != ECANCELED)
        hopeless(t, "there is no host to start it on");
}

static void added(struct staff *t, uint32_t class, const struct carmi_message *m) {
    struct staff_class *c = &t->classes[class];
    struct staff_request *r = request_find(c, m->request);
    uint32_t n = (uint32_t)m->host_count;
    if (r != NULL) {
        uint32_t fewer = n < r->left ? n : r->left;
        r->left -= fewer;
        c->hire.coming -= fewer;
    }
    for (uint32_t i = 0; i < n; i++)
        came(t, class, m->hosts[i]);
    if (m->last && r != NULL)
        request_forget(c, r);
    if (!m->success)
        refused(t, c, m);
    t->stirred = true;
}

static void each_host(struct staff *t, const struct carmi_message *m, enum topic topic) {
    for (size_t i = 0; i < m->host_count; i++) {
        struct staff_host *h = host_find(t, m->hosts[i]);
        if (h == NULL)
            continue;
        if (topic == TOPIC_LOST || topic == TOPIC_BACK)
            host_forget(t, h);
        else
            host_rests(t, h, topic == TOPIC_RESTS);
    }
}

static void hear(struct staff *t, const struct carmi_message *m) {
    uint32_t class = (uint32_t)m->tag % PROFILE_CLASSES_MAX;
    enum topic topic = (enum topic)(m->tag / PROFILE_CLASSES_MAX);
    switch (topic) {
    case TOPIC_ADDED:
        added(t, class, m);
        break;
    case TOPIC_STRAY:
        carmi_delhosts(t->carmi, m->host_count, m->hosts, tag_of(TOPIC_NONE, class));
        break;
    case TOPIC_WORKER:
        if (m->last)
            worker_ended(t, m);
        break;
    case TOPIC_BACK:
    case TOPIC_LOST:
    case TOPIC_RESTS:
    case TOPIC_GOES_ON:
        each_host(t, m, topic);
        break;
    case TOPIC_NONE:
    case TOPIC_END:
        break;
    }
}

static void on_carmi(struct source *source, uint32_t events) {
    (void)events;
    struct staff *t = CONTAINER_OF(source, struct staff, source);
    struct carmi_message m;
    int r;
    while (t->status == 0 && (r = carmi_next(t->carmi, &m)) != 0) {
        if (r < 0)
            t->status = r;
        else
            hear(t, &m);
    }
}

/* ---- what is wanted ---- */

/* Who has no step, and of these the last that came, goes first. */
static struct staff_host *dispensable(struct staff *t, uint32_t class) {
    struct staff_host *best = NULL;
    bool best_busy = true;
    for (uint32_t i = t->host_count; i-- > 0;) {
        struct staff_host *h = &t->hosts[i];
        if (h->class != class || h->rests || h->leaving)
            continue;
        bool busy = desk_host_busy(t->server->desk, h->id);
        if (best == NULL || (best_busy && !busy)) {
            best = h;
            best_busy = busy;
        }
    }
    return best;
}

/* The server has room for so many workers more. */
static uint32_t places_left(const struct staff *t) {
    uint64_t taken = t->host_count;
    for (uint32_t class = 0; class < t->class_count; class ++)
        taken += t->classes[class].hire.coming;
    return taken < t->host_cap ? (uint32_t)(t->host_cap - taken) : 0;
}

static void ask(struct staff *t, uint32_t class, uint32_t count) {
    struct staff_class *c = &t->classes[class];
    struct staff_request *r = request_find(c, 0);
    uint32_t most = places_left(t);
    count = count < most ? count : most;
    if (count == 0 || r == NULL || t->server->loop.now < c->not_before)
        return;
    carmi_request id = carmi_addhosts(t->carmi, c->name, count, 1, tag_of(TOPIC_ADDED, class));
    if (id < 0)
        return;
    *r = (struct staff_request){.id = id, .left = count};
    c->hire.coming += count;
}

static void cancel(struct staff *t, struct staff_class *c) {
    for (uint32_t i = 0; i < STAFF_REQUESTS_MAX; i++) {
        if (c->requests[i].id != 0)
            carmi_cancel_request(t->carmi, c->requests[i].id, tag_of(TOPIC_NONE, 0));
        request_forget(c, &c->requests[i]);
    }
}

static void carry_out_advice(struct staff *t, uint32_t class, const struct hire_advice *a) {
    struct staff_class *c = &t->classes[class];
    struct staff_host *h;
    if (a->cancel)
        cancel(t, c);
    for (uint32_t i = 0; i < a->back && (h = dispensable(t, class)) != NULL; i++)
        host_back(t, h);
    if (a->ask > 0)
        ask(t, class, a->ask);
}

static void look(struct staff *t) {
    const struct server *s = t->server;
    uint64_t began = clock_ns();
    t->look_at = 0;
    for (uint32_t class = 0; class < t->class_count; class ++) {
        struct staff_class *c = &t->classes[class];
        uint64_t wanted = 0;
        for (uint32_t slot = 0; slot < s->limits.masters; slot++)
            wanted += desk_wanted(s->desk, slot, class, t->scratch);
        struct hire_advice a =
            hire_look(&c->hire, wanted < UINT32_MAX ? (uint32_t)wanted : UINT32_MAX, s->loop.now);
        carry_out_advice(t, class, &a);
        sooner(&t->look_at, a.again);
        if (s->loop.now < c->not_before)
            sooner(&t->look_at, c->not_before);
    }
    t->looked = s->loop.now;
    t->pause = LOOK_SHARE * (clock_ns() - began);
    t->pause = t->pause > LOOK_NS ? t->pause : LOOK_NS;
    t->stirred = false;
}

/* What is wanted depends on this. To reckon it sorts all lengths of steps, so it is not done without need. */
static uint64_t stamp_of(const struct server *s) {
    uint64_t stamp = desk_changes(s->desk);
    struct desk_master m;
    for (uint32_t slot = 0; slot < s->limits.masters; slot++)
        if (desk_master(s->desk, slot, &m))
            stamp = stamp * 31 + m.cycle * 7 + m.cycle_steps;
    return stamp;
}

void staff_turn(struct staff *t) {
    struct server *s = t->server;
    if (t->carmi == NULL || t->status != 0)
        return;
    uint64_t stamp = stamp_of(s), now = s->loop.now, next = 0;
    if (stamp != t->stamp || t->stirred)
        sooner(&t->look_at, t->looked + t->pause);
    t->stamp = stamp;
    if (t->judge_at != 0 && now >= t->judge_at)
        judge_all(t);
    if (t->look_at != 0 && now >= t->look_at)
        look(t);
    sooner(&next, t->judge_at);
    sooner(&next, t->look_at);
    if (next != 0)
        loop_wake_at(&s->loop, next);
}

/* ---- life ---- */

void staff_address(struct address *ret) {
    const char *wish = getenv("STORM_WODI_ADDRESS");
    struct address far;
    if (wish != NULL && *wish && address_of_interface(ret, wish, AF_UNSPEC) == 0)
        return;
    /* Nothing is sent there: it only says by which interface this machine looks out. */
    if (address_parse(&far, "tcp:192.0.2.1:9") == 0 && address_towards(&far, ret) == 0)
        return;
    struct if_nameindex *all = if_nameindex();
    bool found = false;
    for (struct if_nameindex *i = all; i != NULL && i->if_index != 0 && !found; i++)
        found =
            strcmp(i->if_name, "lo") != 0 && address_of_interface(ret, i->if_name, AF_INET) == 0;
    if_freenameindex(all);
    if (!found)
        address_parse(ret, "tcp:127.0.0.1:0");
}

static int make_memory(struct staff *t) {
    t->host_cap = t->server->limits.workers;
    t->hosts = calloc(t->host_cap, sizeof *t->hosts);
    t->scratch = calloc(2 * (size_t)t->server->limits.history, sizeof *t->scratch);
    return t->hosts == NULL || t->scratch == NULL ? -ENOMEM : 0;
}

/* A name of its own, as other masters of the job may have servers too; the same in each life, as the token is. */
static void define(struct staff *t, uint32_t class, const char *token) {
    struct staff_class *c = &t->classes[class];
    uint64_t hash = hash_once(token, strlen(token));
    snprintf(c->name, sizeof c->name, "wodi-%08x-%u", (unsigned)(hash & UINT32_MAX), class);
    struct carmi_class definition = {
        .name = c->name, .expression = c->expression, .processors = c->processors};
    carmi_define_class(t->carmi, &definition, tag_of(TOPIC_NONE, class));
    carmi_add_notify(t->carmi, c->name, tag_of(TOPIC_STRAY, class));
}

int staff_open(struct staff *t, struct server *s, char *const *command, const char *where) {
    t->server = s;
    t->command = command;
    t->source.fd = -1;
    t->pause = LOOK_NS;
    t->stirred = true;
    setenv("STORM_WODI", where, 1);
    int r = make_memory(t);
    if (r == 0)
        r = carmi_open(&t->carmi, false); /* messages are for the program that has started us */
    if (r == -ENOENT)
        fputs("storm-wodi: only a process of a job can ask for hosts\n", stderr);
    if (r < 0)
        return r == -ENOENT ? -ECHILD : r;
    for (uint32_t class = 0; class < t->class_count; class ++)
        define(t, class, strrchr(where, '#') + 1);
    carmi_delete_notify(t->carmi, 0, NULL, tag_of(TOPIC_LOST, 0));
    carmi_suspend_notify(t->carmi, 0, NULL, tag_of(TOPIC_RESTS, 0));
    carmi_resume_notify(t->carmi, 0, NULL, tag_of(TOPIC_GOES_ON, 0));
    t->source = (struct source){.fd = carmi_fd(t->carmi), .ready = on_carmi};
    return loop_add(&s->loop, &t->source, EPOLLIN);
}

/* Until the manager has heard all of it: who ends at once may not have said it. */
static void give_all_back(struct staff *t) {
    struct carmi_message m;
    uint32_t left = 1;
    for (uint32_t class = 0; class < t->class_count; class ++)
        cancel(t, &t->classes[class]);
    for (uint32_t i = 0; i < t->host_count; i++)
        left += carmi_delhosts(t->carmi, 1, &t->hosts[i].id, tag_of(TOPIC_END, 0)) > 0;
    carmi_config(t->carmi, tag_of(TOPIC_END, 0));
    while (left > 0 && carmi_receive(t->carmi, &m, END_MS) == 1) {
        if (m.tag == tag_of(TOPIC_END, 0))
            left--;
        else if (m.tag / PROFILE_CLASSES_MAX == TOPIC_ADDED ||
                 m.tag / PROFILE_CLASSES_MAX == TOPIC_STRAY)
            carmi_delhosts(t->carmi, m.host_count, m.hosts, tag_of(TOPIC_NONE, 0));
    }
}

void staff_close(struct staff *t) {
    if (t->carmi != NULL) {
        give_all_back(t);
        if (t->source.fd >= 0)
            loop_remove(&t->server->loop, &t->source);
    }
    carmi_exit(t->carmi);
    free(t->hosts);
    free(t->scratch);
}
