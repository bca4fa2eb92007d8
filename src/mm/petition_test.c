/* SPDX-License-Identifier: MIT */
/* Programs that talk to the manager: of their own affairs only, in conversations that begin anew where something is lost. */
#include "manager_alone.h"

#include "wire/bundle.h"

enum { NODE = 1, OTHER_NODE = 3 };

static void keep(struct bench *b) {
    feed(b, (struct input){.kind = INPUT_LOGGED, .logged = {.ticket = b->mm->tickets}});
}

/* The nth REPLY of the last step; false: there is none. */
static bool replied(struct bench *b, uint32_t nth, struct message_reply *ret) {
    for (uint32_t i = 0; i < b->out.count; i++) {
        const struct effect *e = &b->out.list[i];
        union message m;
        if (e->kind != EFFECT_REQUEST || e->request.kind != PRIMITIVE_MAIL ||
            e->request.type != MESSAGE_REPLY || nth-- > 0)
            continue;
        CHECK_EQ(message_decode(MESSAGE_REPLY, e->request.body, b->sets, &m), 0);
        *ret = m.reply;
        return true;
    }
    return false;
}

static uint32_t replies(struct bench *b) {
    struct message_reply r;
    uint32_t count = 0;
    while (replied(b, count, &r))
        count++;
    return count;
}

static struct message_reply first(struct bench *b) {
    struct message_reply r = {.number = UINT32_MAX};
    CHECK(replied(b, 0, &r));
    return r;
}

static void petition(struct bench *b, uint32_t node, struct message_petition p) {
    say(b, 0, node, MESSAGE_PETITION, &(union message){.petition = p});
}

struct talk {
    uint64_t run;
    uint32_t number, said, heard;
};

static void talk(struct bench *b, struct talk *t, uint16_t type, const union message *m) {
    uint8_t body[2048];
    long len = message_encode(type, m, room_of(body, sizeof body));
    CHECK(len >= 0);
    petition(b, NODE,
             (struct message_petition){.run = t->run,
                                       .number = t->number,
                                       .sequence = ++t->said,
                                       .heard = t->heard,
                                       .type = type,
                                       .body = bytes_of(body, (size_t)len)});
}

static void ask(struct bench *b, struct talk *t, enum subject subject, uint32_t job) {
    union message m = {
        .ask = {.request = {++b->requests, 1}, .subject = (uint8_t)subject, .job = job}};
    talk(b, t, MESSAGE_ASK, &m);
}

static void act(struct bench *b, struct talk *t, enum verb verb, uint32_t job) {
    uint8_t jobs[4];
    store_le32(jobs, job);
    union message m = {.act = {.request = {++b->requests, 1},
                               .verb = (uint8_t)verb,
                               .nodes = &b->none,
                               .jobs = bytes_of(jobs, 4)}};
    talk(b, t, MESSAGE_ACT, &m);
}

/* What is inside the first reply. */
static union message inside(struct bench *b, uint16_t type) {
    struct message_reply r = first(b);
    union message m = {0};
    CHECK_EQ(r.type, type);
    CHECK_EQ(message_decode(r.type, r.body, b->sets, &m), 0);
    return m;
}

static uint32_t rows_in(struct bench *b) {
    union message m = inside(b, MESSAGE_ROWS);
    struct job_row row;
    uint32_t count = 0;
    for (size_t at = 0; job_row_next(m.rows.rows, &at, &row) > 0;)
        count++;
    return count;
}

static bool refused(struct bench *b, const char *words) {
    struct message_reply r = first(b);
    union message m;
    CHECK_EQ(message_decode(r.type, r.body, b->sets, &m), 0);
    struct bytes text = r.type == MESSAGE_ROWS ? m.rows.wrong : m.answer.text;
    if (r.type == MESSAGE_ANSWER)
        CHECK(m.answer.code != ANSWER_DONE);
    return memmem(text.at, text.len, words, strlen(words)) != NULL;
}

static struct running *submit(struct bench *b, const char *nodes) {
    union message m = {.submit = {.request = {++b->requests, 2},
                                  .kind = JOB_RUN,
                                  .nodes = 1,
                                  .ppn = 1,
                                  .procs = 1,
                                  .on = &b->set,
                                  .exclude = &b->none}};
    CHECK_EQ(nodeset_parse(&b->set, nodes, "n", NULL), 0);
    say(b, LINK, 0, MESSAGE_SUBMIT, &m);
    keep(b);
    struct job *j = job_find(b->mm, b->mm->next_id - 1);
    struct running *r = job_running(b->mm, j);
    CHECK(r != NULL);
    r->phase = PHASE_GOING;
    j->state = STATE_RUNNING;
    nodeset_copy(&r->waiting, &r->set);
    return r;
}

