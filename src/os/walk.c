/* SPDX-License-Identifier: MIT */
/* What is found where files are said to be: see walk.h.
 *
 * Folders are read in the order in which they were found, so there is no recursion and never more than one
 * is open; names in a folder are sorted, so that the same files make the same stream. */
#include "os/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/units.h"

/* ---- Reasons ----------------------------------------------------------------------------------- */

/* Of a path, its end is what tells; a name may hold anything, but a reason is one line. */
enum { REASON_PATH_MAX = 160, REASON_BYTES = 256 };

static int blame_path(const char *path, int status, const char *text, char why[256]) {
    char shown[REASON_PATH_MAX + 1];
    size_t len = strlen(path), skip = 0;
    if (len > REASON_PATH_MAX) {
        skip = len - (REASON_PATH_MAX - 3);
        while ((path[skip] & 0xC0) == 0x80) /* not into a character */
            skip++;
    }
    snprintf(shown, sizeof shown, "%s%s", skip > 0 ? "..." : "", path + skip);
    for (char *c = shown; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7F)
            *c = '?';
    snprintf(why, REASON_BYTES, "%s: %s", shown, *text != '\0' ? text : strerror(-status));
    return status;
}

/* The path of something as the user knows it: the item as it was given, and the way from there. */
static int show_path(const struct walk *w, const struct found *f, char out[2 * PATH_MAX]) {
    const char *item = w->paths[f->item];
    if (f->inside == 0)
        return snprintf(out, 2 * PATH_MAX, "%s", item);
    size_t len = strlen(item);
    return snprintf(out, 2 * PATH_MAX, "%s%s%.*s", item, len > 0 && item[len - 1] == '/' ? "" : "/",
                    (int)(f->e.path.len - f->inside), (const char *)f->e.path.at + f->inside);
}

int walk_blame(const struct walk *w, const struct found *f, int status, const char *text,
               char why[256]) {
    char path[2 * PATH_MAX];
    show_path(w, f, path);
    return blame_path(path, status, text, why);
}

/* ---- Texts that stay where they are ------------------------------------------------------------ */

struct walk_block {
    struct walk_block *next;
    size_t used, size;
    char text[];
};

enum { BLOCK_BYTES = 16 << 10 };

static char *text_room(struct walk *w, size_t len) {
    struct walk_block *b = w->blocks;
    if (b == NULL || len > b->size - b->used) {
        size_t size = len > BLOCK_BYTES ? len : BLOCK_BYTES;
        b = malloc(sizeof *b + size);
        if (b == NULL)
            return NULL;
        *b = (struct walk_block){.next = w->blocks, .size = size};
        w->blocks = b;
    }
    b->used += len;
    return b->text + b->used - len;
}

static int keep_text(struct walk *w, const char *text, size_t len, struct bytes *ret) {
    char *copy = text_room(w, len + 1);
    if (copy == NULL)
        return -ENOMEM;
    memcpy(copy, text, len);
    copy[len] = '\0'; /* they are used as C strings, too */
    *ret = bytes_of(copy, len);
    return 0;
}

/* ---- Opening ----------------------------------------------------------------------------------- */

static int open_how(int folder, const char *path, int flags, uint64_t resolve) {
    struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC), .resolve = resolve};
    long fd = -1;
    /* EAGAIN: somebody moved folders about just when a ".." was followed. */
    for (int tries = 0; tries < 16; tries++) {
        fd = syscall(SYS_openat2, folder, path, &how, sizeof how);
        if (fd >= 0 || errno != EAGAIN)
            break;
    }
    return fd < 0 ? -errno : (int)fd;
}

