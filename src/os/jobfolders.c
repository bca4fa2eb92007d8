/* SPDX-License-Identifier: MIT */
/* The folders that runs have on a node: see jobfolders.h. */
#include "os/jobfolders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "os/files.h"
#include "wire/folder.h"

/* The folder that they are all in; links are not followed. */
static int open_all(const char *root) {
    int top = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top < 0)
        return -errno;
    int fd = openat(top, RUN_FOLDERS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int r = fd < 0 ? -errno : fd;
    close(top);
    return r;
}

size_t jobfolders_list(const char *root, uint8_t *out, size_t cap) {
    size_t len = 0;
    int fd = open_all(root);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL && fd >= 0)
        close(fd);
    for (const struct dirent *e; dir != NULL && len + 8 <= cap && (e = readdir(dir)) != NULL;) {
        uint64_t run = run_folder_read(e->d_name);
        if (run == 0)
            continue;
        store_le64(out + len, run);
        len += 8;
    }
    if (dir != NULL)
        closedir(dir);
    return len;
}

static int make_folder(const char *root, uint64_t run) {
    char name[RUN_FOLDER_MAX];
    run_folder_name(run, name);
    if (mkdir(root, 0700) < 0 && errno != EEXIST)
        return -errno;
    int top = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int all = top < 0 ? -errno : files_folder(top, RUN_FOLDERS, 0700);
    if (top >= 0)
        close(top);
    if (all < 0)
        return all;
    int r = mkdirat(all, name, 0700) < 0 && errno != EEXIST ? -errno : 0;
    close(all);
    return r;
}

int jobfolders_open(const char *root, uint64_t run, bool make, char *path, size_t cap) {
    char name[RUN_FOLDER_MAX];
    struct stat st;
    run_folder_path(run, name);
    if (snprintf(path, cap, "%s%s", root, name) >= (int)cap)
        return -ENAMETOOLONG;
    int r = make ? make_folder(root, run) : 0;
    if (r == 0 && lstat(path, &st) < 0)
        r = -errno;
    return r < 0 ? r : S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

bool jobfolders_remove(const char *root, uint64_t run) {
    char name[RUN_FOLDER_MAX];
    struct stat st;
    run_folder_name(run, name);
    int all = open_all(root);
    if (all < 0)
        return all == -ENOENT;
    files_remove(all, name);
    bool gone = fstatat(all, name, &st, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
    close(all);
    return gone;
}
