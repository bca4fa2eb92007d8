/* SPDX-License-Identifier: MIT */
/* What a host must know to be a node: see berthing.h. */
#include "client/berthing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { CLUSTER_TEXT_MAX = 8192 };

#define PART_BERTH "-- berth\n"
#define PART_HOSTS "-- hosts\n"
#define PART_KEY   "-- key\n"

char *berthing_text(const struct berthing *b) {
    char cluster[CLUSTER_TEXT_MAX], *text = NULL;
    size_t len = 0;
    FILE *f = cluster_format(&b->cluster, cluster, sizeof cluster) < sizeof cluster
                  ? open_memstream(&text, &len)
                  : NULL;
    if (f == NULL)
        return NULL;
    fprintf(f,
            "%s" PART_BERTH "self %" PRIu32
            "\ncalled %s\nlisten %s\nconfine %s\nsystem-cores %" PRIu32 "\nboots %" PRIu32
            "\nstay %s\nanew %s\nend %s\nhelped %s\n" PART_HOSTS,
            cluster, b->self, b->called, b->listen, b->confine, b->system_cores, b->boots,
            b->stay ? "yes" : "no", b->anew ? "yes" : "no", b->end ? "yes" : "no",
            b->helped ? "yes" : "no");
    if (b->hosts.len > 0)
        fwrite(b->hosts.at, 1, b->hosts.len, f);
    fputs(PART_KEY, f);
    if (b->key.len > 0)
        fwrite(b->key.at, 1, b->key.len, f);
    if (fclose(f) == 0)
        return text;
    free(text);
    return NULL;
}

/* ---- reading ---- */

static int trouble(struct cluster_trouble *t, const char *words, const char *line) {
    snprintf(t->words, sizeof t->words, "%s%.*s", words, (int)strcspn(line, "\n"), line);
    return -EBADMSG;
}

static bool read_u32(const char *text, uint32_t *ret) {
    uint64_t value;
    int digits = text_scan_u64(text, &value);
    if (digits <= 0 || text[digits] != '\0' || value > UINT32_MAX)
        return false;
    *ret = (uint32_t)value;
    return true;
}

static bool read_word(const char *text, char *out, size_t cap) {
    int n = snprintf(out, cap, "%s", text);
    return n > 0 && (size_t)n < cap;
}

static bool read_flag(const char *text, bool *ret) {
    *ret = strcmp(text, "yes") == 0;
    return *ret || strcmp(text, "no") == 0;
}

/* What a later version has added is passed over. */
static bool read_line(struct berthing *b, const char *name, const char *value) {
    if (strcmp(name, "self") == 0)
        return read_u32(value, &b->self);
    if (strcmp(name, "called") == 0)
        return read_word(value, b->called, sizeof b->called);
    if (strcmp(name, "listen") == 0)
        return read_word(value, b->listen, sizeof b->listen);
    if (strcmp(name, "confine") == 0)
        return read_word(value, b->confine, sizeof b->confine);
    if (strcmp(name, "system-cores") == 0)
        return read_u32(value, &b->system_cores);
    if (strcmp(name, "boots") == 0)
        return read_u32(value, &b->boots);
    if (strcmp(name, "stay") == 0)
        return read_flag(value, &b->stay);
    if (strcmp(name, "anew") == 0)
        return read_flag(value, &b->anew);
    if (strcmp(name, "end") == 0)
        return read_flag(value, &b->end);
    if (strcmp(name, "helped") == 0)
        return read_flag(value, &b->helped);
    return true;
}

static int read_lines(struct berthing *b, struct bytes part, struct cluster_trouble *t) {
    const char *at = (const char *)part.at, *end = at + part.len;
    while (at < end) {
        char line[256];
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((stop != NULL ? stop : end) - at);
        if (len >= sizeof line)
            return trouble(t, "a line is too long: ", "");
        snprintf(line, sizeof line, "%.*s", (int)len, at);
        char *space = strchr(line, ' ');
        if (space != NULL)
            *space = '\0';
        if (space == NULL || !read_line(b, line, space + 1))
            return trouble(t, "it is not understood: ", line);
        at += len + 1;
    }
    return 0;
}

/* Cuts `text` where a part begins; what was before it. */
static bool cut(const char **text, const char *mark, struct bytes *ret) {
    const char *at = *text;
    size_t len = strlen(mark);
    while (at != NULL && strncmp(at, mark, len) != 0) {
        at = strchr(at, '\n');
        at = at != NULL ? at + 1 : NULL;
    }
    if (at == NULL)
        return false;
    *ret = bytes_of(*text, (size_t)(at - *text));
    *text = at + len;
    return true;
}

int berthing_parse(struct berthing *ret, const char *text, struct cluster_trouble *t) {
    struct berthing b = {.listen = "-", .confine = "auto"};
    struct bytes cluster, lines;
    char head[CLUSTER_TEXT_MAX];
    t->words[0] = '\0';
    if (!cut(&text, PART_BERTH, &cluster) || !cut(&text, PART_HOSTS, &lines) ||
        !cut(&text, PART_KEY, &b.hosts) || cluster.len >= sizeof head)
        return trouble(t, "a part is missing", "");
    snprintf(head, sizeof head, "%.*s", (int)cluster.len, (const char *)cluster.at);
    b.key = bytes_from_str(text);
    int r = cluster_parse(&b.cluster, head, t);
    r = r < 0 ? r : read_lines(&b, lines, t);
    if (r == 0 && (b.cluster.node_folder[0] == '\0' || b.self >= b.cluster.nodes ||
                   b.cluster.port_first == 0))
        r = trouble(t, "it does not say where, or who", "");
    if (r == 0)
        *ret = b;
    return r;
}

/* ---- comparing ---- */

static char *essence(const char *text) {
    struct berthing b;
    struct cluster_trouble t;
    if (berthing_parse(&b, text, &t) < 0)
        return NULL;
    b.boots = 0;
    b.helped = b.anew = false;
    b.hosts = bytes_of(NULL, 0);
    return berthing_text(&b);
}

bool berthing_same(const char *a, const char *b) {
    char *left = essence(a), *right = essence(b);
    bool same = left != NULL && right != NULL && strcmp(left, right) == 0;
    berthing_wipe(left);
    berthing_wipe(right);
    return same;
}

void berthing_wipe(char *text) {
    if (text != NULL)
        explicit_bzero(text, strlen(text));
    free(text);
}

void berthing_folder(const struct berthing *b, char out[BERTHING_PATH_MAX]) {
    snprintf(out, BERTHING_PATH_MAX, "%s/%" PRIu32, b->cluster.node_folder, b->self);
}
