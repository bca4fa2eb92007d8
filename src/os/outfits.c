/* SPDX-License-Identifier: MIT */
/* Folders in which a program finds its libraries: see outfits.h. */
#include "os/outfits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "os/files.h"
#include "os/mark.h"
#include "wire/outfit.h"
#include "wire/spec.h"

static bool plain(const char *name) {
    return *name != '\0' && strchr(name, '/') == NULL && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

/* A link to nothing would be found out by the loader, in words of its own. */
int outfits_check(const char *objects, struct bytes list) {
    size_t at = 0;
    for (const char *place; (place = strings_next(list, &at)) != NULL;) {
        const char *object = strings_next(list, &at);
        if (object == NULL || !plain(place) || strstr(object, "..") != NULL)
            return -EBADMSG;
        char path[PATH_MAX];
        if (snprintf(path, sizeof path, "%s/%s", objects, object) >= (int)sizeof path)
            return -ENAMETOOLONG;
        int r = mark_look(path);
        if (r < 0)
            return r;
    }
    return 0;
}

static int add_link(int folder, const char *name, const char *format, const char *to) {
    char target[PATH_MAX];
    int n = snprintf(target, sizeof target, format, to);
    if (n >= (int)sizeof target)
        return -ENAMETOOLONG;
    return symlinkat(target, folder, name) < 0 ? -errno : 0;
}

static int fill(int folder, struct bytes list) {
    size_t at = 0;
    const char *loader = NULL, *program = NULL;
    int r = 0;
    for (const char *place; r == 0 && (place = strings_next(list, &at)) != NULL;) {
        r = add_link(folder, place, "../../objects/%s", strings_next(list, &at));
        program = loader != NULL && program == NULL ? place : program;
        loader = loader == NULL ? place : loader;
    }
    if (r == 0 && (program == NULL || mkdirat(folder, OUTFIT_START, 0700) < 0))
        return program == NULL ? -EBADMSG : -errno;
    int start = r < 0 ? -1 : openat(folder, OUTFIT_START, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (start < 0)
        return r < 0 ? r : -errno;
    r = add_link(start, program, "../%s", loader);
    close(start);
    return r;
}

/* Under another name first: whoever finds it finds it whole. */
static int make(const char *folder, struct bytes list) {
    char fresh[PATH_MAX];
    int n = snprintf(fresh, sizeof fresh, "%s.%d", folder, (int)getpid());
    if (n >= (int)sizeof fresh)
        return -ENAMETOOLONG;
    files_remove(AT_FDCWD, fresh);
    if (mkdir(fresh, 0700) < 0)
        return -errno;
    int fd = open(fresh, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 ? -errno : fill(fd, list);
    if (fd >= 0)
        close(fd);
    if (r == 0 && rename(fresh, folder) < 0 && errno != EEXIST && errno != ENOTEMPTY)
        r = -errno;
    files_remove(AT_FDCWD, fresh);
    return r;
}

int outfits_make(const char *objects, struct bytes list, char *folder, size_t folder_bytes) {
    char parent[PATH_MAX];
    struct stat st;
    int n = snprintf(parent, sizeof parent, "%s/../outfits", objects);
    int m = snprintf(folder, folder_bytes, "%.*s/outfits/%016" PRIx64,
                     (int)(strrchr(objects, '/') - objects), objects, hash_once(list.at, list.len));
    if (n >= (int)sizeof parent || m >= (int)folder_bytes)
        return -ENAMETOOLONG;
    int r = outfits_check(objects, list);
    if (r < 0 || stat(folder, &st) == 0)
        return r;
    if (mkdir(parent, 0700) < 0 && errno != EEXIST)
        return -errno;
    return make(folder, list);
}
