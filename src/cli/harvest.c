/* SPDX-License-Identifier: MIT */
/* Files that hosts send: see harvest.h. */
#include "cli/harvest.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/complain.h"
#include "cli/voices.h"
#include "os/beneath.h"
#include "os/files.h"

#define TEMPORARY ".storm-part"

struct basket {
    int folder; /* where the file is to be; -1: none comes, or it failed */
    int fd;
    uint64_t at;
    uint16_t mode;
    char name[NAME_MAX + 1];
};

int harvest_want(struct harvest *h, const char *words, struct bytes *ret_path) {
    const char *colon = strrchr(words, ':');
    if (colon == NULL || colon == words || colon[1] == '\0')
        return complain("exec", "--get %s: it is PATH:DIR", words);
    if (h->count == TASK_FILES_MAX)
        return complain("exec", "--get can be given %d times", TASK_FILES_MAX);
    *ret_path = bytes_of(words, (size_t)(colon - words));
    h->folders[h->count] = strdup(colon + 1);
    return h->folders[h->count++] == NULL ? STATUS_STORM : 0;
}

int harvest_begin(struct harvest *h, const struct roll *roll) {
    h->roll = roll;
    h->mask = umask(0);
    umask(h->mask);
    h->baskets = calloc(roll->count, sizeof *h->baskets);
    for (uint32_t i = 0; h->baskets != NULL && i < roll->count; i++)
        h->baskets[i].folder = h->baskets[i].fd = -1;
    return h->baskets == NULL ? -ENOMEM : 0;
}

static void shut(int *fd) {
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void drop(struct basket *b) {
    if (b->folder >= 0)
        unlinkat(b->folder, TEMPORARY, 0);
    shut(&b->fd);
    shut(&b->folder);
}

void harvest_fini(struct harvest *h) {
    for (uint32_t i = 0; h->baskets != NULL && i < h->roll->count; i++)
        drop(&h->baskets[i]);
    for (uint32_t i = 0; i < h->count; i++)
        free(h->folders[i]);
    free(h->baskets);
}

static void fail(struct harvest *h, const struct frame *f, const char *what, int error) {
    drop(&h->baskets[f->host]);
    h->failures++;
    if (h->quiet)
        return;
    complain(h->roll->names[f->host], "%s%s%s", what, error != 0 ? ": " : "",
             error != 0 ? strerror(-error) : "");
}

/* DIR/HOST and what of the name is folders. */
static int open_folder(const struct harvest *h, const struct frame *f, const char *inner) {
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s%s%s", h->roll->names[f->host],
                     inner[0] != '\0' ? "/" : "", inner);
    const char *home = h->folders[f->number];
    if (n < 0 || (size_t)n >= sizeof path)
        return -ENAMETOOLONG;
    if (mkdir(home, 0777) < 0 && errno != EEXIST)
        return -errno;
    int root = open(home, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int folder = root < 0 ? -errno : beneath_make(root, path);
    shut(&root);
    return folder;
}

static void begin(struct harvest *h, const struct frame *f) {
    struct basket *b = &h->baskets[f->host];
    char inner[PATH_MAX];
    drop(b);
    if (f->number >= h->count || f->body.len < 3 || f->body.len - 2 >= sizeof inner)
        return fail(h, f, "sends a file that nobody asked for", 0);
    memcpy(inner, f->body.at + 2, f->body.len - 2);
    inner[f->body.len - 2] = '\0';
    char *slash = strrchr(inner, '/');
    const char *name = slash != NULL ? slash + 1 : inner;
    if (strlen(inner) != f->body.len - 2 || name[0] == '\0' || strcmp(name, "..") == 0 ||
        strcmp(name, ".") == 0 || strlen(name) > NAME_MAX)
        return fail(h, f, "sends a file whose name cannot be", 0);
    *b = (struct basket){.fd = -1, .mode = load_le16(f->body.at) & 0777};
    snprintf(b->name, sizeof b->name, "%s", name);
    if (slash != NULL)
        *slash = '\0';
    b->folder = open_folder(h, f, slash != NULL ? inner : "");
    if (b->folder >= 0)
        b->fd = openat(b->folder, TEMPORARY, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
                       0600);
    if (b->fd < 0)
        fail(h, f, "its file cannot be written here", b->folder < 0 ? b->folder : -errno);
}

static void add(struct harvest *h, const struct frame *f) {
    struct basket *b = &h->baskets[f->host];
    int r = b->fd >= 0 ? files_write(b->fd, f->body, b->at) : 0;
    b->at += f->body.len;
    if (r < 0)
        fail(h, f, "its file cannot be written here", r);
}

static void finish(struct harvest *h, const struct frame *f) {
    struct basket *b = &h->baskets[f->host];
    if (b->fd < 0)
        return;
    if (fchmod(b->fd, b->mode & ~h->mask) < 0 ||
        renameat(b->folder, TEMPORARY, b->folder, b->name) < 0)
        return fail(h, f, "its file cannot get its name", -errno);
    shut(&b->fd);
    shut(&b->folder);
}

void harvest_take(struct harvest *h, const struct frame *f) {
    char words[600], *said;
    switch (f->flag) {
    case FETCHED_FILE:
        begin(h, f);
        break;
    case FETCHED_BYTES:
        add(h, f);
        break;
    case FETCHED_DONE:
        finish(h, f);
        break;
    default:
        said = voices_words(f->body);
        snprintf(words, sizeof words, "not fetched: %s", said != NULL ? said : "");
        free(said);
        fail(h, f, words, 0);
        break;
    }
}
