/* SPDX-License-Identifier: MIT */
/* How much memory a process may use: see ration.h. */
#include "os/ration.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/spawn.h"

enum { PATIENCE_MS = 10, PATIENCE_TIMES = 200 }; /* for those who were ended to be gone */

enum { FEW_PAGES = 64 };

/* ---- files of a group ---- */

static int put(int folder, const char *name, const char *value) {
    int fd = openat(folder, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = write(fd, value, strlen(value)) < 0 ? -errno : 0;
    close(fd);
    return r;
}

static int put_number(int folder, const char *name, uint64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    return put(folder, name, text);
}

/* "": there is no such file. */
static void get(int folder, const char *name, char *text, size_t size) {
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, size - 1);
    text[n < 0 ? 0 : n] = '\0';
    if (fd >= 0)
        close(fd);
}

/* The number behind this word at the beginning of a line; 0 if there is none. "": the first line is only a number. */
static uint64_t count_of(int folder, const char *name, const char *word) {
    char text[512];
    uint64_t value = 0;
    size_t len = strlen(word);
    get(folder, name, text, sizeof text);
    for (const char *line = text; *line != '\0'; line += strspn(line, "\n")) {
        if (strncmp(line, word, len) == 0 && sscanf(line + len, "%" SCNu64, &value) == 1)
            break;
        line += strcspn(line, "\n");
    }
    return value;
}

/* Is it among these words? */
static bool among(const char *words, const char *separators, const char *word) {
    size_t len = strlen(word);
    for (const char *at = words; *at != '\0'; at += strspn(at, separators)) {
        size_t n = strcspn(at, separators);
        if (n == len && memcmp(at, word, len) == 0)
            return true;
        at += n;
    }
    return false;
}

/* ---- where, in version 1 ---- */

/* mountinfo: id parent device ROOT PLACE options ... - TYPE source OPTIONS */
static bool find_mount(char root[PATH_MAX], char place[PATH_MAX]) {
    FILE *f = fopen("/proc/self/mountinfo", "re");
    char line[2 * PATH_MAX], options[256];
    bool found = false;
    while (f != NULL && !found && fgets(line, sizeof line, f) != NULL) {
        const char *rest = strstr(line, " - cgroup ");
        found = rest != NULL && sscanf(rest, " - cgroup %*s %255s", options) == 1 &&
                among(options, ",", "memory") &&
                sscanf(line, "%*s %*s %*s %4095s %4095s", root, place) == 2;
    }
    if (f != NULL)
        fclose(f);
    return found;
}

/* The group that we are in: "4:memory:/where" */
static bool find_own(char own[PATH_MAX]) {
    FILE *f = fopen("/proc/self/cgroup", "re");
    char line[PATH_MAX + 256];
    bool found = false;
    while (f != NULL && !found && fgets(line, sizeof line, f) != NULL) {
        char *controllers = strchr(line, ':');
        char *path = controllers == NULL ? NULL : strchr(controllers + 1, ':');
        if (path == NULL)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        found =
            among(controllers + 1, ",", "memory") && snprintf(own, PATH_MAX, "%s", path) < PATH_MAX;
    }
    if (f != NULL)
        fclose(f);
    return found;
}

static bool usable(const char *above, const char *below, const char *name, char out[PATH_MAX]) {
    int n = snprintf(out, PATH_MAX, "%s%s", above, below);
    if (n >= PATH_MAX || access(out, W_OK) < 0)
        return false;
    return snprintf(out + n, PATH_MAX - (size_t)n, "/%s", name) < PATH_MAX - n;
}

/* Below the group that we are in: its limits are ours, and not to be got round. Whoever lives in a container may not see
 * that group where the hierarchy is mounted, but see its own as the top. */
int ration_ground(const char *name, char out[PATH_MAX]) {
    char root[PATH_MAX], place[PATH_MAX], own[PATH_MAX];
    if (!find_mount(root, place) || !find_own(own))
        return -ENOENT;
    size_t len = strcmp(root, "/") == 0 ? 0 : strlen(root);
    const char *below = strncmp(own, root, len) == 0 ? own + len : "";
    if (usable(place, strcmp(below, "/") == 0 ? "" : below, name, out) ||
        usable(place, "", name, out))
        return 0;
    return -ENOENT;
}

