/* SPDX-License-Identifier: MIT */
/* Keys in a cluster's folder: see keys.h. */
#include "client/keys.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "os/files.h"
#include "os/guide.h"
#include "os/keyring.h"

enum { KEY_PATH_MAX = CLUSTER_PATH_MAX + 16 };

static void path_of(const char *folder, const char *name, char out[KEY_PATH_MAX]) {
    snprintf(out, KEY_PATH_MAX, "%s/%s", folder, name);
}

/* -ENOENT is no failure: there is none yet. */
static int make_master(const char *path, char why[256]) {
    struct keyfile file;
    int r = keyring_load(path, &file, why);
    if (r == -ENOENT) {
        r = keyring_make_master(&file);
        if (r == 0)
            r = keyring_save(path, &file, why);
        else
            snprintf(why, 256, "no entropy: %s", strerror(-r));
    }
    explicit_bzero(&file, sizeof file);
    return r;
}

/* ---- generations ---- */

/* "* 3" for all numbers, then "7 5" for some. */
enum { GENERATIONS_MAX = 1 << 20, LINE_MAX_BYTES = 48 };

struct generation {
    uint64_t number; /* UINT64_MAX: all */
    uint64_t serial;
};

/* The next line; false: there is none, or it is no such. */
static bool next_generation(const char **text, struct generation *ret) {
    const char *at = *text;
    *ret = (struct generation){.number = UINT64_MAX};
    int digits = *at == '*' ? 1 : text_scan_u64(at, &ret->number);
    if (digits <= 0 || at[digits] != ' ')
        return false;
    at += digits + 1;
    digits = text_scan_u64(at, &ret->serial);
    if (digits <= 0 || at[digits] != '\n' || ret->serial == 0)
        return false;
    *text = at + digits + 1;
    return true;
}

/* "" if there is no such file; free() it. NULL: it cannot be read. */
static char *read_generations(const char *folder) {
    char path[KEY_PATH_MAX], *text;
    path_of(folder, "generations", path);
    int r = files_text(path, GENERATIONS_MAX, &text);
    return r == 0 ? text : r == -ENOENT ? strdup("") : NULL;
}

static int write_generations(const char *folder, const char *text) {
    char path[KEY_PATH_MAX];
    path_of(folder, "generations", path);
    return files_replace(path, bytes_from_str(text));
}

int keys_renew(const char *folder) {
    char line[LINE_MAX_BYTES], *text = read_generations(folder);
    const char *at = text;
    struct generation g;
    uint64_t last = 1;
    if (text == NULL)
        return -EIO;
    while (next_generation(&at, &g))
        last = g.serial > last ? g.serial : last;
    free(text);
    snprintf(line, sizeof line, "* %" PRIu64 "\n", last + 1);
    return write_generations(folder, line);
}

/* The old lines but that of the node, and a new one. */
int keys_raise(const char *folder, uint32_t node) {
    char *text = read_generations(folder), *next = NULL;
    const char *at = text;
    struct generation g;
    uint64_t all = 1, own = 0;
    size_t len = 0;
    FILE *f = text == NULL ? NULL : open_memstream(&next, &len);
    while (f != NULL && next_generation(&at, &g)) {
        all = g.number == UINT64_MAX ? g.serial : all;
        own = g.number == node ? g.serial : own;
        if (g.number == UINT64_MAX)
            fprintf(f, "* %" PRIu64 "\n", g.serial);
        else if (g.number != node)
            fprintf(f, "%" PRIu64 " %" PRIu64 "\n", g.number, g.serial);
    }
    free(text);
    if (f == NULL)
        return -EIO;
    fprintf(f, "%" PRIu32 " %" PRIu64 "\n", node, (own != 0 ? own : all) + 1);
    int r = fclose(f) == 0 ? write_generations(folder, next) : -ENOMEM;
    free(next);
    return r;
}

int keys_expect(const char *folder, struct keyring *k) {
    char *text = read_generations(folder);
    const char *at = text;
    struct generation g;
    int r = text == NULL ? -EIO : 0;
    while (r == 0 && next_generation(&at, &g)) {
        if (g.number == UINT64_MAX)
            keyring_expect_all(k, g.serial);
        else
            r = keyring_expect_node(k, (uint32_t)g.number, g.serial);
    }
    if (r == 0 && *at != '\0')
        r = -EBADMSG;
    free(text);
    return r;
}

/* ---- keys ---- */

/* The manager's ring, for a moment. */
static int open_master(const char *folder, uint32_t nodes, struct keyring **ret, char why[256]) {
    char path[KEY_PATH_MAX];
    struct keyfile file;
    path_of(folder, "master.key", path);
    int r = keyring_load(path, &file, why);
    if (r < 0)
        return r;
    const struct keyring_config config = {
        .file = &file, .self = nodes, .seat_first = nodes, .seats = 1};
    r = keyring_new(&config, ret);
    explicit_bzero(&file, sizeof file);
    if (r < 0)
        snprintf(why, 256, "%.200s: %s", path, r == -EINVAL ? "no master key" : strerror(-r));
    return r;
}

int keys_issue_client(const char *folder, uint32_t nodes, uint64_t number, struct keyfile *ret,
                      char why[256]) {
    struct keyring *k = NULL;
    int r = open_master(folder, nodes, &k, why);
    if (r < 0)
        return r;
    r = keyring_issue_client(k, number, ret);
    if (r < 0)
        snprintf(why, 256, "%.200s: %s", folder, strerror(-r));
    keyring_free(k);
    return r;
}

int keys_issue_node(const char *folder, uint32_t nodes, uint32_t node, struct keyfile *ret,
                    char why[256]) {
    struct keyring *k = NULL;
    int r = open_master(folder, nodes, &k, why);
    if (r < 0)
        return r;
    r = keys_expect(folder, k);
    if (r < 0)
        snprintf(why, 256, "%.200s/generations: %s", folder, strerror(-r));
    r = r < 0 ? r : keyring_issue_node(k, node, ret);
    keyring_free(k);
    return r;
}

int keys_make(const char *folder, uint32_t nodes, char why[256]) {
    char path[KEY_PATH_MAX];
    struct keyfile client;
    path_of(folder, "master.key", path);
    int r = make_master(path, why);
    if (r == 0)
        r = keys_issue_client(folder, nodes, KEYS_DESK, &client, why);
    path_of(folder, "client.key", path);
    if (r == 0)
        r = keyring_save(path, &client, why);
    explicit_bzero(&client, sizeof client);
    return r;
}

static int load_client(const struct cluster *c, struct keyfile *ret) {
    char folder[CLUSTER_PATH_MAX], path[KEY_PATH_MAX], why[256];
    int r = cluster_folder(c->name, folder, sizeof folder);
    if (r < 0)
        return r;
    path_of(folder, "client.key", path);
    r = keyring_load(path, ret, why);
    if (r < 0)
        fprintf(stderr, "storm: %s\n", why);
    return r;
}

int keys_guide(const struct cluster *c, bool files, struct guide **ret) {
    struct keyfile key;
    int r = c->sealed ? load_client(c, &key) : 0;
    if (r < 0)
        return r;
    const struct guide_config config = {.key = c->sealed ? &key : NULL,
                                        .self = NO_NODE,
                                        .nodes = c->nodes,
                                        .listens = files,
                                        .files = files};
    r = guide_new(&config, ret);
    explicit_bzero(&key, sizeof key);
    return r;
}
