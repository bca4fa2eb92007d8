/* SPDX-License-Identifier: MIT */
/* The node file: see nodespec.h. */
#include "client/nodespec.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/nearest.h"
#include "client/attribs.h"
#include "os/files.h"
#include "sched/size.h"

enum { KEY_MAX = 64 };

/* Said of one node so far. */
struct said {
    uint64_t attributes; /* a bit for each */
    uint32_t line;       /* that named it first; 0: none has */
    uint32_t attributes_line;
    uint32_t column; /* there */
};

/* The files as they are read. */
struct reader {
    const struct cluster *cluster;
    struct nodespec *spec;
    struct traits traits;
    struct said *said; /* by node */
    bool has_attribs, has_widths;
    struct mistake *mistake;
    struct nodeset set; /* nodes of this line */
    uint32_t number;
    const char *line, *at, *end; /* all of the line; where we are in it */
    const char *nodes;           /* where they are named */
};

/* Part of a line. */
struct part {
    const char *at;
    size_t len;
};

__attribute__((format(printf, 3, 4))) static int wrong(const struct reader *r, struct part p,
                                                       const char *format, ...) {
    va_list args;
    mistake_at(r->mistake, (size_t)(p.at - r->line), p.len);
    r->mistake->line = r->number;
    va_start(args, format);
    vsnprintf(r->mistake->words, sizeof r->mistake->words, format, args);
    va_end(args);
    for (char *c = r->mistake->words; *c != '\0'; c++)
        *c = *c >= ' ' && *c <= '~' ? *c : '?'; /* others repeat what stands in the file as it is */
    return -EBADMSG;
}

/* A bit of it, for words that repeat it. */
static const char *quoted(struct part p, char out[KEY_MAX]) {
    struct text t;
    text_init(&t, out, KEY_MAX);
    mistake_quote(&t, p.at, p.len);
    return out;
}

static bool copy(struct part p, char *out, size_t cap) {
    struct text t;
    text_init(&t, out, cap);
    text_strn(&t, p.at, p.len);
    return !t.cut;
}

static const char *node_name(const struct reader *r, uint32_t node,
                             char out[CLUSTER_NODE_NAME_MAX]) {
    cluster_node_name(r->cluster, node, out, CLUSTER_NODE_NAME_MAX);
    return out;
}

/* ---- switches ---- */

static bool name_fits(const char *name) {
    size_t len = strlen(name);
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)name[i]) && strchr("-_.", name[i]) == NULL)
            return false;
    return len > 0 && len < NODESPEC_WORD_MAX;
}

/* One more than its place; 0 if there is no memory. */
static uint32_t number_of(struct nodespec *n, const char *name) {
    for (uint32_t i = 0; i < n->switch_count; i++)
        if (strcmp(n->names[i], name) == 0)
            return i + 1;
    if ((n->switch_count & (n->switch_count - 1)) == 0) {
        size_t cap = n->switch_count == 0 ? 1 : 2 * (size_t)n->switch_count;
        void *names = realloc(n->names, cap * sizeof *n->names);
        if (names == NULL)
            return 0;
        n->names = names;
    }
    snprintf(n->names[n->switch_count], NODESPEC_WORD_MAX, "%s", name);
    return ++n->switch_count;
}

static int take_switch(const struct reader *r, struct part whole, struct part value) {
    char node[CLUSTER_NODE_NAME_MAX], name[NODESPEC_WORD_MAX], text[KEY_MAX];
    if (!copy(value, name, sizeof name) || !name_fits(name))
        return wrong(r, whole, "%s: its name is of up to %d letters, digits, -, _ and .",
                     quoted(whole, text), NODESPEC_WORD_MAX - 1);
    uint32_t here = number_of(r->spec, name);
    if (here == 0)
        return -ENOMEM;
    NODESET_EACH (n, &r->set) {
        uint32_t before = r->spec->switches[n];
        if (before != 0 && before != here)
            return wrong(r, whole, "%s: %s hangs on %s already", quoted(whole, text),
                         node_name(r, n, node), r->spec->names[before - 1]);
        r->spec->switches[n] = here;
    }
    return 0;
}

