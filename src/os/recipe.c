/* SPDX-License-Identifier: MIT */
/* What the processes of a group have in common: see recipe.h. */
#include "os/recipe.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "os/jobfolders.h"
#include "os/outfits.h"
#include "os/mark.h"
#include "os/which.h"
#include "wire/message.h"
#include "wire/outfit.h"

/* The variables that are ours, whatever the submitter had. */
enum variable {
    VARIABLE_JOB_ID,
    VARIABLE_RANK,
    VARIABLE_SIZE,
    VARIABLE_NODE,
    VARIABLE_NODE_ID,
    VARIABLE_NODES,
    VARIABLE_LOCAL_RANK,
    VARIABLE_LOCAL_SIZE,
    VARIABLE_ARRAY_INDEX,
    VARIABLE_PETITION,
    VARIABLE_ADDRESS,
    VARIABLE_PROGRAM,
    VARIABLE_PROGRAM_RANK,
    VARIABLE_PROGRAM_SIZE,
    VARIABLES
};

static const char *const names[VARIABLES] = {
    [VARIABLE_JOB_ID] = "STORM_JOB_ID=",
    [VARIABLE_RANK] = "STORM_RANK=",
    [VARIABLE_SIZE] = "STORM_SIZE=",
    [VARIABLE_NODE] = "STORM_NODE=",
    [VARIABLE_NODE_ID] = "STORM_NODE_ID=",
    [VARIABLE_NODES] = "STORM_NODES=",
    [VARIABLE_LOCAL_RANK] = "STORM_LOCAL_RANK=",
    [VARIABLE_LOCAL_SIZE] = "STORM_LOCAL_SIZE=",
    [VARIABLE_ARRAY_INDEX] = "STORM_ARRAY_INDEX=",
    [VARIABLE_PETITION] = "STORM_PETITION=",
    [VARIABLE_ADDRESS] = "STORM_ADDRESS=",
    [VARIABLE_PROGRAM] = "STORM_PROGRAM=",
    [VARIABLE_PROGRAM_RANK] = "STORM_PROGRAM_RANK=",
    [VARIABLE_PROGRAM_SIZE] = "STORM_PROGRAM_SIZE=",
};

/* The same for the path of the job's folder, which may be longer than all of these. */
static const char own_name[] = "STORM_JOB_DIR=";
static const char gpus_name[] = "CUDA_VISIBLE_DEVICES=";
enum { GPU_DIGITS = 5 };

enum { LIMITS_OURS = 2 }; /* that may be added: on memory, on cores */

enum {
    NAME_BYTES = 24,
    DIGITS = 24
}; /* the longest name, the longest number, with some to spare */

static bool ours(const char *entry) {
    if (strncmp(entry, "STORM_", 6) != 0)
        return false;
    if (strncmp(entry, own_name, strlen(own_name)) == 0)
        return true;
    for (int v = 0; v < VARIABLES; v++)
        if (strncmp(entry, names[v], strlen(names[v])) == 0)
            return true;
    return false;
}

/* ---- one piece of memory for all of it ---- */

/* Where the next string or vector goes. */
struct heap_cut {
    char *at;
};

static void *cut(struct heap_cut *c, size_t len) {
    void *at = c->at;
    c->at += len;
    return at;
}

static char *cut_bytes(struct heap_cut *c, struct bytes from) {
    char *at = cut(c, from.len + 1);
    if (from.len > 0)
        memcpy(at, from.at, from.len);
    at[from.len] = '\0';
    return at;
}

static uint64_t number(const struct recipe *r, enum variable v) {
    switch (v) {
    case VARIABLE_JOB_ID:
        return run_job(r->setup.run);
    case VARIABLE_SIZE:
        return r->setup.size;
    case VARIABLE_NODE_ID:
        return r->setup.node;
    case VARIABLE_LOCAL_SIZE:
        return r->setup.count;
    case VARIABLE_ARRAY_INDEX:
        return r->setup.array;
    case VARIABLE_PETITION:
        return (uint64_t)r->bell;
    case VARIABLE_PROGRAM:
        return r->index;
    case VARIABLE_PROGRAM_SIZE:
        return r->ranks;
    default:
        return 0; /* the ranks: filled in for each process */
    }
}

