/* SPDX-License-Identifier: MIT */
/* Histories across runs: FOLDER/history.HASH for each name of a master, a line for each step. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "distributor/server.h"
#include "wodi/history.h"

enum { FILE_MAX = 4 << 20 };
#define SAVE_EVERY_NS ((uint64_t)1000000000)

static void file_name(char out[32], uint64_t name) {
    snprintf(out, 32, "history.%016llx", (unsigned long long)name);
}

static void load(struct server *s, uint32_t slot, uint64_t name) {
    char path[32];
    file_name(path, name);
    int fd = openat(s->folder, path, O_RDONLY | O_CLOEXEC);
    char *text = fd >= 0 ? malloc(FILE_MAX) : NULL;
    ssize_t len = text ? read(fd, text, FILE_MAX) : -1;
    if (len > 0)
        history_read(desk_history(s->desk, slot), bytes_of(text, (size_t)len));
    free(text);
    if (fd >= 0)
        close(fd);
}

/* What cannot be saved is missed later, nothing else. */
static void save(struct server *s, uint32_t slot, uint64_t name) {
    char path[32], text[8192];
    file_name(path, name);
    int fd = openat(s->folder, "history.new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    uint32_t at = 0;
    bool good = fd >= 0;
    for (size_t len;
         good && (len = history_write(desk_history(s->desk, slot), &at, text, sizeof text));)
        good = write(fd, text, len) == (ssize_t)len;
    if (fd >= 0)
        close(fd);
    if (good)
        renameat(s->folder, "history.new", s->folder, path);
}

void server_look_at_past(struct server *s, bool last) {
    if (s->changes == desk_changes(s->desk) && !last)
        return;
    s->changes = desk_changes(s->desk);
    for (uint32_t slot = 0; slot < s->limits.masters; slot++) {
        struct desk_master m;
        struct server_past *p = &s->past[slot];
        bool here = desk_master(s->desk, slot, &m);
        uint64_t name = hash_once(m.name.at, m.name.len);
        if (here && (!p->loaded || p->name != name)) {
            *p = (struct server_past){.loaded = true, .saved_at = s->loop.now, .name = name};
            load(s, slot, name);
        } else if (p->loaded && p->name == name &&
                   (last || !here || s->loop.now - p->saved_at >= SAVE_EVERY_NS)) {
            save(s, slot, name);
            p->saved_at = s->loop.now;
            p->loaded = here;
        }
    }
}
