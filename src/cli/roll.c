/* SPDX-License-Identifier: MIT */
/* Hosts as a user names them: see roll.h. */
#include "cli/roll.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "cli/complain.h"

enum { CRATES_MAX = UINT16_MAX };

struct reading {
    struct roll *roll;
    uint32_t cap;
    const char *who; /* complains */
};

static int no_memory(void) {
    complain(NULL, "there is no memory");
    return STATUS_STORM;
}

/* ---- Adding ------------------------------------------------------------------------------------ */

static int add(struct reading *g, const char *name, uint16_t crate) {
    struct roll *r = g->roll;
    if (r->count == g->cap) {
        uint32_t cap = g->cap == 0 ? 64 : 2 * g->cap;
        char **names = realloc(r->names, cap * sizeof *names);
        r->names = names != NULL ? names : r->names;
        uint16_t *crates = realloc(r->crates, cap * sizeof *crates);
        r->crates = crates != NULL ? crates : r->crates;
        if (names == NULL || crates == NULL)
            return no_memory();
        g->cap = cap;
    }
    r->names[r->count] = strdup(name);
    r->crates[r->count] = crate;
    return r->names[r->count++] == NULL ? no_memory() : 0;
}

/* `where` is what the list was found in, NULL: on the command line. */
static int add_list(struct reading *g, const char *list, uint16_t crate, const char *where) {
    struct hostlist it;
    const char *reason = "";
    size_t at = 0;
    char name[HOSTLIST_NAME_MAX + 1];
    if (hostlist_check(list, NULL, &at, &reason) < 0)
        return complain(where != NULL ? where : g->who, "%s at character %zu of \"%s\"", reason,
                        at + 1, list);
    int r = hostlist_init(&it, list);
    while (r == 0 && hostlist_next(&it, name, sizeof name) > 0)
        r = add(g, name, crate);
    return r;
}

/* ---- Files ------------------------------------------------------------------------------------- */

static int switch_number(struct roll *r, const char *name, uint16_t *ret) {
    for (uint32_t i = 0; i < r->switch_count; i++) {
        if (strcmp(r->switches[i], name) == 0) {
            *ret = (uint16_t)(i + 1);
            return 0;
        }
    }
    if (r->switch_count == CRATES_MAX - 1)
        return complain("exec", "there are more than %d switches", CRATES_MAX - 1);
    char **names = realloc(r->switches, (r->switch_count + 1) * sizeof *names);
    if (names == NULL)
        return no_memory();
    r->switches = names;
    names[r->switch_count] = strdup(name);
    if (names[r->switch_count] == NULL)
        return no_memory();
    *ret = (uint16_t)++r->switch_count;
    return 0;
}

static int add_line(struct reading *g, char *line, const char *where) {
    static const char blank[] = " \t\r\n";
    char *rest = NULL;
    line[strcspn(line, "#")] = '\0';
    char *list = strtok_r(line, blank, &rest);
    char *word = list != NULL ? strtok_r(NULL, blank, &rest) : NULL;
    uint16_t crate = 0;
    if (list == NULL)
        return 0;
    if (word != NULL && (strncmp(word, "switch=", 7) != 0 || word[7] == '\0'))
        return complain(where, "\"%s\" is not understood; behind hosts stands only switch=NAME",
                        word);
    if (word != NULL && strtok_r(NULL, blank, &rest) != NULL)
        return complain(where, "there is more than hosts and their switch");
    int r = word != NULL ? switch_number(g->roll, word + 7, &crate) : 0;
    return r != 0 ? r : add_list(g, list, crate, where);
}

static int add_file(struct reading *g, const char *path) {
    char *line = NULL, where[512];
    size_t cap = 0;
    int r = 0, number = 0;
    FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (f == NULL)
        return complain(g->who, "%s cannot be read: %s", path, strerror(errno));
    while (r == 0 && getline(&line, &cap, f) > 0) {
        snprintf(where, sizeof where, "%s:%d", path, ++number);
        r = add_line(g, line, where);
    }
    if (r == 0 && ferror(f))
        r = complain(g->who, "%s cannot be read: %s", path, strerror(errno));
    free(line);
    if (f != stdin)
        fclose(f);
    return r;
}

