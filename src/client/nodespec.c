/* SPDX-License-Identifier: MIT */
/* The node file: see nodespec.h. */
#include "client/nodespec.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "os/files.h"

/* A line as it is read. */
struct line {
    const struct cluster *cluster;
    struct nodespec *spec;
    struct cluster_trouble *trouble;
    unsigned number;
    struct nodeset set;
};

__attribute__((format(printf, 2, 3))) static int wrong(const struct line *l, const char *format,
                                                       ...) {
    char words[128];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    snprintf(l->trouble->words, sizeof l->trouble->words, "line %u: %s", l->number, words);
    return -EBADMSG;
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

static int take_switch(const struct line *l, const char *value) {
    char node[CLUSTER_NODE_NAME_MAX];
    if (!name_fits(value))
        return wrong(l, "\"switch=%.40s\": its name is of up to %d letters, digits, -, _ and .",
                     value, NODESPEC_WORD_MAX - 1);
    uint32_t here = number_of(l->spec, value);
    if (here == 0)
        return -ENOMEM;
    NODESET_EACH (n, &l->set) {
        uint32_t before = l->spec->switches[n];
        cluster_node_name(l->cluster, n, node, sizeof node);
        if (before != 0 && before != here)
            return wrong(l, "\"switch=%.40s\": %s hangs on %s already", value, node,
                         l->spec->names[before - 1]);
        l->spec->switches[n] = here;
    }
    return 0;
}

/* ---- lines ---- */

static int take_word(const struct line *l, char *word) {
    char *value = strchr(word, '=');
    if (value == NULL)
        return wrong(l, "\"%.60s\": write KEY=VALUE, such as switch=s1", word);
    *value++ = '\0';
    if (strcmp(word, "switch") == 0)
        return take_switch(l, value);
    return wrong(l, "\"%.60s\": there is no such key; switch is one", word);
}

static int take_line(struct line *l, char *text) {
    struct cluster_trouble trouble;
    char *rest, *nodes = strtok_r(text, " \t\r", &rest), *word;
    if (nodes == NULL || nodes[0] == '#')
        return 0;
    int r = cluster_nodes(l->cluster, nodes, &l->set, &trouble);
    if (r == -ENOENT)
        return wrong(l, "\"%.60s\": there is no such node", trouble.words);
    if (r < 0)
        return wrong(l, "\"%.50s\": %.60s", nodes, trouble.words);
    for (r = 0; r == 0 && (word = strtok_r(NULL, " \t\r", &rest)) != NULL && word[0] != '#';)
        r = take_word(l, word);
    return r;
}

int nodespec_parse(const struct cluster *c, const char *text, struct nodespec *ret,
                   struct cluster_trouble *trouble) {
    struct line l = {.cluster = c, .spec = ret, .trouble = trouble};
    trouble->words[0] = '\0';
    *ret = (struct nodespec){.nodes = c->nodes};
    ret->switches = calloc(c->nodes, sizeof *ret->switches);
    void *storage = malloc(nodeset_bytes(c->nodes));
    char *copy = strdup(text), *rest = copy;
    int r = ret->switches == NULL || storage == NULL || copy == NULL ? -ENOMEM : 0;
    if (r == 0)
        nodeset_init(&l.set, c->nodes, storage);
    for (char *line; r == 0 && (line = strsep(&rest, "\n")) != NULL;) {
        l.number++;
        r = take_line(&l, line);
    }
    free(copy);
    free(storage);
    return r;
}

int nodespec_load(const struct cluster *c, const char *path, struct nodespec *ret,
                  struct cluster_trouble *trouble) {
    *ret = (struct nodespec){0};
    char *text;
    int r = cluster_text(path, &text, trouble);
    if (r < 0)
        return r;
    r = nodespec_parse(c, text, ret, trouble);
    free(text);
    return r;
}

int nodespec_path(const struct cluster *c, char *out, size_t cap) {
    char folder[CLUSTER_PATH_MAX];
    int r = cluster_folder(c->name, folder, sizeof folder);
    int len = r < 0 ? 0 : snprintf(out, cap, "%s/nodespec", folder);
    return r < 0 ? r : (size_t)len >= cap ? -ENAMETOOLONG : 0;
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
    *n = (struct nodespec){0};
}

const char *nodespec_switch(const struct nodespec *n, uint32_t node) {
    uint32_t here = node < n->nodes && n->switches != NULL ? n->switches[node] : 0;
    return here == 0 ? NULL : n->names[here - 1];
}
