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
#include "wire/spec.h"

static int find_inputs(const char *folder, uint64_t run) {
    char root[PATH_MAX], path[PATH_MAX];
    if (snprintf(root, sizeof root, "%s/root", folder) >= (int)sizeof root)
        return -ENAMETOOLONG;
    return jobfolders_open(root, run, false, path, sizeof path);
}

/* What was sent: the program as it came, and its libraries. */
static int find_image(const char *folder, const struct spec *s) {
    char objects[PATH_MAX], path[PATH_MAX];
    if (snprintf(objects, sizeof objects, "%s/spool/objects", folder) >= (int)sizeof objects ||
        snprintf(path, sizeof path, "%.*s/%.*s", PATH_MAX / 2, objects, (int)s->image.len,
                 (const char *)s->image.at) >= (int)sizeof path)
        return -ENAMETOOLONG;
    int r = mark_look(path);
    return r == 0 && s->outfit.len > 0 ? outfits_check(objects, s->outfit) : r;
}

static int find_program(const struct spec *s) {
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

int lookout(const char *folder, uint64_t run, struct bytes bytes, enum spawn_step *ret_step) {
    struct spec s;
    *ret_step = SPAWN_FORK;
    if (spec_decode(bytes, &s) < 0)
        return -EBADMSG;
    *ret_step = SPAWN_IMAGE;
    int r = s.own == OWN_FILLED ? find_inputs(folder, run) : 0;
    if (r == 0 && s.image.len > 0)
        return find_image(folder, &s);
    if (r < 0 || !s.seen)
        return r;
    *ret_step = SPAWN_HIDDEN;
    return find_program(&s);
}
