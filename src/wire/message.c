/* SPDX-License-Identifier: MIT */
/* The message table and how each message's fields follow each other. */
#include "wire/message.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/units.h"

static void walk_id(struct codec *c, struct op_id *id) {
    codec_u32(c, &id->node);
    codec_u64(c, &id->number);
    codec_u64(c, &id->incarnation);
}

static void walk_operation(struct codec *c, struct operation *o) {
    codec_enum(c, &o->kind, OPERATION_KINDS);
    uint8_t hint = o->ask ? 2 : o->hint;
    codec_enum(c, &hint, 3);
    o->hint = hint > 0;
    o->ask = hint == 2;
    codec_enum(c, &o->relation, RELATIONS);
    codec_u32(c, &o->event);
    codec_u32(c, &o->heap_offset);
    codec_u32(c, &o->variable);
    codec_u32(c, &o->write_variable);
    codec_u64(c, &o->transfer);
    codec_u64(c, &o->value);
    codec_u64(c, &o->write_value);
    codec_u64(c, &o->len);
    codec_rest(c, &o->body);
}

static void walk_epoch(struct codec *c, union message *m) {
    codec_u32(c, &m->epoch.root);
}

static void walk_attached(struct codec *c, union message *m) {
    codec_set(c, m->attached.set);
}

static void walk_fenced(struct codec *c, union message *m) {
    codec_u32(c, &m->fenced.node);
    codec_u64(c, &m->fenced.incarnation);
}

static void walk_view(struct codec *c, union message *m) {
    codec_u64(c, &m->view.view);
    codec_u64(c, &m->view.order);
    codec_u64(c, &m->view.stable);
    codec_set(c, m->view.members);
    codec_set(c, m->view.joined);
    codec_bytes(c, &m->view.variables, 8);
    codec_bytes(c, &m->view.resolutions, RESOLUTION_BYTES);
}

static void walk_prepare(struct codec *c, union message *m) {
    codec_u64(c, &m->prepare.order);
    codec_u64(c, &m->prepare.stable);
    walk_id(c, &m->prepare.id);
    codec_set(c, m->prepare.set);
    walk_operation(c, &m->prepare.operation);
}

static void walk_decide(struct codec *c, union message *m) {
    codec_u64(c, &m->decide.order);
    codec_u64(c, &m->decide.stable);
    codec_bool(c, &m->decide.commit);
    codec_set(c, m->decide.set);
}

static void walk_arm(struct codec *c, union message *m) {
    codec_u64(c, &m->arm.number);
    codec_set(c, m->arm.set);
    codec_bool(c, &m->arm.disarm);
    codec_enum(c, &m->arm.relation, RELATIONS);
    codec_u32(c, &m->arm.variable);
    codec_u64(c, &m->arm.value);
    codec_bytes(c, &m->arm.active, 8);
}

static void walk_result(struct codec *c, union message *m) {
    walk_id(c, &m->result.id);
    codec_enum(c, &m->result.outcome, OUTCOMES);
    codec_u32(c, &m->result.culprit);
    codec_u64(c, &m->result.order);
}

static void walk_strobe(struct codec *c, union message *m) {
    codec_u32(c, &m->strobe.channel);
    codec_u64(c, &m->strobe.number);
    codec_set(c, m->strobe.set);
    codec_rest(c, &m->strobe.body);
}

static void walk_tick(struct codec *c, union message *m) {
    codec_u64(c, &m->tick.tick);
    codec_u64(c, &m->tick.view);
    codec_u64(c, &m->tick.stable);
    codec_set(c, m->tick.limbo);
}

static void walk_donate(struct codec *c, union message *m) {
    codec_u32(c, &m->donate.node);
    codec_u64(c, &m->donate.incarnation);
}

static void walk_attach(struct codec *c, union message *m) {
    codec_u32(c, &m->attach.node);
    codec_u64(c, &m->attach.incarnation);
    codec_u64(c, &m->attach.attempt);
    codec_bool(c, &m->attach.member);
    codec_u32(c, &m->attach.member_epoch);
    codec_u64(c, &m->attach.view);
    codec_set(c, m->attach.below);
    codec_set(c, m->attach.members);
    codec_bytes(c, &m->attach.records, RECORD_BYTES);
}

static void walk_lost(struct codec *c, union message *m) {
    codec_set(c, m->lost.set);
    codec_u32(c, &m->lost.node);
}

static void walk_detach(struct codec *c, union message *m) {
    (void)c;
    (void)m;
}

static void walk_ack(struct codec *c, union message *m) {
    codec_enum(c, &m->ack.what, ACK_WHATS);
    codec_bool(c, &m->ack.no);
    codec_u64(c, &m->ack.number);
    codec_set(c, m->ack.set);
}