/* Jobs 1 and 2 run, on nodes 1 and 3; a program of the first has begun to talk. */
static struct talk begin_talk(struct bench *b) {
    begin(b);
    for (uint32_t i = 0; i < NODES; i++)
        join(b, i);
    struct talk t = {.run = submit(b, "n1")->run, .number = 4};
    submit(b, "n3");
    return t;
}

static void test_of_its_own_affairs(void) {
    struct bench b;
    struct talk t = begin_talk(&b);
    ask(&b, &t, SUBJECT_JOB, 1);
    CHECK_EQ(rows_in(&b), 1);
    struct message_reply r = first(&b);
    CHECK(r.run == t.run && r.number == 4 && r.sequence == 1 && r.heard == 1 && !r.reset);
    ask(&b, &t, SUBJECT_JOBS, 0);
    CHECK_EQ(rows_in(&b), 1);
    CHECK_EQ(inside(&b, MESSAGE_ROWS).rows.total, 1);
    ask(&b, &t, SUBJECT_NODES, 0);
    CHECK_EQ(inside(&b, MESSAGE_ROWS).rows.total, 1);
    act(&b, &t, VERB_FOLLOW, 1);
    CHECK_EQ(inside(&b, MESSAGE_NEWS).news.job, 1);
    CHECK_EQ(replies(&b), 2); /* and an answer */
    teardown(&b);
}

static void test_not_of_others(void) {
    struct bench b;
    struct talk t = begin_talk(&b);
    ask(&b, &t, SUBJECT_JOB, 2);
    CHECK(refused(&b, "not of this program's family"));
    ask(&b, &t, SUBJECT_WHY, 77);
    CHECK(refused(&b, "not of this program's family"));
    ask(&b, &t, SUBJECT_CLUSTER, 0);
    CHECK(refused(&b, "may not ask for that"));
    act(&b, &t, VERB_KILL, 2);
    CHECK(refused(&b, "not of this program's family"));
    CHECK_EQ(job_find(b.mm, 2)->reason, REASON_NONE);
    act(&b, &t, VERB_STOP, 1);
    CHECK(refused(&b, "may not ask for that"));
    act(&b, &t, VERB_FOLLOW, 0); /* every batch job */
    CHECK(refused(&b, "not of this program's family"));
    union message m = {.submit = {.request = {++b.requests, 2},
                                  .nodes = 1,
                                  .ppn = 1,
                                  .procs = 1,
                                  .on = &b.none,
                                  .exclude = &b.none}};
    talk(&b, &t, MESSAGE_SUBMIT, &m);
    CHECK(refused(&b, "only ask for hosts"));
    union message reserve = {.reserve = {.nodes = &b.none}};
    talk(&b, &t, MESSAGE_RESERVE, &reserve);
    CHECK(refused(&b, "may not say that"));
    teardown(&b);
}

/* A host for this job, as a program asks for it. */
static void ask_host(struct bench *b, struct talk *t, uint32_t parent) {
    union message m = {.submit = {.request = {++b->requests, 2},
                                  .kind = JOB_ALLOC,
                                  .flags = JOB_FAMILY | JOB_LENT | JOB_DETACHED,
                                  .nodes = 1,
                                  .ppn = 1,
                                  .procs = 1,
                                  .parent = parent,
                                  .name = bytes_from_str("any"),
                                  .on = &b->none,
                                  .exclude = &b->none}};
    talk(b, t, MESSAGE_SUBMIT, &m);
}

static void follow_family(struct bench *b, struct talk *t, uint32_t job) {
    uint8_t jobs[4];
    store_le32(jobs, job);
    union message m = {.act = {.request = {++b->requests, 1},
                               .verb = VERB_FOLLOW,
                               .value = 4,
                               .nodes = &b->none,
                               .jobs = bytes_of(jobs, 4)}};
    talk(b, t, MESSAGE_ACT, &m);
    CHECK_EQ(inside(b, MESSAGE_ANSWER).answer.code, ANSWER_DONE);
}

/* News of this job and state among what was said in the last step. */
static bool told_of(struct bench *b, uint32_t job, enum job_state state) {
    struct message_reply r;
    for (uint32_t i = 0; replied(b, i, &r); i++) {
        union message m;
        CHECK_EQ(message_decode(r.type, r.body, b->sets, &m), 0);
        if (r.type == MESSAGE_NEWS && m.news.job == job && m.news.state == state)
            return true;
    }
    return false;
}

