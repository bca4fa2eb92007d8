/* SPDX-License-Identifier: MIT */
/* What there is: jobs, nodes, the cluster. A list is answered in one message of bounded size, from a number
 * on; who wants more asks again from the next. */
#include <string.h>

#include "mm/inside.h"
#include "rm/say.h"
#include "wire/row.h"

enum {
    ROWS_BYTES = 96 << 10,
    ROWS_BYTES_PROGRAM = 48 << 10,
    WHY_MAX = 256,
    LIST_MAX = 2048,
    ROWS_MOST = 1000
};

struct rows {
    struct mm *m;
    const struct message_ask *ask;
    uint8_t *at;
    size_t len;
    size_t room;
    uint32_t count;
    uint32_t head;   /* a program asks: only of the family of this job; 0: of all */
    uint64_t traits; /* of nodes: which attributes are told */
};

static bool full(const struct rows *r) {
    uint32_t most = r->ask->most == 0 || r->ask->most > ROWS_MOST ? ROWS_MOST : r->ask->most;
    return r->count >= most || r->len + LIST_MAX + 1024 > r->room;
}

static struct room room_in(const struct rows *r) {
    return room_of(r->at + r->len, r->room - r->len);
}

static void took(struct rows *r, long len) {
    if (len < 0)
        return;
    r->len += (size_t)len;
    r->count++;
}

static void add_job(struct rows *out, const struct job *j, enum why how) {
    struct mm *m = out->m;
    const struct running *r = job_running(m, j);
    char words[WHY_MAX], list[LIST_MAX];
    struct text why;
    text_init(&why, words, sizeof words);
    uint64_t expected = why_waits(m, j, how, &why);
    const struct reservation *inside = reserve_of(m, j->window);
    size_t len = r == NULL ? 0 : roster_format(&m->roster, &r->set, list, sizeof list);
    if (len >= sizeof list)
        len = sizeof list - 1;
    struct job_row row = job_row_of(j);
    row.node_list = bytes_of(list, len);
    row.why = bytes_of(words, why.len);
    row.expected_ns = expected;
    if (inside != NULL)
        row.reservation = bytes_of(inside->name, inside->name_len);
    vitals_of_job(m, j, &row);
    char peak[ROSTER_NAME_MAX], node[ROSTER_NAME_MAX];
    job_row_where(&m->roster, &row, peak, node);
    took(out, job_row_encode(&row, room_in(out)));
}

/* Processors that somebody has, in whatever slot. */
static uint32_t node_used(const struct mm *m, uint32_t node) {
    uint32_t most = 0;
    for (uint32_t s = 0; s < STORM_SLOTS_MAX; s++) {
        uint32_t used = court_node_used(m->court, s, node);
        most = used > most ? used : most;
    }
    return most;
}

static void add_node(struct rows *out, uint32_t i) {
    struct mm *m = out->m;
    char traits[LIST_MAX];
    const struct node *n = &m->nodes[i];
    char name[ROSTER_NAME_MAX];
    uint8_t jobs[4 * 64];
    size_t jobs_len = 0;
    size_t len = roster_name(&m->roster, i, name, sizeof name);
    for (uint32_t k = 0; k < m->running_peak && jobs_len < sizeof jobs; k++) {
        const struct running *r = &m->runnings[k];
        if (r->job == 0 || r->phase == PHASE_OVER || !nodeset_has(&r->set, i))
            continue;
        store_le32(jobs + jobs_len, r->job);
        jobs_len += 4;
    }
    size_t traits_len = traits_format_some(&m->traits, i, out->traits, traits, sizeof traits);
    bool up = n->member && n->announced;
    struct node_row row = {
        .node = i,
        .state = (uint8_t)(!up          ? NODE_DOWN
                           : n->drained ? NODE_DRAINED
                                        : NODE_UP),
        .pes = court_node_pes_of(m->court, i),
        .used = node_used(m, i),
        .since_ns = n->since,
        .name = bytes_of(name, len),
        .reason = bytes_of(n->reason, n->reason_len),
        .jobs = bytes_of(jobs, jobs_len),
        .traits = bytes_of(traits, traits_len < sizeof traits ? traits_len : sizeof traits - 1),
        .owner = (uint8_t)owners_of(m, i)};
    vitals_of_node(m, i, &row);
    took(out, node_row_encode(&row, room_in(out)));
}

