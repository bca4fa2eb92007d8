/* SPDX-License-Identifier: MIT */
/* One walk for each kind of input, to write and to read it: see record.h.
 *
 * Layout: u32 length of what follows, u8 layer, u8 kind, u64 time, fields. Enums are single bytes.
 */
#include "machine/record.h"

#include <errno.h>
#include <string.h>

#include "wire/codec.h"

enum { LENGTH_BYTES = 4, LAYERS = LAYER_DAEMON + 1 };

struct walker {
    struct codec c;
    struct record_scratch *scratch; /* decoding: where sets go */
};

/* Enums have the size the compiler likes; they travel as one byte. */
static uint8_t walk_enum(struct walker *w, unsigned value, unsigned end) {
    uint8_t byte = (uint8_t)value;
    codec_enum(&w->c, &byte, (uint8_t)end);
    return byte;
}

static void walk_set(struct walker *w, const struct nodeset **set) {
    bool present = *set != NULL;
    codec_bool(&w->c, &present);
    if (!present) {
        *set = NULL;
        return;
    }
    if (w->c.encoding) {
        struct nodeset copy = **set; /* the codec takes what it may also write to */
        codec_set(&w->c, &copy);
    } else {
        codec_set(&w->c, &w->scratch->set);
        *set = &w->scratch->set;
    }
}

static void walk_boot(struct walker *w, struct input_boot *b) {
    codec_u32(&w->c, &b->node);
    codec_u32(&w->c, &b->boots);
    codec_u64(&w->c, &b->kept);
    codec_bool(&w->c, &b->root);
    codec_u32(&w->c, &b->epoch);
    codec_u64(&w->c, &b->random_seed);
    codec_u64(&w->c, &b->wall_ns);
    codec_bytes(&w->c, &b->stowed, 1);
    codec_bytes(&w->c, &b->folders, 8);
}

static void walk_message(struct walker *w, struct input_message *m) {
    codec_u32(&w->c, &m->link);
    codec_u32(&w->c, &m->peer);
    codec_u32(&w->c, &m->epoch);
    codec_u16(&w->c, &m->type);
    codec_bytes(&w->c, &m->body, 1);
}

static void walk_link(struct walker *w, struct input_link *l) {
    codec_u32(&w->c, &l->link);
    codec_u32(&w->c, &l->peer);
    codec_u64(&w->c, &l->cookie);
    codec_u32(&w->c, &l->life);
    l->role = (enum role)walk_enum(w, l->role, ROLES);
}

static void walk_put(struct walker *w, struct input_put *p) {
    codec_u32(&w->c, &p->link);
    codec_u32(&w->c, &p->buffer);
    codec_u64(&w->c, &p->offset);
    codec_u32(&w->c, &p->len);
    codec_u64(&w->c, &p->note);
}

static void walk_request(struct walker *w, struct primitive *p) {
    p->kind = (enum primitive_kind)walk_enum(w, p->kind, PRIMITIVE_KINDS);
    codec_u64(&w->c, &p->tag);
    walk_set(w, &p->set);
    codec_u64(&w->c, &p->timeout_ns);
    codec_u32(&w->c, &p->heap_offset);
    codec_bytes(&w->c, &p->body, 1);
    codec_u32(&w->c, &p->remote_event);
    codec_u32(&w->c, &p->local_event);
    codec_bool(&w->c, &p->hint);
    codec_bool(&w->c, &p->ask);
    codec_u32(&w->c, &p->variable);
    p->relation = (enum relation)walk_enum(w, p->relation, RELATIONS);
    codec_u64(&w->c, &p->value);
    codec_u32(&w->c, &p->write_variable);
    codec_u64(&w->c, &p->write_value);
    codec_u64(&w->c, &p->order);
    codec_u32(&w->c, &p->channel);
    codec_u32(&w->c, &p->buffer);
    codec_u64(&w->c, &p->buffer_bytes);
    p->way = (enum mail_way)walk_enum(w, p->way, MAIL_WAYS);
    codec_u16(&w->c, &p->type);
}

