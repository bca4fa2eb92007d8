/* SPDX-License-Identifier: MIT */
/* A master's own server: see wodi_server.h. */
#include "client/wodi_server.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* An exit status of storm-wodi: no workers are to be had. The name of a socket must not be long. */
enum { HOPELESS = 3, RESTARTS_MAX = 20, FOLDER_MAX = 88, WORKERS_USUAL = 1024 };

/* ---- where it is ---- */

static bool is_there(struct wodi_server *s, const char *folder, size_t len, const char *below) {
    int n = snprintf(s->program, sizeof s->program, "%.*s%sstorm-wodi", (int)len, folder, below);
    return n > 0 && (size_t)n < sizeof s->program && access(s->program, X_OK) == 0;
}

/* Beside a file, as built, or where the one is installed if the other is. */
static bool is_near(struct wodi_server *s, const char *file) {
    static const char *const below[] = {"/", "/../libexec/storm/", "/../../libexec/storm/"};
    const char *slash = strrchr(file, '/');
    for (size_t i = 0; slash != NULL && i < sizeof below / sizeof *below; i++)
        if (is_there(s, file, (size_t)(slash - file), below[i]))
            return true;
    return false;
}

static bool find_program(struct wodi_server *s) {
    static const char *const usual[] = {"/usr/local/libexec/storm/", "/usr/libexec/storm/"};
    const char *given = getenv("STORM_WODI_SERVER");
    char self[PATH_MAX];
    Dl_info library;
    if (given != NULL && *given)
        return snprintf(s->program, sizeof s->program, "%s", given) < (int)sizeof s->program;
    if (dladdr((void *)(uintptr_t)wodi_init, &library) != 0 && library.dli_fname != NULL &&
        is_near(s, library.dli_fname))
        return true;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    if (is_near(s, self))
        return true;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (is_there(s, "", 0, usual[i]))
            return true;
    return false;
}

/* ---- its folder ---- */

static int make_folder(struct wodi_server *s, const char *given) {
    if (given != NULL && strlen(given) >= FOLDER_MAX)
        return -ENAMETOOLONG;
    if (given != NULL) {
        snprintf(s->folder, sizeof s->folder, "%s", given);
        return 0;
    }
    const char *tmp = getenv("TMPDIR");
    if (tmp == NULL || *tmp != '/' || strlen(tmp) > FOLDER_MAX - sizeof "/storm-wodi-XXXXXX")
        tmp = "/tmp";
    snprintf(s->folder, sizeof s->folder, "%.80s/storm-wodi-XXXXXX", tmp);
    s->own_folder = mkdtemp(s->folder) != NULL;
    return s->own_folder ? 0 : -errno;
}

static void remove_folder(const struct wodi_server *s) {
    DIR *d = opendir(s->folder);
    if (d == NULL)
        return;
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
    rmdir(s->folder);
}

/* ---- what it is told ---- */

static int describe(struct wodi_server *s, unsigned i, const struct wodi_class *c) {
    unsigned most = c->need > 0 ? c->need : WORKERS_USUAL;
    unsigned least = c->least < most ? c->least : most;
    const char *expression = c->expression != NULL ? c->expression : "";
    int n = snprintf(s->hires[i], sizeof s->hires[i], "%u:%u:%u:%s", least, most, c->processors,
                     expression);
    return (size_t)n < sizeof s->hires[i] ? 0 : -ENAMETOOLONG;
}

static int make_arguments(struct wodi_server *s, const struct wodi_options *o) {
    static const struct wodi_class usual = {.least = 1};
    unsigned classes = o->class_count > 0 ? o->class_count : 1;
    size_t words = 0, n = 0;
    while (o->worker[words] != NULL)
        words++;
    s->argv = calloc(8 + 2 * (size_t)classes + words, sizeof *s->argv);
    if (s->argv == NULL)
        return -ENOMEM;
    static char folder[] = "--folder", leash[] = "--leash", hire[] = "--hire", end[] = "--";
    s->argv[n++] = s->program;
    s->argv[n++] = folder;
    s->argv[n++] = s->folder;
    s->argv[n++] = leash;
    s->argv[n++] = s->leash_text;
    for (unsigned i = 0; i < classes; i++) {
        int r = describe(s, i, o->class_count > 0 ? &o->classes[i] : &usual);
        if (r < 0)
            return r;
        s->argv[n++] = hire;
        s->argv[n++] = s->hires[i];
    }
    s->argv[n++] = end;
    s->words = &s->argv[n];
    for (size_t i = 0; i < words; i++)
        if ((s->words[i] = strdup(o->worker[i])) == NULL)
            return -ENOMEM;
    return 0;
}