/* ---- owners ---- */

/* One more than its place; 0: there are too many. */
static uint32_t owner_number(struct nodespec *n, const char *text) {
    for (uint32_t i = 0; i < n->owner_count; i++)
        if (strcmp(n->owner_texts[i], text) == 0)
            return i + 1;
    if (n->owner_count == NODESPEC_OWNERS_MAX)
        return 0;
    snprintf(n->owner_texts[n->owner_count], OWNER_TEXT_MAX, "%s", text);
    return ++n->owner_count;
}

static int take_owner(const struct reader *r, struct part value) {
    char text[OWNER_TEXT_MAX], node[CLUSTER_NODE_NAME_MAX], short_text[KEY_MAX];
    struct owner_watch watch;
    if (owner_read(bytes_of(value.at, value.len), &watch, r->mistake) < 0) {
        r->mistake->line = r->number;
        r->mistake->column += (uint32_t)(value.at - r->line);
        return -EBADMSG;
    }
    copy(value, text, sizeof text);
    uint32_t here = owner_number(r->spec, text);
    if (here == 0)
        return wrong(r, value, "%s: there are too many that differ (at most %d)",
                     quoted(value, short_text), NODESPEC_OWNERS_MAX);
    NODESET_EACH (n, &r->set) {
        uint32_t before = r->spec->owners[n];
        if (before != 0 && before != here)
            return wrong(r, value, "%s: %s has owner=%.60s already", quoted(value, short_text),
                         node_name(r, n, node), r->spec->owner_texts[before - 1]);
        r->spec->owners[n] = here;
    }
    return 0;
}

/* ---- labels and attributes ---- */

static int take_labels(struct reader *r, struct part value) {
    uint64_t set = 0;
    char word[TRAITS_WORD_MAX], text[KEY_MAX];
    while (true) {
        const char *plus = memchr(value.at, '+', value.len);
        struct part one = {value.at, plus != NULL ? (size_t)(plus - value.at) : value.len};
        int bit = copy(one, word, sizeof word) ? traits_label(&r->traits, word) : -EINVAL;
        if (bit == -ENOBUFS)
            return wrong(r, one, "%s: there are too many labels (at most %d)", quoted(one, text),
                         TRAITS_LABELS_MAX);
        if (bit < 0)
            return wrong(r, one, "%s cannot be a label: up to %d letters, digits, . _ - / : @ %%",
                         quoted(one, text), TRAITS_WORD_MAX - 1);
        set |= (uint64_t)1 << bit;
        if (plus == NULL)
            break;
        value = (struct part){plus + 1, value.len - one.len - 1};
    }
    traits_say(&r->traits, &r->set, TRAITS_LABELS, set);
    return 0;
}

static int no_such_key(const struct reader *r, struct part key) {
    const char *names[TRAITS_MAX + 6];
    char word[KEY_MAX], text[KEY_MAX];
    uint32_t count = 0;
    for (uint32_t id = TRAITS_BUILT_IN; id < r->traits.count; id++)
        names[count++] = r->traits.at[id].name;
    names[count++] = "switch";
    names[count++] = "label";
    names[count++] = "labels";
    names[count++] = "role";
    names[count++] = "dedicated";
    names[count++] = "owner";
    copy(key, word, sizeof word);
    const char *near = nearest_name(word, names, count);
    if (near == NULL)
        return wrong(r, key,
                     "%s: there is no such key; switch, label, role, dedicated, owner are, and "
                     "names of the attribute file",
                     quoted(key, text));
    return wrong(r, key, "%s: there is no such key; did you mean %s?", quoted(key, text), near);
}