static void walk_completion(struct walker *w, struct completion *p) {
    codec_u64(&w->c, &p->tag);
    p->outcome = (enum outcome)walk_enum(w, p->outcome, OUTCOMES);
    codec_u32(&w->c, &p->culprit);
    codec_u64(&w->c, &p->order);
}

static void walk_signal(struct walker *w, struct input_signal *s) {
    codec_u32(&w->c, &s->event);
    codec_u64(&w->c, &s->order);
    codec_u32(&w->c, &s->heap_offset);
    codec_u64(&w->c, &s->len);
    codec_bytes(&w->c, &s->body, 1);
}

static void walk_prepared(struct walker *w, struct input_prepared *p) {
    codec_u64(&w->c, &p->order);
    codec_u32(&w->c, &p->heap_offset);
    codec_bool(&w->c, &p->ask);
    codec_bytes(&w->c, &p->body, 1);
}

static void walk_strobe(struct walker *w, struct input_strobe *s) {
    codec_u32(&w->c, &s->channel);
    codec_u64(&w->c, &s->number);
    codec_bool(&w->c, &s->far);
    codec_bytes(&w->c, &s->body, 1);
    codec_bool(&w->c, &s->far);
}

static void walk_joined(struct walker *w, struct input_joined *j) {
    codec_u32(&w->c, &j->epoch);
    codec_u64(&w->c, &j->incarnation);
    codec_u64(&w->c, &j->order);
}

static void walk_nodes(struct walker *w, struct input_nodes *n) {
    walk_set(w, &n->nodes);
    codec_bool(&w->c, &n->up);
    codec_u64(&w->c, &n->order);
}

static void walk_wave(struct walker *w, struct input_wave *v) {
    codec_u64(&w->c, &v->tick);
    codec_u32(&w->c, &v->nodes);
    codec_bool(&w->c, &v->complete);
    codec_u64(&w->c, &v->started_ns);
}

static void walk_gathered(struct walker *w, struct input_gathered *g) {
    codec_u64(&w->c, &g->tag);
    codec_u32(&w->c, &g->channel);
    codec_bytes(&w->c, &g->records, 1);
    walk_set(w, &g->missing);
}

static void walk_tree(struct walker *w, struct input_tree *t) {
    walk_set(w, &t->below);
    codec_bool(&w->c, &t->attached);
    codec_u32(&w->c, &t->epoch);
}

static void walk_replay(struct walker *w, struct input_replay *r) {
    codec_u64(&w->c, &r->key);
    codec_bool(&w->c, &r->over);
    codec_bytes(&w->c, &r->body, 1);
}

static void walk_error(struct walker *w, int32_t *error) {
    uint32_t value = (uint32_t)*error;
    codec_u32(&w->c, &value);
    *error = (int32_t)value;
}

static void walk_looked(struct walker *w, struct input_looked *l) {
    codec_u64(&w->c, &l->ticket);
    walk_error(w, &l->error);
    l->step = (enum spawn_step)walk_enum(w, l->step, SPAWN_STEPS);
    codec_u32(&w->c, &l->rank);
}

static void walk_roster(struct walker *w, struct input_roster *r) {
    walk_set(w, &r->taken);
    codec_bytes(&w->c, &r->names, 1);
}

static void walk_logged(struct walker *w, struct input_logged *l) {
    codec_u64(&w->c, &l->ticket);
    walk_error(w, &l->error);
}

static void walk_fetched(struct walker *w, struct input_fetched *f) {
    codec_u64(&w->c, &f->ticket);
    codec_bytes(&w->c, &f->body, 1);
}

static void walk_child(struct walker *w, struct input_child *p) {
    codec_u32(&w->c, &p->group);
    codec_u32(&w->c, &p->index);
    p->event = (enum child_event)walk_enum(w, p->event, CHILD_EVENTS);
    codec_u32(&w->c, &p->value);
    p->step = (enum spawn_step)walk_enum(w, p->step, SPAWN_STEPS);
    codec_bool(&w->c, &p->loose);
}

static void walk_stream(struct walker *w, struct input_stream *s) {
    codec_u32(&w->c, &s->group);
    codec_u32(&w->c, &s->index);
    codec_u8(&w->c, &s->stream);
    codec_bool(&w->c, &s->end);
    codec_u64(&w->c, &s->offset);
    codec_bytes(&w->c, &s->bytes, 1);
}