/* ---- its life ---- */

extern char **environ;

/* A mask of the program's is not for it. */
static int spawn(struct wodi_server *s, int end) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    snprintf(s->leash_text, sizeof s->leash_text, "%d", end);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, end, end); /* it stays open there */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &none);
    int r = posix_spawn(&s->pid, s->program, &actions, &attributes, s->argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (r != 0)
        s->pid = 0;
    return -r;
}

/* How it ended: -ECHILD: no workers are to be had; -EAGAIN: it was killed; -EIO: anything else, or it is not known. */
static int reap(struct wodi_server *s) {
    int status = 0;
    pid_t got;
    do
        got = waitpid(s->pid, &status, 0);
    while (got < 0 && errno == EINTR);
    s->pid = 0;
    if (got > 0 && WIFEXITED(status) && WEXITSTATUS(status) == HOPELESS)
        return -ECHILD;
    return got > 0 && WIFSIGNALED(status) ? -EAGAIN : -EIO;
}

static bool read_line(struct wodi_server *s) {
    static const char before[] = "STORM_WODI=";
    char text[WODI_SERVER_LINE + sizeof before];
    size_t len = 0;
    while (len < sizeof text - 1 && memchr(text, '\n', len) == NULL) {
        ssize_t n = read(s->leash, text + len, sizeof text - 1 - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        len += (size_t)n;
    }
    text[len] = 0;
    text[strcspn(text, "\n")] = 0;
    return strncmp(text, before, strlen(before)) == 0 &&
           snprintf(s->line, sizeof s->line, "%s", text + strlen(before)) < (int)sizeof s->line;
}

static int begin_once(struct wodi_server *s) {
    int ends[2];
    if (s->leash >= 0)
        close(s->leash);
    s->leash = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    int r = spawn(s, ends[1]);
    close(ends[1]);
    s->leash = ends[0];
    return r == 0 && !read_line(s) ? reap(s) : r;
}

/* It may be killed before it has said where it is: that is one of its lives, too. */
static int begin(struct wodi_server *s) {
    int r = begin_once(s);
    while (r == -EAGAIN && s->restarts++ < RESTARTS_MAX)
        r = begin_once(s);
    return r == -EAGAIN ? -EIO : r;
}

int wodi_server_start(struct wodi_server *s, const struct wodi_options *o) {
    *s = (struct wodi_server){.leash = -1};
    if (o->worker[0] == NULL)
        return -EINVAL;
    if (getenv("STORM_JOB_ID") == NULL || !find_program(s))
        return -ENOENT;
    int r = make_folder(s, o->folder);
    if (r == 0)
        r = make_arguments(s, o);
    return r < 0 ? r : begin(s);
}

int wodi_server_look(struct wodi_server *s) {
    int status = 0;
    if (s->pid == 0)
        return -EIO;
    pid_t got = waitpid(s->pid, &status, WNOHANG);
    if (got == 0 || (got < 0 && kill(s->pid, 0) == 0))
        return 0;
    s->pid = 0;
    if (got > 0 && WIFEXITED(status) && WEXITSTATUS(status) == HOPELESS)
        return -ECHILD;
    return s->restarts++ >= RESTARTS_MAX ? -EIO : begin(s);
}

void wodi_server_end(struct wodi_server *s) {
    if (s->leash >= 0)
        close(s->leash);
    if (s->pid > 0)
        reap(s);
    if (s->own_folder)
        remove_folder(s);
    for (char **w = s->words; w != NULL && *w != NULL; w++)
        free(*w);
    free(s->argv);
    *s = (struct wodi_server){.leash = -1};
}