/* Of those that are no numbers. */
static struct bytes word_of(const struct recipe *r, enum variable v) {
    return v == VARIABLE_NODE                       ? r->setup.node_name
           : v == VARIABLE_NODES                    ? r->setup.node_list
           : v == VARIABLE_ADDRESS && r->at != NULL ? bytes_from_str(r->at)
                                                    : bytes_of(NULL, 0);
}

static char *cut_variable(struct heap_cut *c, struct recipe *r, enum variable v) {
    struct text t;
    struct bytes word = word_of(r, v);
    char *at = cut(c, NAME_BYTES + DIGITS + word.len);
    text_init(&t, at, NAME_BYTES + DIGITS + word.len);
    text_str(&t, names[v]);
    if (v == VARIABLE_NODE || v == VARIABLE_NODES || v == VARIABLE_ADDRESS)
        text_strn(&t, (const char *)word.at, word.len);
    else
        text_u64(&t, number(r, v));
    if (v == VARIABLE_RANK)
        r->rank = at + strlen(names[v]);
    if (v == VARIABLE_LOCAL_RANK)
        r->local = at + strlen(names[v]);
    if (v == VARIABLE_PROGRAM_RANK)
        r->turn = at + strlen(names[v]);
    return at;
}

static bool is_told(const struct recipe *r, enum variable v) {
    if (v == VARIABLE_ARRAY_INDEX)
        return r->setup.array != 0;
    if (v == VARIABLE_PETITION)
        return r->bell > 0;
    if (v == VARIABLE_ADDRESS)
        return r->bell > 0 && r->at != NULL;
    return v < VARIABLE_PROGRAM || r->ranks != 0;
}

static const char *value_in(struct bytes list, const char *name, size_t len) {
    size_t at = 0;
    for (const char *s; (s = strings_next(list, &at)) != NULL;)
        if (strncmp(s, name, len) == 0 && s[len] == '=')
            return s + len + 1;
    return NULL;
}

static bool is_changed(const struct recipe *r, const char *entry) {
    return r->changed.len > 0 && value_in(r->changed, entry, strcspn(entry, "=")) != NULL;
}

/* If GPUs are handed out. */
static bool is_gpus(const struct recipe *r, const char *entry) {
    return r->gpus != NULL && strncmp(entry, gpus_name, strlen(gpus_name)) == 0;
}

static void make_gpus(struct recipe *r, uint32_t count) {
    if (!r->spec.gpus || count == 0)
        return;
    r->gpu_count = count;
    r->gpus = malloc(sizeof gpus_name + (size_t)count * GPU_DIGITS);
    if (r->gpus == NULL)
        r->error = -ENOMEM;
    else
        memcpy(r->gpus, gpus_name, sizeof gpus_name);
}

/* What was given without what is ours, then what is ours. */
static void fill_environment(struct recipe *r, struct heap_cut *c) {
    size_t at = 0;
    char **next = r->environment;
    for (const char *s; (s = strings_next(r->spec.environment, &at)) != NULL;)
        if (!ours(s) && !is_changed(r, s) && !is_gpus(r, s))
            *next++ = (char *)s;
    at = 0;
    for (const char *s; (s = strings_next(r->changed, &at)) != NULL;)
        if (!ours(s) && !is_gpus(r, s))
            *next++ = (char *)s;
    for (enum variable v = 0; v < VARIABLES; v++)
        if (is_told(r, v))
            *next++ = cut_variable(c, r, v);
    if (r->own != NULL)
        *next++ = r->own;
    if (r->gpus != NULL)
        *next++ = r->gpus;
    *next = NULL;
}