static int take_attribute(struct reader *r, struct part key, struct part value) {
    char word[TRAITS_VALUE_MAX], node[CLUSTER_NODE_NAME_MAX], text[KEY_MAX];
    int id = copy(key, word, sizeof word) ? traits_find(&r->traits, word) : -ENOENT;
    if (id < 0)
        return no_such_key(r, key);
    if (!traits_is_said((uint32_t)id))
        return wrong(r, key, "%s is found out by the nodes themselves", r->traits.at[id].name);
    if (id == TRAITS_LABELS)
        return take_labels(r, value);
    struct traits_value v = {0};
    struct text why = mistake_at(r->mistake, (size_t)(value.at - r->line), value.len);
    r->mistake->line = r->number;
    if (!copy(value, word, sizeof word))
        return wrong(r, value, "%s is too long for a value", quoted(value, text));
    if (traits_read(&r->traits, (uint32_t)id, word, &v, &why) < 0)
        return -EBADMSG;
    uint64_t bit = (uint64_t)1 << id;
    NODESET_EACH (n, &r->set) {
        struct said *s = &r->said[n];
        char old[TRAITS_WORD_MAX];
        if ((s->attributes & bit) != 0 && traits_get(&r->traits, n, (uint32_t)id) != v.first) {
            struct text t;
            text_init(&t, old, sizeof old);
            traits_write(&r->traits, n, (uint32_t)id, &t);
            return wrong(r, value, "%s: %s has %s=%s already", quoted(value, text),
                         node_name(r, n, node), r->traits.at[id].name, old);
        }
        s->attributes |= bit;
        if (id >= TRAITS_BUILT_IN && s->attributes_line == 0) {
            s->attributes_line = r->number;
            s->column = (uint32_t)(r->nodes - r->line);
        }
    }
    traits_say(&r->traits, &r->set, (uint32_t)id, v.first);
    return 0;
}

/* ---- lines ---- */

static bool is_key(struct part key, const char *name) {
    char word[KEY_MAX];
    return copy(key, word, sizeof word) && text_alike(word, name);
}

static int take_word(struct reader *r, struct part word) {
    char text[KEY_MAX];
    const char *sign = memchr(word.at, '=', word.len);
    if (sign == NULL)
        return wrong(r, word, "%s: write KEY=VALUE, such as switch=s1", quoted(word, text));
    struct part key = {word.at, (size_t)(sign - word.at)};
    struct part value = {sign + 1, word.len - key.len - 1};
    if (is_key(key, "switch"))
        return take_switch(r, word, value);
    if (is_key(key, "owner"))
        return take_owner(r, value);
    if (is_key(key, "label"))
        return take_labels(r, value);
    return take_attribute(r, key, value);
}

static int take_width(struct reader *r, struct part word) {
    char number[KEY_MAX], node[CLUSTER_NODE_NAME_MAX], text[KEY_MAX];
    uint64_t width = 0;
    if (!copy(word, number, sizeof number) || text_scan_u64(number, &width) < 0 || width == 0 ||
        width > SIZE_PART_MAX)
        return wrong(r, word, "%s: a node has at least one processor, and at most 1073741824",
                     quoted(word, text));
    NODESET_EACH (n, &r->set) {
        uint32_t before = r->spec->widths[n];
        if (before != 0 && before != width)
            return wrong(r, word, "%s: %s has %u processors already", quoted(word, text),
                         node_name(r, n, node), before);
        r->spec->widths[n] = (uint32_t)width;
    }
    r->has_widths = true;
    return 0;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r';
}

static bool is_number(struct part p) {
    for (size_t i = 0; i < p.len; i++)
        if (!text_is_digit(p.at[i]))
            return false;
    return p.len > 0;
}

/* Up to a blank, or a comma if those separate; false at the end of the line or before a comment. */
static bool next(struct reader *r, bool commas, struct part *ret) {
    while (r->at < r->end && (is_blank(*r->at) || (commas && *r->at == ',')))
        r->at++;
    if (r->at == r->end || *r->at == '#')
        return false;
    *ret = (struct part){r->at, 0};
    while (r->at < r->end && !is_blank(*r->at) && !(commas && *r->at == ','))
        r->at++;
    ret->len = (size_t)(r->at - ret->at);
    return true;
}

