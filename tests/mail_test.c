/* SPDX-License-Identifier: MIT */
/* Mail between daemons, and what each hears of its place in the tree.
 *
 * 17 nodes in a binary tree. Below the root (17) are 0 and 9; below 0 are 1 and 5, below 1 are 2
 * and 4, below 9 are 10 and 14; the leaves are 3, 4, 7, 8, 12, 13, 15 and 16. */
#include <stdio.h>

#include "forge.h"

enum { NODES = 17, ROOT = NODES, EVERYONE = NODES + 1 };

/* Carried messages by lane and sender. Nobody in between decodes them, so any bytes will do. */
enum {
    DOWN = MESSAGE_COMMAND,
    DOWN_BULK = MESSAGE_TYPED,
    UP = MESSAGE_HAVE,
    UP_BULK = MESSAGE_OUTPUT
};

static struct primitive mail(enum mail_way way, uint16_t type, const char *text) {
    struct primitive r = request_of(PRIMITIVE_MAIL);
    r.way = way;
    r.type = type;
    r.body = bytes_from_str(text);
    return r;
}

static void post(struct cluster *c, uint32_t from, const char *set, enum mail_way way,
                 uint16_t type, const char *text) {
    cluster_ask(c, from, set, mail(way, type, text));
}

static bool is_letter(const struct heard *h, uint32_t node, uint32_t origin, const char *text) {
    return h->node == node && h->in.kind == INPUT_MESSAGE && h->in.message.peer == origin &&
           h->len == strlen(text) && memcmp(h->body, text, h->len) == 0;
}

/* How often the node has got this letter. */
static uint32_t got(const struct cluster *c, uint32_t node, uint32_t origin, const char *text) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->log_count; i++)
        count += is_letter(&c->log[i], node, origin, text);
    return count;
}

/* How many letters there were in all. */
static uint32_t letters(const struct cluster *c) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < c->log_count; i++)
        count += c->log[i].in.kind == INPUT_MESSAGE;
    return count;
}

static uint32_t planned_parent(const struct cluster *c, uint32_t node) {
    uint32_t parent;
    return tree_ancestors(&c->config.prim.tree, node, &parent, 1) > 0 ? parent : c->root;
}

static uint64_t refused(const struct cluster *c, uint32_t node, enum refusal why) {
    return status_of(c, node).refused[why];
}

/* ---- where mail goes ---- */

static void test_down_to_a_set(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    post(c, ROOT, "n[2,5-7,13]", MAIL_DOWN, DOWN, "to five");
    cluster_run(c, P / 2);
    CHECK_EQ(COUNT_NODES(c, got(c, n, ROOT, "to five") == 1), 5);
    CHECK_EQ(letters(c), 5);
    const struct heard *h = heard_from(c, 0, 7, INPUT_MESSAGE);
    CHECK(h != NULL && h->in.message.link == 0 && h->in.message.type == DOWN &&
          h->in.message.epoch == status_of(c, 7).epoch);
    post(c, ROOT, NULL, MAIL_DOWN, DOWN, "to all");
    post(c, ROOT, "n17", MAIL_DOWN, DOWN, "to myself");
    post(c, ROOT, "", MAIL_DOWN, DOWN, "to nobody");
    cluster_run(c, P / 2);
    CHECK_EQ(COUNT_NODES(c, got(c, n, ROOT, "to all") == 1), EVERYONE);
    CHECK_EQ(got(c, ROOT, ROOT, "to myself"), 1);
    CHECK_EQ(letters(c), 5 + EVERYONE + 1);
    cluster_free(c);
}

/* An inner node may write to those below it, and to nobody else. */
static void test_down_from_an_inner_node(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    post(c, 9, "n[0-16]", MAIL_DOWN, DOWN, "from nine");
    cluster_run(c, P / 2);
    CHECK_EQ(COUNT_NODES(c, got(c, n, 9, "from nine") == 1), 8);
    CHECK_EQ(letters(c), 8);
    CHECK_EQ(got(c, 9, 9, "from nine"), 1);
    CHECK_EQ(got(c, 16, 9, "from nine"), 1);
    cluster_free(c);
}