static void fill_arguments(struct recipe *r) {
    size_t at = 0;
    char **next = r->vector + 1;
    for (const char *s; (s = strings_next(r->spec.arguments, &at)) != NULL;)
        *next++ = (char *)s;
    *next = NULL;
}

/* Only the limits that the process would not have anyway. */
static void fill_limits(struct recipe *r, const struct inherited *have) {
    struct rlimit_spec l;
    for (uint32_t i = 0; spec_limit_load(&l, r->spec.limits, i); i++) {
        if (l.resource < RLIM_NLIMITS && have->limits[l.resource].rlim_cur == l.soft &&
            have->limits[l.resource].rlim_max == l.hard)
            continue;
        r->limits[r->limit_count++] = (struct recipe_limit){
            .resource = l.resource, .limit = {.rlim_cur = l.soft, .rlim_max = l.hard}};
    }
}

/* As large as it may be. */
static void raise_cores(struct recipe *r, const struct inherited *have) {
    uint32_t i = 0;
    while (i < r->limit_count && r->limits[i].resource != RLIMIT_CORE)
        i++;
    if (i == r->limit_count)
        r->limits[r->limit_count++] =
            (struct recipe_limit){.resource = RLIMIT_CORE, .limit = have->limits[RLIMIT_CORE]};
    r->limits[i].limit.rlim_cur = r->limits[i].limit.rlim_max;
}

/* ---- the path ---- */

static const char *variable_of(const struct recipe *r, const char *name) {
    const char *value = value_in(r->changed, name, strlen(name));
    return value != NULL ? value : value_in(r->spec.environment, name, strlen(name));
}

static void find_program(struct recipe *r) {
    char path[PATH_MAX], name[NAME_MAX + 1];
    struct bytes p = r->spec.program;
    snprintf(name, sizeof name, "%.*s", (int)p.len, (const char *)p.at);
    r->error =
        p.len > NAME_MAX ? -ENAMETOOLONG : which(name, variable_of(r, "PATH"), r->folder, path);
    if (r->error < 0)
        return;
    r->program = strdup(path);
    r->error = r->program == NULL ? -ENOMEM : 0;
}

/* The arguments of the loader, in place of the program's own: a vector, and behind it what it points to. */
static int dress_arguments(struct recipe *r, const struct outfit *o) {
    const char *path = variable_of(r, "LD_LIBRARY_PATH");
    struct bytes own = r->spec.arguments;
    size_t bytes = own.len + o->stubborn.len * 2 + 8 * PATH_MAX +
                   (path != NULL ? strlen(path) : 0) + strings_count(o->stubborn) * PATH_MAX;
    size_t pointers = (strings_count(own) + 16) * sizeof(char *);
    char *memory = malloc(pointers + bytes);
    if (memory == NULL)
        return -ENOMEM;
    r->dressed = memory;
    long len = outfit_arguments(o, own, path != NULL ? path : "",
                                room_of((uint8_t *)memory + pointers, bytes));
    if (len < 0)
        return (int)len;
    size_t at = 0;
    char **next = r->vector = (char **)(void *)memory;
    next++;
    for (const char *s; (s = strings_next(bytes_of(memory + pointers, (size_t)len), &at)) != NULL;)
        *next++ = (char *)s;
    *next = NULL;
    return 0;
}

/* One that brings its libraries is started by its own loader. */
static int dress(struct recipe *r, const char *objects) {
    char folder[PATH_MAX], file[PATH_MAX];
    int e = outfits_make(objects, r->spec.outfit, folder, sizeof folder);
    if (e < 0)
        return e;
    const char *name = strrchr(r->program, '/') + 1;
    struct outfit o = {.folder = bytes_from_str(folder),
                       .program = bytes_from_str(name),
                       .stubborn = r->spec.stubborn,
                       .argv0 = r->spec.argv0};
    e = outfit_file(&o, file, sizeof file);
    if (e == 0)
        e = dress_arguments(r, &o);
    if (e < 0)
        return e;
    free(r->program);
    r->program = strdup(file);
    return r->program == NULL ? -ENOMEM : 0;
}

