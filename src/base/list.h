/* SPDX-License-Identifier: MIT */
/*
 * Intrusive doubly linked circular list.
 *
 * The head is a `struct list` of its own; members embed one each. A member that is in no list is
 * linked to itself, so `list_linked` can tell and removing twice is harmless. Owner and members
 * must not move in memory while linked.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct list {
    struct list *prev, *next;
};

#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

static inline void list_init(struct list *l) {
    l->prev = l;
    l->next = l;
}

static inline bool list_empty(const struct list *head) {
    return head->next == head;
}

/* Is this member in a list? (Also true for a head that is not empty.) */
static inline bool list_linked(const struct list *l) {
    return l->next != l;
}

static inline void list_link_between(struct list *l, struct list *prev, struct list *next) {
    l->prev = prev;
    l->next = next;
    prev->next = l;
    next->prev = l;
}

static inline void list_push_back(struct list *head, struct list *l) {
    list_link_between(l, head->prev, head);
}

static inline void list_push_front(struct list *head, struct list *l) {
    list_link_between(l, head, head->next);
}

static inline void list_remove(struct list *l) {
    l->prev->next = l->next;
    l->next->prev = l->prev;
    list_init(l);
}

/* NULL if the list is empty. */
static inline struct list *list_first(const struct list *head) {
    return list_empty(head) ? NULL : head->next;
}

static inline struct list *list_last(const struct list *head) {
    return list_empty(head) ? NULL : head->prev;
}

/* Takes the first member off; NULL if the list is empty. */
static inline struct list *list_pop_front(struct list *head) {
    struct list *l = list_first(head);
    if (l)
        list_remove(l);
    return l;
}

/* Appends all members of `from` to `to` in their order; `from` is empty afterwards. */
static inline void list_move_all(struct list *to, struct list *from) {
    if (list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    list_init(from);
}

/* The list must not change inside the loop ... */
#define LIST_EACH(l, head) for (struct list *l = (head)->next; l != (head); l = l->next)

/* ... except that here the current member may be removed. */
#define LIST_EACH_SAFE(l, head)                                           \
    for (struct list *l = (head)->next, *l##_next = l->next; l != (head); \
         l = l##_next, l##_next = l->next)
