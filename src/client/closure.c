/* SPDX-License-Identifier: MIT */
/* The libraries of a program: see closure.h. The order of everything is that of glibc's elf/dl-load.c and
 * elf/dl-deps.c. */
#include "client/closure.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/ldcache.h"
#include "base/rtld.h"
#include "client/libpath.h"
#include "client/object.h"

enum { LOADER_BYTES_MAX = 32 << 20, CACHE_BYTES_MAX = 64 << 20, LINE_BYTES = 128 };

struct entry {
    struct closure_library library;
    char *name, *asked; /* as it is written; as the loader looks for it */
    bool stubborn;
};

struct closure {
    struct object **objects; /* the program, then what was loaded, in this order */
    uint32_t object_count;
    struct entry *entries;
    uint32_t entry_count;
    struct object *loader; /* NULL: a static program */
    struct rtld rtld;
};

/* What is needed only while the libraries are looked for. */
struct search {
    struct closure *c;
    const char *library_path;
    const char *hwcaps;
    const char *platform;
    uint8_t *cache_file;
    struct ldcache cache; /* no entries: there is none */
    uint32_t mark;
    char *why;
};

__attribute__((format(printf, 3, 4))) static int fail(char *why, int error, const char *format,
                                                      ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(why, CLOSURE_WHY_MAX, format, args);
    va_end(args);
    return error;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* The whole file, and a NUL behind it; NULL: it cannot be read or is larger. */
static uint8_t *read_whole(const char *path, size_t max, size_t *ret_len) {
    uint8_t *data = NULL;
    size_t len = 0, cap = 0;
    ssize_t n = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0) {
        if (len + 1 >= cap) {
            cap = cap == 0 ? 65536 : 2 * cap;
            uint8_t *more = cap > 2 * max ? NULL : realloc(data, cap);
            if (more == NULL)
                break;
            data = more;
        }
        n = read(fd, data + len, cap - 1 - len);
        if (n <= 0)
            break;
        len += (size_t)n;
        n = -1;
    }
    if (fd >= 0)
        close(fd);
    if (n != 0) {
        free(data);
        return NULL;
    }
    data[len] = '\0';
    *ret_len = len;
    return data;
}

/* ---- what is there already ---- */

static int add_object(struct closure *c, struct object *o) {
    if (c->object_count > CLOSURE_LIBRARIES_MAX)
        return -E2BIG;
    struct object **more = realloc(c->objects, (c->object_count + 1) * sizeof(struct object *));
    if (more == NULL)
        return -ENOMEM;
    c->objects = more;
    more[c->object_count++] = o;
    return 0;
}

static bool is_named(const struct object *o, const char *name) {
    return strcmp(o->called, name) == 0 || (o->soname != NULL && strcmp(o->soname, name) == 0);
}

/* By a name that it was asked for with, by its path, or by what it calls itself. libc asks for the loader. */
static bool is_loaded(const struct closure *c, const char *name) {
    for (uint32_t i = 0; i < c->entry_count; i++)
        if (strcmp(c->entries[i].asked, name) == 0)
            return true;
    for (uint32_t i = 0; i < c->object_count; i++)
        if (is_named(c->objects[i], name))
            return true;
    return is_named(c->loader, name);
}

/* The program is not among them: the kernel has loaded it, the loader does not know its file. */
static struct object *same_file(const struct closure *c, const struct object *o) {
    for (uint32_t i = 1; i < c->object_count; i++)
        if (c->objects[i]->device == o->device && c->objects[i]->inode == o->inode)
            return c->objects[i];
    return NULL;
}

/* ---- looking for a file; these return 1 and the object, 0 or -errno ---- */

static int try_file(struct search *s, const struct object *asker, const char *path,
                    struct object **ret) {
    char why[OBJECT_WHY_MAX];
    struct object *o, *known;
    int r = object_open(path, s->c->objects[0], &o, why);
    if (r < 0)
        return fail(s->why, r, "%s, needed by %s: %.150s", path, base_name(asker->path), why);
    if (r == 0)
        return 0;
    known = same_file(s->c, o);
    if (known != NULL) {
        object_free(o);
        *ret = known;
        return 1;
    }
    o->loader = asker;
    r = add_object(s->c, o);
    if (r < 0) {
        object_free(o);
        return fail(s->why, r, r == -E2BIG ? "it needs too many libraries" : "no memory");
    }
    *ret = o;
    return 1;
}