/* An item as it is given. Under `beneath`, its path begins there even if it has a slash in front. */
static int open_item(const struct walk *w, uint32_t item, int flags) {
    const char *path = w->paths[item];
    flags |= w->follow ? 0 : O_NOFOLLOW;
    if (w->beneath == AT_FDCWD) {
        int fd = open(path, flags | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
    }
    path += strspn(path, "/");
    return open_how(w->beneath, *path == '\0' ? "." : path, flags,
                    RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
}

/* The folder that an item is; it stays open until another one is needed. */
static int item_folder(struct walk *w, uint32_t item) {
    if (w->folder >= 0 && w->folder_item == item)
        return w->folder;
    if (w->folder >= 0)
        close(w->folder);
    w->folder = open_item(w, item, O_PATH | O_DIRECTORY);
    w->folder_item = item;
    return w->folder;
}

static int open_found(struct walk *w, const struct found *f, int flags) {
    if (f->inside == 0)
        return open_item(w, f->item, flags);
    int folder = item_folder(w, f->item);
    if (folder < 0)
        return folder;
    const char *path = (const char *)f->e.path.at + f->inside;
    int fd = open_how(folder, path, flags | O_NOFOLLOW, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
    if (fd != -ENOSYS && fd != -EPERM)
        return fd;
    /* No such call here: a link may be followed, but then it is not what was found (see below). */
    fd = openat(folder, path, flags | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int64_t nanoseconds(struct timespec t) {
    return (int64_t)t.tv_sec * (int64_t)NS_PER_S + t.tv_nsec;
}

static bool same_inode(const struct found *f, const struct stat *s) {
    return s->st_dev == f->device && s->st_ino == f->inode;
}

static bool unchanged(const struct found *f, const struct stat *s) {
    return same_inode(f, s) && S_ISREG(s->st_mode) && (uint64_t)s->st_size == f->e.bytes &&
           nanoseconds(s->st_mtim) == f->e.mtime_ns && nanoseconds(s->st_ctim) == f->ctime_ns;
}

int walk_check(const struct walk *w, const struct found *f, int fd, char why[256]) {
    struct stat s;
    if (fstat(fd, &s) < 0)
        return walk_blame(w, f, -errno, "", why);
    return unchanged(f, &s) ? 0 : walk_blame(w, f, -ESTALE, "it was changed meanwhile", why);
}

int walk_open(struct walk *w, const struct found *f, char why[256]) {
    int fd = open_found(w, f, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd == -ENOENT || fd == -ELOOP || fd == -ENOTDIR || fd == -ENXIO)
        return walk_blame(w, f, -ESTALE, "it was there, and is gone", why);
    if (fd < 0)
        return walk_blame(w, f, fd, "", why);
    int r = walk_check(w, f, fd, why);
    if (r == 0)
        return fd;
    close(fd);
    return r;
}

/* ---- Things that are found --------------------------------------------------------------------- */

static struct found *next_found(struct walk *w) {
    if (w->count == w->room) {
        uint32_t room = w->room == 0 ? 8 : w->room * 2;
        struct found *more = realloc(w->found, room * sizeof *more);
        if (more == NULL)
            return NULL;
        w->found = more;
        w->room = room;
    }
    return &w->found[w->count];
}

static const char *strange_kind(mode_t mode) {
    switch (mode & S_IFMT) {
    case S_IFSOCK:
        return "a socket cannot be sent";
    case S_IFIFO:
        return "a named pipe cannot be sent";
    case S_IFCHR:
    case S_IFBLK:
        return "a device cannot be sent";
    default:
        return "neither a file nor a folder nor a link: it cannot be sent";
    }
}

static int read_target(struct walk *w, struct found *f, int folder, const char *name) {
    char target[BUNDLE_PATH_BYTES_MAX + 1];
    ssize_t len = readlinkat(folder, name, target, sizeof target);
    if (len < 0)
        return -errno;
    if (len == 0 || len > BUNDLE_PATH_BYTES_MAX)
        return -ENAMETOOLONG;
    return keep_text(w, target, (size_t)len, &f->e.target);
}

static void note_stat(struct found *f, const struct stat *s) {
    f->e.mode = s->st_mode & 07777;
    f->e.uid = s->st_uid;
    f->e.gid = s->st_gid;
    f->e.mtime_ns = nanoseconds(s->st_mtim);
    f->ctime_ns = nanoseconds(s->st_ctim);
    f->device = s->st_dev;
    f->inode = s->st_ino;
    f->disk_bytes = (uint64_t)s->st_blocks * 512;
}

/* `f` is the next one of the list, with its path and item; `folder` and `name` lead to it. */
static int add(struct walk *w, struct found *f, const struct stat *s, int folder, const char *name,
               char why[256]) {
    uint8_t scratch[2 * BUNDLE_PATH_BYTES_MAX + 128];
    int r = 0;
    note_stat(f, s);
    if (S_ISREG(s->st_mode)) {
        f->e.kind = ENTRY_FILE;
        f->e.bytes = (uint64_t)s->st_size;
    } else if (S_ISDIR(s->st_mode)) {
        f->e.kind = ENTRY_FOLDER;
    } else if (S_ISLNK(s->st_mode)) {
        f->e.kind = ENTRY_LINK;
        r = read_target(w, f, folder, name);
    } else {
        return walk_blame(w, f, -EOPNOTSUPP, strange_kind(s->st_mode), why);
    }
    if (r < 0)
        return walk_blame(w, f, r, "", why);
    long len = entry_encode(&f->e, room_of(scratch, sizeof scratch));
    w->manifest_bytes += (uint64_t)len;
    if (w->manifest_bytes > BUNDLE_MANIFEST_BYTES_MAX)
        return walk_blame(w, f, -E2BIG, "with this there are too many files to be sent at once",
                          why);
    if (__builtin_add_overflow(w->bytes, f->e.bytes, &w->bytes) || w->bytes > INT64_MAX)
        return walk_blame(w, f, -EFBIG, "", why);
    w->count++;
    return 0;
}

/* ---- Folders ----------------------------------------------------------------------------------- */

/* Something in the folder that was found as number `parent`. What is gone again never was there. */
static int add_name(struct walk *w, uint32_t parent, int folder, const char *name, char why[256]) {
    struct found *f = next_found(w);
    if (f == NULL)
        return walk_blame(w, &w->found[parent], -ENOMEM, "", why);
    const struct found *p = &w->found[parent];
    size_t name_len = strlen(name), len = p->e.path.len + 1 + name_len;
    *f = (struct found){.item = p->item};
    f->inside = p->inside != 0 ? p->inside : (uint32_t)p->e.path.len + 1;
    if (len > BUNDLE_PATH_BYTES_MAX)
        return walk_blame(w, p, -ENAMETOOLONG, "paths in it are too long to be sent", why);
    char *path = text_room(w, len + 1);
    if (path == NULL)
        return walk_blame(w, p, -ENOMEM, "", why);
    memcpy(path, p->e.path.at, p->e.path.len);
    path[p->e.path.len] = '/';
    memcpy(path + p->e.path.len + 1, name, name_len + 1);
    f->e.path = bytes_of(path, len);
    struct stat s;
    if (fstatat(folder, name, &s, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : walk_blame(w, f, -errno, "", why);
    return add(w, f, &s, folder, name, why);
}

static int by_path(const void *a, const void *b) {
    const struct found *x = a, *y = b;
    return strcmp((const char *)x->e.path.at, (const char *)y->e.path.at);
}

static bool is_dots(const char *name) {
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

static int read_names(struct walk *w, uint32_t parent, DIR *dir, const struct survey_config *c,
                      char why[256]) {
    int r = 0;
    struct dirent *d;
    while (r == 0 && (errno = 0, d = readdir(dir)) != NULL) {
        if (!is_dots(d->d_name))
            r = add_name(w, parent, dirfd(dir), d->d_name, why);
        if (r == 0 && w->count % 1024 == 0 && c->progress != NULL &&
            !c->progress(c->context, 0, w->bytes))
            r = walk_blame(w, &w->found[parent], -ECANCELED, "stopped", why);
    }
    if (r == 0 && errno != 0)
        r = walk_blame(w, &w->found[parent], -errno, "", why);
    return r;
}

static int walk_folder(struct walk *w, uint32_t number, const struct survey_config *c,
                       char why[256]) {
    int fd = open_found(w, &w->found[number], O_RDONLY | O_DIRECTORY);
    if (fd < 0)
        return walk_blame(w, &w->found[number], fd, "", why);
    struct stat s;
    DIR *dir = NULL;
    int r = 0;
    if (fstat(fd, &s) < 0 || !same_inode(&w->found[number], &s))
        r = walk_blame(w, &w->found[number], -ESTALE, "it is another folder now", why);
    else if ((dir = fdopendir(fd)) == NULL)
        r = walk_blame(w, &w->found[number], -errno, "", why);
    if (r < 0) {
        close(fd);
        return r;
    }
    uint32_t first = w->count;
    r = read_names(w, number, dir, c, why);
    closedir(dir);
    if (r == 0 && w->count > first)
        qsort(w->found + first, w->count - first, sizeof *w->found, by_path);
    return r;
}

/* ---- Items ------------------------------------------------------------------------------------- */

static int blame_item(const struct walk *w, uint32_t item, int status, char why[256]) {
    const char *text = "";
    if (status == -EXDEV)
        text = "it leads out of the folder that files are taken from";
    return blame_path(w->paths[item], status, text, why);
}

static int walk_item(struct walk *w, uint32_t item, const char *name, const struct survey_config *c,
                     char why[256]) {
    int fd = open_item(w, item, O_PATH);
    if (fd < 0)
        return blame_item(w, item, fd, why);
    struct found *f = next_found(w);
    struct stat s;
    int r = f == NULL ? -ENOMEM : fstat(fd, &s) < 0 ? -errno : 0;
    uint32_t number = w->count;
    if (r == 0) {
        *f = (struct found){.item = item};
        r = keep_text(w, name, strlen(name), &f->e.path);
    }
    if (r < 0)
        blame_item(w, item, r, why);
    else
        r = add(w, f, &s, fd, "", why);
    close(fd);
    for (; r == 0 && number < w->count; number++)
        if (w->found[number].e.kind == ENTRY_FOLDER)
            r = walk_folder(w, number, c, why);
    return r;
}

/* A name comes before those beneath it, and nothing else in between. */
static int by_parts(const void *a, const void *b) {
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    while (*x == *y && *x != '\0')
        x++, y++;
    int c = *x == '/' ? 1 : (unsigned char)*x + 1, d = *y == '/' ? 1 : (unsigned char)*y + 1;
    return (*x == '\0' ? 0 : c) - (*y == '\0' ? 0 : d);
}

/* No name may stand for two things, nor be beneath another's. */
static int check_names(const struct survey_item *items, uint32_t count, char why[256]) {
    const char **names = calloc(count, sizeof *names);
    if (names == NULL)
        return blame_path(items[0].name, -ENOMEM, "", why);
    int r = 0;
    for (uint32_t i = 0; i < count && r == 0; i++) {
        names[i] = items[i].name;
        if (!entry_path_fits(bytes_from_str(names[i])))
            r = blame_path(names[i], -EINVAL, "it cannot be sent under this name", why);
    }
    if (r == 0)
        qsort(names, count, sizeof *names, by_parts);
    for (uint32_t i = 1; i < count && r == 0; i++) {
        size_t len = strlen(names[i - 1]);
        if (strncmp(names[i - 1], names[i], len) == 0 &&
            (names[i][len] == '\0' || names[i][len] == '/'))
            r = blame_path(names[i], -EEXIST, "two things would have this name", why);
    }
    free(names);
    return r;
}

static int copy_paths(struct walk *w, const struct survey_item *items, uint32_t count) {
    w->paths = calloc(count, sizeof *w->paths);
    for (uint32_t i = 0; i < count && w->paths != NULL; i++, w->items++)
        if ((w->paths[i] = strdup(items[i].path)) == NULL)
            return -ENOMEM;
    return w->paths == NULL ? -ENOMEM : 0;
}

int walk_init(struct walk *w, const struct survey_config *c, const struct survey_item *items,
              uint32_t count, char why[256]) {
    *w = (struct walk){.beneath = AT_FDCWD, .follow = c->follow, .folder = -1};
    if (count == 0)
        return blame_path("nothing", -EINVAL, "there must be something to send", why);
    int r = check_names(items, count, why);
    if (r < 0)
        return r;
    r = copy_paths(w, items, count);
    if (r == 0 && c->beneath != AT_FDCWD) {
        w->beneath = fcntl(c->beneath, F_DUPFD_CLOEXEC, 0);
        r = w->beneath < 0 ? -errno : 0;
    }
    if (r < 0)
        return blame_path(items[0].path, r, "", why);
    for (uint32_t i = 0; i < count && r == 0; i++)
        r = walk_item(w, i, items[i].name, c, why);
    return r;
}

void walk_fini(struct walk *w) {
    for (struct walk_block *b = w->blocks, *next; b != NULL; b = next) {
        next = b->next;
        free(b);
    }
    for (uint32_t i = 0; i < w->items; i++)
        free(w->paths[i]);
    free(w->paths);
    free(w->found);
    if (w->beneath >= 0)
        close(w->beneath);
    if (w->folder >= 0)
        close(w->folder);
}