static void test_up_to_the_parent(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    for (uint32_t n = 0; n < NODES; n++)
        post(c, n, "", MAIL_PARENT, UP, "dear parent");
    post(c, ROOT, "", MAIL_PARENT, UP, "dear me");
    cluster_run(c, P / 2);
    for (uint32_t n = 0; n < NODES; n++)
        CHECK_EQ(got(c, planned_parent(c, n), n, "dear parent"), 1);
    CHECK_EQ(got(c, ROOT, ROOT, "dear me"), 1);
    CHECK_EQ(letters(c), EVERYONE);
    cluster_free(c);
}

static void test_up_to_the_root(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    for (uint32_t n = 0; n <= NODES; n++)
        post(c, n, "", MAIL_ROOT, UP, "dear root");
    cluster_run(c, P / 2);
    CHECK_EQ(COUNT_NODES(c, got(c, ROOT, n, "dear root") == 1), EVERYONE);
    CHECK_EQ(letters(c), EVERYONE); /* those in between were not bothered */
    cluster_free(c);
}

/* All in one step, on both lanes and both ways: each lane keeps their order. */
static void test_each_lane_keeps_the_order(void) {
    enum { MANY = 60 };
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    for (uint32_t i = 0; i < MANY; i++) {
        char text[24];
        snprintf(text, sizeof text, "%02u", i);
        post(c, ROOT, "n[12,16]", MAIL_DOWN, i % 2 ? DOWN : DOWN_BULK, text);
        post(c, 12, "", MAIL_ROOT, i % 2 ? UP : UP_BULK, text);
    }
    cluster_run(c, P / 2);
    CHECK_EQ(letters(c), 3 * MANY);
    static const uint32_t readers[] = {12, 16, ROOT};
    for (uint32_t r = 0; r < 3; r++) {
        uint32_t next[2] = {0, 1};
        for (uint32_t i = 0; i < c->log_count; i++) {
            const struct heard *h = &c->log[i];
            if (h->node != readers[r] || h->in.kind != INPUT_MESSAGE)
                continue;
            bool control = h->in.message.type == DOWN || h->in.message.type == UP;
            CHECK_EQ((h->body[0] - '0') * 10 + h->body[1] - '0', next[control]);
            next[control] += 2;
        }
        CHECK(next[0] == MANY && next[1] == MANY + 1);
    }
    cluster_free(c);
}

/* ---- mail that does not arrive ---- */

static void test_dead_nodes_get_nothing_and_hold_nothing_up(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    world_crash(c->w, 7);
    post(c, ROOT, "n[5-8]", MAIL_DOWN, DOWN, "at once"); /* nobody knows yet */
    cluster_run(c, P / 2);
    CHECK_EQ(letters(c), 3);
    cluster_run(c, 4 * P);
    post(c, ROOT, "n[5-8]", MAIL_DOWN, DOWN, "later");
    post(c, ROOT, "n7", MAIL_DOWN, DOWN, "only it");
    cluster_run(c, P / 2);
    CHECK_EQ(letters(c), 6);
    CHECK_EQ(COUNT_NODES(c, got(c, n, ROOT, "later") == 1), 3);
    cluster_free(c);
}