static void add_cluster(struct rows *out) {
    struct mm *m = out->m;
    struct mm_counts c;
    mm_counts(m, &c);
    uint32_t pes = 0, used = 0;
    NODESET_EACH (i, &m->taken) {
        pes += court_node_pes_of(m->court, i);
        used += node_used(m, i);
    }
    struct cluster_row row = {.epoch = m->epoch,
                              .nodes = c.nodes,
                              .up = c.nodes_up,
                              .pes = pes,
                              .used = used,
                              .queued = c.queued,
                              .running = c.running,
                              .started_ns = m->booted,
                              .said = m->said};
    took(out, cluster_row_encode(&row, room_in(out)));
}

static void add_policies(struct rows *out) {
    struct policy_row row;
    for (uint32_t i = 0; policy_row_at(out->m, i, &row); i++)
        took(out, policy_row_encode(&row, room_in(out)));
}

static void add_reservations(struct rows *out) {
    struct mm *m = out->m;
    char list[LIST_MAX];
    for (uint32_t i = 0; i < STORM_WINDOWS_MAX; i++) {
        const struct reservation *r = &m->reservations[i];
        if (r->id == 0)
            continue;
        size_t len = roster_format(&m->roster, &r->nodes, list, sizeof list);
        struct reservation_row row = {
            .open = r->from_ns <= wall(m),
            .nodes = nodeset_count(&r->nodes),
            .from_ns = r->from_ns,
            .to_ns = r->to_ns,
            .name = bytes_of(r->name, r->name_len),
            .node_list = bytes_of(list, len < sizeof list ? len : sizeof list - 1)};
        reserve_count(m, r->id, &row);
        took(out, reservation_row_encode(&row, room_in(out)));
    }
}

static void add_classes(struct rows *out, const struct job *j) {
    struct host_class one;
    for (uint32_t i = 0; family_class(out->m, j, i, &one); i++)
        took(out, class_store(&one, room_in(out)));
    for (uint32_t at = 0; classes_next(out->m, j->id, &at, &one);)
        took(out, class_store(&one, room_in(out)));
}

/* Jobs that are not over, by number; true if that were all. */
static bool add_jobs(struct rows *out) {
    struct mm *m = out->m;
    uint32_t from = out->ask->job;
    uint32_t oldest = m->next_id > m->config.jobs_max ? m->next_id - m->config.jobs_max : 1;
    for (uint32_t id = from > oldest ? from : oldest; id < m->next_id; id++) {
        const struct job *j = job_find(m, id);
        if (j == NULL || state_over((enum job_state)j->state) ||
            (out->head != 0 && !petition_of_family(m, out->head, id)))
            continue;
        if (full(out))
            return false;
        add_job(out, j, WHY_SHORT);
    }
    return true;
}

/* Only programs have a family, and know these. */
static bool add_peers(struct rows *out) {
    struct peer_row row;
    for (uint32_t i = out->ask->job; out->head != 0 && petition_peer(out->m, out->head, i, &row);
         i = row.place + 1) {
        if (full(out))
            return false;
        took(out, peer_row_encode(&row, room_in(out)));
    }
    return true;
}

/* `out->m->work` is who is meant. */
static bool add_nodes(struct rows *out) {
    for (uint32_t i = out->ask->job; i < out->m->config.limits.nodes; i++) {
        if (!nodeset_has(&out->m->work, i))
            continue;
        if (full(out))
            return false;
        add_node(out, i);
    }
    return true;
}

static bool choose_nodes(struct mm *m, const struct message_ask *a, uint32_t head,
                         struct text *why) {
    if (a->need.len == 0)
        nodeset_copy(&m->work, &m->taken);
    else if (needs_select(m, a->need, &m->work, why) < 0)
        return false;
    nodeset_intersect(&m->work, &m->taken);
    if (head != 0) {
        petition_nodes(m, head, &m->one);
        nodeset_intersect(&m->work, &m->one);
    }
    return true;
}