static void test_hosts(void) {
    struct bench b;
    struct talk t = begin_talk(&b);
    ask_host(&b, &t, 2);
    CHECK(refused(&b, "only ask for hosts"));
    follow_family(&b, &t, 1);
    ask_host(&b, &t, 1);
    keep(&b); /* the submission, and then its start */
    bool told = told_of(&b, 3, STATE_RUNNING);
    for (int i = 0; i < 4 && !told; i++) {
        keep(&b);
        told = told_of(&b, 3, STATE_RUNNING);
    }
    CHECK(told);
    ask(&b, &t, SUBJECT_JOBS, 0);
    CHECK_EQ(rows_in(&b), 2);
    ask(&b, &t, SUBJECT_JOB, 3);
    CHECK_EQ(rows_in(&b), 1);
    ask(&b, &t, SUBJECT_CLASSES, 1); /* it has none */
    CHECK_EQ(inside(&b, MESSAGE_ROWS).rows.total, 0);
    act(&b, &t, VERB_END, 3);
    keep(&b);
    told = told_of(&b, 3, STATE_DONE) || told_of(&b, 3, STATE_KILLED);
    for (int i = 0; i < 4 && !told; i++) {
        keep(&b);
        told = told_of(&b, 3, STATE_DONE) || told_of(&b, 3, STATE_KILLED);
    }
    CHECK(told);
    teardown(&b);
}

static void change_class(struct bench *b, struct talk *t, enum verb verb, const char *name,
                         uint64_t request) {
    uint8_t text[64], job[4];
    struct host_class h = {.most = 1, .ppn = 1, .name = bytes_from_str(name)};
    long len = class_store(&h, room_of(text, sizeof text));
    CHECK(len > 0);
    store_le32(job, 1);
    union message m = {.act = {.request = {request, 9},
                               .verb = (uint8_t)verb,
                               .nodes = &b->none,
                               .jobs = bytes_of(job, 4),
                               .text = bytes_of(text, (size_t)len)}};
    talk(b, t, MESSAGE_ACT, &m);
}

/* What was answered at once, as an errno; 0: done, or when it is durable. */
static uint32_t changed(struct bench *b) {
    if (replies(b) == 0)
        keep(b);
    struct message_answer a = inside(b, MESSAGE_ANSWER).answer;
    return a.code == ANSWER_DONE ? 0 : a.count;
}

static void test_classes(void) {
    struct bench b;
    struct talk t = begin_talk(&b);
    struct talk other = {.run = t.run, .number = 5};
    change_class(&b, &t, VERB_DEFINE, "any", 70);
    CHECK_EQ(changed(&b), 0);
    change_class(&b, &t, VERB_DEFINE, "any", 70); /* the answer was lost */
    CHECK_EQ(changed(&b), 0);
    change_class(&b, &other, VERB_DEFINE, "any", 71);
    CHECK_EQ(changed(&b), EEXIST);
    ask(&b, &other, SUBJECT_CLASSES, 1);
    CHECK_EQ(inside(&b, MESSAGE_ROWS).rows.total, 1);
    ask_host(&b, &t, 1);
    keep(&b);
    change_class(&b, &other, VERB_UNDEFINE, "any", 72);
    CHECK_EQ(changed(&b), EBUSY);
    act(&b, &t, VERB_END, 3);
    for (int i = 0; i < 4; i++)
        keep(&b);
    change_class(&b, &other, VERB_UNDEFINE, "any", 73);
    CHECK_EQ(changed(&b), 0);
    change_class(&b, &other, VERB_UNDEFINE, "any", 73);
    CHECK_EQ(changed(&b), 0);
    change_class(&b, &t, VERB_UNDEFINE, "any", 74);
    CHECK_EQ(changed(&b), EINVAL);
    ask(&b, &t, SUBJECT_CLASSES, 1);
    CHECK_EQ(inside(&b, MESSAGE_ROWS).rows.total, 0);
    for (uint32_t i = 0; i < 33; i++) {
        char name[8];
        snprintf(name, sizeof name, "c%u", i);
        change_class(&b, &t, VERB_DEFINE, name, 80 + i);
        CHECK_EQ(changed(&b), i < 32 ? 0 : ENOSPC);
        t.heard = t.said + 9;
    }
    CHECK(b.mm->definition_count > 0);
    classes_drop(b.mm, 1);
    CHECK_EQ(b.mm->definition_count, 0);
    teardown(&b);
}