static void test_the_way_heals(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    world_crash(c->w, 0);
    CHECK(WITHIN(c, 10 * P, status_of(c, 1).attached && status_of(c, 1).parent == ROOT));
    CHECK(WITHIN(c, 10 * P, COUNT_NODES(c, status_of(c, n).attached) == NODES));
    post(c, ROOT, "n[0-16]", MAIL_DOWN, DOWN, "down");
    post(c, 3, "", MAIL_ROOT, UP, "up");
    post(c, 1, "", MAIL_PARENT, UP_BULK, "new parent");
    cluster_run(c, P / 2);
    CHECK_EQ(COUNT_NODES(c, got(c, n, ROOT, "down") == 1), NODES - 1);
    CHECK_EQ(got(c, ROOT, 3, "up"), 1);
    CHECK_EQ(got(c, ROOT, 1, "new parent"), 1);
    world_boot(c->w, 0, false);
    CHECK(WITHIN(c, 80 * P, status_of(c, 1).parent == 0 && all_attached(c)));
    post(c, 1, "", MAIL_PARENT, UP, "old parent");
    cluster_run(c, P / 2);
    CHECK_EQ(got(c, 0, 1, "old parent"), 1);
    cluster_free(c);
}

static void test_without_a_way_up_it_is_dropped(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    world_crash(c->w, ROOT);
    CHECK(WITHIN(c, 10 * P, !status_of(c, 0).attached));
    post(c, 0, "", MAIL_ROOT, UP, "lost");
    post(c, 0, "", MAIL_PARENT, UP_BULK, "lost");
    post(c, 3, "", MAIL_ROOT, UP, "lost half way");
    cluster_run(c, P / 2);
    CHECK_EQ(letters(c), 0);
    world_boot(c->w, ROOT, true);
    CHECK(WITHIN(c, 40 * P, all_attached(c)));
    post(c, 3, "", MAIL_ROOT, UP, "again");
    cluster_run(c, P / 2);
    CHECK_EQ(letters(c), 1);
    const struct heard *h = heard_from(c, 0, ROOT, INPUT_MESSAGE);
    CHECK(h != NULL && h->in.message.epoch == status_of(c, ROOT).epoch);
    cluster_free(c);
}

/* ---- mail while everything breaks ---- */

enum { WAYS = 5, SERIES = WAYS * EVERYONE };

/* Letters of one series (a sender, a way, a lane) are numbered; what each reader has got last. */
static struct series {
    uint64_t sent[SERIES];
    uint64_t last[EVERYONE][SERIES];
    uint64_t got;
    uint32_t misplaced;
} series;

static const struct {
    enum mail_way way;
    uint16_t type;
} ways[WAYS] = {{MAIL_DOWN, DOWN},
                {MAIL_DOWN, DOWN_BULK},
                {MAIL_ROOT, UP},
                {MAIL_ROOT, UP_BULK},
                {MAIL_PARENT, MESSAGE_ENDS}};

static void write_letters(struct cluster *c, uint32_t node, struct effects *out) {
    for (uint32_t w = 0; w < WAYS; w++) {
        if ((ways[w].way == MAIL_DOWN) != (node == ROOT))
            continue;
        struct nodeset all;
        set_of(c, &all, NULL);
        uint8_t *body = effects_room(out, 8);
        store_le64(body, ++series.sent[w * EVERYONE + node]);
        struct effect *e = effects_add(out, EFFECT_REQUEST);
        e->request = mail(ways[w].way, ways[w].type, "");
        e->request.set = effects_copy_set(out, &all);
        e->request.body = bytes_of(body, 8);
        free(all.storage);
    }
}

static void read_letter(uint32_t node, const struct input_message *m) {
    uint32_t w = 0;
    while (w < WAYS && ways[w].type != m->type)
        w++;
    if (w == WAYS || m->peer >= EVERYONE || m->body.len != 8 ||
        (ways[w].way == MAIL_DOWN) != (m->peer == ROOT)) {
        series.misplaced++;
        return;
    }
    uint32_t at = w * EVERYONE + m->peer;
    uint64_t number = load_le64(m->body.at);
    series.misplaced += number > series.sent[at] || number <= series.last[node][at];
    series.last[node][at] = number;
    series.got++;
}

