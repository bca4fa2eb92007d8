/* SPDX-License-Identifier: MIT */
/* A file that the dynamic loader can load: see object.h. */
#include "client/object.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STRING_BYTES_MAX = 1 << 20, NEEDS_MAX = 4096 };

__attribute__((format(printf, 3, 4))) static int fail(char why[OBJECT_WHY_MAX], int error,
                                                      const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(why, OBJECT_WHY_MAX, format, args);
    va_end(args);
    return error;
}

static long read_at(void *self, uint64_t at, void *to, size_t len) {
    const int *fd = self;
    size_t done = 0;
    while (done < len) {
        ssize_t n = pread(*fd, (char *)to + done, len - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (long)done;
}

/* ---- where it is ---- */

static int set_places(struct object *o, const char *path) {
    char here[OBJECT_PATH_MAX] = "";
    if (*path != '/' && getcwd(here, sizeof here) == NULL)
        return -errno;
    const char *slash = *path == '/' || strcmp(here, "/") == 0 ? "" : "/";
    o->called = strdup(path);
    if (o->called == NULL || asprintf(&o->path, "%s%s%s", here, slash, path) < 0)
        return -ENOMEM;
    const char *last = strrchr(o->path, '/');
    o->origin = strndup(o->path, last == o->path ? 1 : (size_t)(last - o->path));
    return o->origin == NULL ? -ENOMEM : 0;
}

/* ---- what it says ---- */

/* Names are short, lists of folders need not be. */
static int copy_string(const struct elf *e, uint64_t name, char **ret) {
    if (name == ELF_ABSENT)
        return 0;
    for (size_t cap = 256; cap <= STRING_BYTES_MAX; cap *= 8) {
        char *text = malloc(cap);
        if (text == NULL)
            return -ENOMEM;
        long n = elf_string(e, name, text, cap);
        if (n >= 0) {
            *ret = text;
            return 0;
        }
        free(text);
        if (n != -ENAMETOOLONG)
            return (int)n;
    }
    return -EBADMSG;
}

static int read_needs(struct object *o) {
    struct elf_need need;
    uint32_t at = 0;
    int r;
    while ((r = elf_next_need(&o->elf, &at, &need)) == 1) {
        if (o->need_count == NEEDS_MAX)
            return -EBADMSG;
        struct object_need *more = realloc(o->needs, (o->need_count + 1) * sizeof *more);
        if (more == NULL)
            return -ENOMEM;
        o->needs = more;
        more[o->need_count] = (struct object_need){.kind = need.kind};
        r = copy_string(&o->elf, need.name, &more[o->need_count].name);
        if (r < 0)
            return r;
        if (more[o->need_count].name == NULL)
            return -EBADMSG; /* a name at ELF_ABSENT is none */
        o->need_count++;
    }
    return r;
}

static int read_interpreter(struct object *o) {
    char name[ELF_INTERPRETER_MAX];
    int r = elf_interpreter(&o->elf, name, sizeof name);
    if (r == -ENOENT)
        return 0;
    if (r < 0)
        return r;
    o->interpreter = strdup(name);
    return o->interpreter == NULL ? -ENOMEM : 0;
}

static int read_all(struct object *o) {
    const struct elf *e = &o->elf;
    int r = read_interpreter(o);
    if (r < 0 || (r = copy_string(e, e->soname, &o->soname)) < 0 ||
        (r = copy_string(e, e->rpath, &o->rpath)) < 0 ||
        (r = copy_string(e, e->runpath, &o->runpath)) < 0)
        return r;
    return read_needs(o);
}

/* ---- the file ---- */

/* As the loader: another width or machine is passed over, another byte order is not. */
static int judge(const struct elf *e, const struct object *like, char why[OBJECT_WHY_MAX]) {
    if (like != NULL && e->wide != like->elf.wide)
        return 0;
    if (like != NULL && e->big != like->elf.big)
        return fail(why, -EBADMSG, "it is for machines of the other byte order");
    if (like != NULL && e->machine != like->elf.machine)
        return 0;
    if (e->type != ELF_TYPE_EXEC && e->type != ELF_TYPE_DYN)
        return fail(why, -EBADMSG, "it is neither a program nor a shared library");
    return 1;
}

static int explain(int error, char why[OBJECT_WHY_MAX]) {
    if (error == -ENOEXEC)
        return fail(why, -EBADMSG, "it is no ELF file");
    if (error == -EBADMSG)
        return fail(why, -EBADMSG, "it is damaged: what its headers say does not fit its contents");
    return fail(why, error, "%s", strerror(-error));
}

static int read_file(struct object *o, int *fd, const struct object *like,
                     char why[OBJECT_WHY_MAX]) {
    struct stat st;
    if (fstat(*fd, &st) < 0)
        return fail(why, -errno, "%s", strerror(errno));
    if (!S_ISREG(st.st_mode))
        return fail(why, -EBADMSG, "it is not a file");
    o->device = st.st_dev;
    o->inode = st.st_ino;
    int r = elf_read(&o->elf, (struct elf_source){.read = read_at, .self = fd});
    if (r < 0)
        return explain(r, why);
    r = judge(&o->elf, like, why);
    if (r <= 0)
        return r;
    r = read_all(o);
    o->elf.source = (struct elf_source){0};
    return r < 0 ? explain(r, why) : 1;
}

static bool not_there(int error) {
    return error == ENOENT || error == EACCES || error == ENOTDIR || error == ENAMETOOLONG ||
           error == ELOOP;
}

int object_open(const char *path, const struct object *like, struct object **ret,
                char why[OBJECT_WHY_MAX]) {
    /* Nothing that is a library makes us wait when it is opened. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return not_there(errno) ? 0 : fail(why, -errno, "%s", strerror(errno));
    struct object *o = calloc(1, sizeof *o);
    int r = o == NULL ? -ENOMEM : set_places(o, path);
    r = r < 0 ? explain(r, why) : read_file(o, &fd, like, why);
    close(fd);
    if (r <= 0) {
        object_free(o);
        return r;
    }
    *ret = o;
    return 1;
}

void object_free(struct object *o) {
    if (o == NULL)
        return;
    for (uint32_t i = 0; i < o->need_count; i++)
        free(o->needs[i].name);
    free(o->needs);
    free(o->interpreter);
    free(o->soname);
    free(o->rpath);
    free(o->runpath);
    free(o->called);
    free(o->path);
    free(o->origin);
    free(o);
}