/* "[0-3]" or "10", where no node has such a name. -EINVAL: that is no such list; -ENOENT: words is one that is vacant. */
static int take_numbers(struct reader *r, const char *list, struct cluster_trouble *trouble) {
    struct roster roster = cluster_roster(r->cluster);
    if (nodeset_parse(&r->set, list, "", NULL) < 0)
        return -EINVAL;
    NODESET_EACH (n, &r->set) {
        if (roster_taken(&roster, n))
            continue;
        snprintf(trouble->words, sizeof trouble->words, "%u", n);
        return -ENOENT;
    }
    return 0;
}

static int take_nodes(struct reader *r, struct part word) {
    struct cluster_trouble trouble;
    char *list = strndup(word.at, word.len);
    if (list == NULL)
        return -ENOMEM;
    int e = cluster_nodes(r->cluster, list, &r->set, &trouble);
    int numbers = e == -ENOENT ? take_numbers(r, list, &trouble) : -EINVAL;
    if (numbers == 0)
        e = 0;
    else if (e == -ENOENT)
        e = wrong(r, word, "\"%.60s\": there is no such node", trouble.words);
    else if (e < 0)
        e = wrong(r, word, "\"%.50s\": %.60s", list, trouble.words);
    free(list);
    if (e < 0)
        return e;
    r->nodes = word.at;
    NODESET_EACH (n, &r->set)
        if (r->said[n].line == 0)
            r->said[n].line = r->number;
    return 0;
}

static int take_line(struct reader *r) {
    struct part word;
    if (!next(r, false, &word))
        return 0;
    int e = take_nodes(r, word);
    for (bool first = true; e == 0 && next(r, true, &word); first = false)
        e = first && is_number(word) ? take_width(r, word) : take_word(r, word);
    return e;
}

/* ---- files ---- */

/* All or nothing of the attribute file's. */
static int check_complete(struct reader *r) {
    char node[CLUSTER_NODE_NAME_MAX];
    for (uint32_t n = 0; n < r->spec->nodes; n++) {
        const struct said *s = &r->said[n];
        for (uint32_t id = TRAITS_BUILT_IN; s->attributes_line != 0 && id < r->traits.count; id++) {
            if ((s->attributes >> id & 1) != 0)
                continue;
            mistake_at(r->mistake, s->column, 1);
            r->mistake->line = s->attributes_line;
            snprintf(r->mistake->words, sizeof r->mistake->words,
                     "%.60s: %s is missing; who says one attribute of a node says all",
                     node_name(r, n, node), r->traits.at[id].name);
            return -EBADMSG;
        }
    }
    return 0;
}

static int read_lines(struct reader *r, const char *text) {
    int e = 0;
    for (const char *line = text; e == 0 && line != NULL;) {
        const char *end = strchr(line, '\n');
        r->number++;
        r->line = r->at = line;
        r->end = end != NULL ? end : line + strlen(line);
        e = take_line(r);
        line = end != NULL ? end + 1 : NULL;
    }
    if (e == 0)
        e = check_complete(r);
    for (uint32_t n = 0; e == 0 && r->has_attribs && r->has_widths && n < r->spec->nodes; n++)
        if (r->said[n].line == 0)
            r->spec->widths[n] = 1;
    return e;
}

static int keep_traits(struct reader *r) {
    for (size_t cap = 4096;; cap *= 2) {
        uint8_t *room = realloc(r->spec->traits, cap);
        if (room == NULL)
            return -ENOMEM;
        r->spec->traits = room;
        long len = traits_encode(&r->traits, room_of(room, cap));
        if (len >= 0) {
            r->spec->traits_len = (size_t)len;
            return 0;
        }
    }
}

