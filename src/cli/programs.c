/* SPDX-License-Identifier: MIT */
/* The programs of a job, ready to be asked for: see programs.h. */
#include "cli/programs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "cli/complain.h"
#include "cli/program.h"
#include "os/files.h"
#include "sched/size.h"

enum { PATH_BYTES = 4096 };

char *strings_join(char *const *words, size_t *ret_len) {
    size_t len = 0, at = 0;
    for (char *const *w = words; *w != NULL; w++)
        len += strlen(*w) + 1;
    char *list = malloc(len + 1);
    ASSERT(list != NULL);
    for (char *const *w = words; *w != NULL; w++) {
        size_t n = strlen(*w) + 1;
        memcpy(list + at, *w, n);
        at += n;
    }
    *ret_len = len;
    return list;
}

const char *ordered_short(const struct ordered *o) {
    const char *slash = strrchr(o->name, '/');
    return slash != NULL ? slash + 1 : o->name;
}

/* ---- how many ---- */

int programs_count(struct programs *p, const struct parts *parts, const struct size *sizes,
                   const char *command) {
    uint64_t procs = 0;
    int r = 0;
    p->at = calloc(parts->count, sizeof *p->at);
    ASSERT(p->at != NULL);
    p->count = parts->count;
    for (uint32_t i = 0; i < p->count && r == 0; i++) {
        struct ordered *o = &p->at[i];
        o->name = parts->at[i].argv[0];
        o->spec.index = i;
        o->spec.first = (uint32_t)procs;
        o->spec.ranks = sizes[i].procs;
        procs += o->spec.ranks;
        if (r == 0 && procs > SIZE_PART_MAX)
            r = complain(command, "more than %d processes in all", SIZE_PART_MAX);
    }
    return r;
}

/* ---- what ---- */

static int find_folder(struct ordered *o, const struct part *part) {
    char place[PART_PLACE_MAX];
    struct stat st;
    if (part->chdir == NULL)
        return 0;
    o->folder = realpath(part->chdir, NULL);
    bool there = o->folder != NULL && stat(o->folder, &st) == 0;
    if (there && S_ISDIR(st.st_mode))
        return 0;
    complain(part_place(part, part->chdir, part->chdir, place), "%s; name a folder that is there",
             there ? "not a folder" : strerror(errno));
    return STATUS_STORM;
}

static int find_environment(struct ordered *o, const struct part *part) {
    char place[PART_PLACE_MAX];
    if (part->env.count == 0)
        return 0;
    for (uint32_t i = 0; i < part->env.count; i++) {
        int r = surroundings_set(&o->more, part->env.at[i]);
        if (r == -EINVAL)
            return complain(part_place(part, part->env.at[i], "--env", place),
                            "NAME=VALUE is expected; for example --env LANG=C");
        ASSERT(r == 0);
    }
    int r = surroundings_strings(&o->more, &o->spec.environment);
    ASSERT(r == 0);
    return 0;
}

static const char *variable(const struct ordered *o, const struct surroundings *around,
                            const char *name) {
    const char *own = surroundings_get(&o->more, name);
    return own != NULL ? own : surroundings_get(around, name);
}

static int find_file(struct ordered *o, const struct part *part, const char *folder,
                     const struct surroundings *around) {
    char place[PART_PLACE_MAX], shown[PART_PLACE_MAX + 300];
    const char *path = variable(o, around, "PATH");
    if (part->file != NULL)
        snprintf(shown, sizeof shown, "%s: %.280s", part_place(part, part->argv[0], "", place),
                 o->name);
    o->path = malloc(PATH_BYTES);
    ASSERT(o->path != NULL);
    int r = program_find(part->file != NULL ? shown : o->name, o->name,
                         o->folder != NULL ? o->folder : folder, path != NULL ? path : "", o->path,
                         PATH_BYTES);
    o->spec.program = bytes_from_str(r == 0 ? o->path : "");
    return r;
}

