/* SPDX-License-Identifier: MIT */
/* CARMI for programs: processes on hosts. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/carmi_inside.h"
#include "os/which.h"
#include "wire/spec.h"

enum { NAME_BYTES = 40 };

extern char **environ;

/* Strings one behind the other, each with its NUL, and one more in the place of another of the same name; NULL: there is no memory. */
static uint8_t *join(char *const strings[], const char *more, size_t *ret_len) {
    size_t len = strlen(more) + 1, name = strcspn(more, "=") + 1;
    for (size_t i = 0; strings[i] != NULL; i++)
        len += strlen(strings[i]) + 1;
    uint8_t *all = malloc(len + 1);
    *ret_len = 0;
    for (size_t i = 0; all != NULL && strings[i] != NULL; i++) {
        size_t each = strlen(strings[i]) + 1;
        if (*more != '\0' && strncmp(strings[i], more, name) == 0)
            continue;
        memcpy(all + *ret_len, strings[i], each);
        *ret_len += each;
    }
    if (all != NULL && *more != '\0') {
        memcpy(all + *ret_len, more, strlen(more) + 1);
        *ret_len += strlen(more) + 1;
    }
    return all;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* As whoever starts it there will look for it: a path is absolute. */
static bool find_program(const char *executable, const char *folder, char *out, size_t room) {
    bool whole = executable[0] == '/' || strchr(executable, '/') == NULL;
    int len = snprintf(out, room, "%s%s%s", whole ? "" : folder, whole ? "" : "/", executable);
    return len > 0 && (size_t)len < room;
}

static mode_t mask(void) {
    mode_t now = umask(0);
    umask(now);
    return now;
}

/* The file that would be executed here, as whoever gives it will look for it: no part of its path is a link. NULL: there is none. */
static char *own_file(const char *program, const char *folder) {
    char path[PATH_MAX];
    if (which(program, getenv("PATH"), folder, path) < 0 || access(path, R_OK) < 0)
        return NULL;
    return realpath(path, NULL);
}

/* Length of the spec, or -errno. A program that is here is looked for on its host before it begins. */
static long make_spec(const struct carmi *c, struct task *t, char *const argv[], struct room out) {
    char folder[PATH_MAX], program[PATH_MAX], parent[80];
    char *const alone[] = {t->executable, NULL};
    if (getcwd(folder, sizeof folder) == NULL ||
        !find_program(t->executable, folder, program, sizeof program))
        return -ENAMETOOLONG;
    t->program = own_file(program, folder);
    struct spec spec = {.umask = mask(),
                        .folder = bytes_from_str(folder),
                        .program = bytes_from_str(program),
                        .seen = t->program != NULL};
    snprintf(parent, sizeof parent, CARMI_PARENT "=%" PRIu32 ":%" PRIu64, c->steward.head,
             c->post.self);
    uint8_t *arguments =
        join(argv != NULL && argv[0] != NULL ? argv : alone, "", &spec.arguments.len);
    uint8_t *environment = join(environ, parent, &spec.environment.len);
    spec.arguments.at = arguments;
    spec.environment.at = environment;
    long len = arguments == NULL || environment == NULL ? -ENOMEM : spec_encode(&spec, out);
    free(arguments);
    free(environment);
    return len == -ENOBUFS ? -E2BIG : len;
}

static int keep_spec(const struct carmi *c, struct task *t, char *const argv[]) {
    uint8_t *spec = malloc(PETITION_BYTES_MAX);
    long len = spec == NULL ? -ENOMEM : make_spec(c, t, argv, room_of(spec, PETITION_BYTES_MAX));
    uint8_t *shorter = len <= 0 ? NULL : realloc(spec, (size_t)len);
    t->spec = shorter != NULL ? shorter : spec;
    t->spec_len = len < 0 ? 0 : (size_t)len;
    return len < 0 ? (int)len : 0;
}

int task_order(struct steward *s, const struct task *t, struct bytes spec, struct bytes files) {
    const char *name = base_name(t->executable);
    size_t name_len = strlen(name) < NAME_BYTES ? strlen(name) : NAME_BYTES;
    union message m = {.submit = {.kind = JOB_STEP,
                                  .flags = JOB_DETACHED | (t->program != NULL ? JOB_LOOK : 0),
                                  .nodes = 1,
                                  .ppn = 1,
                                  .procs = 1,
                                  .inside = t->host,
                                  .name = bytes_of(name, name_len),
                                  .on = &s->none,
                                  .exclude = &s->none,
                                  .files = files,
                                  .spec = spec}};
    if (errand_add(s, ERRAND_SPAWN, MESSAGE_SUBMIT, &m, t->call) == NULL)
        return s->failed ? -ENOMEM : -E2BIG;
    return 0;
}

static struct task *add_task(struct steward *s, const struct call *call, struct host *h,
                             const char *executable) {
    struct task *t = calloc(1, sizeof *t);
    char *name = t == NULL ? NULL : steward_copy(s, bytes_from_str(executable));
    if (name == NULL) {
        free(t);
        return NULL;
    }
    t->call = call->id;
    t->host = h->job;
    t->executable = name;
    h->tasks++;
    list_push_back(&s->tasks, &t->at);
    return t;
}

static int begin_task(struct carmi *c, const struct call *call, struct host *h,
                      const char *executable, char *const argv[]) {
    struct steward *s = &c->steward;
    struct task *t = add_task(s, call, h, executable);
    int r = t == NULL ? -ENOMEM : keep_spec(c, t, argv);
    if (r == 0)
        r = task_order(s, t, bytes_of(t->spec, t->spec_len), (struct bytes){0});
    if (r < 0 && t != NULL)
        task_free(s, t);
    return r;
}

/* On no host: why there is none. */
static carmi_request spawn_on(struct carmi *c, struct host *h, const char *none,
                              const char *executable, char *const argv[], int tag) {
    struct steward *s = &c->steward;
    struct call *call = call_add(s, CALL_SPAWN, tag);
    if (call == NULL)
        return -ENOMEM;
    int r = h == NULL ? 0 : begin_task(c, call, h, executable, argv);
    carmi_request id = call->id;
    if (h == NULL)
        letter_failed(s, letter_add(s, call, CARMI_SPAWNED), ESRCH, bytes_from_str(none));
    if (h == NULL || r < 0)
        call_end(call);
    carmi_pump(c);
    return r < 0 ? r : id;
}

carmi_request carmi_host_spawn(struct carmi *c, const char *executable, char *const argv[],
                               carmi_host host, int tag) {
    carmi_pump(c);
    struct host *h = host_find(&c->steward, host);
    bool usable = h != NULL && h->leaves == 0 && h->stage == STAGE_RUNS;
    const char *none = h != NULL && h->leaves == 0 && h->stage == STAGE_SUSPENDED
                           ? "that host is suspended"
                           : "the program has no such host";
    return spawn_on(c, usable ? h : NULL, none, executable, argv, tag);
}

carmi_request carmi_class_spawn(struct carmi *c, const char *executable, char *const argv[],
                                const char *class_name, int tag) {
    struct host *best = NULL;
    carmi_pump(c);
    LIST_EACH (l, &c->steward.hosts) {
        struct host *h = CONTAINER_OF(l, struct host, at);
        bool usable = h->stage == STAGE_RUNS && h->leaves == 0 && class_name != NULL &&
                      strcmp(h->class_name, class_name) == 0;
        if (usable && (best == NULL || h->tasks < best->tasks))
            best = h;
    }
    return spawn_on(c, best, "the program has no host of that class that runs", executable, argv,
                    tag);
}