/* In one folder, first in the parts of it that suit this processor. */
static int try_folder(struct search *s, const struct object *asker, const char *folder,
                      const char *name, struct object **ret) {
    char path[OBJECT_PATH_MAX];
    const char *cap = s->hwcaps;
    while (*cap != '\0') {
        size_t len = strcspn(cap, ":");
        int n = snprintf(path, sizeof path, "%sglibc-hwcaps/%.*s/%s", folder, (int)len, cap, name);
        int r = n >= (int)sizeof path ? 0 : try_file(s, asker, path, ret);
        if (r != 0)
            return r;
        cap += len + (cap[len] != '\0');
    }
    int n = snprintf(path, sizeof path, "%s%s", folder, name);
    return n >= (int)sizeof path ? 0 : try_file(s, asker, path, ret);
}

static struct libpath_words words_of(const struct search *s, const struct object *o) {
    return (struct libpath_words){
        .origin = o->origin, .lib = s->c->rtld.lib, .platform = s->platform};
}

/* In the folders of a list that is `of` somebody. */
static int try_list(struct search *s, const struct object *asker, const char *list,
                    const char *parting, const struct object *of, const char *name,
                    struct object **ret) {
    char folder[OBJECT_PATH_MAX];
    struct libpath_words words = words_of(s, of);
    if (list == NULL || *list == '\0')
        return 0;
    while (libpath_next(&list, parting, &words, folder, sizeof folder)) {
        int r = try_folder(s, asker, folder, name, ret);
        if (r != 0)
            return r;
    }
    return 0;
}

static int try_cache(struct search *s, const struct object *asker, const char *name,
                     struct object **ret) {
    const struct rtld *rtld = &s->c->rtld;
    const char *path = ldcache_find(&s->cache, name, s->mark, s->hwcaps);
    if (path == NULL)
        return 0;
    for (uint32_t i = 0; asker->elf.no_default && i < rtld->folders; i++)
        if (strncmp(path, rtld->folder[i], strlen(rtld->folder[i])) == 0)
            return 0;
    return try_file(s, asker, path, ret);
}

static int try_default(struct search *s, const struct object *asker, const char *name,
                       struct object **ret) {
    int r = try_cache(s, asker, name, ret);
    for (uint32_t i = 0; r == 0 && !asker->elf.no_default && i < s->c->rtld.folders; i++)
        r = try_folder(s, asker, s->c->rtld.folder[i], name, ret);
    return r;
}

static int look_for(struct search *s, const struct object *asker, const char *name,
                    struct object **ret) {
    int r = 0;
    if (strchr(name, '/') != NULL)
        return try_file(s, asker, name, ret);
    for (const struct object *o = asker; asker->runpath == NULL && o != NULL && r == 0;
         o = o->loader)
        r = try_list(s, asker, o->rpath, ":", o, name, ret);
    if (r == 0)
        r = try_list(s, asker, s->library_path, ":;", s->c->objects[0], name, ret);
    if (r == 0)
        r = try_list(s, asker, asker->runpath, ":", asker, name, ret);
    return r != 0 ? r : try_default(s, asker, name, ret);
}

/* ---- the libraries that an object asks for ---- */

/* A name in one folder of all libraries. $ORIGIN is that folder then. */
static const char *place_of(const char *name) {
    static const char *const origins[] = {"$ORIGIN/", "${ORIGIN}/"};
    for (size_t i = 0; i < sizeof origins / sizeof *origins; i++)
        if (strncmp(name, origins[i], strlen(origins[i])) == 0)
            name += strlen(origins[i]);
    return strpbrk(name, "/$") == NULL && *name != '\0' ? name : NULL;
}

static bool is_stubborn(const struct object *o) {
    return o->rpath != NULL && *o->rpath != '\0';
}