static bool correspond(struct cluster *c, uint32_t node, const struct input *in,
                       struct effects *out) {
    if (in->kind == INPUT_TIMER)
        write_letters(c, node, out);
    if (in->kind == INPUT_MESSAGE)
        read_letter(node, &in->message);
    return in->kind == INPUT_MESSAGE;
}

static void hurt(struct cluster *c, struct random *r) {
    uint32_t node = (uint32_t)random_below(r, EVERYONE);
    if (!world_up(c->w, node))
        world_boot(c->w, node, node == ROOT);
    else if (random_chance(r, 1, 3))
        world_pause(c->w, node, world_now(c->w) + random_below(r, 8 * P));
    else
        world_crash(c->w, node);
}

/* A letter may be lost. None comes twice, none before an earlier one of its lane, and none to whom it
 * was not for, whatever becomes of the way; and when all is well again all of them arrive. */
static void test_faults_lose_mail_and_do_nothing_else(void) {
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct random r;
        random_init(&r, seed);
        memset(&series, 0, sizeof series);
        struct cluster *c = cluster_new(NODES, SHAPE_KARY, 2);
        c->config.seed = seed;
        c->poll_ns = P / 10;
        c->above = correspond;
        CHECK(cluster_power(c, NODES));
        for (int i = 0; i < 40; i++) {
            hurt(c, &r);
            cluster_run(c, random_below(&r, 2 * P));
        }
        for (uint32_t n = 0; n < EVERYONE; n++)
            if (!world_up(c->w, n))
                world_boot(c->w, n, n == ROOT);
        CHECK(WITHIN(c, 200 * P, all_attached(c)));
        cluster_run(c, 100 * P); /* until everyone is back in its place */
        uint64_t before = series.got;
        uint64_t sent = 0;
        for (uint32_t i = 0; i < SERIES; i++)
            sent -= series.sent[i] * (i < 2 * EVERYONE ? EVERYONE : 1);
        cluster_run(c, 10 * P);
        for (uint32_t i = 0; i < SERIES; i++)
            sent += series.sent[i] * (i < 2 * EVERYONE ? EVERYONE : 1);
        CHECK(series.got - before + 300 > sent &&
              series.got - before < sent + 300); /* on its way */
        CHECK_EQ(series.misplaced, 0);
        cluster_free(c);
    }
}

/* ---- mail that must not be ---- */

static void test_a_daemon_cannot_send_what_it_may_not(void) {
    static const char long_text[] =
        "0123456789012345678901234567890123456789012345678901234567890123+";
    static const struct {
        enum mail_way way;
        uint16_t type;
        const char *text;
        enum refusal why;
    } bad[] = {
        {MAIL_DOWN, MESSAGE_NONE, "type", REFUSAL_TYPE},
        {MAIL_ROOT, MESSAGE_TYPES, "type", REFUSAL_TYPE},
        {MAIL_DOWN, MESSAGE_ENDS, "from a node", REFUSAL_ROLE},
        {MAIL_PARENT, MESSAGE_FORGET, "from the root", REFUSAL_ROLE},
        {MAIL_ROOT, MESSAGE_PREPARE, "ours", REFUSAL_ROLE},
        {MAIL_DOWN, MESSAGE_MAIL, "in mail", REFUSAL_ROLE},
        {MAIL_DOWN, MESSAGE_TAKEN, long_text, REFUSAL_SIZE},
    };
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint32_t from = i % 2 ? 9 : ROOT;
        uint64_t before = refused(c, from, bad[i].why);
        post(c, from, NULL, bad[i].way, bad[i].type, bad[i].text);
        cluster_run(c, P / 2);
        if (!CHECK_EQ(refused(c, from, bad[i].why), before + 1))
            printf("#   letter %zu\n", i);
    }
    CHECK_EQ(letters(c), 0);
    CHECK(all_attached(c));
    cluster_free(c);
}

/* A letter as a peer would forge it: a good one but for the field that the test changes. */
struct letter {
    uint32_t from, to;
    enum role role;
    uint16_t carrier;
    struct message_mail mail;
    const char *set;
    enum refusal why;
    bool costs_the_link;
};