static void walk_request(struct codec *c, union message *m) {
    walk_id(c, &m->request.id);
    codec_u32(c, &m->request.epoch);
    codec_u64(c, &m->request.after);
    codec_u64(c, &m->request.timeout_ns);
    codec_set(c, m->request.set);
    walk_operation(c, &m->request.operation);
}

static void walk_received(struct codec *c, union message *m) {
    walk_id(c, &m->received.id);
}

static void walk_tock(struct codec *c, union message *m) {
    codec_u64(c, &m->tock.tick);
    codec_u32(c, &m->tock.nodes);
    codec_bool(c, &m->tock.complete);
}

static void walk_donation(struct codec *c, union message *m) {
    codec_u32(c, &m->donation.node);
    codec_bytes(c, &m->donation.variables, 8);
}

static void walk_want(struct codec *c, union message *m) {
    walk_id(c, &m->want.transfer);
    codec_u32(c, &m->want.node);
    codec_u32(c, &m->want.next);
    codec_u32(c, &m->want.credit);
    codec_u32(c, &m->want.buffer);
    codec_bool(c, &m->want.done);
}

static void walk_put(struct codec *c, union message *m) {
    codec_u32(c, &m->put.buffer);
    codec_u64(c, &m->put.offset);
    codec_u64(c, &m->put.note);
    codec_rest(c, &m->put.body);
}

static void walk_query(struct codec *c, union message *m) {
    codec_u64(c, &m->query.number);
    codec_u32(c, &m->query.channel);
    codec_bool(c, &m->query.apart);
    codec_set(c, m->query.set);
}

/* Well formed means that the bytes are whole replies; whose they may be is for the receiver. */
static void walk_records(struct codec *c, union message *m) {
    codec_u64(c, &m->records.number);
    codec_set(c, m->records.set);
    codec_bytes(c, &m->records.records, 1);
    struct reply r;
    size_t at = 0;
    while (reply_next(m->records.records, &at, &r))
        ;
    if (at != m->records.records.len)
        c->failed = true;
}

static void walk_hello(struct codec *c, union message *m) {
    codec_u64(c, &m->hello.key[0]);
    codec_u64(c, &m->hello.key[1]);
    codec_u32(c, &m->hello.to);
    codec_enum(c, &m->hello.purpose, PURPOSES);
    codec_enum(c, &m->hello.lane, LANES);
    codec_u64(c, &m->hello.token);
}

static void walk_mail(struct codec *c, union message *m) {
    codec_u32(c, &m->mail.origin);
    codec_bool(c, &m->mail.root);
    codec_u16(c, &m->mail.type);
    codec_set(c, m->mail.set);
    codec_rest(c, &m->mail.body);
}

static void walk_launch(struct codec *c, union message *m) {
    codec_u64(c, &m->launch.run);
    codec_u32(c, &m->launch.procs);
    codec_enum(c, &m->launch.map, MAPS);
    codec_u32(c, &m->launch.window);
    codec_u32(c, &m->launch.index);
    codec_set(c, m->launch.set);
    codec_bytes(c, &m->launch.sections, 1);
    codec_bool(c, &m->launch.folder);
    codec_u64(c, &m->launch.slots);
    codec_u64(c, &m->launch.version);
    codec_rest(c, &m->launch.spec);
}

static void walk_ranks(struct codec *c, struct bytes *ranks) {
    codec_bytes(c, ranks, RANKS_RANGE_BYTES);
    if (!c->failed && !ranks_good(*ranks))
        c->failed = true;
}

static void walk_command(struct codec *c, union message *m) {
    codec_u64(c, &m->command.run);
    codec_enum(c, &m->command.verb, VERBS);
    codec_u32(c, &m->command.value);
    codec_u32(c, &m->command.more);
    walk_ranks(c, &m->command.ranks);
}

static void walk_forget(struct codec *c, union message *m) {
    codec_bytes(c, &m->forget.runs, 8);
}

static void walk_have(struct codec *c, union message *m) {
    codec_bool(c, &m->have.all);
    codec_bytes(c, &m->have.runs, 8);
    codec_bytes(c, &m->have.report, 1);
}

static void walk_ends_list(struct codec *c, struct bytes *ends) {
    struct ending e;
    codec_bytes(c, ends, ENDING_BYTES);
    for (uint32_t i = 0; !c->encoding && !c->failed && i < ends->len / ENDING_BYTES; i++)
        if (!ending_load(&e, *ends, i))
            c->failed = true;
}

static void walk_ends(struct codec *c, union message *m) {
    codec_u64(c, &m->ends.run);
    codec_set(c, m->ends.clean);
    codec_u64(c, &m->ends.output);
    codec_usage(c, &m->ends.usage);
    walk_ends_list(c, &m->ends.ends);
}

static void walk_stream(struct codec *c, uint8_t *stream) {
    codec_u8(c, stream);
    if (*stream != 1 && *stream != 2)
        c->failed = true;
}