static int add_entry(struct closure *c, const char *name, const char *asked,
                     const struct object *o) {
    struct entry *more = realloc(c->entries, (c->entry_count + 1) * sizeof *more);
    if (more == NULL)
        return -ENOMEM;
    c->entries = more;
    struct entry *e = &more[c->entry_count++];
    *e = (struct entry){.name = strdup(name), .asked = strdup(asked), .stubborn = is_stubborn(o)};
    if (e->name == NULL || e->asked == NULL)
        return -ENOMEM;
    e->library =
        (struct closure_library){.name = e->name, .path = o->path, .place = place_of(e->name)};
    return 0;
}

static int missing(struct search *s, const struct object *asker, const char *name) {
    return fail(s->why, -ENOENT,
                "%s, needed by %s, is not found; name its folder in LD_LIBRARY_PATH", name,
                base_name(asker->path));
}

/* 1: it is there (also if it was before), 0: it is not. */
static int load(struct search *s, const struct object *asker, const char *name) {
    char asked[OBJECT_PATH_MAX];
    struct libpath_words words = words_of(s, asker);
    struct object *o;
    if (libpath_expand(name, strlen(name), &words, asked, sizeof asked) < 0 || *asked == '\0')
        return 0;
    if (is_loaded(s->c, asked))
        return 1;
    int r = look_for(s, asker, asked, &o);
    if (r <= 0)
        return r;
    r = add_entry(s->c, name, asked, o);
    return r < 0 ? fail(s->why, r, "%s", strerror(-r)) : 1;
}

static int load_needs(struct search *s, const struct object *o) {
    for (uint32_t i = 0; i < o->need_count; i++) {
        int r = load(s, o, o->needs[i].name);
        if (r == 0 && o->needs[i].kind != ELF_AUXILIARY)
            return missing(s, o, o->needs[i].name);
        if (r < 0)
            return r;
    }
    return 0;
}

/* What cannot be preloaded the loader complains of and does without. */
static int load_preloads(struct search *s, const char *list) {
    char name[OBJECT_PATH_MAX];
    while (list != NULL && *list != '\0') {
        size_t len = strcspn(list, " :");
        if (len > 0 && len < sizeof name) {
            snprintf(name, sizeof name, "%.*s", (int)len, list);
            int r = load(s, s->c->objects[0], name);
            if (r == -ENOMEM || r == -E2BIG)
                return r;
        }
        list += len + (list[len] != '\0');
    }
    return 0;
}

/* ---- the beginning ---- */

static int read_loader(struct search *s) {
    struct closure *c = s->c;
    char why[OBJECT_WHY_MAX] = "it is not found";
    const char *name = c->objects[0]->interpreter;
    int r = object_open(name, c->objects[0], &c->loader, why);
    if (r <= 0)
        return fail(s->why, r < 0 ? r : -ENOENT, "its loader %s: %.150s", name, why);
    size_t len;
    uint8_t *data = read_whole(name, LOADER_BYTES_MAX, &len);
    r = data == NULL ? -ENOENT : rtld_read(&c->rtld, bytes_of(data, len));
    free(data);
    if (r < 0)
        return fail(s->why, -EOPNOTSUPP,
                    "its loader %s is not one of glibc; where it looks for libraries is not known",
                    name);
    return 0;
}

static void read_cache(struct search *s) {
    const struct elf *e = &s->c->objects[0]->elf;
    size_t len;
    s->mark = ldcache_mark(e->machine, e->wide, e->flags);
    s->cache_file = read_whole(s->c->rtld.cache, CACHE_BYTES_MAX, &len);
    if (s->cache_file == NULL || ldcache_read(&s->cache, bytes_of(s->cache_file, len), e->big) < 0)
        s->cache = (struct ldcache){0};
}

static const char *read_hwcaps(const struct object *program) {
    enum { MACHINE_X86_64 = 62, CPUINFO_BYTES_MAX = 16 << 20 };
    if (program->elf.machine != MACHINE_X86_64 || !program->elf.wide)
        return "";
    size_t len;
    uint8_t *text = read_whole("/proc/cpuinfo", CPUINFO_BYTES_MAX, &len);
    const char *hwcaps = text == NULL ? "" : rtld_hwcaps((const char *)text);
    free(text);
    return hwcaps;
}