int programs_find(struct programs *p, const struct parts *parts, const char *folder,
                  const struct surroundings *around) {
    int r = 0;
    for (uint32_t i = 0; i < p->count && r == 0; i++) {
        struct ordered *o = &p->at[i];
        size_t len;
        o->arguments = strings_join(parts->at[i].argv, &len);
        o->spec.arguments = bytes_of(o->arguments, len);
        r = find_folder(o, &parts->at[i]);
        if (r == 0)
            r = find_environment(o, &parts->at[i]);
        if (r == 0)
            r = find_file(o, &parts->at[i], folder, around);
        if (o->folder != NULL)
            o->spec.folder = bytes_from_str(o->folder);
    }
    return r;
}

void programs_see(struct programs *p) {
    struct stat st;
    for (uint32_t i = 0; i < p->count; i++) {
        struct spec_program *s = &p->at[i].spec;
        if (stat(p->at[i].path, &st) < 0)
            continue;
        s->seen = true;
        s->device = st.st_dev;
        s->inode = st.st_ino;
        s->bytes = (uint64_t)st.st_size;
        s->mtime_ns = files_mtime_ns(&st);
    }
}

bool programs_seen(const struct programs *p) {
    for (uint32_t i = 0; i < p->count; i++)
        if (p->at[i].spec.seen)
            return true;
    return false;
}

int programs_load(struct programs *p, struct freight *f, const struct sending *s, bool libraries,
                  const char *library_path) {
    int r = 0;
    for (uint32_t i = 0; i < p->count && r == 0; i++) {
        struct ordered *o = &p->at[i];
        const char *own = surroundings_get(&o->more, "LD_LIBRARY_PATH");
        r = freight_load(f, s, o->path, libraries, own != NULL ? own : library_path, &o->spec);
    }
    return r;
}

/* ---- the spec ---- */

static size_t room_for(const struct spec_program *s) {
    return 128 + s->program.len + s->image.len + s->outfit.len + s->stubborn.len +
           s->arguments.len + s->folder.len + s->environment.len;
}

void programs_tell(struct programs *p, struct spec *spec) {
    size_t cap = 1, len = 0;
    for (uint32_t i = 1; i < p->count; i++)
        cap += room_for(&p->at[i].spec);
    p->encoded = malloc(cap);
    ASSERT(p->encoded != NULL);
    for (uint32_t i = 1; i < p->count; i++) {
        long n = spec_program_store(&p->at[i].spec, room_of(p->encoded + len, cap - len));
        ASSERT(n > 0);
        len += (size_t)n;
    }
    spec->ranks = p->at[0].spec.ranks;
    spec->first_folder = p->at[0].spec.folder;
    spec->first_environment = p->at[0].spec.environment;
    spec->programs = bytes_of(p->encoded, len);
}

void programs_fini(struct programs *p) {
    for (uint32_t i = 0; i < p->count; i++) {
        struct ordered *o = &p->at[i];
        free(o->path);
        free(o->folder);
        free(o->arguments);
        surroundings_fini(&o->more);
    }
    free(p->at);
    free(p->encoded);
    *p = (struct programs){0};
}

/* ---- for people ---- */

const struct ordered *programs_of(const struct programs *p, uint32_t rank) {
    uint32_t i = 0;
    while (i + 1 < p->count && rank - p->at[i].spec.first >= p->at[i].spec.ranks)
        i++;
    return &p->at[i];
}

void programs_print(const struct programs *p) {
    printf("programs  %" PRIu32 "\n", p->count);
    for (uint32_t i = 0; i < p->count; i++) {
        const struct ordered *o = &p->at[i];
        printf("  %" PRIu32 ": rank%s %" PRIu32, i, o->spec.ranks == 1 ? "" : "s", o->spec.first);
        if (o->spec.ranks > 1)
            printf("-%" PRIu32, o->spec.first + o->spec.ranks - 1);
        printf(", %s\n", o->path);
    }
}