static void walk_petition(struct codec *c, union message *m) {
    struct message_petition *p = &m->petition;
    codec_u64(c, &p->run);
    codec_u32(c, &p->rank);
    codec_u32(c, &p->number);
    codec_u32(c, &p->sequence);
    codec_u32(c, &p->heard);
    codec_bool(c, &p->over);
    codec_u16(c, &p->type);
    codec_rest(c, &p->body);
}

static void walk_reply(struct codec *c, union message *m) {
    struct message_reply *r = &m->reply;
    codec_u64(c, &r->run);
    codec_u32(c, &r->number);
    codec_u32(c, &r->sequence);
    codec_u32(c, &r->heard);
    codec_bool(c, &r->reset);
    codec_u16(c, &r->type);
    codec_rest(c, &r->body);
}

static void walk_reach(struct codec *c, union message *m) {
    codec_u64(c, &m->reach.token[0]);
    codec_u64(c, &m->reach.token[1]);
    codec_u64(c, &m->reach.door);
    codec_u64(c, &m->reach.ip[0]);
    codec_u64(c, &m->reach.ip[1]);
    codec_u16(c, &m->reach.port);
}

static void walk_pids(struct codec *c, union message *m) {
    codec_u64(c, &m->pids.run);
    codec_u32(c, &m->pids.asker);
    codec_bytes(c, &m->pids.node, 1);
    codec_bytes(c, &m->pids.host, 1);
    codec_bytes(c, &m->pids.rows, PIDS_ROW_BYTES);
}

static void walk_owner(struct codec *c, union message *m) {
    codec_bytes(c, &m->owner.watch, 1);
}

static void walk_output(struct codec *c, union message *m) {
    codec_u64(c, &m->output.run);
    codec_u32(c, &m->output.rank);
    walk_stream(c, &m->output.stream);
    codec_bool(c, &m->output.end);
    codec_u64(c, &m->output.offset);
    codec_rest(c, &m->output.bytes);
}

static void walk_taken(struct codec *c, union message *m) {
    codec_u64(c, &m->taken.run);
    codec_u32(c, &m->taken.rank);
    walk_stream(c, &m->taken.stream);
    codec_u64(c, &m->taken.offset);
}

static void walk_typed(struct codec *c, union message *m) {
    codec_u64(c, &m->typed.run);
    codec_u32(c, &m->typed.rank);
    codec_bool(c, &m->typed.end);
    codec_u64(c, &m->typed.offset);
    codec_rest(c, &m->typed.bytes);
}

static void walk_drained(struct codec *c, union message *m) {
    codec_u64(c, &m->drained.run);
    codec_u32(c, &m->drained.rank);
    codec_u64(c, &m->drained.offset);
}

static void walk_setup(struct codec *c, union message *m) {
    codec_u64(c, &m->setup.run);
    codec_u64(c, &m->setup.slots);
    codec_u64(c, &m->setup.version);
    codec_rest(c, &m->setup.setup);
}

static void walk_ended(struct codec *c, union message *m) {
    codec_u64(c, &m->ended.run);
    walk_ends_list(c, &m->ended.ends);
    if (m->ended.ends.len != ENDING_BYTES)
        c->failed = true;
}

static void walk_hold(struct codec *c, union message *m) {
    codec_u64(c, &m->hold.run);
    codec_bool(c, &m->hold.started);
    codec_rest(c, &m->hold.setup);
}

static void walk_measured(struct codec *c, union message *m) {
    codec_u64(c, &m->measured.run);
    codec_usage(c, &m->measured.usage);
}

static void walk_request_id(struct codec *c, uint64_t request[2]) {
    codec_u64(c, &request[0]);
    codec_u64(c, &request[1]);
}

static void walk_submit(struct codec *c, union message *m) {
    struct message_submit *s = &m->submit;
    walk_request_id(c, s->request);
    codec_enum(c, &s->kind, JOB_KINDS);
    codec_u32(c, &s->flags);
    codec_u32(c, &s->nodes);
    codec_u32(c, &s->ppn);
    codec_u32(c, &s->procs);
    codec_u32(c, &s->inside);
    codec_u32(c, &s->array_first);
    codec_u32(c, &s->array_last);
    codec_u64(c, &s->limit_ns);
    codec_u64(c, &s->begin_ns);
    uint32_t priority = (uint32_t)s->priority;
    codec_u32(c, &priority);
    s->priority = (int32_t)priority;
    codec_set(c, s->on);
    codec_set(c, s->exclude);
    codec_bytes(c, &s->after, AWAIT_BYTES);
    codec_bytes(c, &s->name, 1);
    codec_bytes(c, &s->reservation, 1);
    codec_bytes(c, &s->files, 1);
    codec_bytes(c, &s->inputs, 1);
    if (s->flags & JOB_NEEDS) /* what was submitted before there were any has none */
        codec_bytes(c, &s->need, 1);
    if (s->flags & JOB_SECTIONS)
        codec_bytes(c, &s->sections, 1);
    if (s->flags & JOB_FAMILY) {
        codec_u32(c, &s->parent);
        codec_u32(c, &s->together);
    }
    if (s->flags & JOB_CLASSES)
        codec_bytes(c, &s->classes, 1);
    codec_rest(c, &s->spec);
    bool wrong = s->flags >= JOB_FLAGS_END || s->after.len > AWAITS_MAX * AWAIT_BYTES ||
                 s->reservation.len > RESERVATION_NAME_MAX || s->need.len > NEED_TEXT_MAX;
    for (size_t at = 0; !c->failed && at < s->after.len && !wrong; at += AWAIT_BYTES)
        wrong = s->after.at[at] >= AWAIT_KINDS;
    if (wrong)
        c->failed = true;
}