/* The list of objects grows while we go along it: breadth first. */
static int load_all(struct search *s, const char *preload) {
    struct closure *c = s->c;
    int r = read_loader(s);
    if (r < 0)
        return r;
    read_cache(s);
    s->hwcaps = read_hwcaps(c->objects[0]);
    s->platform = (const char *)getauxval(AT_PLATFORM);
    r = load_preloads(s, preload);
    for (uint32_t i = 0; r == 0 && i < c->object_count; i++)
        r = load_needs(s, c->objects[i]);
    return r;
}

/* A script is not ours to understand: its first line names a program. */
static int refuse(const char *path, const char *reason, int error, char *why) {
    char line[LINE_BYTES] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : pread(fd, line, sizeof line - 1, 0);
    if (fd >= 0)
        close(fd);
    if (n < 2 || strncmp(line, "#!", 2) != 0)
        return fail(why, error, "%s", reason);
    const char *at = line + 2 + strspn(line + 2, " \t");
    return fail(why, -ENOEXEC, "it is a script; the program is its interpreter, %.*s",
                (int)strcspn(at, " \t\r\n"), at);
}

static int open_program(struct closure *c, const char *program, char *why) {
    char reason[OBJECT_WHY_MAX];
    struct object *o;
    char *path =
        realpath(program, NULL); /* the kernel tells the loader the file, not a link to it */
    if (path == NULL)
        return fail(why, -errno, "%s", strerror(errno));
    int r = object_open(path, NULL, &o, reason);
    if (r == 0)
        r = fail(why, -EACCES, "it may not be read");
    else if (r < 0)
        r = refuse(path, reason, r, why);
    free(path);
    if (r <= 0)
        return r;
    r = add_object(c, o);
    if (r < 0) {
        object_free(o);
        return fail(why, r, "%s", strerror(-r));
    }
    return 0;
}

int closure_new(const char *program, const char *library_path, const char *preload,
                struct closure **ret, char why[CLOSURE_WHY_MAX]) {
    struct closure *c = calloc(1, sizeof *c);
    if (c == NULL)
        return fail(why, -ENOMEM, "%s", strerror(ENOMEM));
    struct search s = {.c = c, .library_path = library_path, .hwcaps = "", .why = why};
    int r = open_program(c, program, why);
    if (r == 0 && c->objects[0]->interpreter != NULL)
        r = load_all(&s, preload);
    free(s.cache_file);
    if (r < 0) {
        closure_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

void closure_free(struct closure *c) {
    if (c == NULL)
        return;
    for (uint32_t i = 0; i < c->entry_count; i++) {
        free(c->entries[i].name);
        free(c->entries[i].asked);
    }
    for (uint32_t i = 0; i < c->object_count; i++)
        object_free(c->objects[i]);
    object_free(c->loader);
    free(c->entries);
    free(c->objects);
    free(c);
}

uint32_t closure_count(const struct closure *c) {
    return c->entry_count;
}

const struct closure_library *closure_at(const struct closure *c, uint32_t index) {
    return index < c->entry_count ? &c->entries[index].library : NULL;
}

const char *closure_interpreter(const struct closure *c) {
    return c->objects[0]->interpreter;
}

bool closure_argv0(const struct closure *c) {
    return c->rtld.argv0;
}

long closure_stubborn(const struct closure *c, struct room out) {
    size_t len = 0;
    if (is_stubborn(c->objects[0])) {
        if (out.len == 0)
            return -ENOBUFS;
        out.at[len++] = '\0';
    }
    for (uint32_t i = 0; i < c->entry_count; i++) {
        const char *place = c->entries[i].library.place;
        if (!c->entries[i].stubborn || place == NULL)
            continue;
        size_t bytes = strlen(place) + 1;
        if (bytes > out.len - len)
            return -ENOBUFS;
        memcpy(out.at + len, place, bytes);
        len += bytes;
    }
    return (long)len;
}
