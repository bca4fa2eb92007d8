/* SPDX-License-Identifier: MIT */
/* What a program is told: messages, with all that they point to. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "client/carmi_steward.h"
#include "wire/classes.h"

struct letter *letter_add(struct steward *s, const struct call *c, enum carmi_kind kind) {
    struct letter *l = calloc(1, sizeof *l);
    if (l == NULL) {
        s->failed = true;
        return NULL;
    }
    l->message = (struct carmi_message){
        .kind = kind, .tag = c->tag, .request = c->id, .last = 1, .success = 1, .text = ""};
    list_push_back(&s->letters, &l->at);
    return l;
}

void letter_free(struct letter *l) {
    for (uint32_t i = 0; i < l->block_count; i++)
        free(l->blocks[i]);
    free(l);
}

static void *keep(struct steward *s, struct letter *l, void *block) {
    if (block == NULL || l->block_count == LETTER_BLOCKS) {
        s->failed = true;
        free(block);
        return NULL;
    }
    l->blocks[l->block_count++] = block;
    return block;
}

void *letter_block(struct steward *s, struct letter *l, size_t bytes) {
    return keep(s, l, calloc(1, bytes > 0 ? bytes : 1));
}

void *letter_data(struct steward *s, struct letter *l, size_t bytes) {
    return keep(s, l, malloc(bytes > 0 ? bytes : 1));
}

void letter_hosts(struct steward *s, struct letter *l, const carmi_host *hosts, size_t count) {
    carmi_host *copy = l == NULL ? NULL : letter_block(s, l, count * sizeof *hosts);
    if (copy == NULL)
        return;
    if (count > 0)
        memcpy(copy, hosts, count * sizeof *hosts);
    l->message.hosts = copy;
    l->message.host_count = count;
}

void letter_failed(struct steward *s, struct letter *l, int error, struct bytes text) {
    char *copy = l == NULL ? NULL : letter_block(s, l, text.len + 1);
    if (copy == NULL)
        return;
    if (text.len > 0)
        memcpy(copy, text.at, text.len);
    l->message.success = 0;
    l->message.error = error;
    l->message.text = copy;
}

/* ---- attributes ---- */

enum { OWN_ATTRIBUTES = 8, NUMBER_BYTES = 24 };

/* Names and values are put one behind the other. */
struct sheet {
    struct carmi_attribute *list;
    size_t count;
    char *at;
};

static void add(struct sheet *t, const char *name, size_t name_len, const char *value,
                size_t value_len) {
    struct carmi_attribute *a = &t->list[t->count++];
    a->name = memcpy(t->at, name, name_len);
    t->at += name_len + 1; /* what follows is zero */
    a->value = value_len > 0 ? memcpy(t->at, value, value_len) : t->at;
    t->at += value_len + 1;
}

static void add_text(struct sheet *t, const char *name, const char *value) {
    add(t, name, strlen(name), value, strlen(value));
}

static void add_number(struct sheet *t, const char *name, uint64_t value) {
    char digits[NUMBER_BYTES];
    struct text text;
    text_init(&text, digits, sizeof digits);
    text_u64(&text, value);
    add_text(t, name, digits);
}

/* Those of the node; is SPEED among them? */
static bool add_traits(struct sheet *t, struct bytes traits) {
    bool speed = false;
    struct bytes name, value;
    while (node_row_trait(&traits, &name, &value)) {
        add(t, (const char *)name.at, name.len, (const char *)value.at, value.len);
        speed = speed || bytes_equal(name, bytes_from_str("SPEED"));
    }
    return speed;
}

static size_t words_in(struct bytes text) {
    size_t count = 1;
    for (size_t i = 0; i < text.len; i++)
        count += text.at[i] == ' ';
    return count;
}

void letter_attributes(struct steward *s, struct letter *l, const struct call *c,
                       const struct node_row *row) {
    if (l == NULL)
        return;
    size_t most = OWN_ATTRIBUTES + words_in(row->traits);
    struct sheet t = {.list = letter_block(s, l, most * sizeof *t.list),
                      .at = letter_block(s, l, 512 + 3 * row->traits.len + 2 * NUMBER_BYTES)};
    if (t.list == NULL || t.at == NULL)
        return;
    add_text(&t, "NAME", c->where);
    add_text(&t, "CLASS", c->class_of);
    add_text(&t, "STATE", state_name((enum job_state)c->state));
    add_number(&t, "PROCESSORS", row->pes);
    add_number(&t, "LOAD_X100", row->load_x100);
    add_number(&t, "MEMORY_TOTAL", row->memory_bytes);
    add_number(&t, "MEMORY_USED", row->memory_used);
    if (!add_traits(&t, row->traits))
        add_text(&t, "SPEED", "1");
    l->message.attributes = t.list;
    l->message.attribute_count = t.count;
}

/* ---- classes ---- */

/* The NUL is there already. */
static const char *put(char **at, struct bytes text) {
    const char *copy = *at;
    if (text.len > 0)
        memcpy(*at, text.at, text.len);
    *at += text.len + 1;
    return copy;
}

void letter_classes(struct steward *s, struct letter *l, struct bytes rows) {
    struct host_class one;
    size_t count = 0, bytes = 0;
    for (size_t at = 0; class_next(rows, &at, &one) > 0; count++)
        bytes += one.name.len + one.need.len + 2;
    struct carmi_class *list = l == NULL ? NULL : letter_block(s, l, count * sizeof *list);
    char *text = list == NULL ? NULL : letter_block(s, l, bytes);
    if (text == NULL)
        return;
    l->message.classes = list;
    for (size_t at = 0; class_next(rows, &at, &one) > 0;)
        list[l->message.class_count++] = (struct carmi_class){.name = put(&text, one.name),
                                                              .expression = put(&text, one.need),
                                                              .processors = one.ppn};
}