/* ---- All of it --------------------------------------------------------------------------------- */

/* The length of the item that text begins with: commas within brackets do not end it. */
static size_t item_length(const char *text) {
    size_t n = 0;
    for (bool inside = false; text[n] != '\0' && (inside || text[n] != ','); n++)
        inside = text[n] == '[' || (inside && text[n] != ']');
    return n;
}

static int add_items(struct reading *g, const char *text) {
    int r = 0;
    while (r == 0 && *text != '\0') {
        size_t len = item_length(text);
        char *item = strndup(text, len);
        if (item == NULL)
            return no_memory();
        r = item[0] == '@' ? add_file(g, item + 1) : add_list(g, item, 0, NULL);
        free(item);
        text += len + (text[len] == ',');
    }
    return r;
}

struct entry {
    const char *name;
    uint32_t index;
};

static int compare(const void *a, const void *b) {
    const struct entry *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

static struct entry *sorted(const struct roll *r) {
    struct entry *list = calloc(r->count + 1, sizeof *list);
    for (uint32_t i = 0; list != NULL && i < r->count; i++)
        list[i] = (struct entry){.name = r->names[i], .index = i};
    if (list != NULL)
        qsort(list, r->count, sizeof *list, compare);
    return list;
}

static int compare_name(const void *name, const void *entry) {
    return strcmp(name, ((const struct entry *)entry)->name);
}

static void keep(struct roll *r, const bool *out) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        if (out[i]) {
            free(r->names[i]);
            continue;
        }
        r->names[kept] = r->names[i];
        r->crates[kept++] = r->crates[i];
    }
    r->count = kept;
}

/* Takes out what is named twice, and what `except` names. */
static int weed(struct roll *r, const struct roll *except) {
    struct entry *mine = sorted(r), *others = sorted(except);
    bool *out = calloc(r->count + 1, sizeof *out);
    int status = mine == NULL || others == NULL || out == NULL ? no_memory() : 0;
    for (uint32_t i = 0; status == 0 && i < r->count; i++) {
        bool twice = i > 0 && strcmp(mine[i].name, mine[i - 1].name) == 0;
        out[mine[i].index] = twice || bsearch(mine[i].name, others, except->count, sizeof *others,
                                              compare_name) != NULL;
    }
    if (status == 0)
        keep(r, out);
    free(mine);
    free(others);
    free(out);
    return status;
}

int roll_read(struct roll *r, const char *who, const char *hosts, const char *except) {
    struct roll others = {.count = 0};
    struct reading mine = {.roll = r, .who = who}, theirs = {.roll = &others, .who = who};
    *r = (struct roll){.count = 0};
    int status = add_items(&mine, hosts);
    if (status == 0 && except != NULL)
        status = add_items(&theirs, except);
    if (status == 0)
        status = weed(r, &others);
    roll_free(&others);
    if (status == 0 && r->count == 0)
        status =
            complain(who, "\"%s\" names no host%s", hosts, except != NULL ? " that is left" : "");
    return status;
}

void roll_free(struct roll *r) {
    for (uint32_t i = 0; i < r->count; i++)
        free(r->names[i]);
    for (uint32_t i = 0; i < r->switch_count; i++)
        free(r->switches[i]);
    free(r->names);
    free(r->crates);
    free(r->switches);
    *r = (struct roll){.count = 0};
}

char *roll_fold(const struct roll *r, const uint32_t *which, uint32_t count) {
    const char **names = calloc(count + 1, sizeof *names);
    void *scratch = NULL;
    char *text = NULL;
    size_t len = 0;
    for (uint32_t i = 0; names != NULL && i < count; i++)
        names[i] = r->names[which[i]];
    size_t need = names != NULL ? hostlist_fold_bytes(names, count) : 0;
    scratch = names != NULL ? malloc(need) : NULL;
    if (scratch != NULL && hostlist_fold(names, count, scratch, need, NULL, 0, &len, NULL) == 0)
        text = malloc(len + 1);
    if (text != NULL)
        hostlist_fold(names, count, scratch, need, text, len + 1, &len, NULL);
    free(scratch);
    free(names);
    return text;
}
