/* SPDX-License-Identifier: MIT */
/* Diaries of a bench's cluster: see diaries.h. */
#include "cli/diaries.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"

static void folder_of(const struct cargo *c, int64_t node, char out[CARGO_PATH_MAX]) {
    if (node == DIARY_OF_COMMAND)
        snprintf(out, CARGO_PATH_MAX, "%s/local", c->cluster.home);
    else
        snprintf(out, CARGO_PATH_MAX, "%s/local/n%" PRId64 "/spool", c->cluster.home, node);
}

void diaries_lay(const struct cargo *c) {
    for (int64_t node = DIARY_OF_COMMAND; node < (int64_t)c->nodes; node++) {
        char folder[CARGO_PATH_MAX], path[CARGO_PATH_MAX + 8];
        folder_of(c, node, folder);
        snprintf(path, sizeof path, "%s/diary", folder);
        mkdir(folder, 0700); /* no mover was there yet */
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd >= 0)
            close(fd);
    }
}

struct notes diaries_read(const struct cargo *c, int64_t node) {
    char folder[CARGO_PATH_MAX], path[CARGO_PATH_MAX + 8];
    struct notes n = {0};
    struct diary_note note;
    uint32_t cap = 0;
    folder_of(c, node, folder);
    snprintf(path, sizeof path, "%s/diary", folder);
    FILE *in = fopen(path, "re");
    while (in != NULL && diary_read(in, &note)) {
        if (n.count == cap) {
            cap = cap ? 2 * cap : 256;
            n.list = realloc(n.list, cap * sizeof *n.list);
            ASSERT(n.list != NULL);
        }
        n.list[n.count++] = note;
    }
    if (in != NULL)
        fclose(in);
    return n;
}

void notes_free(struct notes *n) {
    free(n->list);
    *n = (struct notes){0};
}

uint64_t notes_first(const struct notes *n, enum diary_deed deed) {
    uint64_t first = 0;
    for (uint32_t i = 0; i < n->count; i++)
        if (n->list[i].deed == deed && (first == 0 || n->list[i].from_ns < first))
            first = n->list[i].from_ns;
    return first;
}

uint64_t notes_last(const struct notes *n, enum diary_deed deed) {
    uint64_t last = 0;
    for (uint32_t i = 0; i < n->count; i++)
        if (n->list[i].deed == deed && n->list[i].to_ns > last)
            last = n->list[i].to_ns;
    return last;
}

uint64_t notes_busy(const struct notes *n, enum diary_deed deed) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n->count; i++)
        if (n->list[i].deed == deed)
            sum += n->list[i].to_ns - n->list[i].from_ns;
    return sum;
}

/* ---- stages of a node ---- */

static const struct stage_words {
    const char *name, *words;
} stages[NODE_STAGES] = {
    [NODE_CONNECT] = {"node_connect_ms", "connect"},
    [NODE_READY] = {"node_ready_ms", "ready: first page"},
    [NODE_FIRST] = {"node_first_ms", "first piece"},
    [NODE_DATA] = {"node_data_ms", "data"},
    [NODE_OVERHEAD] = {"node_overhead_ms", "overhead: names"},
};

const char *node_stage_words(enum node_stage stage) {
    return stages[stage].words;
}

const char *node_stage_name(enum node_stage stage) {
    return stages[stage].name;
}

static uint64_t first_link(const struct notes *n) {
    uint64_t first = 0;
    for (uint32_t i = 0; i < n->count; i++)
        if (n->list[i].deed == DIARY_LINK && (first == 0 || n->list[i].to_ns < first))
            first = n->list[i].to_ns;
    return first;
}

bool notes_stages(const struct notes *n, uint64_t ret_ns[NODE_STAGES]) {
    uint64_t at = notes_first(n, DIARY_OPEN);
    const uint64_t ends[NODE_STAGES] = {[NODE_CONNECT] = first_link(n),
                                        [NODE_READY] = notes_first(n, DIARY_PAGE),
                                        [NODE_FIRST] = notes_first(n, DIARY_CAME),
                                        [NODE_DATA] = notes_last(n, DIARY_STORE),
                                        [NODE_OVERHEAD] = notes_last(n, DIARY_COMMIT)};
    if (at == 0 || ends[NODE_OVERHEAD] == 0)
        return false;
    for (int i = 0; i < NODE_STAGES; i++) {
        ret_ns[i] = ends[i] > at ? ends[i] - at : 0; /* 0: it did not happen */
        at += ret_ns[i];
    }
    return true;
}