static void walk_act(struct codec *c, union message *m) {
    walk_request_id(c, m->act.request);
    codec_enum(c, &m->act.verb, VERBS);
    codec_u32(c, &m->act.value);
    codec_u32(c, &m->act.more);
    codec_set(c, m->act.nodes);
    codec_bytes(c, &m->act.jobs, 4);
    codec_bytes(c, &m->act.text, 1);
    walk_ranks(c, &m->act.ranks);
}

static void walk_reserve(struct codec *c, union message *m) {
    struct message_reserve *r = &m->reserve;
    walk_request_id(c, r->request);
    codec_bool(c, &r->cancel);
    codec_u64(c, &r->from_ns);
    codec_u64(c, &r->to_ns);
    codec_set(c, r->nodes);
    codec_bytes(c, &r->name, 1);
    if (r->name.len > RESERVATION_NAME_MAX)
        c->failed = true;
}

static void walk_ask(struct codec *c, union message *m) {
    walk_request_id(c, m->ask.request);
    codec_enum(c, &m->ask.subject, SUBJECTS);
    codec_u32(c, &m->ask.job);
    codec_u32(c, &m->ask.most);
    codec_bool(c, &m->ask.whole);
    codec_bytes(c, &m->ask.need, 1);
}

static void walk_answer(struct codec *c, union message *m) {
    walk_request_id(c, m->answer.request);
    codec_enum(c, &m->answer.code, ANSWERS);
    codec_u32(c, &m->answer.job);
    codec_u32(c, &m->answer.count);
    codec_bytes(c, &m->answer.text, 1);
}

static void walk_news(struct codec *c, union message *m) {
    struct message_news *n = &m->news;
    codec_u32(c, &n->job);
    codec_u64(c, &n->run);
    codec_enum(c, &n->state, STATES);
    codec_bool(c, &n->settled);
    codec_u32(c, &n->status);
    codec_enum(c, &n->cause, CAUSES);
    codec_enum(c, &n->step, SPAWN_STEPS);
    codec_u32(c, &n->node);
    codec_u32(c, &n->rank);
    codec_u32(c, &n->value);
    codec_u32(c, &n->bad);
    codec_u32(c, &n->procs);
    codec_enum(c, &n->map, MAPS);
    codec_bytes(c, &n->sections, 1);
    codec_u32(c, &n->loose);
    codec_u64(c, &n->output);
    codec_bool(c, &n->held);
    codec_u64(c, &n->since_ns);
    codec_usage(c, &n->usage);
    codec_set(c, n->nodes);
    codec_set(c, n->waiting);
    codec_bytes(c, &n->text, 1);
    codec_bytes(c, &n->unwritten, 1);
}

static void walk_rows(struct codec *c, union message *m) {
    walk_request_id(c, m->rows.request);
    codec_enum(c, &m->rows.subject, SUBJECTS);
    codec_bool(c, &m->rows.last);
    codec_u32(c, &m->rows.total);
    codec_bytes(c, &m->rows.wrong, 1);
    codec_bytes(c, &m->rows.rows, 1);
}

static void walk_error(struct codec *c, int32_t *error) {
    uint32_t value = (uint32_t)*error;
    codec_u32(c, &value);
    *error = (int32_t)value;
    if (*error > 0)
        c->failed = true;
}

static void walk_slots(struct codec *c, uint32_t *slots) {
    codec_u32(c, slots);
    if (*slots == 0 || *slots > SLOTS_MAX)
        c->failed = true;
}

static void walk_fabric(struct codec *c, struct bytes *name) {
    codec_bytes(c, name, 1);
    if (name->len > FABRIC_NAME_MAX)
        c->failed = true;
}

