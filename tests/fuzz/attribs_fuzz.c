/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: attribute files. Any text is refused, with words and a place in it, or defines attributes; then their
 * bytes define the same in another table.
 */
#include <stdalign.h>
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "client/attribs.h"

enum { NODES = 3, TEXT_MAX = 4096, STORAGE = 32 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_mistake(const struct mistake *m, const char *text) {
    static char shown[4096];
    size_t len = strlen(m->words);
    const char *line = text;
    ASSERT(len > 0 && len < sizeof m->words - 1);
    for (size_t i = 0; i < len; i++)
        ASSERT(m->words[i] >= ' ' && m->words[i] <= '~');
    ASSERT(m->line > 0 && m->length > 0);
    for (uint32_t n = 1; n < m->line; n++) {
        line = strchr(line, '\n');
        ASSERT(line != NULL);
        line++;
    }
    const char *end = strchr(line, '\n');
    size_t width = end != NULL ? (size_t)(end - line) : strlen(line);
    ASSERT(m->column <= width);
    ASSERT(m->column == width || m->column + m->length <= width);
    ASSERT(mistake_show(m, "attribs", text, shown, sizeof shown) < sizeof shown);
}

static void check_table(const struct traits *t) {
    static alignas(8) uint8_t storage[STORAGE], bytes[STORAGE], again[STORAGE];
    struct traits other;
    traits_init(&other, NODES, TRAITS_MAX, storage);
    long len = traits_encode(t, room_of(bytes, sizeof bytes));
    ASSERT(len > 0);
    ASSERT(traits_take(&other, bytes_of(bytes, (size_t)len)) == 0);
    ASSERT(other.count == t->count && other.name_count == t->name_count);
    ASSERT(traits_encode(&other, room_of(again, sizeof again)) == len);
    ASSERT(memcmp(bytes, again, (size_t)len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    static alignas(8) uint8_t storage[STORAGE];
    struct traits t;
    struct mistake m;
    char text[TEXT_MAX];
    ASSERT(traits_bytes(NODES, TRAITS_MAX) <= sizeof storage);
    traits_init(&t, NODES, TRAITS_MAX, storage);
    if (len >= sizeof text)
        len = sizeof text - 1;
    memcpy(text, data, len);
    text[len] = '\0';
    int r = attribs_parse(&t, text, &m);
    ASSERT(r == 0 || r == -EBADMSG);
    if (r < 0)
        check_mistake(&m, text);
    else
        check_table(&t);
    return 0;
}
