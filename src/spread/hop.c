/* SPDX-License-Identifier: MIT */
/* How one hop of a tree reaches its share of the hosts: see hop.h. */
#include "spread/hop.h"

#include "base/assert.h"

static void carve(struct hop *h, const struct hop_config *c, struct arena *a) {
    h->hosts = ARENA_TAKE(a, struct hop_host, c->hosts);
    h->children = ARENA_TAKE(a, struct hop_child, c->children);
}

size_t hop_bytes(const struct hop_config *c) {
    struct arena a;
    struct hop h;
    arena_init(&a, NULL, 0);
    carve(&h, c, &a);
    return arena_used(&a);
}

void hop_init(struct hop *h, const struct hop_config *c, void *mem) {
    struct arena a;
    *h = (struct hop){.config = *c};
    arena_init(&a, mem, hop_bytes(c));
    carve(h, c, &a);
    list_init(&h->pool);
    list_init(&h->lost);
}

static struct hop_host *host_at(struct list *l) {
    return CONTAINER_OF(l, struct hop_host, at);
}

static uint32_t number_of(const struct hop *h, const struct hop_host *host) {
    return (uint32_t)(host - h->hosts);
}

/* ---- Children ---------------------------------------------------------------------------------- */

/* NULL: there are too many. */
static struct hop_child *child_new(struct hop *h) {
    struct hop_child *c = NULL;
    for (uint32_t i = 0; i < h->used && c == NULL; i++)
        if (h->children[i].link == HOP_FREE)
            c = &h->children[i];
    if (c == NULL && h->used < h->config.children)
        c = &h->children[h->used++];
    if (c == NULL)
        return NULL;
    *c = (struct hop_child){.link = HOP_WANTED};
    list_init(&c->tail);
    return c;
}

static uint32_t child_number(const struct hop *h, const struct hop_child *c) {
    return (uint32_t)(c - h->children);
}

static bool may_give(const struct hop *h) {
    return h->config.shape == HOP_ADAPTIVE;
}

/* ---- Who has which ----------------------------------------------------------------------------- */

static void pool_put(struct hop *h, struct hop_host *host) {
    host->standing = HOP_POOLED;
    list_remove(&host->at);
    list_push_back(&h->pool, &host->at);
    h->pooled += host->own ? 0 : 1;
}

static void pool_out(struct hop *h, struct hop_host *host) {
    list_remove(&host->at);
    h->pooled -= host->own ? 0 : 1;
}

/* The first of `list` is to be connected to, and to have the rest. Too many children: to the pool with all. */
static void want_part(struct hop *h, struct list *part) {
    struct hop_child *c = list_empty(part) ? NULL : child_new(h);
    if (c == NULL) {
        while (!list_empty(part))
            pool_put(h, host_at(list_first(part)));
        return;
    }
    struct hop_host *first = host_at(list_pop_front(part));
    c->host = number_of(h, first);
    first->child = child_number(h, c);
    first->standing = HOP_TAILED;
    LIST_EACH (l, part) {
        host_at(l)->child = child_number(h, c);
        host_at(l)->standing = HOP_TAILED;
    }
    list_move_all(&c->tail, part);
}

/* Wants the last `count` of `from`. */
static void want_last(struct hop *h, struct list *from, uint32_t count) {
    struct list part;
    list_init(&part);
    for (uint32_t i = 0; i < count; i++) {
        struct list *l = list_last(from);
        list_remove(l);
        list_push_front(&part, l);
    }
    want_part(h, &part);
}

/* Of n hosts: half of all, ourselves counted, then half of the rest ... */
static void arrange_binomial(struct hop *h, struct list *hosts, uint32_t n) {
    for (uint32_t part; n > 0; n -= part) {
        part = (n + 1) / 2;
        want_last(h, hosts, part);
    }
}

static void arrange_kary(struct hop *h, struct list *hosts, uint32_t n) {
    for (uint32_t left = h->config.fanout; left > 0 && n > 0; left--) {
        uint32_t part = (n + left - 1) / left;
        want_last(h, hosts, part);
        n -= part;
    }
}

/* Hosts that nobody has, `n` of them, get their place in the shape. */
static void arrange(struct hop *h, struct list *hosts, uint32_t n) {
    switch (h->config.shape) {
    case HOP_CHAIN:
        want_part(h, hosts);
        break;
    case HOP_KARY:
        arrange_kary(h, hosts, n);
        break;
    case HOP_BINOMIAL:
        arrange_binomial(h, hosts, n);
        break;
    default:
        while (!list_empty(hosts))
            pool_put(h, host_at(list_first(hosts)));
        break;
    }
}

