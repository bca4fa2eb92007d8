/* SPDX-License-Identifier: MIT */
/* A program that passes itself on: see self.h. */
#include "os/self.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "os/companion.h"
#include "os/digest.h"
#include "os/files.h"

enum { NOTE_SECONDS = 24 * 3600, KEPT_SECONDS = 30 * 24 * 3600 };

#define EXE "/proc/self/exe" /* also when our file has another name by now, or none */

static int map(const char *path, struct bytes *ret) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    void *at = fstat(fd, &st) == 0 ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
                                   : MAP_FAILED;
    int r = at == MAP_FAILED ? -errno : 0;
    close(fd);
    if (r == 0)
        *ret = bytes_of(at, (size_t)st.st_size);
    return r;
}

static void set_processor(struct shell_helper *h) {
    struct utsname name;
    uname(&name);
    snprintf(h->processor, sizeof h->processor, "%.*s", GREETING_PROCESSOR_MAX - 1, name.machine);
}

int self_helper_from(const char *path, struct shell_helper *ret) {
    uint8_t sum[DIGEST_BYTES_MAX];
    struct text hex;
    int r = map(path, &ret->program);
    if (r < 0)
        return r;
    digest_of(DIGEST_SHA256, ret->program, sum);
    text_init(&hex, ret->digest, sizeof ret->digest);
    text_hex(&hex, sum, 32);
    set_processor(ret);
    return 0;
}

/* In a cache it is called after its digest, which was looked at when it came there. (Another of the same may have taken its
 * place since: then the system says so behind the name.) */
static bool name_tells(const char *path, char digest[65]) {
    const char *name = strrchr(path, '/');
    if (name == NULL || strncmp(name, "/hop-", 5) != 0 ||
        strspn(name + 5, "0123456789abcdef") != 64)
        return false;
    memcpy(digest, name + 5, 64);
    digest[64] = '\0';
    return true;
}

int self_helper(struct shell_helper *ret) {
    char path[PATH_MAX];
    int r = companion_self(path, sizeof path);
    if (r < 0 || !name_tells(path, ret->digest))
        return r < 0 ? r : self_helper_from(EXE, ret);
    set_processor(ret);
    return map(EXE, &ret->program);
}

void self_used(void) {
    struct stat st;
    if (stat(EXE, &st) == 0 && time(NULL) - st.st_mtime >= NOTE_SECONDS)
        utimensat(AT_FDCWD, EXE, NULL, 0);
}

/* A helper, or what is left of one that did not come through. */
static bool is_helper(const char *name) {
    if (strncmp(name, ".hop-", 5) == 0)
        return true;
    return strncmp(name, "hop-", 4) == 0 && strlen(name) == 4 + 64 &&
           strspn(name + 4, "0123456789abcdef") == 64;
}

/* Every version has its own helper, and users have many versions and many homes. Whoever runs one that goes has it open. */
static void forget_old(const char *path) {
    char folder[PATH_MAX];
    struct stat st;
    snprintf(folder, sizeof folder, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash == NULL || strlen(path) >= sizeof folder)
        return;
    *slash = '\0';
    DIR *dir = opendir(folder);
    time_t now = time(NULL);
    for (const struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;)
        if (is_helper(e->d_name) && strcmp(e->d_name, slash + 1) != 0 &&
            fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
            st.st_uid == geteuid() && now - st.st_mtime >= KEPT_SECONDS)
            unlinkat(dirfd(dir), e->d_name, 0);
    if (dir != NULL)
        closedir(dir);
}

int self_install(const char *path, const char *digest) {
    struct shell_helper self;
    char here[PATH_MAX];
    int r = companion_self(here, sizeof here);
    if (r == 0)
        r = self_helper_from(EXE, &self);
    if (r == 0 && strcmp(self.digest, digest) != 0) {
        fprintf(stderr, "the helper was spoiled on its way\n");
        return 1;
    }
    r = r < 0 ? r : files_sync(EXE); /* what has its name is believed for ever */
    if (r == 0 && rename(here, path) < 0)
        r = -errno;
    if (r == 0)
        forget_old(path);
    else
        fprintf(stderr, "the helper cannot be kept as %s: %s\n", path, strerror(-r));
    return r < 0;
}