/* A process on host 3, with something that goes there before. */
static void ask_process(struct bench *b, struct talk *t, const struct message_copy *copy,
                        enum goal goal) {
    uint8_t descriptor[256], files[512];
    struct bundle bundle = {.goal = (uint8_t)goal,
                            .bytes = 9,
                            .manifest_bytes = 1,
                            .pieces = 1,
                            .page_pieces = 64,
                            .piece_bytes = 9,
                            .to = bytes_from_str(goal == GOAL_PATH ? "/etc" : ""),
                            .pages = bytes_of("0123456789abcdef", 16)};
    union message c = {.copy = *copy};
    long len = bundle_encode(&bundle, room_of(descriptor, sizeof descriptor));
    CHECK(len > 0);
    c.copy.slots = 1;
    c.copy.set = &b->none;
    c.copy.descriptor = bytes_of(descriptor, (size_t)len);
    len = message_encode(MESSAGE_COPY, &c, room_of(files, sizeof files));
    CHECK(len > 0);
    union message m = {.submit = {.request = {++b->requests, 2},
                                  .kind = JOB_STEP,
                                  .flags = JOB_DETACHED,
                                  .nodes = 1,
                                  .ppn = 1,
                                  .procs = 1,
                                  .inside = 1,
                                  .on = &b->none,
                                  .exclude = &b->none,
                                  .files = bytes_of(files, (size_t)len)}};
    talk(b, t, MESSAGE_SUBMIT, &m);
}

/* Programs that it gives are of its own node, and go to caches; nobody is sent to another address for them. */
static void test_programs_that_it_gives(void) {
    struct bench b;
    struct talk t = begin_talk(&b);
    ask_process(&b, &t, &(struct message_copy){.source = OTHER_NODE}, GOAL_SPOOL);
    CHECK(refused(&b, "programs of its own node"));
    ask_process(&b, &t,
                &(struct message_copy){.source = NO_NODE, .address = bytes_from_str("1.2.3.4:5")},
                GOAL_SPOOL);
    CHECK(refused(&b, "programs of its own node"));
    ask_process(&b, &t, &(struct message_copy){.source = NODE}, GOAL_PATH);
    CHECK(refused(&b, "programs of its own node"));
    ask_process(&b, &t, &(struct message_copy){.source = NODE}, GOAL_SPOOL);
    keep(&b);
    CHECK(replies(&b) == 0 || !refused(&b, "programs of its own node"));
    teardown(&b);
}

/* Whatever it says: the node is its own. */
static void test_a_file_is_made_ready(void) {
    struct bench b;
    struct talk t = begin_talk(&b);
    union message m = {.offer = {.request = {++b.requests, 2},
                                 .pattern = true,
                                 .set = &b.set,
                                 .path = bytes_from_str("/bin/true")}};
    CHECK_EQ(nodeset_parse(&b.set, "n3", "n", NULL), 0);
    talk(&b, &t, MESSAGE_OFFER, &m);
    uint32_t asked = 0;
    for (uint32_t i = 0; i < b.out.count; i++) {
        const struct effect *e = &b.out.list[i];
        union message o;
        if (e->kind != EFFECT_REQUEST || e->request.type != MESSAGE_OFFER)
            continue;
        CHECK_EQ(message_decode(MESSAGE_OFFER, e->request.body, b.sets, &o), 0);
        CHECK(o.offer.program && !o.offer.pattern && nodeset_count(e->request.set) == 1 &&
              nodeset_has(e->request.set, NODE));
        asked++;
    }
    CHECK_EQ(asked, 1);
    union message offered = {.offered = {.request = {b.requests, 2}, .offer = 7}};
    say(&b, 0, NODE, MESSAGE_OFFERED, &offered);
    CHECK_EQ(inside(&b, MESSAGE_OFFERED).offered.node, NODE);
    teardown(&b);
}

static void test_what_no_client_could_say(void) {
    struct bench b;
    struct talk t = begin_talk(&b);
    static const uint16_t types[] = {MESSAGE_ENDS, MESSAGE_PETITION, MESSAGE_TYPES, UINT16_MAX,
                                     MESSAGE_ASK};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        petition(&b, NODE,
                 (struct message_petition){.run = t.run,
                                           .number = t.number,
                                           .sequence = ++t.said,
                                           .type = types[i],
                                           .body = bytes_from_str("nonsense")});
        CHECK(refused(&b, "cannot be understood"));
    }
    teardown(&b);
}