static void walk_drained(struct walker *w, struct input_drained *d) {
    codec_u32(&w->c, &d->group);
    codec_u32(&w->c, &d->index);
    codec_u64(&w->c, &d->offset);
}

static void walk_petition(struct walker *w, struct input_petition *p) {
    codec_u32(&w->c, &p->place);
    p->event = (enum petition_event)walk_enum(w, p->event, PETITION_EVENTS);
    codec_u32(&w->c, &p->group);
    codec_u32(&w->c, &p->rank);
    codec_u16(&w->c, &p->type);
    codec_bytes(&w->c, &p->body, 1);
}

static void walk_sent(struct walker *w, struct input_sent *s) {
    codec_u32(&w->c, &s->link);
    codec_u32(&w->c, &s->buffer);
    codec_u64(&w->c, &s->offset);
    codec_u64(&w->c, &s->note);
}

static void walk_bundle(struct walker *w, struct input_bundle *b) {
    codec_u32(&w->c, &b->bundle);
    codec_bool(&w->c, &b->committed);
    walk_error(w, &b->error);
    codec_bytes(&w->c, &b->text, 1);
}

static void walk_page(struct walker *w, struct input_page *p) {
    codec_u32(&w->c, &p->bundle);
    codec_u32(&w->c, &p->page);
    walk_error(w, &p->error);
    codec_bytes(&w->c, &p->table, 1);
    codec_bytes(&w->c, &p->have, 1);
    codec_u32(&w->c, &p->pieces);
    codec_bytes(&w->c, &p->text, 1);
}

static void walk_piece(struct walker *w, struct input_piece *p) {
    codec_u32(&w->c, &p->bundle);
    codec_u32(&w->c, &p->piece);
    codec_bool(&w->c, &p->loaded);
    walk_error(w, &p->error);
    codec_u32(&w->c, &p->buffer);
    codec_u64(&w->c, &p->offset);
    codec_u32(&w->c, &p->len);
    codec_bytes(&w->c, &p->text, 1);
}

/* What only movers hear. */
static void walk_mover_fields(struct walker *w, struct input *in) {
    switch (in->kind) {
    case INPUT_SENT:
        walk_sent(w, &in->sent);
        break;
    case INPUT_BUNDLE:
        walk_bundle(w, &in->bundle);
        break;
    case INPUT_PAGE:
        walk_page(w, &in->page);
        break;
    case INPUT_PIECE:
        walk_piece(w, &in->piece);
        break;
    default:
        break; /* nothing but the kind */
    }
}

static void walk_measured(struct walker *w, struct input_measured *m) {
    codec_u32(&w->c, &m->group);
    codec_usage(&w->c, &m->usage);
}

static void walk_gauged(struct walker *w, struct input_gauged *g) {
    codec_u32(&w->c, &g->load_x100);
    codec_u64(&w->c, &g->memory_bytes);
    codec_u64(&w->c, &g->memory_used);
    codec_bool(&w->c, &g->owner);
    codec_u64(&w->c, &g->busy_ns);
}

/* What only daemons hear: of the log, and of processes. */
static void walk_daemon_fields(struct walker *w, struct input *in) {
    switch (in->kind) {
    case INPUT_REPLAY:
        walk_replay(w, &in->replay);
        break;
    case INPUT_LOGGED:
        walk_logged(w, &in->logged);
        break;
    case INPUT_FETCHED:
        walk_fetched(w, &in->fetched);
        break;
    case INPUT_LOOKED:
        walk_looked(w, &in->looked);
        break;
    case INPUT_ROSTER:
        walk_roster(w, &in->roster);
        break;
    case INPUT_TRAITS:
        codec_bytes(&w->c, &in->traits.traits, 1);
        codec_bytes(&w->c, &in->traits.widths, 4);
        codec_bytes(&w->c, &in->traits.switches, 4);
        codec_bytes(&w->c, &in->traits.owners, 4);
        codec_bytes(&w->c, &in->traits.owner_texts, 1);
        break;
    case INPUT_CHILD:
        walk_child(w, &in->child);
        break;
    case INPUT_EMPTY:
        walk_measured(w, &in->empty);
        break;
    case INPUT_MEASURED:
        walk_measured(w, &in->measured);
        break;
    case INPUT_GAUGED:
        walk_gauged(w, &in->gauged);
        break;
    case INPUT_STREAM:
        walk_stream(w, &in->stream);
        break;
    case INPUT_DRAINED:
        walk_drained(w, &in->drained);
        break;
    case INPUT_PETITION:
        walk_petition(w, &in->petition);
        break;
    default:
        walk_mover_fields(w, in);
        break;
    }
}

