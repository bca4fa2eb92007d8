/* SPDX-License-Identifier: MIT */
/*
 * Makes small ELF files for tests: programs and libraries that have nothing but what a loader reads
 * to find libraries. The loader of glibc accepts those for its own machine.
 *
 *     struct elfmaker m = {.wide = true, .machine = 183, .soname = "liba.so", .needs = {"libb.so"}};
 *     size_t len = elfmaker_make(&m, out, sizeof out);
 *
 * The file is one segment, loaded at address 0: headers, dynamic section, table of strings, an empty
 * table of symbols.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/assert.h"

enum { ELFMAKER_NEEDS_MAX = 8, ELFMAKER_BYTES_MAX = 8192 };

struct elfmaker {
    bool wide, big;
    uint16_t type, machine; /* type 0: a shared library */
    uint32_t flags;
    const char *interpreter, *soname, *rpath, *runpath;
    const char *needs[ELFMAKER_NEEDS_MAX];
    const char *auxiliary;
    uint64_t flags_1;
    /* While it is made. */
    uint8_t *out;
    size_t cap, strings, strings_at, entry_at;
};

static inline void elfmaker_put(struct elfmaker *m, size_t at, uint64_t value, unsigned bytes) {
    ASSERT(at + bytes <= m->cap);
    for (unsigned i = 0; i < bytes; i++)
        m->out[at + i] = (uint8_t)(value >> 8 * (m->big ? bytes - 1 - i : i));
}

static inline unsigned elfmaker_word(const struct elfmaker *m) {
    return m->wide ? 8 : 4;
}

/* Adds a string to the table; its place there. */
static inline uint64_t elfmaker_string(struct elfmaker *m, const char *text) {
    size_t len = strlen(text) + 1, place = m->strings;
    ASSERT(m->strings_at + place + len <= m->cap);
    memcpy(m->out + m->strings_at + place, text, len);
    m->strings += len;
    return place;
}

static inline void elfmaker_entry(struct elfmaker *m, uint64_t tag, uint64_t value) {
    elfmaker_put(m, m->entry_at, tag, elfmaker_word(m));
    elfmaker_put(m, m->entry_at + elfmaker_word(m), value, elfmaker_word(m));
    m->entry_at += 2 * elfmaker_word(m);
}

static inline void elfmaker_segment(struct elfmaker *m, unsigned i, uint32_t type, uint64_t at,
                                    uint64_t bytes) {
    size_t to = (m->wide ? 64 : 52) + i * (m->wide ? 56U : 32U);
    unsigned w = elfmaker_word(m);
    elfmaker_put(m, to, type, 4);
    elfmaker_put(m, to + (m->wide ? 4 : 24), 6, 4); /* read and write */
    to += m->wide ? 8 : 4;
    for (unsigned k = 0; k < 3; k++)
        elfmaker_put(m, to + k * w, at, w);
    elfmaker_put(m, to + 3 * w, bytes, w);
    elfmaker_put(m, to + 4 * w, bytes, w);
    elfmaker_put(m, to + (m->wide ? 40 : 24), type == 1 ? 65536 : 1, w);
}

static inline void elfmaker_header(struct elfmaker *m, unsigned segments) {
    unsigned w = elfmaker_word(m);
    uint8_t ident[16] = {0x7f, 'E', 'L', 'F', m->wide ? 2 : 1, m->big ? 2 : 1, 1};
    memcpy(m->out, ident, sizeof ident);
    elfmaker_put(m, 16, m->type == 0 ? 3 : m->type, 2);
    elfmaker_put(m, 18, m->machine, 2);
    elfmaker_put(m, 20, 1, 4);
    elfmaker_put(m, 24 + w, m->wide ? 64 : 52, w);
    size_t rest = 24 + 3 * w;
    elfmaker_put(m, rest, m->flags, 4);
    elfmaker_put(m, rest + 4, m->wide ? 64 : 52, 2);
    elfmaker_put(m, rest + 6, m->wide ? 56 : 32, 2);
    elfmaker_put(m, rest + 8, segments, 2);
}

static inline void elfmaker_dynamic(struct elfmaker *m, size_t symbols_at) {
    for (unsigned i = 0; i < ELFMAKER_NEEDS_MAX && m->needs[i] != NULL; i++)
        elfmaker_entry(m, 1, elfmaker_string(m, m->needs[i]));
    const struct {
        uint64_t tag;
        const char *text;
    } texts[] = {{14, m->soname}, {15, m->rpath}, {29, m->runpath}, {0x7ffffffd, m->auxiliary}};
    for (unsigned i = 0; i < 4; i++)
        if (texts[i].text != NULL)
            elfmaker_entry(m, texts[i].tag, elfmaker_string(m, texts[i].text));
    if (m->flags_1 != 0)
        elfmaker_entry(m, 0x6ffffffb, m->flags_1);
    elfmaker_entry(m, 5, m->strings_at);
    elfmaker_entry(m, 10, m->strings);
    elfmaker_entry(m, 6, symbols_at);
    elfmaker_entry(m, 11, m->wide ? 24 : 16);
    elfmaker_entry(m, 0, 0);
}

/* The length. */
static inline size_t elfmaker_make(const struct elfmaker *of, uint8_t *out, size_t cap) {
    struct elfmaker copy = *of, *m = &copy;
    enum { ENTRIES_AT = 512, SYMBOLS_AT = 1024, STRINGS_AT = 1088 };
    m->out = out;
    m->cap = cap;
    memset(out, 0, cap);
    m->entry_at = ENTRIES_AT;
    m->strings_at = STRINGS_AT;
    m->strings = 1;
    elfmaker_dynamic(m, SYMBOLS_AT);
    size_t bytes = m->strings_at + m->strings;
    unsigned segments = 0;
    if (m->interpreter != NULL) {
        size_t len = strlen(m->interpreter) + 1;
        ASSERT(bytes + len <= cap);
        memcpy(out + bytes, m->interpreter, len);
        elfmaker_segment(m, segments++, 3, bytes, len);
        bytes += len;
    }
    elfmaker_segment(m, segments++, 1, 0, bytes);
    elfmaker_segment(m, segments++, 2, ENTRIES_AT, m->entry_at - ENTRIES_AT);
    elfmaker_header(m, segments);
    return bytes;
}