bool hop_take(struct hop *h, uint32_t host, uint16_t crate) {
    if (host >= h->config.hosts)
        return false;
    struct hop_host *t = &h->hosts[host];
    if (t->standing != HOP_ELSEWHERE)
        return false;
    *t = (struct hop_host){.crate = crate};
    list_init(&t->at);
    pool_put(h, t);
    h->missing++;
    return true;
}

void hop_share(struct hop *h) {
    struct list all;
    uint32_t n = 0;
    list_init(&all);
    LIST_EACH_SAFE (l, &h->pool) {
        struct hop_host *host = host_at(l);
        if (host->own)
            continue;
        pool_out(h, host);
        list_push_back(&all, &host->at);
        n++;
    }
    arrange(h, &all, n);
}

/* ---- What to do next --------------------------------------------------------------------------- */

static bool is_late(const struct hop *h, const struct hop_child *c, uint64_t now) {
    return now - c->since >= h->config.late_ns;
}

/* Connections that are being made and hold others up. */
static uint32_t under_way(const struct hop *h, uint64_t now) {
    if (h->connecting < h->config.at_once)
        return h->connecting;
    uint32_t n = 0;
    for (uint32_t i = 0; i < h->used; i++)
        n += h->children[i].link == HOP_CONNECTING && !is_late(h, &h->children[i], now);
    return n;
}

/* Late ones do not count here, either. If nobody is left who could be given anything, we have as many as it takes. */
static bool may_have_another(const struct hop *h, uint64_t now) {
    if (h->config.shape != HOP_ADAPTIVE || h->config.fanout == 0)
        return true;
    uint32_t n = 0;
    bool hope = false;
    for (uint32_t i = 0; i < h->used; i++) {
        const struct hop_child *c = &h->children[i];
        bool coming = c->link == HOP_CONNECTING && !is_late(h, c, now);
        n += c->link == HOP_READY || coming;
        hope = hope || coming || (c->link == HOP_READY && !c->released && !c->dropped);
    }
    return n < h->config.fanout || !hope;
}

static struct hop_deed connect_to(struct hop *h, struct hop_child *c, uint64_t now) {
    c->link = HOP_CONNECTING;
    c->since = now;
    h->hosts[c->host].standing = HOP_TRIED;
    h->connecting++;
    return (struct hop_deed){.kind = HOP_CONNECT, .child = child_number(h, c), .host = c->host};
}

static bool has_neighbour(const struct hop *h, const struct hop_host *t) {
    bool has = false;
    for (uint32_t i = 0; i < h->used && !has; i++)
        has = h->children[i].link != HOP_FREE && h->hosts[h->children[i].host].crate == t->crate;
    return has;
}

/* A host of the pool, if only_own one that we alone may try: one behind a switch where we have no child yet, if there is such
 * a one near the head. */
static struct hop_host *pick(struct hop *h, bool only_own) {
    enum { LOOK_AHEAD = 64 };
    struct hop_host *first = NULL;
    uint32_t looked = 0;
    LIST_EACH (l, &h->pool) {
        struct hop_host *t = host_at(l);
        if (only_own && !t->own)
            continue;
        first = first == NULL ? t : first;
        if (++looked > LOOK_AHEAD || t->crate == 0)
            break;
        if (!has_neighbour(h, t))
            return t;
    }
    return first;
}

static bool next_connection(struct hop *h, uint64_t now, struct hop_deed *ret) {
    if (h->closed || under_way(h, now) >= h->config.at_once)
        return false;
    for (uint32_t i = 0; i < h->used; i++) {
        if (h->children[i].link != HOP_WANTED)
            continue;
        *ret = connect_to(h, &h->children[i], now);
        return true;
    }
    struct hop_host *host = pick(h, !may_have_another(h, now));
    struct hop_child *c = host != NULL ? child_new(h) : NULL;
    if (c == NULL)
        return false;
    pool_out(h, host);
    c->host = number_of(h, host);
    host->child = child_number(h, c);
    *ret = connect_to(h, c, now);
    return true;
}

/* How many of the pool a child gets that is ready: those that began as early as it will want as many each, and so do we if we
 * go on. */
static uint32_t share_of(const struct hop *h, const struct hop_child *c, uint64_t now) {
    uint32_t others = may_have_another(h, now) ? 1 : 0;
    for (uint32_t i = 0; i < h->used; i++) {
        const struct hop_child *other = &h->children[i];
        others +=
            other->link == HOP_CONNECTING && other->since <= c->since && !is_late(h, other, now);
    }
    return (h->pooled + others) / (others + 1);
}