/* One that was sent to the node. If it is not as it came nobody runs it: it will be sent again. */
static void choose_image(struct recipe *r, const char *objects) {
    r->step = SPAWN_IMAGE;
    r->error = -ENOENT;
    if (objects == NULL)
        return;
    if (asprintf(&r->program, "%s/%.*s", objects, (int)r->spec.image.len,
                 (const char *)r->spec.image.at) < 0) {
        r->program = NULL;
        r->error = -ENOMEM;
        return;
    }
    r->error = mark_look(r->program);
    if (r->error == 0 && r->spec.outfit.len > 0)
        r->error = dress(r, objects);
}

static void choose_program(struct recipe *r) {
    struct bytes p = r->spec.program;
    if (memchr(p.at, '/', p.len) == NULL) {
        find_program(r);
        return;
    }
    r->program = strndup((const char *)p.at, p.len);
    r->error = r->program == NULL ? -ENOMEM : 0;
}

/* ---- a debugger ---- */

/* What starts it, the program's file, and then the program's own arguments as it would have had them. */
static int fill_debugging(struct recipe *r) {
    size_t at = 0, count = strings_count(r->spec.debugger);
    char **own = r->vector + 2; /* behind the name that it has for itself */
    while (own[at] != NULL)
        at++;
    r->debugging = calloc(count + at + 2, sizeof(char *));
    if (r->debugging == NULL)
        return -ENOMEM;
    char **next = r->debugging;
    at = 0;
    for (const char *s; (s = strings_next(r->spec.debugger, &at)) != NULL;)
        *next++ = (char *)s;
    *next++ = r->program;
    while (*own != NULL)
        *next++ = *own++;
    return 0;
}

/* ---- life ---- */

static size_t entries(const struct spec *s, struct bytes changed) {
    return strings_count(s->environment) + strings_count(changed) + VARIABLES + 3;
}

static size_t room_for(const struct setup *setup, const struct spec *spec, struct bytes changed) {
    return (strings_count(spec->arguments) + 2 + entries(spec, changed)) * sizeof(char *) +
           (spec->limits.len / SPEC_LIMIT_BYTES + LIMITS_OURS) * sizeof(struct recipe_limit) +
           spec->folder.len + 1 + VARIABLES * (NAME_BYTES + DIGITS) + setup->node_name.len +
           setup->node_list.len + INET6_ADDRSTRLEN + 16;
}

/* The folder of the job. If files were sent to it and it is not there, neither are they: they will be sent again. */
static int open_own(struct recipe *r, const char *root) {
    char path[PATH_MAX];
    if (r->spec.own == OWN_NONE)
        return 0;
    int e = root == NULL
                ? -ENOENT
                : jobfolders_open(root, r->setup.run, r->spec.own == OWN_MADE, path, sizeof path);
    if (e < 0)
        return e;
    if (asprintf(&r->own, "%s%s", own_name, path) < 0) {
        r->own = NULL;
        return -ENOMEM;
    }
    if (r->spec.inside)
        r->folder = r->own + strlen(own_name);
    return 0;
}

static void fill(struct recipe *r, const struct inherited *have, struct heap_cut c) {
    r->vector = cut(&c, (strings_count(r->spec.arguments) + 2) * sizeof(char *));
    r->environment = cut(&c, entries(&r->spec, r->changed) * sizeof(char *));
    r->limits = cut(&c, (r->spec.limits.len / SPEC_LIMIT_BYTES + LIMITS_OURS) *
                            sizeof(struct recipe_limit));
    if (r->spec.folder.len > 0)
        r->folder = cut_bytes(&c, r->spec.folder);
    int own = open_own(r, have->root);
    make_gpus(r, have->gpus);
    r->bell = have->bell;
    r->at = have->at;
    fill_arguments(r);
    fill_environment(r, &c);
    fill_limits(r, have);
    if (r->spec.cores)
        raise_cores(r, have);
    r->umask = r->spec.umask != have->umask;
    r->each = have->each;
    if (own < 0) {
        r->step = r->spec.own == OWN_FILLED ? SPAWN_IMAGE : SPAWN_FOLDER;
        r->error = own;
    } else if (r->spec.image.len > 0) {
        choose_image(r, have->objects);
    } else {
        choose_program(r);
    }
    if (r->error == 0 && r->spec.debugger.len > 0)
        r->error = fill_debugging(r);
}