static void walk_transfer(struct codec *c, union message *m) {
    struct message_transfer *t = &m->transfer;
    codec_u64(c, &t->transfer);
    codec_u64(c, &t->offer);
    codec_u32(c, &t->source);
    codec_u8(c, &t->shape);
    codec_u32(c, &t->arity);
    walk_slots(c, &t->slots);
    codec_set(c, t->set);
    codec_bytes(c, &t->address, 1);
    walk_fabric(c, &t->fabric);
    codec_u64(c, &t->run);
    codec_u32(c, &t->source_switch);
    codec_bytes(c, &t->switches, 8);
    codec_rest(c, &t->descriptor);
}

static void walk_clear(struct codec *c, union message *m) {
    codec_bytes(c, &m->clear.runs, 8);
}

static void walk_slot(struct codec *c, uint8_t *slot) {
    codec_u8(c, slot);
    if (*slot >= GANG_SLOTS_MAX && *slot != GANG_ALL)
        c->failed = true;
}

static void walk_turn(struct codec *c, union message *m) {
    codec_u64(c, &m->turn.number);
    walk_slot(c, &m->turn.slot);
    codec_bool(c, &m->turn.tell);
    codec_u64(c, &m->turn.sent_ns);
    codec_u32(c, &m->turn.quantum_us);
    codec_u64(c, &m->turn.cycle);
    codec_u64(c, &m->turn.spent_ns);
}

static void walk_rows_of_slots(struct codec *c, union message *m) {
    codec_u64(c, &m->slots.version);
    codec_bytes(c, &m->slots.rows, SLOTS_ROW_BYTES);
}

static void walk_turned(struct codec *c, union message *m) {
    struct message_turned *t = &m->turned;
    codec_u64(c, &t->number);
    walk_slot(c, &t->slot);
    codec_enum(c, &t->means, GANG_MEANS);
    codec_bool(c, &t->prompt);
    codec_u64(c, &t->sent_ns);
    codec_u64(c, &t->at_ns);
    codec_u32(c, &t->took_ns);
    codec_u32(c, &t->missed);
}

static void walk_enough(struct codec *c, union message *m) {
    codec_bool(c, &m->enough.keep);
    codec_bytes(c, &m->enough.transfers, 8);
}

static void walk_arrived(struct codec *c, union message *m) {
    codec_u64(c, &m->arrived.transfer);
    walk_error(c, &m->arrived.error);
    codec_bytes(c, &m->arrived.text, 1);
}

static void walk_join(struct codec *c, union message *m) {
    struct message_join *j = &m->join;
    codec_u64(c, &j->transfer);
    codec_u64(c, &j->offer);
    codec_enum(c, &j->tree, 2);
    codec_u32(c, &j->page);
    codec_u32(c, &j->first);
    codec_u32(c, &j->buffer);
    walk_slots(c, &j->slots);
    codec_u32(c, &j->slot);
    codec_u32(c, &j->room);
    if (j->slot >= j->slots || j->room > j->slots || j->first > j->page)
        c->failed = true;
}

static void walk_page(struct codec *c, union message *m) {
    codec_u32(c, &m->page.page);
    codec_bytes(c, &m->page.table, 1);
}

static void walk_need(struct codec *c, union message *m) {
    codec_u32(c, &m->need.page);
    codec_bytes(c, &m->need.bits, 1);
}

static void walk_room(struct codec *c, union message *m) {
    codec_u32(c, &m->room.room);
}

static void walk_part(struct codec *c, union message *m) {
    walk_error(c, &m->part.error);
    codec_bytes(c, &m->part.text, 1);
}

static void walk_beat(struct codec *c, union message *m) {
    (void)c;
    (void)m;
}

static void walk_offer(struct codec *c, union message *m) {
    walk_request_id(c, m->offer.request);
    codec_u32(c, &m->offer.piece_bytes);
    codec_bool(c, &m->offer.pattern);
    codec_bool(c, &m->offer.program);
    codec_set(c, m->offer.set);
    codec_bytes(c, &m->offer.path, 1);
}

static void walk_offered(struct codec *c, union message *m) {
    struct message_offered *o = &m->offered;
    walk_request_id(c, o->request);
    codec_u32(c, &o->node);
    codec_u64(c, &o->offer);
    walk_error(c, &o->error);
    codec_bytes(c, &o->text, 1);
    codec_rest(c, &o->descriptor);
}

static void walk_copy(struct codec *c, union message *m) {
    struct message_copy *t = &m->copy;
    walk_request_id(c, t->request);
    codec_u32(c, &t->source);
    codec_u64(c, &t->offer);
    codec_u8(c, &t->shape);
    codec_u32(c, &t->arity);
    walk_slots(c, &t->slots);
    codec_set(c, t->set);
    codec_bytes(c, &t->address, 1);
    walk_fabric(c, &t->fabric);
    codec_rest(c, &t->descriptor);
}

static void walk_window(struct codec *c, union message *m) {
    struct message_window *w = &m->window;
    codec_u32(c, &w->buffer);
    codec_u32(c, &w->note);
    walk_fabric(c, &w->fabric);
    codec_bytes(c, &w->address, 1);
    codec_bytes(c, &w->grant, 1);
    if ((w->note & 0xff) != 0)
        c->failed = true;
}