static void test_it_must_run_there(void) {
    struct bench b;
    struct talk t = begin_talk(&b);
    struct message_petition p = {.run = t.run, .number = 1, .sequence = 1, .type = MESSAGE_ASK};
    petition(&b, OTHER_NODE, p);
    CHECK_EQ(replies(&b), 0);
    petition(&b, NODES + 1, p);
    CHECK_EQ(replies(&b), 0);
    p.run++;
    petition(&b, NODE, p);
    CHECK_EQ(replies(&b), 0);
    CHECK_EQ(idtable_count(&b.mm->petition_ids), 0);
    teardown(&b);
}

static void test_where_counts_do_not_fit_it_begins_anew(void) {
    struct bench b;
    struct talk t = begin_talk(&b);
    t.said = 4;
    ask(&b, &t, SUBJECT_JOB, 1); /* of a conversation that we do not know */
    CHECK(first(&b).reset && first(&b).number == 4);
    t = (struct talk){.run = t.run, .number = 5};
    ask(&b, &t, SUBJECT_JOB, 1);
    CHECK_EQ(rows_in(&b), 1);
    act(&b, &t, VERB_FOLLOW, 1);
    t.said = 1;
    ask(&b, &t, SUBJECT_JOB, 1); /* late, by another way */
    CHECK_EQ(replies(&b), 0);
    struct message_petition check = {.run = t.run, .number = 5, .sequence = 2};
    petition(&b, NODE, check);
    CHECK(!first(&b).reset && first(&b).type == MESSAGE_NONE && first(&b).sequence == 3 &&
          first(&b).heard == 2);
    check.sequence = 3; /* that one was lost */
    petition(&b, NODE, check);
    CHECK(first(&b).reset);
    CHECK_EQ(idtable_count(&b.mm->petition_ids), 0);
    CHECK_EQ(b.mm->follow_end, 2); /* those of the jobs' own clients */
    petition(&b, NODE, check);
    CHECK(first(&b).reset);
    t = (struct talk){.run = t.run, .number = 6};
    ask(&b, &t, SUBJECT_JOB, 1);
    t.said++;
    ask(&b, &t, SUBJECT_JOB, 1); /* a gap */
    CHECK(first(&b).reset);
    teardown(&b);
}

static void test_it_goes_with_its_run(void) {
    struct bench b;
    struct talk t = begin_talk(&b);
    act(&b, &t, VERB_FOLLOW, 1);
    CHECK_EQ(idtable_count(&b.mm->petition_ids), 1);
    petition(&b, NODE, (struct message_petition){.run = t.run, .number = t.number, .over = true});
    CHECK_EQ(idtable_count(&b.mm->petition_ids), 0);
    t.said = 0;
    t.number++;
    act(&b, &t, VERB_FOLLOW, 1);
    running_free(b.mm, job_running(b.mm, job_find(b.mm, 1)));
    job_find(b.mm, 1)->slot = NO_SLOT;
    feed(&b, (struct input){.kind = INPUT_TIMER});
    CHECK_EQ(idtable_count(&b.mm->petition_ids), 0);
    teardown(&b);
}

static void test_one_run_does_not_take_all_places(void) {
    struct bench b;
    struct talk t = begin_talk(&b);
    for (uint32_t i = 0; i < 256; i++) {
        struct talk one = {.run = t.run, .number = 100 + i};
        ask(&b, &one, SUBJECT_JOB, 1);
        CHECK_EQ(rows_in(&b), 1);
    }
    ask(&b, &t, SUBJECT_JOB, 1);
    CHECK(refused(&b, "too many programs"));
    ask(&b, &t, SUBJECT_JOB, 1);
    CHECK(first(&b).reset);
    t.run = job_running(b.mm, job_find(b.mm, 2))->run;
    t.said = 0;
    uint8_t body[64];
    union message m = {.ask = {.subject = SUBJECT_JOB, .job = 2}};
    long len = message_encode(MESSAGE_ASK, &m, room_of(body, sizeof body));
    petition(&b, OTHER_NODE,
             (struct message_petition){.run = t.run,
                                       .number = 1,
                                       .sequence = 1,
                                       .type = MESSAGE_ASK,
                                       .body = bytes_of(body, (size_t)len)});
    CHECK_EQ(rows_in(&b), 1);
    teardown(&b);
}

