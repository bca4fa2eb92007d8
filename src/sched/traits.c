/* SPDX-License-Identifier: MIT */
/* Attributes of nodes: the table; see traits.h.
 *
 * Built in attributes come first, so those of the administrator are all that is behind them, and names of their values
 * behind the built in ones too. Every node has at most one text of each attribute of texts: the intern table cannot be
 * full. */
#include "sched/traits.h"

#include <errno.h>
#include <string.h>

#include "base/assert.h"
#include "base/nearest.h"

#define EQUALITY  (1 << TRAITS_IS | 1 << TRAITS_IS_NOT)
#define ANY_ORDER ((1 << TRAITS_OPERATORS) - 1)

/* The usual role is the first. */
static const char *const roles[] = {"compute", "service", "administration"};
enum { ROLES = sizeof roles / sizeof roles[0] };

static const struct trait built_in[TRAITS_BUILT_IN] = {
    [TRAITS_ARCH] = {"ARCH", TRAITS_TEXT, EQUALITY, 0, 0, TRAITS_UNKNOWN},
    [TRAITS_OPSYS] = {"OPSYS", TRAITS_TEXT, EQUALITY, 0, 0, TRAITS_UNKNOWN},
    [TRAITS_HOST] = {"HOST", TRAITS_TEXT, EQUALITY, 0, 0, TRAITS_UNKNOWN},
    [TRAITS_PROCESSORS] = {"PROCESSORS", TRAITS_COUNT, ANY_ORDER, 0, 0, TRAITS_UNKNOWN},
    [TRAITS_MEMORY] = {"MEMORY", TRAITS_SIZE, ANY_ORDER, 0, 0, TRAITS_UNKNOWN},
    [TRAITS_KERNEL] = {"KERNEL", TRAITS_VERSION, ANY_ORDER, 0, 0, TRAITS_UNKNOWN},
    [TRAITS_NUMA] = {"NUMA", TRAITS_COUNT, ANY_ORDER, 0, 0, TRAITS_UNKNOWN},
    [TRAITS_GPUS] = {"GPUS", TRAITS_COUNT, ANY_ORDER, 0, 0, TRAITS_UNKNOWN},
    [TRAITS_NETWORK] = {"NETWORK", TRAITS_RATE, ANY_ORDER, 0, 0, TRAITS_UNKNOWN},
    [TRAITS_SPEED] = {"SPEED", TRAITS_COUNT, ANY_ORDER, 0, 0, TRAITS_UNKNOWN},
    [TRAITS_LABELS] = {"LABELS", TRAITS_WORDS, EQUALITY, 0, 0, 0},
    [TRAITS_ROLE] = {"ROLE", TRAITS_NAME, EQUALITY, 0, ROLES, 0},
    [TRAITS_DEDICATED] = {"DEDICATED", TRAITS_FLAG, EQUALITY, 0, 0, 1},
};

/* ---- storage ---- */

size_t traits_bytes(uint32_t nodes, uint32_t attributes) {
    return attributes * sizeof(struct trait) + (size_t)TRAITS_NAMES_MAX * TRAITS_WORD_MAX +
           (size_t)TRAITS_LABELS_MAX * TRAITS_WORD_MAX +
           (size_t)nodes * attributes * sizeof(uint64_t) + intern_bytes(TRAITS_TEXTS * nodes);
}

static void fill(struct traits *t, uint32_t id) {
    uint64_t *column = t->values + (size_t)id * t->nodes;
    for (uint32_t n = 0; n < t->nodes; n++)
        column[n] = t->at[id].usual;
}

static void keep_word(char to[TRAITS_WORD_MAX], const char *word) {
    size_t len = strlen(word);
    ASSERT(len < TRAITS_WORD_MAX);
    memset(to, 0, TRAITS_WORD_MAX);
    memcpy(to, word, len);
}

