/* SPDX-License-Identifier: MIT */
/* Files of a node that somebody wants: see gather.h. */
#include "os/gather.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct names {
    char **list;
    uint32_t count, cap;
};

static int add(struct names *n, const char *folder, const char *name) {
    if (n->count == n->cap) {
        uint32_t cap = n->cap ? 2 * n->cap : 16;
        char **list = realloc(n->list, cap * sizeof *list);
        if (list == NULL)
            return -ENOMEM;
        n->list = list;
        n->cap = cap;
    }
    char *path;
    if (asprintf(&path, "%s%s%s", folder, *folder ? "/" : "", name) < 0)
        return -ENOMEM;
    n->list[n->count++] = path;
    return 0;
}

static void names_fini(struct names *n) {
    for (uint32_t i = 0; i < n->count; i++)
        free(n->list[i]);
    free(n->list);
}

/* What of a folder fits the pattern. The survey opens what it finds without following links; the folder's own path is
 * looked at no more closely than for its names. */
static int match(struct names *n, int root, const char *folder, const char *pattern) {
    int fd = openat(root, *folder ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        int error = errno;
        if (fd >= 0)
            close(fd);
        return error == ENOENT ? 0 : -error;
    }
    int r = 0;
    for (struct dirent *e; r == 0 && (e = readdir(dir)) != NULL;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            fnmatch(pattern, e->d_name, FNM_PERIOD) == 0)
            r = add(n, folder, e->d_name);
    closedir(dir);
    return r;
}

/* Splits at the last slash. */
static int find(struct names *n, int root, char *path, bool pattern) {
    size_t len = strlen(path);
    while (len > 0 && path[len - 1] == '/')
        path[--len] = '\0';
    if (len == 0)
        return -EISDIR;
    if (!pattern)
        return add(n, "", path);
    char *slash = strrchr(path, '/');
    if (slash == NULL)
        return match(n, root, "", path);
    *slash = '\0';
    return match(n, root, path, slash + 1);
}

static int survey(const struct message_offer *o, int root, enum digest_kind digest,
                  const struct names *n, struct survey **ret, char why[256]) {
    struct survey_item *items = calloc(n->count, sizeof *items);
    if (items == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < n->count; i++) {
        const char *slash = strrchr(n->list[i], '/');
        items[i] = (struct survey_item){.path = n->list[i],
                                        .name = slash != NULL ? slash + 1 : n->list[i]};
    }
    struct survey_config config = {
        .beneath = root, .digest = digest, .piece_bytes = o->piece_bytes};
    int r = survey_new(&config, items, n->count, ret, why);
    free(items);
    return r;
}

int gather_survey(const struct message_offer *o, const char *root, enum digest_kind digest,
                  struct survey **ret, char why[256]) {
    char path[PATH_MAX];
    struct names n = {0};
    why[0] = '\0';
    if (o->path.len == 0 || o->path.len >= sizeof path || o->path.at[0] != '/')
        return -EINVAL;
    memcpy(path, o->path.at + 1, o->path.len - 1);
    path[o->path.len - 1] = '\0';
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 ? -errno : find(&n, fd, path, o->pattern);
    if (r == 0 && n.count == 0)
        r = -ENOENT;
    if (r == 0)
        r = survey(o, fd, digest, &n, ret, why);
    if (r < 0 && why[0] == '\0')
        snprintf(why, 256, "%.*s: %s", (int)o->path.len, (const char *)o->path.at, strerror(-r));
    names_fini(&n);
    if (fd >= 0)
        close(fd);
    return r;
}