int nodespec_read(const struct cluster *c, const char *attribs, const char *text,
                  struct nodespec *ret, struct nodespec_mistake *m) {
    struct reader r = {
        .cluster = c, .spec = ret, .mistake = &m->at, .has_attribs = attribs != NULL};
    *m = (struct nodespec_mistake){0};
    *ret = (struct nodespec){.nodes = c->nodes};
    ret->switches = calloc(c->nodes, sizeof *ret->switches);
    ret->widths = calloc(c->nodes, sizeof *ret->widths);
    ret->owners = calloc(c->nodes, sizeof *ret->owners);
    ret->owner_texts = calloc(NODESPEC_OWNERS_MAX, sizeof *ret->owner_texts);
    r.said = calloc(c->nodes, sizeof *r.said);
    void *set = malloc(nodeset_bytes(c->nodes)),
         *table = malloc(traits_bytes(c->nodes, TRAITS_MAX));
    bool lacks = ret->switches == NULL || ret->widths == NULL || ret->owners == NULL ||
                 ret->owner_texts == NULL || r.said == NULL || set == NULL || table == NULL;
    int e = lacks ? -ENOMEM : 0;
    if (e == 0) {
        nodeset_init(&r.set, c->nodes, set);
        traits_init(&r.traits, c->nodes, TRAITS_MAX, table);
        e = attribs == NULL ? 0 : attribs_parse(&r.traits, attribs, &m->at);
        m->in_attribs = e < 0;
    }
    if (e == 0)
        e = read_lines(&r, text);
    if (e == 0)
        e = keep_traits(&r);
    free(table);
    free(set);
    free(r.said);
    return e;
}

int nodespec_parse(const struct cluster *c, const char *text, struct nodespec *ret,
                   struct cluster_trouble *trouble) {
    struct nodespec_mistake m;
    int e = nodespec_read(c, NULL, text, ret, &m);
    trouble->words[0] = '\0';
    if (e == -EBADMSG)
        snprintf(trouble->words, sizeof trouble->words, "line %u: %.140s", m.at.line, m.at.words);
    return e;
}

/* ---- files ---- */

/* NULL, or a path: the text of that file. */
static int read_text(const char *path, char **ret, char why[NODESPEC_WHY_MAX]) {
    struct cluster_trouble trouble;
    *ret = NULL;
    int r = path == NULL ? 0 : cluster_text(path, ret, &trouble);
    if (r < 0)
        snprintf(why, NODESPEC_WHY_MAX, "%.400s: %s", path,
                 trouble.words[0] != '\0' ? trouble.words : strerror(-r));
    return r;
}

int nodespec_load(const struct cluster *c, const char *attribs, const char *path,
                  struct nodespec *ret, char why[NODESPEC_WHY_MAX]) {
    struct nodespec_mistake m = {0};
    char *names = NULL, *text = NULL;
    *ret = (struct nodespec){0};
    why[0] = '\0';
    int r = read_text(attribs, &names, why);
    if (r == 0)
        r = read_text(path, &text, why);
    if (r == 0)
        r = nodespec_read(c, names, text != NULL ? text : "", ret, &m);
    if (r == -EBADMSG && why[0] == '\0')
        mistake_show(&m.at, m.in_attribs ? attribs : path, m.in_attribs ? names : text, why,
                     NODESPEC_WHY_MAX);
    else if (r < 0 && why[0] == '\0')
        snprintf(why, NODESPEC_WHY_MAX, "%s", strerror(-r));
    free(names);
    free(text);
    return r;
}

static int kept_path(const char *folder, enum nodespec_file file, char out[CLUSTER_PATH_MAX]) {
    static const char *const names[NODESPEC_FILES] = {"attribs", "nodespec"};
    int len = snprintf(out, CLUSTER_PATH_MAX, "%s/%s", folder, names[file]);
    return len >= CLUSTER_PATH_MAX ? -ENAMETOOLONG : 0;
}

bool nodespec_kept(const char *folder, enum nodespec_file file, char out[CLUSTER_PATH_MAX]) {
    return kept_path(folder, file, out) == 0 && access(out, F_OK) == 0;
}

int nodespec_load_kept(const struct cluster *c, const char *folder, struct nodespec *ret,
                       char why[NODESPEC_WHY_MAX]) {
    char attribs[CLUSTER_PATH_MAX], path[CLUSTER_PATH_MAX];
    bool has_attribs = nodespec_kept(folder, NODESPEC_ATTRIBS, attribs);
    bool has_path = nodespec_kept(folder, NODESPEC_NODES, path);
    return nodespec_load(c, has_attribs ? attribs : NULL, has_path ? path : NULL, ret, why);
}