void traits_init(struct traits *t, uint32_t nodes, uint32_t attributes, void *storage) {
    ASSERT(attributes >= TRAITS_BUILT_IN && attributes <= TRAITS_MAX);
    ASSERT(nodes <= NODESET_UNIVERSE_MAX / TRAITS_TEXTS && ((uintptr_t)storage & 7) == 0);
    *t = (struct traits){.nodes = nodes, .capacity = attributes};
    t->values = storage;
    t->at = (void *)(t->values + (size_t)nodes * attributes);
    t->names = (void *)(t->at + attributes);
    t->labels = t->names + TRAITS_NAMES_MAX;
    intern_init(&t->texts, TRAITS_TEXTS * nodes, t->labels + TRAITS_LABELS_MAX);
    memcpy(t->at, built_in, sizeof built_in);
    for (uint32_t i = 0; i < ROLES; i++)
        keep_word(t->names[i], roles[i]);
    for (uint32_t id = 0; id < TRAITS_REPORTED; id++)
        fill(t, id);
    traits_clear(t);
}

int traits_find(const struct traits *t, const char *name) {
    for (uint32_t id = 0; id < t->count; id++)
        if (text_alike(t->at[id].name, name))
            return (int)id;
    return text_alike("LABEL", name) ? TRAITS_LABELS : -ENOENT; /* as node files have it */
}

const char *traits_nearest(const struct traits *t, const char *name) {
    const char *names[TRAITS_MAX];
    uint32_t own = t->count - TRAITS_BUILT_IN; /* of two that are as near, the administrator's */
    for (uint32_t i = 0; i < t->count; i++)
        names[i] = t->at[i < own ? TRAITS_BUILT_IN + i : i - own].name;
    return nearest_name(name, names, t->count);
}

/* ---- what the administrator says ---- */

void traits_clear(struct traits *t) {
    t->edition++;
    t->count = TRAITS_BUILT_IN;
    t->name_count = ROLES;
    t->label_count = 0;
    for (uint32_t id = TRAITS_REPORTED; id < t->count; id++)
        fill(t, id);
}

bool traits_is_word(char c) {
    return c != '\0' && (text_is_letter(c) || text_is_digit(c) || strchr("._-+/:@%", c) != NULL);
}

static bool is_all_word(const char *word) {
    size_t len = strnlen(word, TRAITS_WORD_MAX);
    for (size_t i = 0; i < len; i++)
        if (!traits_is_word(word[i]))
            return false;
    return len > 0 && len < TRAITS_WORD_MAX;
}

bool traits_is_name(const char *name) {
    if (!text_is_letter(name[0]) || !is_all_word(name))
        return false;
    for (const char *c = name; *c != '\0'; c++)
        if (strchr("+/:@%", *c) != NULL)
            return false;
    return !text_alike(name, "and") && !text_alike(name, "or") && !text_alike(name, "not");
}

int traits_define(struct traits *t, const char *name, uint8_t operators) {
    if (!traits_is_name(name) || operators == 0 || operators > ANY_ORDER)
        return -EINVAL;
    if (traits_find(t, name) >= 0)
        return -EEXIST;
    if (t->count == t->capacity)
        return -ENOBUFS;
    struct trait *a = &t->at[t->count];
    *a = (struct trait){
        .kind = TRAITS_NAME, .operators = operators, .first = (uint16_t)t->name_count};
    keep_word(a->name, name);
    fill(t, t->count);
    return (int)t->count++;
}

int traits_define_value(struct traits *t, const char *name) {
    ASSERT(t->count > TRAITS_BUILT_IN);
    struct trait *a = &t->at[t->count - 1];
    if (!is_all_word(name))
        return -EINVAL;
    for (uint32_t i = 0; i < a->count; i++)
        if (text_alike(t->names[a->first + i], name))
            return -EEXIST;
    if (t->name_count == TRAITS_NAMES_MAX)
        return -ENOBUFS;
    keep_word(t->names[t->name_count++], name);
    return a->count++;
}

int traits_label(struct traits *t, const char *word) {
    if (!is_all_word(word) || strchr(word, '+') != NULL)
        return -EINVAL;
    for (uint32_t i = 0; i < t->label_count; i++)
        if (text_alike(t->labels[i], word))
            return (int)i;
    if (t->label_count == TRAITS_LABELS_MAX)
        return -ENOBUFS;
    keep_word(t->labels[t->label_count], word);
    return (int)t->label_count++;
}

/* Is it a value that the attribute can have? For values that come from others. */
static bool is_possible(const struct traits *t, uint32_t id, uint64_t value) {
    const struct trait *a = &t->at[id];
    switch ((enum traits_kind)a->kind) {
    case TRAITS_NAME:
        return value < a->count;
    case TRAITS_FLAG:
        return value <= 1;
    case TRAITS_WORDS:
        return t->label_count == 64 || value >> t->label_count == 0;
    default:
        return value != TRAITS_UNKNOWN;
    }
}