static void answer_spec(struct mm *m, const struct inquiry *q, struct bytes spec) {
    union message r = {.rows = {.request = {q->request[0], q->request[1]},
                                .subject = SUBJECT_SPEC,
                                .last = true,
                                .total = spec.len > 0,
                                .rows = spec}};
    client_say(m, q->link, MESSAGE_ROWS, &r);
}

static void inquire(struct mm *m, uint32_t link, const struct message_ask *a) {
    const struct job *j = job_find(m, a->job);
    struct inquiry now = {.link = link, .request = {a->request[0], a->request[1]}};
    for (uint32_t i = 0; j != NULL && i < INQUIRIES; i++) {
        if (m->inquiries[i].link != 0)
            continue;
        m->inquiries[i] = now;
        struct effect *e = effects_add(m->out, EFFECT_FETCH);
        e->fetch.ticket = INQUIRY_TICKET | i;
        e->fetch.key = j->key;
        return;
    }
    answer_spec(m, &now, (struct bytes){0});
}

void ask_fetched(struct mm *m, const struct input_fetched *in) {
    struct inquiry *q = &m->inquiries[in->ticket % INQUIRIES];
    struct message_submit s;
    struct bytes spec = {0};
    if (q->link == 0)
        return;
    if (record_spec(m, in->body, &s) == 0)
        spec = s.spec;
    answer_spec(m, q, spec);
    q->link = 0;
}

static uint32_t total_of(const struct mm *m) {
    struct mm_counts c;
    mm_counts(m, &c);
    return c.queued + c.running;
}

void ask_heard(struct mm *m, uint32_t link, const struct message_ask *a) {
    if (a->subject == SUBJECT_SPEC) {
        inquire(m, link, a);
        return;
    }
    char words[NEEDS_WHY_MAX];
    struct text why;
    text_init(&why, words, sizeof words);
    struct rows out = {.m = m,
                       .ask = a,
                       .at = effects_room(m->out, ROWS_BYTES),
                       .room = petition_is(link) ? ROWS_BYTES_PROGRAM : ROWS_BYTES,
                       .head = petition_head(m, link)};
    union message r = {.rows = {.request = {a->request[0], a->request[1]},
                                .subject = a->subject,
                                .last = true,
                                .total = 0}};
    const struct job *j = job_find(m, a->job);
    switch ((enum subject)a->subject) {
    case SUBJECT_JOBS:
        r.rows.last = add_jobs(&out);
        r.rows.total = out.head != 0 ? out.count : total_of(m);
        break;
    case SUBJECT_JOB:
    case SUBJECT_WHY:
        r.rows.total = j != NULL;
        if (j != NULL)
            add_job(&out, j, WHY_LONG);
        break;
    case SUBJECT_NODES:
        if (choose_nodes(m, a, out.head, &why)) {
            r.rows.total = nodeset_count(&m->work);
            out.traits = a->whole ? UINT64_MAX : traits_apart(&m->traits, &m->work);
            r.rows.last = add_nodes(&out);
        }
        r.rows.wrong = bytes_of(words, why.len);
        break;
    case SUBJECT_CLUSTER:
        r.rows.total = 1;
        add_cluster(&out);
        break;
    case SUBJECT_POLICIES:
        add_policies(&out);
        break;
    case SUBJECT_RESERVATIONS:
        add_reservations(&out);
        break;
    case SUBJECT_CLASSES:
        if (j != NULL)
            add_classes(&out, j);
        r.rows.total = out.count;
        break;
    case SUBJECT_PEERS:
        r.rows.last = add_peers(&out);
        r.rows.total = out.count;
        break;
    case SUBJECT_SPEC:
    case SUBJECTS:
        break;
    }
    r.rows.rows = bytes_of(out.at, out.len);
    client_say(m, link, MESSAGE_ROWS, &r);
}
