/* SPDX-License-Identifier: MIT */
/* Could a run begin on this node? See lookout.h. */
#include "os/lookout.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "os/files.h"
#include "os/jobfolders.h"
#include "os/mark.h"
#include "os/outfits.h"
#include "os/which.h"
#include "wire/setup.h"
#include "wire/spec.h"

static int find_inputs(const char *folder, uint64_t run) {
    char root[PATH_MAX], path[PATH_MAX];
    if (snprintf(root, sizeof root, "%s/root", folder) >= (int)sizeof root)
        return -ENAMETOOLONG;
    return jobfolders_open(root, run, false, path, sizeof path);
}

/* What was sent: the program as it came, and its libraries. */
static int find_image(const char *folder, const struct spec_program *s) {
    char objects[PATH_MAX], path[PATH_MAX];
    if (snprintf(objects, sizeof objects, "%s/spool/objects", folder) >= (int)sizeof objects ||
        snprintf(path, sizeof path, "%.*s/%.*s", PATH_MAX / 2, objects, (int)s->image.len,
                 (const char *)s->image.at) >= (int)sizeof path)
        return -ENAMETOOLONG;
    int r = mark_look(path);
    return r == 0 && s->outfit.len > 0 ? outfits_check(objects, s->outfit) : r;
}

static const char *path_in(struct bytes environment) {
    size_t at = 0;
    for (const char *s; (s = strings_next(environment, &at)) != NULL;)
        if (strncmp(s, "PATH=", 5) == 0)
            return s + 5;
    return NULL;
}

/* It is there, whatever it is; that it cannot be executed is found when that is tried. */
static int find_any(const struct spec *s, const char *name) {
    char path[PATH_MAX], folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%.*s", (int)s->folder.len, (const char *)s->folder.at);
    return which(name, path_in(s->environment), folder, path) == -ENOENT ? -ENOENT : 0;
}

static int find_program(const struct spec *spec, const struct spec_program *s) {
    char path[PATH_MAX];
    struct stat st;
    if (snprintf(path, sizeof path, "%.*s", (int)s->program.len, (const char *)s->program.at) >=
        (int)sizeof path)
        return -ENAMETOOLONG;
    if (s->inode == 0)
        return find_any(spec, path);
    if (stat(path, &st) < 0)
        return -errno;
    bool same = st.st_dev == s->device && st.st_ino == s->inode &&
                (uint64_t)st.st_size == s->bytes && files_mtime_ns(&st) == s->mtime_ns;
    return same ? 0 : -ESTALE;
}

static void look_at(const char *folder, const struct spec *s, const struct spec_program *p,
                    struct input_looked *ret) {
    bool sent = p->image.len > 0;
    ret->step = sent ? SPAWN_IMAGE : SPAWN_HIDDEN;
    ret->error = sent ? find_image(folder, p) : p->seen ? find_program(s, p) : 0;
}

/* Ranks of a node ascend, and so do those of programs. */
static void look_at_all(const char *folder, const struct setup *setup, const struct spec *s,
                        struct input_looked *ret) {
    struct spec_program p;
    spec_program_first(s, &p);
    for (uint32_t i = 0; i < setup->count && ret->error == 0;) {
        ret->rank = setup_rank(setup, i);
        while (p.ranks > 0 && ret->rank - p.first >= p.ranks)
            if (!spec_program_next(s, &p)) {
                ret->error = -EBADMSG;
                return;
            }
        look_at(folder, s, &p, ret);
        while (i < setup->count && (p.ranks == 0 || setup_rank(setup, i) - p.first < p.ranks))
            i++;
    }
}

void lookout(const char *folder, struct bytes bytes, struct input_looked *ret) {
    struct setup setup;
    struct spec s;
    ret->rank = 0;
    ret->step = SPAWN_FORK;
    ret->error = -EBADMSG;
    if (setup_decode(bytes, &setup) < 0 || spec_decode(setup.spec, &s) < 0)
        return;
    ret->rank = setup.first;
    ret->step = SPAWN_IMAGE;
    ret->error = s.own == OWN_FILLED ? find_inputs(folder, setup.run) : 0;
    if (ret->error == 0)
        look_at_all(folder, &setup, &s, ret);
}
