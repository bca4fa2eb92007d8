/* SPDX-License-Identifier: MIT */
/* --cores: see cores.h. */
#include "cli/cores.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/text.h"
#include "cli/complain.h"
#include "os/files.h"

enum { TOLD_MAX = 16 };

static const char where[] = ".where";

/* The rank and the node in a name; false: it is none of this job's. */
static bool read_name(const char *name, uint32_t job, uint64_t *ret_rank, const char **ret_node) {
    char start[24];
    int len = snprintf(start, sizeof start, "core.%" PRIu32 ".", job);
    if (strncmp(name, start, (size_t)len) != 0)
        return false;
    int digits = text_scan_u64(name + len, ret_rank);
    *ret_node = name + len + (digits > 0 ? digits : 0) + 1;
    return digits > 0 && (*ret_node)[-1] == '.' && **ret_node != '\0';
}

/* Those that could not be had: a line says where they are, and is of no further use. */
static void tell_elsewhere(const char *name, uint64_t rank, const char *node, size_t node_len) {
    char line[4096] = "";
    FILE *f = fopen(name, "re");
    if (f == NULL)
        return;
    if (fgets(line, sizeof line, f) == NULL)
        line[0] = '\0';
    fclose(f);
    unlink(name);
    line[strcspn(line, "\n")] = '\0';
    complain(NULL, "rank %" PRIu64 " on %.*s dumped core: %s", rank, (int)node_len, node, line);
}

static void tell(const char *name, uint32_t job) {
    uint64_t rank;
    const char *node;
    if (!read_name(name, job, &rank, &node))
        return;
    size_t len = strlen(node), tail = sizeof where - 1;
    if (len > tail && strcmp(node + len - tail, where) == 0)
        tell_elsewhere(name, rank, node, len - tail);
    else
        complain(NULL, "rank %" PRIu64 " on %s dumped core: %s", rank, node, name);
}

/* Names of one job in the order of their ranks. */
static int by_rank(const struct dirent **a, const struct dirent **b) {
    return strverscmp((*a)->d_name, (*b)->d_name);
}

static int is_core(const struct dirent *d) {
    return strncmp(d->d_name, "core.", 5) == 0;
}

static bool look(const char *name, struct old_core *ret) {
    struct stat st;
    if (lstat(name, &st) < 0)
        return false;
    ret->inode = st.st_ino;
    ret->ctime_ns = files_ctime_ns(&st);
    return true;
}

static bool is_new(const struct cores *c, const char *name) {
    struct old_core now;
    if (!look(name, &now))
        return false;
    for (uint32_t i = 0; i < c->count; i++)
        if (strcmp(c->old[i].name, name) == 0)
            return c->old[i].inode != now.inode || c->old[i].ctime_ns != now.ctime_ns;
    return true;
}

void cores_begin(struct cores *c, uint32_t job) {
    struct dirent **names;
    uint64_t rank;
    const char *node;
    int count = scandir(".", &names, is_core, by_rank);
    *c = (struct cores){.job = job};
    if (count < 0)
        return;
    c->old = calloc((size_t)count + 1, sizeof *c->old);
    ASSERT(c->old != NULL);
    for (int i = 0; i < count; i++) {
        struct old_core *old = &c->old[c->count];
        old->name = strdup(names[i]->d_name);
        ASSERT(old->name != NULL);
        if (read_name(old->name, job, &rank, &node) && look(old->name, old))
            c->count++;
        else
            free(old->name);
        free(names[i]);
    }
    free(names);
}

static void forget(struct cores *c) {
    for (uint32_t i = 0; i < c->count; i++)
        free(c->old[i].name);
    free(c->old);
    *c = (struct cores){0};
}

void cores_tell(struct cores *c) {
    struct dirent **names;
    uint64_t rank;
    const char *node;
    uint32_t found = 0;
    int count = c->job == 0 ? -1 : scandir(".", &names, is_core, by_rank);
    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;
        bool fetched = read_name(name, c->job, &rank, &node) && is_new(c, name);
        found += fetched;
        if (fetched && found <= TOLD_MAX)
            tell(name, c->job);
        free(names[i]);
    }
    if (count >= 0)
        free(names);
    if (found > TOLD_MAX)
        complain(NULL, "and %" PRIu32 " more: core.%" PRIu32 ".*", found - TOLD_MAX, c->job);
    forget(c);
}