static void test_who_never_says_what_it_has_heard(void) {
    struct bench b;
    struct talk t = begin_talk(&b);
    for (uint32_t i = 0; i < 4096; i++) {
        ask(&b, &t, SUBJECT_JOB, 1);
        CHECK(!first(&b).reset);
    }
    ask(&b, &t, SUBJECT_JOB, 1);
    CHECK(first(&b).reset);
    CHECK_EQ(idtable_count(&b.mm->petition_ids), 0);
    teardown(&b);
}

/* Of the last answer; *ret is the last. */
static uint32_t peers_in(struct bench *b, struct peer_row *ret) {
    union message m = inside(b, MESSAGE_ROWS);
    uint32_t count = 0;
    CHECK(m.rows.last && m.rows.wrong.len == 0);
    struct peer_row row;
    for (size_t at = 0; peer_row_next(m.rows.rows, &at, &row) > 0; count++)
        *ret = row;
    return count;
}

static void test_who_is_reached(void) {
    struct bench b;
    struct peer_row row;
    struct talk t = begin_talk(&b), other = {.run = t.run, .number = 5};
    ask(&b, &t, SUBJECT_PEERS, 0);
    CHECK_EQ(peers_in(&b, &row), 0);
    union message m = {.reach = {.token = {7, 8}, .door = 9, .ip = {1, 2}, .port = 3}};
    talk(&b, &t, MESSAGE_REACH, &m);
    CHECK_EQ(replies(&b), 0);
    m.reach.port = 4;
    talk(&b, &other, MESSAGE_REACH, &m);
    ask(&b, &other, SUBJECT_PEERS, 0);
    CHECK_EQ(peers_in(&b, &row), 2);
    CHECK(row.job == 1 && row.rank == 0 && row.node == NODE && row.host == 0 && row.number == 5);
    CHECK(row.reach.port == 4 && row.reach.token[0] == 7 && row.reach.token[1] == 8 &&
          row.reach.door == 9 && row.reach.ip[0] == 1 && row.reach.ip[1] == 2);
    ask(&b, &other, SUBJECT_PEERS, row.place);
    CHECK_EQ(peers_in(&b, &row), 1);
    ask(&b, &other, SUBJECT_PEERS, UINT32_MAX);
    CHECK_EQ(peers_in(&b, &row), 0);
    petition(&b, NODE, (struct message_petition){.run = t.run, .number = 4, .over = true});
    ask(&b, &other, SUBJECT_PEERS, 0);
    CHECK_EQ(peers_in(&b, &row), 1);
    teardown(&b);
}

/* Another program, and a client. */
static void test_others_do_not_know_who_is_reached(void) {
    struct bench b;
    struct talk t = begin_talk(&b);
    union message m = {.reach = {.token = {7, 8}}}, a = {.ask = {.subject = SUBJECT_PEERS}};
    uint8_t body[64];
    talk(&b, &t, MESSAGE_REACH, &m);
    long len = message_encode(MESSAGE_ASK, &a, room_of(body, sizeof body));
    petition(&b, OTHER_NODE,
             (struct message_petition){.run = job_running(b.mm, job_find(b.mm, 2))->run,
                                       .number = 1,
                                       .sequence = 1,
                                       .type = MESSAGE_ASK,
                                       .body = bytes_of(body, (size_t)len)});
    struct peer_row row;
    CHECK_EQ(peers_in(&b, &row), 0);
    say(&b, LINK, 0, MESSAGE_ASK, &a);
    uint32_t told = 0;
    for (uint32_t i = 0; i < b.out.count; i++) {
        const struct effect *e = &b.out.list[i];
        if (e->kind != EFFECT_SEND || e->send.type != MESSAGE_ROWS)
            continue;
        CHECK_EQ(message_decode(MESSAGE_ROWS, e->send.head, b.sets, &a), 0);
        CHECK_EQ(a.rows.rows.len, 0);
        told++;
    }
    CHECK_EQ(told, 1);
    teardown(&b);
}

int main(void) {
    TEST(test_of_its_own_affairs);
    TEST(test_not_of_others);
    TEST(test_hosts);
    TEST(test_classes);
    TEST(test_programs_that_it_gives);
    TEST(test_a_file_is_made_ready);
    TEST(test_what_no_client_could_say);
    TEST(test_it_must_run_there);
    TEST(test_where_counts_do_not_fit_it_begins_anew);
    TEST(test_it_goes_with_its_run);
    TEST(test_one_run_does_not_take_all_places);
    TEST(test_who_never_says_what_it_has_heard);
    TEST(test_who_is_reached);
    TEST(test_others_do_not_know_who_is_reached);
    return tap_finish();
}
