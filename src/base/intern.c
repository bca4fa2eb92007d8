/* SPDX-License-Identifier: MIT */
/* Short texts, each kept once: see intern.h. */
#include "base/intern.h"

#include <string.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/text.h"

static uint32_t head_count(uint32_t capacity) {
    uint32_t n = 1;
    while (n < capacity)
        n *= 2;
    return n;
}

size_t intern_bytes(uint32_t capacity) {
    return (size_t)capacity * sizeof(struct intern_slot) +
           align_up(head_count(capacity) * sizeof(uint32_t), 8);
}

void intern_init(struct intern *s, uint32_t capacity, void *storage) {
    ASSERT(capacity < UINT32_MAX / 2);
    *s = (struct intern){.slots = storage, .capacity = capacity, .mask = head_count(capacity) - 1};
    s->heads = (void *)(s->slots + capacity);
    memset(s->heads, 0, ((size_t)s->mask + 1) * sizeof *s->heads);
}

static void cut(const char *text, char out[INTERN_TEXT_MAX]) {
    size_t len = strnlen(text, INTERN_TEXT_MAX - 1);
    memcpy(out, text, len);
    out[len] = '\0';
}

static uint32_t *head_of(const struct intern *s, const char *text) {
    char lower[INTERN_TEXT_MAX];
    size_t len = 0;
    for (; text[len] != '\0'; len++)
        lower[len] = text_lower(text[len]);
    return &s->heads[hash_once(lower, len) & s->mask];
}

static uint32_t find(const struct intern *s, const char *text) {
    uint32_t at = *head_of(s, text);
    while (at != 0 && !text_alike(s->slots[at - 1].text, text))
        at = s->slots[at - 1].next;
    return at == 0 ? INTERN_NONE : at - 1;
}

uint32_t intern_find(const struct intern *s, const char *text) {
    char whole[INTERN_TEXT_MAX];
    cut(text, whole);
    return find(s, whole);
}

uint32_t intern_take(struct intern *s, const char *text) {
    char whole[INTERN_TEXT_MAX];
    cut(text, whole);
    uint32_t number = find(s, whole);
    if (number == INTERN_NONE) {
        if (s->free == 0 && s->fresh == s->capacity)
            return INTERN_NONE;
        number = s->free != 0 ? s->free - 1 : s->fresh;
        if (s->free != 0)
            s->free = s->slots[number].next;
        else
            s->fresh++;
        uint32_t *head = head_of(s, whole);
        struct intern_slot *slot = &s->slots[number];
        *slot = (struct intern_slot){.next = *head};
        memcpy(slot->text, whole, sizeof whole);
        *head = number + 1;
    }
    s->slots[number].uses++;
    return number;
}

void intern_drop(struct intern *s, uint32_t number) {
    ASSERT(number < s->fresh && s->slots[number].uses > 0);
    struct intern_slot *slot = &s->slots[number];
    if (--slot->uses > 0)
        return;
    uint32_t *link = head_of(s, slot->text);
    while (*link != number + 1) {
        ASSERT(*link != 0);
        link = &s->slots[*link - 1].next;
    }
    *link = slot->next;
    slot->next = s->free;
    s->free = number + 1;
}

const char *intern_text(const struct intern *s, uint32_t number) {
    ASSERT(number < s->fresh && s->slots[number].uses > 0);
    return s->slots[number].text;
}
