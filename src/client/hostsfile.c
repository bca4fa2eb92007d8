/* SPDX-License-Identifier: MIT */
/* Which host has which number: see hostsfile.h. */
#include "client/hostsfile.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/text.h"
#include "base/units.h"
#include "os/files.h"

/* ---- who has which ---- */

int hosts_init(struct hosts *h, uint32_t capacity) {
    *h = (struct hosts){.capacity = capacity, .at = calloc(capacity, sizeof *h->at)};
    return h->at == NULL ? -ENOMEM : 0;
}

void hosts_free(struct hosts *h) {
    free(h->at);
    *h = (struct hosts){0};
}

/* One name, not a folded list of them. */
static bool name_fits(const char *name) {
    uint32_t count = 0;
    return strlen(name) < ROSTER_NAME_MAX && strpbrk(name, "[],") == NULL &&
           hostlist_check(name, &count, NULL, NULL) == 0 && count == 1;
}

static bool switch_fits(const char *name) {
    size_t len = strlen(name);
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)name[i]) && strchr("-_.", name[i]) == NULL)
            return false;
    return len > 0 && len < NODESPEC_WORD_MAX;
}

int hosts_add(struct hosts *h, uint32_t number, const char *name, const char *on_switch) {
    if (number >= h->capacity)
        return -ERANGE;
    if (!name_fits(name) || (on_switch != NULL && !switch_fits(on_switch)))
        return -EINVAL;
    struct host *at = &h->at[number];
    if (at->name[0] != '\0')
        return -EBUSY;
    snprintf(at->name, sizeof at->name, "%s", name);
    snprintf(at->on_switch, sizeof at->on_switch, "%s", on_switch != NULL ? on_switch : "");
    h->count++;
    return 0;
}

void hosts_remove(struct hosts *h, uint32_t number) {
    if (number >= h->capacity || h->at[number].name[0] == '\0')
        return;
    h->at[number] = (struct host){0};
    h->count--;
}

bool hosts_find(const struct hosts *h, const char *name, uint32_t *ret) {
    uint32_t i = 0;
    while (i < h->capacity && (h->at[i].name[0] == '\0' || strcmp(h->at[i].name, name) != 0))
        i++;
    if (i < h->capacity)
        *ret = i;
    return i < h->capacity;
}

uint32_t hosts_vacant(const struct hosts *h) {
    uint32_t i = 0;
    while (i < h->capacity && h->at[i].name[0] != '\0')
        i++;
    return i;
}

uint32_t hosts_room(const struct hosts *h, const struct hosts *former, const char *name) {
    uint32_t i = 0;
    if (hosts_find(former, name, &i) && h->at[i].name[0] == '\0')
        return i;
    for (i = 0; i < h->capacity; i++)
        if (h->at[i].name[0] == '\0' && former->at[i].name[0] == '\0')
            break;
    return i;
}

/* ---- telling others ---- */

int hosts_tell(const struct hosts *h, struct hosts_told *ret) {
    size_t set_bytes = nodeset_bytes(h->capacity), text_bytes = 0;
    for (uint32_t i = 0; i < h->capacity; i++)
        text_bytes += h->at[i].name[0] != '\0' ? strlen(h->at[i].name) + 1 : 0;
    *ret = (struct hosts_told){.memory = malloc(set_bytes + text_bytes)};
    if (ret->memory == NULL)
        return -ENOMEM;
    char *text = (char *)ret->memory + set_bytes, *at = text;
    nodeset_init(&ret->taken, h->capacity, ret->memory);
    for (uint32_t i = 0; i < h->capacity; i++) {
        if (h->at[i].name[0] == '\0')
            continue;
        nodeset_add(&ret->taken, i);
        size_t len = strlen(h->at[i].name) + 1;
        memcpy(at, h->at[i].name, len);
        at += len;
    }
    ret->names = bytes_of(text, text_bytes);
    return 0;
}

struct roster *hosts_roster(const struct hosts *h, const char *prefix, int *ret_error,
                            uint32_t *ret_bad) {
    struct hosts_told told;
    size_t head = align_up(sizeof(struct roster), 8);
    struct roster *r = malloc(head + roster_bytes(h->capacity));
    int error = hosts_tell(h, &told);
    if (r == NULL)
        error = -ENOMEM;
    if (error == 0) {
        roster_init(r, prefix, h->capacity, (uint8_t *)r + head);
        error = roster_fill(r, &told.taken, told.names, ret_bad);
    }
    free(told.memory);
    if (error == 0)
        return r;
    free(r);
    *ret_error = error;
    return NULL;
}

int hosts_switches(const struct hosts *h, struct nodespec *spec) {
    int r = 0;
    for (uint32_t i = 0; r == 0 && i < h->capacity; i++)
        if (h->at[i].on_switch[0] != '\0')
            r = nodespec_add(spec, h->capacity, i, h->at[i].on_switch);
    return r;
}

int hosts_nodespec(const struct cluster *c, const char *folder, struct nodespec *ret,
                   char why[NODESPEC_WHY_MAX]) {
    char path[CLUSTER_PATH_MAX];
    struct cluster_trouble trouble;
    struct hosts hosts = {0};
    int r = nodespec_load_kept(c, folder, ret, why);
    if (r == 0 && c->hosts != NULL && hosts_path(folder, path, sizeof path) == 0 &&
        hosts_read(&hosts, c->nodes, path, &trouble) == 0)
        r = hosts_switches(&hosts, ret); /* a file that cannot be read is complained of elsewhere */
    hosts_free(&hosts);
    return r;
}

