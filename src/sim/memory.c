/* SPDX-License-Identifier: MIT */
/* Global memory of very many nodes: see memory.h.
 *
 * Pages are never changed once they are in somebody's table: a write makes a new page from the old
 * one and the next node with the same old page gets the same new one. */
#include "sim/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

enum { PAGE_BYTES = 4096 };

struct page {
    uint32_t refs;
    uint8_t bytes[PAGE_BYTES];
};

struct memory {
    struct limits limits;
    uint64_t *variables; /* of node 0, then of node 1, ... */
    uint64_t *events;
    struct page **pages;
    uint32_t pages_each; /* of a node */
    uint64_t page_count;
};

struct memory *memory_new(const struct limits *limits) {
    struct memory *m = calloc(1, sizeof *m);
    if (m == NULL)
        return NULL;
    size_t nodes = limits_universe(limits);
    m->limits = *limits;
    m->pages_each = (limits->heap_bytes + PAGE_BYTES - 1) / PAGE_BYTES;
    m->variables = calloc(nodes * limits->variables + 1, sizeof *m->variables);
    m->events = calloc(nodes * limits->events + 1, sizeof *m->events);
    m->pages = calloc(nodes * m->pages_each + 1, sizeof(struct page *));
    if (m->variables == NULL || m->events == NULL || m->pages == NULL) {
        memory_free(m);
        return NULL;
    }
    return m;
}

static void drop(struct memory *m, struct page *p) {
    if (p == NULL || --p->refs > 0)
        return;
    m->page_count--;
    free(p);
}

void memory_free(struct memory *m) {
    if (m == NULL)
        return;
    size_t count = (size_t)limits_universe(&m->limits) * m->pages_each;
    for (size_t i = 0; m->pages != NULL && i < count; i++)
        drop(m, m->pages[i]);
    free(m->variables);
    free(m->events);
    free(m->pages);
    free(m);
}

uint64_t *memory_variables(struct memory *m, uint32_t node) {
    return m->variables + (size_t)node * m->limits.variables;
}

uint64_t *memory_events(struct memory *m, uint32_t node) {
    return m->events + (size_t)node * m->limits.events;
}

struct globals memory_globals(const struct memory *m, uint32_t node) {
    return (struct globals){.variables = m->variables + (size_t)node * m->limits.variables,
                            .events = m->events + (size_t)node * m->limits.events};
}

static struct page **table(const struct memory *m, uint32_t node) {
    ASSERT(node < limits_universe(&m->limits));
    return m->pages + (size_t)node * m->pages_each;
}

void memory_clear(struct memory *m, uint32_t node) {
    memset(memory_variables(m, node), 0, m->limits.variables * sizeof *m->variables);
    memset(memory_events(m, node), 0, m->limits.events * sizeof *m->events);
    struct page **pages = table(m, node);
    for (uint32_t i = 0; i < m->pages_each; i++) {
        drop(m, pages[i]);
        pages[i] = NULL;
    }
}

static struct page *change(struct memory *m, const struct page *old, uint32_t at,
                           struct bytes from) {
    struct page *p = malloc(sizeof *p);
    ASSERT(p != NULL);
    m->page_count++;
    p->refs = 0;
    if (old != NULL)
        memcpy(p->bytes, old->bytes, PAGE_BYTES);
    else
        memset(p->bytes, 0, PAGE_BYTES);
    memcpy(p->bytes + at, from.at, from.len);
    return p;
}

/* A part of a write that lies within one page. */
static void write_page(struct memory *m, const struct nodeset *set, uint32_t index, uint32_t at,
                       struct bytes from) {
    bool whole = from.len == PAGE_BYTES; /* then it does not matter what was there */
    struct page *old = NULL;
    struct page *new = NULL;
    NODESET_EACH (node, set) {
        struct page **slot = &table(m, node)[index];
        if (new == NULL || (*slot != old && !whole)) {
            if (old != NULL)
                drop(m, old);
            old = *slot;
            if (old != NULL)
                old->refs++; /* held while we compare with it: its address must not be used again */
            new = change(m, old, at, from);
        }
        new->refs++;
        drop(m, *slot);
        *slot = new;
    }
    if (old != NULL)
        drop(m, old);
}

void memory_write(struct memory *m, const struct nodeset *set, uint32_t offset, struct bytes from) {
    ASSERT(offset <= m->limits.heap_bytes && from.len <= m->limits.heap_bytes - offset);
    while (from.len > 0) {
        uint32_t at = offset % PAGE_BYTES;
        size_t len = from.len < PAGE_BYTES - at ? from.len : PAGE_BYTES - at;
        write_page(m, set, offset / PAGE_BYTES, at, bytes_of(from.at, len));
        from = bytes_of(from.at + len, from.len - len);
        offset += (uint32_t)len;
    }
}

void memory_read(const struct memory *m, uint32_t node, uint32_t offset, struct room to) {
    ASSERT(offset <= m->limits.heap_bytes && to.len <= m->limits.heap_bytes - offset);
    while (to.len > 0) {
        uint32_t at = offset % PAGE_BYTES;
        size_t len = to.len < PAGE_BYTES - at ? to.len : PAGE_BYTES - at;
        const struct page *p = table(m, node)[offset / PAGE_BYTES];
        if (p != NULL)
            memcpy(to.at, p->bytes + at, len);
        else
            memset(to.at, 0, len);
        to = room_of(to.at + len, to.len - len);
        offset += (uint32_t)len;
    }
}

uint64_t memory_pages(const struct memory *m) {
    return m->page_count;
}
