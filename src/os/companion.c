/* SPDX-License-Identifier: MIT */
/* Programs that belong to storm: see companion.h. */
#include "os/companion.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int companion_self(char *buf, size_t cap) {
    ssize_t n = readlink("/proc/self/exe", buf, cap);
    if (n < 0)
        return -errno;
    if ((size_t)n >= cap)
        return -ENAMETOOLONG;
    buf[n] = '\0';
    return 0;
}

int companion_find(const char *name, char *buf, size_t cap) {
    static const char *const folders[] = {"", "../libexec/storm/"};
    char self[PATH_MAX];
    int r = companion_self(self, sizeof self);
    if (r < 0)
        return r;
    strrchr(self, '/')[1] = '\0';
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        int n = snprintf(buf, cap, "%s%s%s", self, folders[i], name);
        if (n > 0 && (size_t)n < cap && access(buf, X_OK) == 0)
            return 0;
    }
    return -ENOENT;
}