static void fill_behind(struct recipe *r, const struct inherited *have, char *at) {
    fill(r, have, (struct heap_cut){.at = at + (-(uintptr_t)at & (sizeof(max_align_t) - 1))});
}

/* ---- several programs ---- */

/* The spec as it is for the processes of this program. */
static void assume(struct spec *s, const struct spec_program *p) {
    spec_take_files(s, p);
    s->program = p->program;
    s->arguments = p->arguments;
    if (p->folder.len > 0) {
        s->folder = p->folder;
        s->inside = false;
    }
}

/* Which of the processes here it is for, from this one on: ranks of a node ascend, and so do those of programs. */
static void dedicate(struct recipe *r, const struct spec_program *p, uint32_t from) {
    r->ranks = p->ranks;
    r->index = p->index;
    r->first = p->first;
    r->changed = p->environment;
    assume(&r->spec, p);
    r->end = from;
    while (r->end < r->setup.count && setup_rank(&r->setup, r->end) - p->first < p->ranks)
        r->end++;
}

/* Of the program of the first process that has none yet. */
static struct recipe *another(const struct recipe *first, uint32_t from,
                              const struct inherited *have, int *ret_error) {
    struct spec_program p;
    struct spec spec;
    int again = spec_decode(first->setup.spec, &spec);
    ASSERT(again == 0);
    *ret_error = -EBADMSG;
    if (!spec_program_of(&spec, setup_rank(&first->setup, from), &p))
        return NULL;
    assume(&spec, &p);
    *ret_error = -ENOMEM;
    struct recipe *r = malloc(sizeof *r + room_for(&first->setup, &spec, p.environment));
    if (r == NULL)
        return NULL;
    memset(r, 0, sizeof *r);
    r->setup = first->setup;
    r->spec = spec;
    dedicate(r, &p, from);
    fill_behind(r, have, r->bytes);
    *ret_error = 0;
    return r;
}

static int add_others(struct recipe *first, const struct inherited *have) {
    int r = 0;
    struct recipe *last = first;
    while (r == 0 && last->end < first->setup.count) {
        last->next = another(first, last->end, have, &r);
        last = r == 0 ? last->next : last;
    }
    return r;
}

/* ---- all of it ---- */

static struct recipe *recipe_alone(struct bytes bytes, const struct inherited *have,
                                   int *ret_error) {
    struct setup setup;
    struct spec spec;
    struct spec_program p = {0};
    *ret_error = -EBADMSG;
    if (setup_decode(bytes, &setup) < 0 || spec_decode(setup.spec, &spec) < 0)
        return NULL;
    if (spec.ranks > 0) {
        if (!spec_program_of(&spec, setup_rank(&setup, 0), &p))
            return NULL;
        assume(&spec, &p);
    }
    *ret_error = -ENOMEM;
    size_t copied = align_up(bytes.len, sizeof(max_align_t));
    struct recipe *r = malloc(sizeof *r + copied + room_for(&setup, &spec, p.environment));
    if (r == NULL)
        return NULL;
    memset(r, 0, sizeof *r);
    memcpy(r->bytes, bytes.at, bytes.len);
    int again = setup_decode(bytes_of(r->bytes, bytes.len), &r->setup);
    ASSERT(again == 0);
    again = spec_decode(r->setup.spec, &r->spec);
    ASSERT(again == 0);
    if (r->spec.ranks > 0 && spec_program_of(&r->spec, setup_rank(&r->setup, 0), &p))
        dedicate(r, &p, 0);
    fill_behind(r, have, r->bytes + copied);
    *ret_error = 0;
    return r;
}