static void check_forged(const struct letter *l) {
    static const char text[1025] = "forged"; /* larger than DOWN may be */
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    union message m = {.mail = l->mail};
    struct nodeset set;
    set_of(c, &set, l->set);
    m.mail.set = &set;
    m.mail.body = bytes_of(text, l->why == REFUSAL_SIZE ? sizeof text : 6);
    uint64_t before = refused(c, l->to, l->why);
    uint64_t closed = c->w->counts.refused[l->why]; /* links, for that reason */
    forge(c, l->from, l->to, l->role, l->carrier, &m);
    CHECK_EQ(refused(c, l->to, l->why), l->why == REFUSAL_NONE ? before : before + 1);
    CHECK_EQ(c->w->counts.refused[l->why] - closed, l->costs_the_link);
    CHECK_EQ(letters(c), l->why == REFUSAL_NONE);
    CHECK(WITHIN(c, 80 * P, all_attached(c)));
    post(c, ROOT, NULL, MAIL_DOWN, DOWN, "all is well");
    cluster_run(c, P / 2);
    CHECK_EQ(COUNT_NODES(c, got(c, n, ROOT, "all is well") == 1), EVERYONE);
    CHECK_EQ(fenced_count(c), 0);
    free(set.storage);
    cluster_free(c);
}

#define FROM_CHILD  1, 0, ROLE_CHILD
#define FROM_PARENT 0, 1, ROLE_PARENT

static void test_forged_mail_is_refused(void) {
    static const struct letter letters_[] = {
        {FROM_CHILD, MESSAGE_MAIL, {.origin = 1, .type = UP}, "", REFUSAL_NONE, false},
        {FROM_CHILD,
         MESSAGE_MAIL,
         {.origin = 3, .type = UP, .root = true},
         "",
         REFUSAL_NONE,
         false},
        {FROM_CHILD, MESSAGE_MAIL, {.origin = 1, .type = DOWN}, "", REFUSAL_ROLE, true},
        {FROM_CHILD, MESSAGE_MAIL, {.origin = 1, .type = UP_BULK}, "", REFUSAL_LANE, true},
        {FROM_CHILD, MESSAGE_PARCEL, {.origin = 1, .type = UP}, "", REFUSAL_LANE, true},
        {FROM_CHILD, MESSAGE_MAIL, {.origin = 1, .type = 999}, "", REFUSAL_TYPE, true},
        {FROM_CHILD, MESSAGE_MAIL, {.origin = 1, .type = UP}, "n2", REFUSAL_BODY, true},
        {FROM_CHILD, MESSAGE_MAIL, {.origin = 99, .type = UP}, "", REFUSAL_BODY, true},
        {FROM_CHILD,
         MESSAGE_MAIL,
         {.origin = 9, .type = UP, .root = true},
         "",
         REFUSAL_SENDER,
         false}, /* not below it */
        {FROM_CHILD,
         MESSAGE_MAIL,
         {.origin = 3, .type = UP},
         "",
         REFUSAL_SENDER,
         false}, /* below it, but not ours to hear */
        {FROM_PARENT, MESSAGE_MAIL, {.origin = 17, .type = DOWN}, "n3", REFUSAL_NONE, false},
        {FROM_PARENT,
         MESSAGE_PARCEL,
         {.origin = 17, .type = DOWN_BULK},
         "n[1]",
         REFUSAL_NONE,
         false},
        {FROM_PARENT, MESSAGE_MAIL, {.origin = 17, .type = UP}, "n3", REFUSAL_ROLE, true},
        {FROM_PARENT, MESSAGE_MAIL, {.origin = 17, .type = DOWN}, "n3", REFUSAL_SIZE, true},
        {FROM_PARENT, MESSAGE_MAIL, {.origin = 17, .type = DOWN}, "", REFUSAL_BODY, true},
        {FROM_PARENT,
         MESSAGE_MAIL,
         {.origin = 17, .type = DOWN, .root = true},
         "n3",
         REFUSAL_BODY,
         true},
    };
    for (size_t i = 0; i < sizeof letters_ / sizeof *letters_; i++) {
        printf("# letter %zu\n", i);
        check_forged(&letters_[i]);
    }
}

