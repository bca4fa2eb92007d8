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

static int find_program(const struct spec_program *s) {
    char path[PATH_MAX];
    struct stat st;
    if (snprintf(path, sizeof path, "%.*s", (int)s->program.len, (const char *)s->program.at) >=
        (int)sizeof path)
        return -ENAMETOOLONG;
    if (stat(path, &st) < 0)
        return -errno;
    bool same = st.st_dev == s->device && st.st_ino == s->inode &&
                (uint64_t)st.st_size == s->bytes && files_mtime_ns(&st) == s->mtime_ns;
    return same ? 0 : -ESTALE;
}

static int look_at(const char *folder, const struct spec_program *p, enum spawn_step *ret_step) {
    *ret_step = p->image.len > 0 ? SPAWN_IMAGE : SPAWN_HIDDEN;
    return p->image.len > 0 ? find_image(folder, p) : p->seen ? find_program(p) : 0;
}

/* Ranks of a node ascend, and so do those of programs. */
static int look_at_all(const char *folder, const struct setup *setup, const struct spec *s,
                       enum spawn_step *ret_step) {
    struct spec_program p;
    spec_program_first(s, &p);
    int r = 0;
    for (uint32_t i = 0; i < setup->count && r == 0;) {
        uint32_t rank = setup_rank(setup, i);
        while (p.ranks > 0 && rank - p.first >= p.ranks)
            if (!spec_program_next(s, &p))
                return -EBADMSG;
        r = look_at(folder, &p, ret_step);
        while (i < setup->count && (p.ranks == 0 || setup_rank(setup, i) - p.first < p.ranks))
            i++;
    }
    return r;
}

int lookout(const char *folder, struct bytes bytes, enum spawn_step *ret_step) {
    struct setup setup;
    struct spec s;
    *ret_step = SPAWN_FORK;
    if (setup_decode(bytes, &setup) < 0 || spec_decode(setup.spec, &s) < 0)
        return -EBADMSG;
    *ret_step = SPAWN_IMAGE;
    int r = s.own == OWN_FILLED ? find_inputs(folder, setup.run) : 0;
    return r < 0 ? r : look_at_all(folder, &setup, &s, ret_step);
}