void traits_say(struct traits *t, const struct nodeset *nodes, uint32_t id, uint64_t value) {
    ASSERT(nodes->universe <= t->nodes && id < t->count && traits_is_said(id));
    ASSERT(is_possible(t, id, value));
    uint64_t *column = t->values + (size_t)id * t->nodes;
    bool more = t->at[id].kind == TRAITS_WORDS;
    struct noderange r;
    for (uint32_t from = 0; nodeset_next_range(nodes, from, &r); from = r.last + 1)
        for (uint32_t n = r.first; n <= r.last; n++)
            column[n] = more ? column[n] | value : value;
}

bool traits_can_be_said(const struct traits *t, uint32_t id, uint64_t value) {
    return id < t->count && traits_is_said(id) && is_possible(t, id, value);
}

/* ---- what a node reports ---- */

struct traits_report traits_report_empty(void) {
    struct traits_report r;
    memset(&r, 0, sizeof r);
    for (uint32_t id = 0; id < TRAITS_REPORTED; id++)
        r.values[id] = TRAITS_UNKNOWN;
    return r;
}

void traits_report_text(struct traits_report *r, enum traits_id id, const char *text) {
    ASSERT(id < TRAITS_TEXTS);
    size_t len = strnlen(text, INTERN_TEXT_MAX - 1);
    memset(r->texts[id], 0, sizeof r->texts[id]);
    for (size_t i = 0; i < len; i++)
        r->texts[id][i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
}

void traits_hear(struct traits *t, uint32_t node, const struct traits_report *r) {
    ASSERT(node < t->nodes);
    traits_forget(t, node);
    for (uint32_t id = 0; id < TRAITS_REPORTED; id++) {
        uint64_t *value = &t->values[(size_t)id * t->nodes + node];
        if (id >= TRAITS_TEXTS)
            *value = r->values[id];
        else if (r->texts[id][0] != '\0')
            *value = intern_take(&t->texts, r->texts[id]);
    }
}

void traits_know(struct traits *t, uint32_t node, enum traits_id id, uint64_t value) {
    ASSERT(id < TRAITS_REPORTED && id >= TRAITS_TEXTS && node < t->nodes);
    t->values[(size_t)id * t->nodes + node] = value;
}

void traits_forget(struct traits *t, uint32_t node) {
    ASSERT(node < t->nodes);
    for (uint32_t id = 0; id < TRAITS_REPORTED; id++) {
        uint64_t *value = &t->values[(size_t)id * t->nodes + node];
        if (id < TRAITS_TEXTS && *value != TRAITS_UNKNOWN)
            intern_drop(&t->texts, (uint32_t)*value);
        *value = TRAITS_UNKNOWN;
    }
}

/* ---- telling nodes apart ---- */

static bool is_known(const struct traits *t, uint32_t id, uint64_t value) {
    return value != TRAITS_UNKNOWN || t->at[id].kind == TRAITS_WORDS;
}

static bool differs(const struct traits *t, const struct nodeset *nodes, uint32_t id) {
    struct noderange range;
    uint64_t first = 0;
    bool seen = false;
    for (uint32_t from = 0; nodeset_next_range(nodes, from, &range); from = range.last + 1) {
        for (uint32_t n = range.first; n <= range.last; n++) {
            uint64_t value = traits_get(t, n, id);
            if (!is_known(t, id, value))
                continue;
            if (seen && value != first)
                return true;
            first = value;
            seen = true;
        }
    }
    return false;
}

uint64_t traits_apart(const struct traits *t, const struct nodeset *nodes) {
    const uint64_t never = (uint64_t)1 << TRAITS_HOST | (uint64_t)1 << TRAITS_SPEED |
                           (uint64_t)1 << TRAITS_PROCESSORS | (uint64_t)1 << TRAITS_MEMORY;
    uint64_t apart = 0;
    for (uint32_t id = 0; id < t->count; id++)
        if ((never >> id & 1) == 0 && differs(t, nodes, id))
            apart |= (uint64_t)1 << id;
    return apart;
}