/* What a child says that has not attached itself in this epoch, or said in a former one, is nobody's
 * word. */
static void test_mail_of_who_does_not_belong_is_dropped(void) {
    struct cluster *c = cluster_start(NODES, SHAPE_KARY, 2);
    struct nodeset set;
    set_of(c, &set, "");
    union message m = {.mail = {.origin = 1, .type = UP, .set = &set}};
    struct prim *parent = prim_of(c, 0);
    for (uint32_t i = 0; i < parent->route.count; i++)
        parent->route.children[i].attached = false;
    forge(c, 1, 0, ROLE_CHILD, MESSAGE_MAIL, &m);
    CHECK_EQ(refused(c, 0, REFUSAL_SENDER), 1);
    for (uint32_t i = 0; i < parent->route.count; i++)
        parent->route.children[i].attached = true;
    uint32_t epoch = parent->epoch;
    parent->epoch = epoch - 1; /* so that it is sent as of that epoch */
    forge_soon(c, 1, 0, ROLE_CHILD, MESSAGE_MAIL, &m);
    parent->epoch = epoch;
    cluster_run(c, 100 * NS_PER_US);
    CHECK_EQ(refused(c, 0, REFUSAL_EPOCH), 1);
    CHECK_EQ(letters(c), 0);
    forge(c, 1, 0, ROLE_CHILD, MESSAGE_MAIL, &m);
    CHECK_EQ(letters(c), 1);
    free(set.storage);
    cluster_free(c);
}

/* ---- who is below ---- */

/* What each daemon was told last. */
static struct told {
    struct nodeset below;
    uint64_t storage[8];
    bool attached;
    uint32_t epoch, settled;
    uint32_t this_step;
} told[EVERYONE];

static void forget_told(uint32_t node) {
    told[node] = (struct told){0};
    nodeset_init(&told[node].below, EVERYONE, told[node].storage);
}

/* Nothing is told twice, unless another epoch has begun. */
static bool hear_tree(struct cluster *c, uint32_t node, const struct input *in,
                      struct effects *out) {
    (void)out;
    struct told *t = &told[node];
    if (in->kind == INPUT_BOOT)
        forget_told(node);
    if (in->kind != INPUT_TREE)
        return false;
    uint32_t epoch = c->w == NULL ? 0 : prim_of(c, node)->epoch;
    CHECK(t->attached != in->tree.attached || !nodeset_equal(&t->below, in->tree.below) ||
          t->epoch != epoch || t->settled != in->tree.epoch);
    CHECK_EQ(t->this_step++, 0);
    t->attached = in->tree.attached;
    t->settled = in->tree.epoch;
    t->epoch = epoch;
    nodeset_copy(&t->below, in->tree.below);
    return false;
}

/* After every step a daemon knows how things are. */
static void compare_tree(struct cluster *c, uint32_t node) {
    const struct prim *p = prim_of(c, node);
    struct told *t = &told[node];
    uint64_t storage[8];
    struct nodeset below;
    nodeset_init(&below, EVERYONE, storage);
    nodeset_copy(&below, &p->route.reach);
    nodeset_subtract(&below, &p->route.waiting);
    CHECK(nodeset_equal(&below, &t->below));
    CHECK_EQ(status_of(c, node).attached, t->attached);
    t->this_step = 0;
}

static struct cluster *start_watched(void) {
    for (uint32_t n = 0; n < EVERYONE; n++)
        forget_told(n);
    struct cluster *c = cluster_new(NODES, SHAPE_KARY, 2);
    c->above = hear_tree;
    c->look = compare_tree;
    CHECK(cluster_power(c, NODES));
    return c;
}