struct recipe *recipe_new(struct bytes bytes, const struct inherited *have, int *ret_error) {
    struct recipe *r = recipe_alone(bytes, have, ret_error);
    if (r == NULL || r->ranks == 0)
        return r;
    *ret_error = add_others(r, have);
    if (*ret_error == 0)
        return r;
    recipe_free(r);
    return NULL;
}

void recipe_free(struct recipe *r) {
    for (struct recipe *next; r != NULL; r = next) {
        next = r->next;
        free(r->program);
        free(r->dressed);
        free(r->debugging);
        free(r->own);
        free(r->gpus);
        free(r);
    }
}

/* One place is kept for this limit. */
static void bound(struct recipe *r, const struct inherited *have, uint64_t bytes) {
    uint32_t i = 0;
    while (i < r->limit_count && r->limits[i].resource != RLIMIT_DATA)
        i++;
    if (i == r->limit_count)
        r->limits[r->limit_count++] =
            (struct recipe_limit){.resource = RLIMIT_DATA, .limit = have->limits[RLIMIT_DATA]};
    struct rlimit *l = &r->limits[i].limit;
    l->rlim_cur = l->rlim_cur < bytes ? l->rlim_cur : bytes;
    l->rlim_max = l->rlim_max < bytes ? l->rlim_max : bytes;
}

void recipe_bound(struct recipe *r, const struct inherited *have, uint64_t bytes) {
    for (; r != NULL; r = r->next)
        bound(r, have, bytes);
}

/* ---- one process ---- */

static void write_number(char *at, uint32_t value) {
    struct text t;
    text_init(&t, at, DIGITS);
    text_u64(&t, value);
}

/* In equal shares; where there are more processes than GPUs, some share one. */
static void write_gpus(struct recipe *r, uint32_t index) {
    uint64_t all = r->gpu_count, count = r->setup.count;
    uint64_t first = index * all / count, end = (index + 1) * all / count;
    struct text t;
    text_init(&t, r->gpus + strlen(gpus_name), (size_t)all * GPU_DIGITS + 1);
    for (uint64_t i = first; i < (end > first ? end : first + 1); i++) {
        text_str(&t, i > first ? "," : "");
        text_u64(&t, i);
    }
}

void recipe_turn(struct recipe *r, uint32_t index) {
    write_number(r->rank, setup_rank(&r->setup, index));
    write_number(r->local, index);
    if (r->turn != NULL)
        write_number(r->turn, setup_rank(&r->setup, index) - r->first);
    if (r->gpus != NULL)
        write_gpus(r, index);
    r->debugs = r->debugging != NULL && ranks_has(r->spec.debugged, setup_rank(&r->setup, index));
}

const char *recipe_own(const struct recipe *r) {
    return r->own == NULL ? NULL : r->own + strlen(own_name);
}

bool recipe_listens(const struct recipe *r, uint32_t index) {
    return r->spec.stdin_mode == STDIN_ALL ||
           (r->spec.stdin_mode == STDIN_RANK && r->spec.stdin_rank == setup_rank(&r->setup, index));
}

bool recipe_terminal(const struct recipe *r, uint32_t index) {
    return r->spec.terminal && setup_rank(&r->setup, index) == r->spec.terminal_rank;
}

bool recipe_holds(const struct recipe *r) {
    return r->spec.hold && !r->debugs;
}

const char *recipe_file(const struct recipe *r) {
    return r->debugs         ? r->debugging[0]
           : r->shell        ? "/bin/sh"
           : r->each != NULL ? r->each
                             : r->program;
}

char *const *recipe_arguments(const struct recipe *r) {
    if (r->debugs)
        return r->debugging;
    if (!r->shell && r->each == NULL)
        return r->vector + 1;
    r->vector[0] = (char *)(r->shell ? "sh" : "storm-each");
    r->vector[1] = r->program;
    return r->vector;
}