/* The node file is the last: who waits for it finds both. */
int nodespec_keep(const char *folder, const char *attribs, const char *path) {
    const char *const from[] = {attribs, path};
    char to[CLUSTER_PATH_MAX];
    int r = 0;
    for (enum nodespec_file i = 0; i < NODESPEC_FILES && r == 0; i++) {
        char *text = NULL;
        struct cluster_trouble trouble;
        r = kept_path(folder, i, to);
        if (r == 0 && from[i] != NULL)
            r = cluster_text(from[i], &text, &trouble);
        bool nothing = from[i] == NULL && i == NODESPEC_ATTRIBS;
        if (r == 0 && nothing)
            r = unlink(to) < 0 && errno != ENOENT ? -errno : 0;
        else if (r == 0)
            r = files_replace(to, bytes_from_str(text != NULL ? text : ""));
        free(text);
    }
    return r;
}

/* ---- for the manager ---- */

static struct bytes tell_numbers(const uint32_t *numbers, uint32_t count, uint8_t *out) {
    if (numbers == NULL)
        return (struct bytes){0};
    for (uint32_t i = 0; i < count; i++)
        store_le32(out + (size_t)i * 4, numbers[i]);
    return bytes_of(out, (size_t)count * 4);
}

/* Each with its NUL. */
static struct bytes tell_owner_texts(const struct nodespec *n, uint8_t *out) {
    size_t len = 0;
    for (uint32_t i = 0; i < n->owner_count; i++) {
        size_t more = strlen(n->owner_texts[i]) + 1;
        memcpy(out + len, n->owner_texts[i], more);
        len += more;
    }
    return bytes_of(out, len);
}

int nodespec_tell(const struct nodespec *n, struct nodespec_told *ret) {
    size_t each = (size_t)n->nodes * 4, texts = (size_t)n->owner_count * OWNER_TEXT_MAX;
    uint8_t *memory = malloc(3 * each + texts + n->traits_len + 1);
    *ret = (struct nodespec_told){.memory = memory};
    if (memory == NULL)
        return -ENOMEM;
    uint8_t *traits = memory + 3 * each + texts;
    if (n->traits_len > 0)
        memcpy(traits, n->traits, n->traits_len);
    ret->in.widths = tell_numbers(n->widths, n->nodes, memory);
    ret->in.switches = tell_numbers(n->switches, n->nodes, memory + each);
    ret->in.owners = tell_numbers(n->owners, n->nodes, memory + 2 * each);
    ret->in.owner_texts = tell_owner_texts(n, memory + 3 * each);
    ret->in.traits = bytes_of(traits, n->traits_len);
    return 0;
}

int nodespec_add(struct nodespec *n, uint32_t nodes, uint32_t node, const char *on_switch) {
    if (n->switches == NULL)
        *n = (struct nodespec){.nodes = nodes, .switches = calloc(nodes, sizeof *n->switches)};
    if (n->switches == NULL)
        return -ENOMEM;
    if (node >= n->nodes || n->switches[node] != 0)
        return 0;
    n->switches[node] = number_of(n, on_switch);
    return n->switches[node] == 0 ? -ENOMEM : 0;
}

void nodespec_free(struct nodespec *n) {
    free(n->switches);
    free(n->names);
    free(n->widths);
    free(n->traits);
    free(n->owners);
    free(n->owner_texts);
    *n = (struct nodespec){0};
}

const char *nodespec_switch(const struct nodespec *n, uint32_t node) {
    uint32_t here = node < n->nodes && n->switches != NULL ? n->switches[node] : 0;
    return here == 0 ? NULL : n->names[here - 1];
}

uint32_t nodespec_widest(const struct nodespec *n) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < n->nodes; i++)
        most = nodespec_width(n, i) > most ? nodespec_width(n, i) : most;
    return most;
}

uint32_t nodespec_width(const struct nodespec *n, uint32_t node) {
    return node < n->nodes && n->widths != NULL ? n->widths[node] : 0;
}