/* Those below go first. */
static int remove_tree(int above, const char *name) {
    if (unlinkat(above, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    int fd = openat(above, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        int r = -errno;
        if (fd >= 0)
            close(fd);
        return r;
    }
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        if (e->d_type == DT_DIR && e->d_name[0] != '.')
            remove_tree(fd, e->d_name);
    closedir(dir);
    return unlinkat(above, name, AT_REMOVEDIR) < 0 ? -errno : 0;
}

int ration_remove(const char *path) {
    int r = remove_tree(AT_FDCWD, path);
    for (int i = 0; i < PATIENCE_TIMES && r == -EBUSY; i++) {
        poll(NULL, 0, PATIENCE_MS);
        r = remove_tree(AT_FDCWD, path);
    }
    return r;
}

/* ---- what there is ---- */

/* The place of the cluster is made by whichever of its nodes needs it first. */
static int open_place(struct rations *r) {
    char *slash = strrchr(r->place, '/');
    *slash = '\0';
    int made = mkdir(r->place, 0755) < 0 && errno != EEXIST ? -errno : 0;
    *slash = '/';
    if (made < 0 || (mkdir(r->place, 0755) < 0 && errno != EEXIST))
        return made < 0 ? made : -errno;
    r->folder = spawn_aside(open(r->place, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return r->folder < 0 || faccessat(r->folder, "memory.limit_in_bytes", W_OK, 0) < 0 ? -errno : 0;
}

static bool has_memory(int folder, const char *list) {
    char text[256];
    get(folder, list, text, sizeof text);
    return among(text, " \n", "memory");
}

/* A group has a controller if the one above it passes it on: the cluster's to the node's, and whichever it lies in to the
 * cluster's. The latter mostly does already, and perhaps is not ours to change. */
static bool pass_on(const struct cgroups *pool) {
    int node = pool->folder;
    if (!has_memory(node, "cgroup.controllers") &&
        put(node, "../cgroup.subtree_control", "+memory") < 0 &&
        put(node, "../../cgroup.subtree_control", "+memory") == 0)
        put(node, "../cgroup.subtree_control", "+memory");
    put(node, "cgroup.subtree_control", "+memory");
    return has_memory(node, "cgroup.subtree_control");
}

enum ration_means rations_means(struct rations *r, const struct cgroups *pool) {
    if (r->known)
        return r->means;
    r->known = true;
    if (pool != NULL && pass_on(pool))
        r->means = RATION_UNIFIED;
    else if (r->place[0] != '\0' && open_place(r) == 0)
        r->means = RATION_LEGACY;
    return r->means;
}

void rations_init(struct rations *r, const char *place) {
    *r = (struct rations){.folder = -1};
    if (place == NULL)
        return;
    r->known = strcmp(place, RATIONS_NONE) == 0;
    if (r->known || strchr(place, '/') == NULL ||
        snprintf(r->place, sizeof r->place, "%s", place) >= PATH_MAX)
        r->place[0] = '\0';
    else if (access(place, F_OK) == 0)
        ration_remove(place);
}

void rations_fini(struct rations *r) {
    if (r->folder < 0)
        return;
    close(r->folder);
    r->folder = -1;
    ration_remove(r->place);
}

/* ---- one ---- */

/* Where there is no swap there are no such files, and need not be. */
static int limit(const struct rations *r, int folder, uint64_t bytes) {
    bool legacy = r->means == RATION_LEGACY;
    int e = put_number(folder, legacy ? "memory.limit_in_bytes" : "memory.max", bytes);
    if (e < 0)
        return e;
    if (legacy)
        put_number(folder, "memory.memsw.limit_in_bytes", bytes);
    else {
        put(folder, "memory.swap.max", "0");
        put(folder, "memory.oom.group", "1");
    }
    return 0;
}

/* The kernel ends one of a group of version 1; that the others follow is our affair, so it has to tell us. Not every kernel
 * does. */
static int open_alarm(int folder) {
    char text[32];
    int control = openat(folder, "memory.oom_control", O_RDONLY | O_CLOEXEC);
    int alarm = control < 0 ? -1 : spawn_aside(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    snprintf(text, sizeof text, "%d %d", alarm, control);
    if (alarm >= 0 && put(folder, "cgroup.event_control", text) < 0) {
        close(alarm);
        alarm = -1;
    }
    if (control >= 0)
        close(control);
    return alarm;
}

static int open_ration(const struct rations *r, struct ration *a, int above, uint64_t bytes) {
    if (mkdirat(above, a->name, 0755) < 0)
        return -errno;
    a->folder = spawn_aside(openat(above, a->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (a->folder < 0)
        return -errno;
    int e = limit(r, a->folder, bytes);
    if (e < 0 || r->means == RATION_UNIFIED)
        return e;
    a->alarm = open_alarm(a->folder);
    a->door = spawn_aside(openat(a->folder, "cgroup.procs", O_WRONLY | O_CLOEXEC));
    return a->door < 0 ? -errno : 0;
}

int ration_make(struct rations *r, struct ration *ret, struct cgroup *run, uint32_t index,
                uint64_t bytes) {
    int above = r->means == RATION_UNIFIED ? run->folder : r->folder, e = 0;
    *ret = RATION_EMPTY;
    ret->bytes = bytes;
    snprintf(ret->name, sizeof ret->name, "p%" PRIu32,
             r->means == RATION_UNIFIED ? index : r->count++);
    if (r->means == RATION_UNIFIED && !run->divided) {
        e = put(run->folder, "cgroup.subtree_control", "+memory");
        run->divided = e == 0;
    }
    if (e == 0)
        e = open_ration(r, ret, above, bytes);
    if (e < 0)
        ration_end(r, ret, run);
    return e;
}

void ration_end(struct rations *r, struct ration *a, const struct cgroup *run) {
    int above = r->means == RATION_UNIFIED ? run->folder : r->folder;
    const int fds[] = {a->folder, a->door, a->alarm};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    if (a->name[0] != '\0')
        remove_tree(above, a->name);
    *a = RATION_EMPTY;
}

/* The kernel ends somebody for want of a few pages, never of many: was as much ever in use? (How often a limit was hit is
 * not counted by every kernel.) */
static bool close_to(const struct ration *a, const char *most) {
    return count_of(a->folder, most, "") + FEW_PAGES * (uint64_t)sysconf(_SC_PAGESIZE) >= a->bytes;
}

/* Who is ended because the whole machine lacks memory, or a group above, is counted among those ended too, but it was not the
 * limit. */
bool ration_exceeded(const struct rations *r, const struct ration *a) {
    if (a->folder < 0)
        return false;
    if (r->means == RATION_UNIFIED)
        return count_of(a->folder, "memory.events", "oom_kill ") > 0 &&
               count_of(a->folder, "memory.events", "oom ") > 0;
    return count_of(a->folder, "memory.oom_control", "oom_kill ") > 0 &&
           (close_to(a, "memory.max_usage_in_bytes") ||
            close_to(a, "memory.memsw.max_usage_in_bytes"));
}