/* ---- the file's text ---- */

/* A line as it is read. */
struct line {
    struct hosts *hosts;
    uint32_t *lines; /* by number: where it stands */
    uint32_t number;
    struct cluster_trouble *trouble;
};

__attribute__((format(printf, 2, 3))) static int wrong(const struct line *l, const char *format,
                                                       ...) {
    char words[128];
    va_list args;
    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    snprintf(l->trouble->words, sizeof l->trouble->words, "line %" PRIu32 ": %s", l->number, words);
    return -EBADMSG;
}

static int take_host(const struct line *l, uint32_t number, const char *name,
                     const char *on_switch) {
    int r = hosts_add(l->hosts, number, name, on_switch);
    if (r == -EBUSY)
        return wrong(l, "%.50s: line %" PRIu32 " has given %" PRIu32 " to another", name,
                     l->lines[number], number);
    if (r < 0)
        return wrong(l, "\"%.60s\" is no name of a host", name);
    l->lines[number] = l->number;
    return 0;
}

static int take_words(const struct line *l, const char *number, const char *name,
                      const char *more) {
    static const char key[] = "switch=";
    uint64_t value = 0;
    int digits = text_scan_u64(number, &value);
    if (digits <= 0 || number[digits] != '\0' || name == NULL)
        return wrong(l, "NUMBER NAME expected");
    if (value >= l->hosts->capacity)
        return wrong(l, "%.20s: the highest number is %" PRIu32, number, l->hosts->capacity - 1);
    if (more != NULL && strncmp(more, key, sizeof key - 1) != 0)
        return wrong(l, "\"%.60s\": there is no such key; switch=NAME is one", more);
    const char *on_switch = more == NULL ? NULL : more + sizeof key - 1;
    if (on_switch != NULL && !switch_fits(on_switch))
        return wrong(l, "\"%.40s\": its name is of up to %d letters, digits, -, _ and .", more,
                     NODESPEC_WORD_MAX - 1);
    return take_host(l, (uint32_t)value, name, on_switch);
}

static int take_line(const struct line *l, char *text) {
    char *rest, *number = strtok_r(text, " \t\r", &rest);
    if (number == NULL || number[0] == '#')
        return 0;
    char *name = strtok_r(NULL, " \t\r", &rest), *more = NULL;
    if (name != NULL)
        more = strtok_r(NULL, " \t\r", &rest);
    if (more != NULL && strtok_r(NULL, " \t\r", &rest) != NULL)
        return wrong(l, "NUMBER NAME expected");
    return take_words(l, number, name, more);
}

/* Every name has one number. */
static int judge_names(struct line *l) {
    uint32_t bad = 0;
    int error = 0;
    struct roster *r = hosts_roster(l->hosts, "", &error, &bad);
    free(r);
    if (error == 0 || error == -ENOMEM)
        return error;
    l->number = l->lines[bad];
    const char *name = l->hosts->at[bad].name;
    return error == -EEXIST ? wrong(l, "%.60s has another number, too", name)
                            : wrong(l, "%.60s: all names together are too long", name);
}

int hosts_parse(struct hosts *ret, uint32_t capacity, const char *text,
                struct cluster_trouble *trouble) {
    struct line l = {.hosts = ret, .trouble = trouble};
    trouble->words[0] = '\0';
    int r = hosts_init(ret, capacity);
    l.lines = calloc(capacity, sizeof *l.lines);
    char *copy = strdup(text), *rest = copy;
    if (l.lines == NULL || copy == NULL)
        r = -ENOMEM;
    for (char *line; r == 0 && (line = strsep(&rest, "\n")) != NULL;) {
        l.number++;
        r = take_line(&l, line);
    }
    if (r == 0)
        r = judge_names(&l);
    free(copy);
    free(l.lines);
    return r;
}

/* ---- the file ---- */

int hosts_path(const char *folder, char *out, size_t cap) {
    int len = snprintf(out, cap, "%s/hosts", folder);
    return len < 0 || (size_t)len >= cap ? -ENAMETOOLONG : 0;
}

int hosts_read(struct hosts *ret, uint32_t capacity, const char *path,
               struct cluster_trouble *trouble) {
    *ret = (struct hosts){0};
    char *text;
    int r = cluster_text(path, &text, trouble);
    if (r < 0)
        return r;
    r = hosts_parse(ret, capacity, text, trouble);
    free(text);
    return r;
}

static size_t format(const struct hosts *h, char *out, size_t cap) {
    struct text t;
    text_init(&t, out, cap);
    for (uint32_t i = 0; i < h->capacity; i++) {
        const struct host *at = &h->at[i];
        if (at->name[0] == '\0')
            continue;
        text_u64(&t, i);
        text_char(&t, ' ');
        text_str(&t, at->name);
        text_str(&t, at->on_switch[0] != '\0' ? " switch=" : "");
        text_str(&t, at->on_switch);
        text_char(&t, '\n');
    }
    return t.full;
}

int hosts_write(const struct hosts *h, const char *path) {
    int error = 0;
    struct roster *r = hosts_roster(h, "", &error, NULL);
    free(r);
    if (error < 0)
        return error;
    size_t len = format(h, NULL, 0);
    char *text = malloc(len + 1);
    if (text == NULL)
        return -ENOMEM;
    format(h, text, len + 1);
    error = files_replace(path, bytes_of(text, len));
    free(text);
    return error;
}