static void walk_placed(struct codec *c, union message *m) {
    struct message_placed *p = &m->placed;
    codec_u32(c, &p->buffer);
    codec_u64(c, &p->offset);
    codec_u32(c, &p->len);
    codec_u64(c, &p->note);
    if (p->len == 0)
        c->failed = true;
}

static void walk_count(struct codec *c, union message *m) {
    codec_u64(c, &m->count.offer);
}

static void walk_counted(struct codec *c, union message *m) {
    struct message_counted *t = &m->counted;
    codec_u64(c, &t->offer);
    codec_u64(c, &t->put_fabric);
    codec_u64(c, &t->put_stream);
    codec_u64(c, &t->came_fabric);
    codec_u64(c, &t->came_stream);
    codec_bytes(c, &t->text, 1);
}

static void walk_copied(struct codec *c, union message *m) {
    struct message_copied *t = &m->copied;
    walk_request_id(c, t->request);
    codec_u8(c, &t->shape);
    codec_u32(c, &t->arity);
    codec_bool(c, &t->over);
    codec_set(c, t->set);
    codec_set(c, t->without);
    codec_u32(c, &t->node);
    walk_error(c, &t->error);
    codec_bytes(c, &t->text, 1);
    codec_u32(c, &t->switches);
    codec_u32(c, &t->crossed);
}

static void walk_come(struct codec *c, union message *m) {
    codec_u16(c, &m->come.port);
    codec_u16(c, &m->come.files_port);
    codec_bytes(c, &m->come.host, 1);
}

static void walk_seek(struct codec *c, union message *m) {
    codec_u32(c, &m->seek.peer);
}

static void walk_letter(struct codec *c, union message *m) {
    struct message_letter *l = &m->letter;
    codec_u32(c, &l->peer);
    codec_bool(c, &l->known);
    codec_bytes(c, &l->at, 1);
    codec_bytes(c, &l->files, 1);
    codec_rest(c, &l->letter);
}

enum { PARENT = 1 << ROLE_PARENT, CHILD = 1 << ROLE_CHILD };
enum { SOURCE = 1 << ROLE_SOURCE, SINK = 1 << ROLE_SINK, STRANGER = 1 << ROLE_STRANGER };
enum { LAUNCHER = 1 << ROLE_LAUNCHER, KEEPER = 1 << ROLE_KEEPER };
enum { CLIENT = 1 << ROLE_CLIENT, MANAGER = 1 << ROLE_MANAGER };
enum { ROOT = 1 << ROLE_ROOT, NODE = 1 << ROLE_NODE };
enum { MOVER = 1 << ROLE_MOVER, HOST = 1 << ROLE_HOST };
enum { GIVER = 1 << ROLE_GIVER, TAKER = 1 << ROLE_TAKER };
enum { LODGE = 1 << ROLE_LODGE, GUEST = 1 << ROLE_GUEST };
enum {
    SMALL = 64,
    SOME = KIB,
    SET = 16 * KIB,
    STATE = 64 * KIB,
    BODY = 512 * KIB,
    PART = 128 * KIB,
    CHUNK = 4 * MIB
};