/* Hosts of the pool go to the child, those behind its switch first. */
static void fill_tail(struct hop *h, struct hop_child *c, uint32_t count) {
    uint16_t crate = h->hosts[c->host].crate;
    for (int any = crate == 0; any < 2; any++) {
        LIST_EACH_SAFE (l, &h->pool) {
            struct hop_host *host = host_at(l);
            if (count == 0)
                return;
            if (host->own || (!any && host->crate != crate))
                continue;
            pool_out(h, host);
            host->standing = HOP_TAILED;
            host->child = child_number(h, c);
            list_push_back(&c->tail, &host->at);
            count--;
        }
    }
}

/* A host for a child that is ready, or word that none will come any more. */
static bool next_gift(struct hop *h, uint64_t now, struct hop_deed *ret) {
    for (uint32_t i = 0; i < h->used; i++) {
        struct hop_child *c = &h->children[i];
        if (c->link != HOP_READY || c->dropped || c->released)
            continue;
        if (may_give(h) && c->idle && h->pooled > 0) {
            fill_tail(h, c, share_of(h, c, now));
            c->idle = false;
        }
        struct list *l = list_pop_front(&c->tail);
        if (l != NULL) {
            host_at(l)->standing = HOP_GIVEN;
            c->given++;
            *ret =
                (struct hop_deed){.kind = HOP_GIVE, .child = i, .host = number_of(h, host_at(l))};
            return true;
        }
        if (may_give(h) && h->pooled > 0)
            continue;
        c->released = true;
        *ret = (struct hop_deed){.kind = HOP_RELEASE, .child = i, .host = c->host};
        return true;
    }
    return false;
}

static bool expired(const struct hop *h, const struct hop_child *c, uint64_t now) {
    return (c->link == HOP_CONNECTING && (h->closed || now - c->since >= h->config.connect_ns)) ||
           (c->link == HOP_READY && h->config.silent_ns > 0 &&
            now - c->heard >= h->config.silent_ns);
}

static bool next_drop(struct hop *h, uint64_t now, struct hop_deed *ret) {
    for (uint32_t i = 0; i < h->used; i++) {
        struct hop_child *c = &h->children[i];
        if (c->dropped || !expired(h, c, now))
            continue;
        c->dropped = true;
        *ret = (struct hop_deed){.kind = HOP_DROP,
                                 .child = i,
                                 .host = c->host,
                                 .why = c->link == HOP_READY ? HOP_LOST : HOP_LATE};
        return true;
    }
    return false;
}

struct hop_deed hop_next(struct hop *h, uint64_t now) {
    struct hop_deed deed = {.kind = HOP_NOTHING};
    struct list *lost = list_pop_front(&h->lost);
    if (lost != NULL) {
        deed = (struct hop_deed){.kind = HOP_TELL_LOST,
                                 .host = number_of(h, host_at(lost)),
                                 .child = host_at(lost)->child,
                                 .why = HOP_LOST};
        return deed;
    }
    if (!next_drop(h, now, &deed) && !next_gift(h, now, &deed))
        next_connection(h, now, &deed);
    return deed;
}

static uint64_t earlier(uint64_t a, uint64_t b) {
    return a == 0 || b < a ? b : a;
}

uint64_t hop_deadline(const struct hop *h, uint64_t now) {
    uint64_t at = 0;
    bool waiting = !list_empty(&h->pool);
    for (uint32_t i = 0; i < h->used; i++) {
        const struct hop_child *c = &h->children[i];
        waiting = waiting || c->link == HOP_WANTED;
        if (c->dropped)
            continue;
        if (c->link == HOP_CONNECTING)
            at = earlier(at, c->since + h->config.connect_ns);
        if (c->link == HOP_READY && h->config.silent_ns > 0)
            at = earlier(at, c->heard + h->config.silent_ns);
    }
    for (uint32_t i = 0; i < h->used && waiting; i++)
        if (h->children[i].link == HOP_CONNECTING && !is_late(h, &h->children[i], now))
            at = earlier(at, h->children[i].since + h->config.late_ns);
    return at;
}

/* ---- What has happened ------------------------------------------------------------------------- */

void hop_heard(struct hop *h, uint32_t child, uint64_t now) {
    h->children[child].heard = now;
}

void hop_greeted(struct hop *h, uint32_t child, uint64_t now) {
    struct hop_child *c = &h->children[child];
    ASSERT(c->link == HOP_CONNECTING);
    c->link = HOP_READY;
    c->heard = now;
    c->idle = true;
    h->connecting--;
    h->hosts[c->host].standing = HOP_REACHED;
    h->at_work++;
}

