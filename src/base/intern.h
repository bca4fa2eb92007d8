/* SPDX-License-Identifier: MIT */
/*
 * Short texts that many have in common: each is kept once, has a number, and is forgotten with its last user.
 *
 * Texts that differ only in capital letters are one; how it was first written is how it is kept. What is too long is
 * cut, for those who look it up too. A text is found by a hash; texts of one hash hang on a chain. The storage is the
 * caller's, and nothing but the chains' heads is touched before it is used.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define INTERN_NONE UINT32_MAX

enum { INTERN_TEXT_MAX = 56 }; /* with the NUL */

struct intern_slot {
    uint32_t next; /* on its chain, or of those that are free: one more than its number, 0: none */
    uint32_t uses;
    char text[INTERN_TEXT_MAX];
};

struct intern {
    struct intern_slot *slots;
    uint32_t *heads; /* as `next` */
    uint32_t mask;   /* of heads */
    uint32_t capacity;
    uint32_t fresh; /* slots from here on were never used */
    uint32_t free;  /* as `next` */
};

/* For so many different texts; the storage is aligned to 8. */
size_t intern_bytes(uint32_t capacity);
void intern_init(struct intern *s, uint32_t capacity, void *storage);

/* One more user; INTERN_NONE if there are as many texts as can be. */
uint32_t intern_take(struct intern *s, const char *text);
void intern_drop(struct intern *s, uint32_t number);

/* INTERN_NONE: nobody uses it. */
uint32_t intern_find(const struct intern *s, const char *text);
const char *intern_text(const struct intern *s, uint32_t number);