#define ROW(type, from_, lane_, max_, walk_) \
    [MESSAGE_##type] = {                     \
        .name = #type, .from = from_, .lane = LANE_##lane_, .max_bytes = max_, .walk = walk_}

static const struct message_rule rules[MESSAGE_TYPES] = {
    ROW(EPOCH, PARENT, CONTROL, SMALL, walk_epoch),
    ROW(ATTACHED, PARENT, CONTROL, SET, walk_attached),
    ROW(FENCED, PARENT, CONTROL, SMALL, walk_fenced),
    ROW(VIEW, PARENT, CONTROL, STATE, walk_view),
    ROW(PREPARE, PARENT, CONTROL, BODY, walk_prepare),
    ROW(DECIDE, PARENT, CONTROL, SET, walk_decide),
    ROW(ARM, PARENT, CONTROL, SET, walk_arm),
    ROW(RESULT, PARENT, CONTROL, SMALL, walk_result),
    ROW(STROBE, PARENT, CONTROL, BODY, walk_strobe),
    ROW(TICK, PARENT, CONTROL, SET, walk_tick),
    ROW(DONATE, PARENT, CONTROL, SMALL, walk_donate),
    ROW(ATTACH, CHILD, CONTROL, STATE, walk_attach),
    ROW(LOST, CHILD, CONTROL, SET, walk_lost),
    ROW(DETACH, CHILD, CONTROL, SMALL, walk_detach),
    ROW(ACK, CHILD, CONTROL, SET, walk_ack),
    ROW(REQUEST, CHILD, CONTROL, BODY, walk_request),
    ROW(RECEIVED, CHILD, CONTROL, SMALL, walk_received),
    ROW(TOCK, CHILD, CONTROL, SMALL, walk_tock),
    ROW(DONATION, CHILD, CONTROL, STATE, walk_donation),
    ROW(WANT, SINK, CONTROL, SMALL, walk_want),
    ROW(PUT, SOURCE | GIVER, BULK, CHUNK, walk_put),
    ROW(QUERY, PARENT, CONTROL, SET, walk_query),
    ROW(RECORDS, CHILD, CONTROL, BODY, walk_records),
    ROW(HELLO, STRANGER, CONTROL, SMALL, walk_hello),
    ROW(MAIL, PARENT | CHILD, CONTROL, BODY, walk_mail),
    ROW(PARCEL, PARENT | CHILD, BULK, BODY, walk_mail),
    ROW(LAUNCH, ROOT, CONTROL, BODY, walk_launch),
    ROW(COMMAND, ROOT | KEEPER, CONTROL, SOME, walk_command),
    ROW(FORGET, ROOT, CONTROL, STATE, walk_forget),
    ROW(HAVE, NODE, CONTROL, STATE, walk_have),
    ROW(ENDS, NODE, CONTROL, PART, walk_ends),
    ROW(OUTPUT, LAUNCHER | NODE | MANAGER, BULK, PART, walk_output),
    ROW(TAKEN, CLIENT | ROOT | KEEPER, BULK, SMALL, walk_taken),
    ROW(TYPED, CLIENT | ROOT | KEEPER, BULK, PART, walk_typed),
    ROW(DRAINED, LAUNCHER | NODE | MANAGER, BULK, SMALL, walk_drained),
    ROW(SETUP, KEEPER, CONTROL, BODY, walk_setup),
    ROW(ENDED, LAUNCHER, CONTROL, SET, walk_ended),
    ROW(HOLD, LAUNCHER, CONTROL, BODY, walk_hold),
    ROW(MEASURED, LAUNCHER, CONTROL, SMALL, walk_measured),
    ROW(SUBMIT, CLIENT, CONTROL, BODY, walk_submit),
    ROW(ACT, CLIENT, CONTROL, STATE, walk_act),
    ROW(ASK, CLIENT, CONTROL, STATE, walk_ask),
    ROW(ANSWER, MANAGER, CONTROL, STATE, walk_answer),
    ROW(NEWS, MANAGER, CONTROL, STATE, walk_news),
    ROW(ROWS, MANAGER, CONTROL, BODY, walk_rows),
    ROW(TRANSFER, ROOT | HOST, CONTROL, BODY, walk_transfer),
    ROW(ENOUGH, ROOT | HOST, CONTROL, STATE, walk_enough),
    ROW(ARRIVED, NODE | MOVER, CONTROL, STATE, walk_arrived),
    ROW(JOIN, TAKER, BULK, SMALL, walk_join),
    ROW(PAGE, GIVER, BULK, STATE, walk_page),
    ROW(NEED, TAKER, BULK, STATE, walk_need),
    ROW(ROOM, TAKER, BULK, SMALL, walk_room),
    ROW(PART, GIVER, BULK, STATE, walk_part),
    ROW(BEAT, GIVER, BULK, SMALL, walk_beat),
    ROW(COPY, CLIENT, CONTROL, BODY, walk_copy),
    ROW(COPIED, MANAGER, CONTROL, STATE, walk_copied),
    ROW(OFFER, CLIENT | ROOT | HOST, CONTROL, STATE, walk_offer),
    ROW(OFFERED, MOVER | NODE | MANAGER, CONTROL, BODY, walk_offered),
    ROW(WINDOW, TAKER, BULK, PART, walk_window),
    ROW(PLACED, GIVER, BULK, SMALL, walk_placed),
    ROW(COUNT, TAKER, BULK, SMALL, walk_count),
    ROW(COUNTED, GIVER, BULK, STATE, walk_counted),
    ROW(CLEAR, HOST | MOVER, CONTROL, STATE, walk_clear),
    ROW(TURN, ROOT | KEEPER, CONTROL, SMALL, walk_turn),
    ROW(SLOTS, ROOT | KEEPER, CONTROL, STATE, walk_rows_of_slots),
    ROW(TURNED, LAUNCHER | NODE, CONTROL, SMALL, walk_turned),
    ROW(RESERVE, CLIENT, CONTROL, STATE, walk_reserve),
    ROW(COME, GUEST, CONTROL, SMALL, walk_come),
    ROW(SEEK, GUEST, CONTROL, SMALL, walk_seek),
    ROW(LETTER, LODGE, CONTROL, STATE, walk_letter),
    ROW(PIDS, LAUNCHER | NODE | MANAGER, BULK, PART, walk_pids),
    ROW(PETITION, LAUNCHER | NODE, BULK, PART, walk_petition),
    ROW(REPLY, ROOT | KEEPER, BULK, PART, walk_reply),
    ROW(OWNER, ROOT, CONTROL, SOME, walk_owner),
    ROW(REACH, CLIENT, CONTROL, SMALL, walk_reach),
};

const struct message_rule *message_rule(uint16_t type) {
    return type < MESSAGE_TYPES && rules[type].walk != NULL ? &rules[type] : NULL;
}

bool message_lane_used(enum purpose purpose, enum lane lane) {
    uint32_t ends = 1U << purpose_role(purpose, true) | 1U << purpose_role(purpose, false);
    for (uint16_t type = 0; type < MESSAGE_TYPES; type++)
        if (message_rule(type) != NULL && rules[type].lane == lane && (rules[type].from & ends))
            return true;
    return false;
}

long message_encode(uint16_t type, const union message *m, struct room out) {
    union message copy = *m;
    struct codec c = {.encoding = true, .out = out.at, .len = out.len};
    rules[type].walk(&c, &copy);
    return c.failed ? -ENOBUFS : (long)c.at;
}

/* Of what daemons and clients say, which is not the primitives' own. */
static void lend_daemon_sets(uint16_t type, struct nodeset *sets, union message *m) {
    switch (type) {
    case MESSAGE_LAUNCH:
        m->launch.set = &sets[0];
        break;
    case MESSAGE_ENDS:
        m->ends.clean = &sets[0];
        break;
    case MESSAGE_SUBMIT:
        m->submit.on = &sets[0];
        m->submit.exclude = &sets[1];
        break;
    case MESSAGE_ACT:
        m->act.nodes = &sets[0];
        break;
    case MESSAGE_RESERVE:
        m->reserve.nodes = &sets[0];
        break;
    case MESSAGE_NEWS:
        m->news.nodes = &sets[0];
        m->news.waiting = &sets[1];
        break;
    case MESSAGE_TRANSFER:
        m->transfer.set = &sets[0];
        break;
    case MESSAGE_COPY:
        m->copy.set = &sets[0];
        break;
    case MESSAGE_OFFER:
        m->offer.set = &sets[0];
        break;
    case MESSAGE_COPIED:
        m->copied.set = &sets[0];
        m->copied.without = &sets[1];
        break;
    default:
        break;
    }
}

static void lend_sets(uint16_t type, struct nodeset *sets, union message *m) {
    switch (type) {
    case MESSAGE_ATTACHED:
        m->attached.set = &sets[0];
        break;
    case MESSAGE_VIEW:
        m->view.members = &sets[0];
        m->view.joined = &sets[1];
        break;
    case MESSAGE_PREPARE:
        m->prepare.set = &sets[0];
        break;
    case MESSAGE_DECIDE:
        m->decide.set = &sets[0];
        break;
    case MESSAGE_ARM:
        m->arm.set = &sets[0];
        break;
    case MESSAGE_STROBE:
        m->strobe.set = &sets[0];
        break;
    case MESSAGE_TICK:
        m->tick.limbo = &sets[0];
        break;
    case MESSAGE_ATTACH:
        m->attach.below = &sets[0];
        m->attach.members = &sets[1];
        break;
    case MESSAGE_LOST:
        m->lost.set = &sets[0];
        break;
    case MESSAGE_ACK:
        m->ack.set = &sets[0];
        break;
    case MESSAGE_REQUEST:
        m->request.set = &sets[0];
        break;
    case MESSAGE_QUERY:
        m->query.set = &sets[0];
        break;
    case MESSAGE_RECORDS:
        m->records.set = &sets[0];
        break;
    case MESSAGE_MAIL:
    case MESSAGE_PARCEL:
        m->mail.set = &sets[0];
        break;
    default:
        lend_daemon_sets(type, sets, m);
        break;
    }
}

int message_decode(uint16_t type, struct bytes in, struct nodeset *sets, union message *ret) {
    const struct message_rule *rule = message_rule(type);
    if (rule == NULL || in.len > rule->max_bytes)
        return -EBADMSG;
    memset(ret, 0, sizeof *ret);
    lend_sets(type, sets, ret);
    struct codec c = {.in = in.at, .len = in.len};
    rule->walk(&c, ret);
    return c.failed || c.at != c.len ? -EBADMSG : 0;
}

const char *state_name(enum job_state s) {
    static const char *const names[STATES] = {
        [STATE_QUEUED] = "queued",       [STATE_STARTING] = "starting", [STATE_RUNNING] = "running",
        [STATE_SUSPENDED] = "suspended", [STATE_ENDING] = "ending",     [STATE_DONE] = "done",
        [STATE_FAILED] = "failed",       [STATE_KILLED] = "killed",     [STATE_TIMEOUT] = "timeout",
        [STATE_LOST] = "lost",
    };
    return s < STATES ? names[s] : "?";
}
