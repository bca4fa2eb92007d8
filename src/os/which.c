/* SPDX-License-Identifier: MIT */
/* Which file is executed: see which.h. */
#include "os/which.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define USUAL_PATH "/usr/local/bin:/usr/bin:/bin"

/* 0 if there is something here that can be executed. */
static int look_at(const char *path) {
    struct stat st;
    if (stat(path, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EACCES;
    return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? -errno : 0;
}

static int look_in(const char *folder, const char *place, size_t len, const char *name,
                   char out[PATH_MAX]) {
    bool whole = folder == NULL || (len > 0 && place[0] == '/');
    int n = snprintf(out, PATH_MAX, "%s%s%.*s%s%s", whole ? "" : folder, whole ? "" : "/", (int)len,
                     place, len > 0 ? "/" : "", name);
    return n >= PATH_MAX ? -ENAMETOOLONG : look_at(out);
}

int which(const char *name, const char *path, const char *folder, char out[PATH_MAX]) {
    int r = -ENOENT;
    if (strchr(name, '/') != NULL)
        return snprintf(out, PATH_MAX, "%s", name) >= PATH_MAX ? -ENAMETOOLONG : look_at(out);
    for (const char *place = path != NULL ? path : USUAL_PATH; place != NULL;) {
        const char *end = strchrnul(place, ':');
        int found = look_in(folder, place, (size_t)(end - place), name, out);
        if (found == 0)
            return 0;
        if (found == -EACCES)
            r = found;
        place = *end == ':' ? end + 1 : NULL;
    }
    return r;
}