/* The host, if it is behind that child and may be said to be so. */
static struct hop_host *behind(struct hop *h, uint32_t child, uint32_t host) {
    if (host >= h->config.hosts)
        return NULL;
    struct hop_host *t = &h->hosts[host];
    bool ours = t->child == child && (t->standing == HOP_GIVEN || t->standing == HOP_REACHED);
    return ours ? t : NULL;
}

bool hop_reached(struct hop *h, uint32_t child, uint32_t host) {
    struct hop_host *t = behind(h, child, host);
    if (t == NULL || t->standing != HOP_GIVEN)
        return false;
    t->standing = HOP_REACHED;
    h->at_work++;
    h->children[child].given--;
    h->children[child].reached++;
    return true;
}

static void close_books(struct hop *h, struct hop_host *t) {
    ASSERT(t->standing != HOP_OVER);
    h->at_work -= t->standing == HOP_REACHED;
    t->standing = HOP_OVER;
    h->missing--;
}

bool hop_over(struct hop *h, uint32_t child, uint32_t host) {
    struct hop_host *t = behind(h, child, host);
    if (t == NULL)
        return false;
    struct hop_child *c = &h->children[child];
    if (t->standing == HOP_GIVEN)
        c->given--;
    else if (host != c->host)
        c->reached--;
    close_books(h, t);
    return true;
}

void hop_idle(struct hop *h, uint32_t child) {
    h->children[child].idle = true;
}

/* Only the root tries again what others could not reach, and not what would take as long again. */
static bool worth_another(const struct hop *h, const struct hop_host *t, enum hop_why why) {
    return h->config.root && !h->closed && !t->own && why == HOP_REFUSED;
}

bool hop_returned(struct hop *h, uint32_t child, uint32_t host, enum hop_why why, bool *ret_tell) {
    struct hop_host *t = behind(h, child, host);
    if (t == NULL || t->standing != HOP_GIVEN)
        return false;
    h->children[child].given--;
    *ret_tell = !worth_another(h, t, why);
    if (*ret_tell) {
        close_books(h, t);
    } else {
        t->own = true;
        pool_put(h, t);
    }
    return true;
}

/* What a child that is gone was to reach is reached otherwise; what it had reached is lost. */
static void leave_behind(struct hop *h, uint32_t child) {
    struct list again;
    uint32_t n = 0;
    list_init(&again);
    for (uint32_t i = 0; i < h->config.hosts; i++) {
        struct hop_host *t = &h->hosts[i];
        if (t->child != child)
            continue;
        if (t->standing == HOP_GIVEN || t->standing == HOP_TAILED) {
            list_remove(&t->at);
            list_push_back(&again, &t->at);
            n++;
        } else if (t->standing == HOP_REACHED) {
            close_books(h, t);
            list_push_back(&h->lost, &t->at);
        }
    }
    arrange(h, &again, n);
}

/* The next of a part whose first could not be reached. */
static void next_of_part(struct hop *h, struct hop_child *c) {
    struct list part;
    list_init(&part);
    list_move_all(&part, &c->tail);
    c->link = HOP_FREE;
    want_part(h, &part);
}

bool hop_gone(struct hop *h, uint32_t child) {
    struct hop_child *c = &h->children[child];
    ASSERT(c->link == HOP_CONNECTING || c->link == HOP_READY);
    if (c->link == HOP_CONNECTING) {
        h->connecting--;
        close_books(h, &h->hosts[c->host]);
        next_of_part(h, c);
        return true;
    }
    bool clean = c->given == 0 && c->reached == 0 && list_empty(&c->tail) &&
                 h->hosts[c->host].standing == HOP_OVER;
    c->link = HOP_FREE;
    if (!clean)
        leave_behind(h, child);
    return false;
}

void hop_excuse(struct hop *h, uint64_t ns) {
    for (uint32_t i = 0; i < h->used; i++) {
        h->children[i].since += ns;
        h->children[i].heard += ns;
    }
}

void hop_close(struct hop *h) {
    h->closed = true;
}

bool hop_complete(const struct hop *h) {
    return h->at_work == h->missing;
}

bool hop_done(const struct hop *h) {
    return h->missing == 0 || (h->closed && h->at_work == 0);
}

bool hop_wants(const struct hop *h, uint64_t now) {
    bool wants =
        list_empty(&h->pool) && under_way(h, now) < h->config.at_once && may_have_another(h, now);
    for (uint32_t i = 0; i < h->used && wants; i++)
        wants = h->children[i].link != HOP_WANTED;
    return wants;
}