static bool told_below(const struct cluster *c, uint32_t node, const char *text) {
    struct nodeset set;
    set_of(c, &set, text);
    bool same = nodeset_equal(&set, &told[node].below);
    free(set.storage);
    return same && told[node].attached;
}

static void test_daemons_know_who_is_below(void) {
    struct cluster *c = start_watched();
    CHECK(told_below(c, ROOT, "n[0-16]"));
    CHECK(told_below(c, 0, "n[1-8]"));
    CHECK(told_below(c, 9, "n[10-16]"));
    CHECK(told_below(c, 1, "n[2-4]"));
    CHECK(told_below(c, 3, ""));
    uint32_t heard = COUNT_NODES(c, c->listeners[n].count[INPUT_TREE] > 0);
    CHECK_EQ(heard, EVERYONE);
    uint32_t before = c->listeners[9].count[INPUT_TREE];
    uint32_t leaf = c->listeners[3].count[INPUT_TREE];
    cluster_run(c, 5 * P); /* nothing happens: nothing is told */
    CHECK_EQ(c->listeners[9].count[INPUT_TREE], before);
    world_crash(c->w, 12);
    cluster_run(c, 4 * P);
    CHECK(told_below(c, 9, "n[10-11,13-16]"));
    CHECK(told_below(c, ROOT, "n[0-11,13-16]"));
    CHECK_EQ(c->listeners[9].count[INPUT_TREE], before + 1);
    CHECK_EQ(c->listeners[3].count[INPUT_TREE], leaf);
    cluster_free(c);
}

/* Whatever happens to the tree: what is told is what is, at every moment (compare_tree). */
static void test_what_is_told_is_what_is(void) {
    struct cluster *c = start_watched();
    world_crash(c->w, 0);
    CHECK(WITHIN(c, 20 * P,
                 told_below(c, 1, "n[2-4]") && told_below(c, 5, "n[6-8]") &&
                     told_below(c, ROOT, "n[1-16]")));
    world_boot(c->w, 0, false);
    CHECK(WITHIN(c, 80 * P, told_below(c, 0, "n[1-8]") && told_below(c, ROOT, "n[0-16]")));
    world_pause(c->w, 9, world_now(c->w) + 20 * P);
    CHECK(WITHIN(c, 20 * P, status_of(c, 10).parent == ROOT));
    CHECK(WITHIN(c, 120 * P, told_below(c, 9, "n[10-16]") && told_below(c, ROOT, "n[0-16]")));
    world_crash(c->w, ROOT);
    CHECK(WITHIN(c, 20 * P, !told[0].attached && !told[9].attached));
    world_boot(c->w, ROOT, true);
    CHECK(WITHIN(c, 80 * P,
                 told_below(c, ROOT, "n[0-16]") && told_below(c, 9, "n[10-16]") &&
                     told_below(c, 0, "n[1-8]") && told_below(c, 16, "")));
    cluster_free(c);
}

int main(void) {
    TEST(test_down_to_a_set);
    TEST(test_down_from_an_inner_node);
    TEST(test_up_to_the_parent);
    TEST(test_up_to_the_root);
    TEST(test_each_lane_keeps_the_order);
    TEST(test_dead_nodes_get_nothing_and_hold_nothing_up);
    TEST(test_the_way_heals);
    TEST(test_without_a_way_up_it_is_dropped);
    TEST(test_faults_lose_mail_and_do_nothing_else);
    TEST(test_a_daemon_cannot_send_what_it_may_not);
    TEST(test_forged_mail_is_refused);
    TEST(test_mail_of_who_does_not_belong_is_dropped);
    TEST(test_daemons_know_who_is_below);
    TEST(test_what_is_told_is_what_is);
    return tap_finish();
}