static void walk_fields(struct walker *w, struct input *in) {
    switch (in->kind) {
    case INPUT_BOOT:
        walk_boot(w, &in->boot);
        break;
    case INPUT_MESSAGE:
        walk_message(w, &in->message);
        break;
    case INPUT_LINK_UP:
    case INPUT_LINK_DOWN:
        walk_link(w, &in->link);
        break;
    case INPUT_TIMER:
        codec_u32(&w->c, &in->timer.id);
        break;
    case INPUT_DURABLE:
        codec_u64(&w->c, &in->durable.ticket);
        break;
    case INPUT_PUT:
        walk_put(w, &in->put);
        break;
    case INPUT_REQUEST:
        walk_request(w, &in->request);
        break;
    case INPUT_COMPLETION:
        walk_completion(w, &in->completion);
        break;
    case INPUT_SIGNAL:
        walk_signal(w, &in->signal);
        break;
    case INPUT_PREPARED:
        walk_prepared(w, &in->prepared);
        break;
    case INPUT_STROBE:
        walk_strobe(w, &in->strobe);
        break;
    case INPUT_JOINED:
        walk_joined(w, &in->joined);
        break;
    case INPUT_NODES:
        walk_nodes(w, &in->nodes);
        break;
    case INPUT_WAVE:
        walk_wave(w, &in->wave);
        break;
    case INPUT_GATHERED:
        walk_gathered(w, &in->gathered);
        break;
    case INPUT_TREE:
        walk_tree(w, &in->tree);
        break;
    default:
        walk_daemon_fields(w, in);
        break;
    }
}

static void walk_input(struct walker *w, enum layer *layer, struct input *in) {
    *layer = (enum layer)walk_enum(w, *layer, LAYERS);
    in->kind = (enum input_kind)walk_enum(w, in->kind, INPUT_KINDS);
    codec_u64(&w->c, &in->now);
    walk_fields(w, in);
}

void record_scratch_init(struct record_scratch *s, uint32_t universe, void *storage) {
    nodeset_init(&s->set, universe, storage);
}

long record_encode(struct room out, enum layer layer, const struct input *in) {
    if (out.len < LENGTH_BYTES)
        return -ENOBUFS;
    struct input copy = *in;
    struct walker w = {
        .c = {.encoding = true, .out = out.at + LENGTH_BYTES, .len = out.len - LENGTH_BYTES}};
    walk_input(&w, &layer, &copy);
    if (w.c.failed || w.c.at > UINT32_MAX)
        return -ENOBUFS;
    store_le32(out.at, (uint32_t)w.c.at);
    return (long)(w.c.at + LENGTH_BYTES);
}

int record_decode(struct bytes in, struct record_scratch *scratch, enum layer *ret_layer,
                  struct input *ret, size_t *ret_used) {
    if (in.len < LENGTH_BYTES)
        return -EBADMSG;
    uint32_t len = load_le32(in.at);
    if (len > in.len - LENGTH_BYTES)
        return -EBADMSG;
    struct walker w = {.c = {.in = in.at + LENGTH_BYTES, .len = len}, .scratch = scratch};
    struct input input;
    memset(&input, 0, sizeof input);
    enum layer layer = LAYER_PRIM;
    walk_input(&w, &layer, &input);
    if (w.c.failed || w.c.at != len)
        return -EBADMSG;
    *ret_layer = layer;
    *ret = input;
    *ret_used = LENGTH_BYTES + (size_t)len;
    return 0;
}
