/* SPDX-License-Identifier: MIT */
/*
 * Fuzz target: expressions over attributes. Any text is refused, with words and a place in it, or compiled; then the
 * nodes that are selected are those that match, and its canonical text is the same expression.
 */
#include <stdalign.h>
#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "sched/need.h"

enum { NODES = 70, TEXT_MAX = 1024, CANONICAL_MAX = 16384, ATTRIBUTES = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void define(struct traits *t, const char *name, uint8_t operators, const char *a,
                   const char *b) {
    int id = traits_define(t, name, operators);
    ASSERT(id > 0);
    ASSERT(traits_define_value(t, a) == 0 && traits_define_value(t, b) == 1);
    for (uint32_t n = 0; n < t->nodes; n += 3)
        t->values[(size_t)id * t->nodes + n] = 1;
}

static void make_table(struct traits *t, void *storage) {
    traits_init(t, NODES, ATTRIBUTES, storage);
    define(t, "MEM", 1 << TRAITS_IS | 1 << TRAITS_AT_LEAST | 1 << TRAITS_AT_MOST, "512MB", "2GB");
    define(t, "NIC", 1 << TRAITS_IS, "FAST", "SLOW");
    ASSERT(traits_label(t, "big") == 0 && traits_label(t, "new") == 1);
    for (uint32_t n = 0; n < NODES; n++) {
        struct traits_report r = traits_report_empty();
        t->values[(size_t)TRAITS_LABELS * NODES + n] = n % 4;
        r.values[TRAITS_MEMORY] = (uint64_t)n << 20;
        r.values[TRAITS_KERNEL] = (uint64_t)n << 48;
        r.values[TRAITS_GPUS] = n % 5 == 0 ? TRAITS_UNKNOWN : n % 5;
        traits_report_text(&r, TRAITS_ARCH, n % 2 ? "x86_64" : "HPPA");
        if (n % 7 != 0)
            traits_hear(t, n, &r);
    }
}

static void check_mistake(const struct mistake *m, const char *text) {
    static char shown[4096];
    size_t len = strlen(m->words);
    ASSERT(len > 0 && len < sizeof m->words - 1);
    for (size_t i = 0; i < len; i++)
        ASSERT(m->words[i] >= ' ' && m->words[i] <= '~');
    ASSERT(m->column <= strlen(text) && m->length > 0);
    ASSERT(m->column == strlen(text) || m->column + m->length <= strlen(text));
    ASSERT(mistake_show(m, "need", text, shown, sizeof shown) < sizeof shown);
}

static void check_need(const struct need *n, const struct traits *t) {
    static char text[CANONICAL_MAX], again[CANONICAL_MAX];
    uint64_t storage[8], other[8];
    struct nodeset set, same;
    struct need anew;
    struct mistake m;
    nodeset_init(&set, NODES, storage);
    nodeset_init(&same, NODES, other);
    need_select(n, t, &set);
    for (uint32_t node = 0; node < NODES; node++)
        ASSERT(need_match(n, t, node) == nodeset_has(&set, node));
    ASSERT(need_format(n, t, text, sizeof text) == strlen(text));
    ASSERT(need_compile(&anew, t, text, &m) == 0);
    need_select(&anew, t, &same);
    ASSERT(nodeset_equal(&set, &same));
    need_format(&anew, t, again, sizeof again);
    ASSERT(strcmp(text, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len) {
    static alignas(8) uint8_t storage[64 * 1024];
    struct traits t;
    struct need n;
    struct mistake m;
    char text[TEXT_MAX];
    ASSERT(traits_bytes(NODES, ATTRIBUTES) <= sizeof storage);
    make_table(&t, storage);
    if (len >= sizeof text)
        len = sizeof text - 1;
    memcpy(text, data, len);
    text[len] = '\0';
    int r = need_compile(&n, &t, text, &m);
    ASSERT(r == 0 || r == -EINVAL);
    if (r < 0)
        check_mistake(&m, text);
    else
        check_need(&n, &t);
    return 0;
}
