/* SPDX-License-Identifier: MIT */
/* Taking away what a cluster leaves behind: see remains.h. */
#include "os/remains.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/files.h"
#include "os/grounds.h"
#include "os/ration.h"

static const char group_file[] = "cgroup", rations_file[] = "rations";

void remains_adopt(void) {
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* ---- processes ---- */

static bool nobody(void *context, pid_t pid) {
    (void)context;
    (void)pid;
    return false;
}

void remains_strangers(bool (*known)(void *context, pid_t pid), void *context) {
    char path[64];
    int pid;
    snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)syscall(SYS_gettid));
    FILE *f = fopen(path, "re");
    while (f != NULL && fscanf(f, "%d", &pid) == 1)
        if (!known(context, pid))
            kill(pid, SIGKILL);
    if (f != NULL)
        fclose(f);
}

/* The death of one may bring us its children: look again after each. */
void remains_children(void) {
    do
        remains_strangers(nobody, NULL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR);
}

/* ---- the folder ---- */

static int path_in(const char *folder, const char *name, char out[PATH_MAX]) {
    int n = snprintf(out, PATH_MAX, "%s/%s", folder, name);
    return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

static int note(const char *folder, const char *file, const char *group) {
    char path[PATH_MAX];
    int r = path_in(folder, file, path);
    if (r < 0)
        return r;
    if (*group == '\0')
        return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    ssize_t len = (ssize_t)strlen(group);
    r = write(fd, group, (size_t)len) == len ? 0 : -EIO;
    close(fd);
    return r;
}

int remains_note_group(const char *folder, const char *group) {
    return note(folder, group_file, group);
}

int remains_note_rations(const char *folder, const char *place) {
    return note(folder, rations_file, place);
}

static void sweep_noted(const char *folder, const char *file, int (*take_away)(const char *path)) {
    char path[PATH_MAX], group[PATH_MAX] = "";
    if (path_in(folder, file, path) < 0)
        return;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return;
    ssize_t len = read(fd, group, sizeof group - 1);
    close(fd);
    if (len > 0 && group[0] == '/' && take_away(group) < 0)
        return; /* the next may have more luck */
    unlink(path);
}

/* "mm", "n12" */
static bool is_daemon(const char *name) {
    size_t digits = strspn(name + 1, "0123456789");
    return strcmp(name, "mm") == 0 || (*name == 'n' && digits > 0 && name[1 + digits] == '\0');
}

void remains_forget(const char *folder) {
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return;
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        static const char *const files[] = {"state", "state.new"};
        char path[PATH_MAX];
        for (size_t i = 0; is_daemon(e->d_name) && i < 2; i++)
            if (path_in(e->d_name, files[i], path) == 0)
                unlinkat(dirfd(dir), path, 0);
        if (is_daemon(e->d_name))
            unlinkat(dirfd(dir), e->d_name, AT_REMOVEDIR);
    }
    closedir(dir);
}

/* Of a node's daemon, launcher, its strobes, or mover: n12.sock, p12.sock, s12.sock, f12.sock; of a command that gave files:
 * c345-0123abcd.sock. */
static bool is_socket(int folder, const char *name) {
    struct stat at;
    const char *end = name + 1 + strspn(name + 1, "0123456789");
    if (strchr("npsfc", *name) == NULL || end == name + 1)
        return false;
    if (*name == 'c' && *end == '-')
        end += 1 + strspn(end + 1, "0123456789abcdef");
    return strcmp(end, ".sock") == 0 && fstatat(folder, name, &at, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISSOCK(at.st_mode);
}

/* Files that were sent to a virtual node: its cache, and what it takes for its file system. */
static void remove_files(int folder, const char *node) {
    int fd = openat(folder, node, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    files_remove(fd, "spool");
    files_remove(fd, "root");
    close(fd);
}

void remains_folder(const char *folder) {
    sweep_noted(folder, group_file, grounds_remove);
    sweep_noted(folder, rations_file, ration_remove);
    DIR *dir = opendir(folder);
    if (dir == NULL)
        return;
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (is_socket(dirfd(dir), e->d_name) || strcmp(e->d_name, "cluster") == 0 ||
            strcmp(e->d_name, "cluster.new") == 0)
            unlinkat(dirfd(dir), e->d_name, 0);
        else if (is_daemon(e->d_name))
            remove_files(dirfd(dir), e->d_name);
    }
    closedir(dir);
}
