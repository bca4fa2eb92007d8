/* SPDX-License-Identifier: MIT */
/* A request made of what somebody wants to be run: see wish.h. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/kcmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/classes.h"
#include "cli/complain.h"
#include "cli/inputs.h"
#include "cli/program.h"
#include "cli/when.h"
#include "cli/wish.h"
#include "client/pattern.h"
#include "client/typing.h"
#include "os/files.h"

static int no_memory(void) {
    complain(NULL, "%s", strerror(ENOMEM));
    return STATUS_STORM;
}

static const char *command_name(enum wish_command c) {
    return c == WISH_RUN ? "run" : c == WISH_SUBMIT ? "submit" : "alloc";
}

/* ---- how large, and where ---- */

static int merge_part(struct size *size, const char *text, enum size_part part,
                      const char *command) {
    struct size more;
    char why[SIZE_WHY_MAX];
    if (text == NULL)
        return 0;
    int r = part == SIZE_PARTS ? size_parse(text, &more, why, sizeof why)
                               : size_parse_part(text, part, &more, why, sizeof why);
    if (r < 0)
        return complain(command, "%s", why);
    if (size_merge(size, &more, why, sizeof why) == 0)
        return 0;
    complain(command, "%s", why);
    return STATUS_STORM;
}

/* Several programs, each with a size of its own. */
static int order_parts(struct order *o, struct wish *w, const struct cluster *cluster,
                       const char *command) {
    struct size *sizes = calloc(w->parts.count, sizeof *sizes);
    if (sizes == NULL)
        return no_memory();
    int r = sections_read(&o->sections, &w->parts, cluster, command, sizes, &o->size, &w->need);
    if (r == 0)
        r = programs_count(&o->programs, &w->parts, sizes, command);
    free(sizes);
    if (r == 0 && o->sections.count > 0 && o->placing.kind == MAP_LIST)
        r = complain(command, "--map with a list: not for programs with nodes of their own");
    if (o->sections.count > 0) {
        o->submit.flags |= JOB_SECTIONS;
        o->submit.sections = bytes_of(o->sections.encoded, o->sections.len);
    }
    return r;
}

static int order_size(struct order *o, struct wish *w, const struct cluster *cluster,
                      const char *command) {
    char why[SIZE_WHY_MAX];
    int r = w->parts.count > 1 ? order_parts(o, w, cluster, command) : 0;
    if (r == 0)
        r = merge_part(&o->size, w->size, SIZE_PARTS, command);
    if (r == 0)
        r = merge_part(&o->size, w->nodes, SIZE_NODES, command);
    if (r == 0 && w->parts.count <= 1)
        r = merge_part(&o->size, w->procs, SIZE_PROCS, command);
    if (r != 0)
        return r;
    if (w->on != NULL && o->size.nodes == 0 && o->size.procs == 0)
        o->size.nodes = nodeset_count(&o->on); /* who names nodes and no number means them all */
    if (o->placing.kind == MAP_LIST) {
        r = placing_size(&o->placing, cluster, &o->size, command);
        if (r != 0)
            return r;
    } else if (o->sections.count == 0 &&
               size_resolve(&o->size, cluster_count(cluster), cluster->pes,
                            cluster->widths ? 0 : cluster->pes, why, sizeof why) < 0) {
        complain(command, "%s", why);
        return STATUS_STORM;
    }
    o->submit.nodes = o->size.nodes;
    o->submit.ppn = o->size.ppn;
    o->submit.procs = o->size.procs;
    return 0;
}

static int read_nodes(const struct cluster *cluster, const char *list, struct nodeset *set,
                      const char *command) {
    struct cluster_trouble trouble;
    if (list == NULL)
        return 0;
    int r = cluster_nodes(cluster, list, set, &trouble);
    if (r == -ENOENT) {
        complain(trouble.words, "there is no such node in cluster `%s`; see: storm nodes",
                 cluster->name);
        return STATUS_STORM;
    }
    return r < 0 ? complain(command, "%s", trouble.words) : 0;
}

static int order_map(struct order *o, const struct wish *w, const struct cluster *cluster,
                     const char *command) {
    bool named = w->on != NULL;
    int r = placing_read(&o->placing, w->map, cluster, &o->on, command);
    if (r != 0 || o->placing.kind == MAP_BLOCK)
        return r;
    if (o->placing.kind == MAP_LIST && named)
        return complain(command, "--map names the nodes: leave -w out");
    o->submit.flags |= o->placing.kind == MAP_LIST ? JOB_LISTED : JOB_CYCLIC;
    o->spec.places = bytes_of(o->placing.places, (size_t)o->placing.procs * MAP_PLACE_BYTES);
    return 0;
}

/* Who speaks of GPUs gets them, and so shares its nodes with nobody. */
static void order_gpus(struct order *o, const char *need) {
    for (const char *at = need; (at = strcasestr(at, "gpu")) != NULL; at++)
        if (at == need || !isalnum((unsigned char)at[-1])) {
            o->spec.gpus = true;
            o->submit.flags |= JOB_EXCLUSIVE;
            return;
        }
}

/* Whether it can be read only the manager knows: it has the attributes. */
static int order_need(struct order *o, const struct wish *w, const char *command) {
    for (uint32_t i = 0; i < o->sections.count; i++)
        if (o->sections.at[i].need.len > 0)
            order_gpus(o, (const char *)o->sections.at[i].need.at);
    if (w->need == NULL)
        return 0;
    if (strlen(w->need) > NEED_TEXT_MAX)
        return complain(command, "--need is too long (at most %d characters)", NEED_TEXT_MAX);
    o->submit.need = bytes_from_str(w->need);
    o->submit.flags |= o->submit.need.len > 0 ? JOB_NEEDS : 0;
    order_gpus(o, w->need);
    return 0;
}

static int order_classes(struct order *o, const struct wish *w) {
    size_t len = 0;
    if (w->classes.count == 0)
        return 0;
    if (o->sections.count > 0)
        return complain("--class", "not with programs that have nodes of their own");
    if (w->array != NULL)
        return complain("--class", "not with --array: submit them one by one");
    o->submit.flags |= JOB_CLASSES;
    int r = classes_read(&w->classes, &o->classes, &len);
    o->submit.classes = bytes_of(o->classes, len);
    return r;
}

static int order_nodes(struct order *o, const struct wish *w, const struct cluster *cluster,
                       const char *command) {
    size_t bytes = nodeset_bytes(cluster->nodes);
    if (w->on == NULL && w->exclude == NULL && w->map == NULL)
        return 0;
    o->sets = malloc(2 * bytes);
    if (o->sets == NULL)
        return no_memory();
    nodeset_init(&o->on, cluster->nodes, o->sets);
    nodeset_init(&o->exclude, cluster->nodes, (uint8_t *)o->sets + bytes);
    int r = read_nodes(cluster, w->on, &o->on, command);
    if (r == 0)
        r = read_nodes(cluster, w->exclude, &o->exclude, command);
    o->submit.on = &o->on;
    o->submit.exclude = &o->exclude;
    return r == 0 ? order_map(o, w, cluster, command) : r;
}

/* ---- what ---- */

static int order_folder(struct order *o, const struct wish *w) {
    struct stat st;
    char here[2048];
    int n;
    if (w->chdir != NULL && *w->chdir == '/') {
        n = snprintf(o->folder, sizeof o->folder, "%s", w->chdir);
    } else if (getcwd(here, sizeof here) == NULL) {
        complain("this folder", "%s; go to another", strerror(errno));
        return STATUS_STORM;
    } else {
        n = snprintf(o->folder, sizeof o->folder, w->chdir != NULL ? "%s/%s" : "%s", here,
                     w->chdir);
    }
    bool there = n < (int)sizeof o->folder && (w->chdir == NULL || stat(o->folder, &st) == 0);
    if (there && (w->chdir == NULL || S_ISDIR(st.st_mode)))
        return 0;
    complain(w->chdir, "%s; name a folder that is there", there ? "not a folder" : strerror(errno));
    return STATUS_STORM;
}

static void order_arguments(struct order *o, char **argv) {
    size_t len;
    o->arguments = strings_join(argv, &len);
    o->spec.arguments = bytes_of(o->arguments, len);
}

/* Who runs inside an allocation or a submitted script finds this set, and stays in it. */
static const char inside[] = "STORM_INSIDE";

static int order_surroundings(struct order *o, const struct wish *w) {
    int r = surroundings_make(&o->around, w->exported, &w->env);
    if (r == -EINVAL)
        return complain("--env", "NAME=VALUE is expected; for example --env LANG=C");
    if (r < 0)
        return no_memory();
    surroundings_unset(&o->around, inside);
    return surroundings_strings(&o->around, &o->spec.environment) < 0 ? no_memory() : 0;
}

/* Too little would not do for any process: whoever writes it has forgotten the unit. */
#define MEMORY_MIN MIB
#define MEMORY_MAX ((uint64_t)UINT32_MAX * MEMORY_UNIT)

static int order_memory(struct order *o, const struct wish *w) {
    uint64_t bytes;
    if (w->memory == NULL)
        return 0;
    if (units_parse_size(w->memory, &bytes) < 0)
        return complain("--mem", "\"%s\" is no size; for example --mem 64M, --mem 1.5G", w->memory);
    if (bytes < MEMORY_MIN || bytes > MEMORY_MAX)
        return complain("--mem",
                        "\"%s\" will not do; at least 1 MiB, at most 15 TiB, for each process",
                        w->memory);
    o->spec.memory = bytes / MEMORY_UNIT * MEMORY_UNIT;
    return 0;
}

static int order_bind(struct order *o, const struct wish *w) {
    static const char *const names[BINDS] = {"none", "core", "socket", "numa"};
    uint8_t kind = 0;
    while (w->bind != NULL && kind < BINDS && strcmp(w->bind, names[kind]) != 0)
        kind++;
    if (kind == BINDS)
        return complain("--bind", "\"%s\" will not do; core, socket, numa or none", w->bind);
    o->spec.bind = kind;
    o->spec.bind_told = w->verbose && kind != BIND_NONE;
    return 0;
}

/* ---- standard input and output ---- */

static int order_input(struct order *o, const struct wish *w, enum wish_command command) {
    uint64_t rank = 0;
    const char *asked = w->input != NULL ? w->input : command == WISH_RUN ? "0" : "none";
    if (strcmp(asked, "none") == 0)
        return 0;
    bool all = strcmp(asked, "all") == 0;
    if (!all && !options_number(asked, &rank))
        return complain("--stdin", "\"%s\" will not do; a rank, all or none", asked);
    if (!all && rank >= o->size.procs) {
        complain("--stdin", "there is no rank %s among %" PRIu32 " processes", asked,
                 o->size.procs);
        return STATUS_STORM;
    }
    if (command != WISH_RUN || !typing_possible(STDIN_FILENO))
        return 0; /* there is nothing to read: the processes find that at once */
    o->spec.stdin_mode = all ? STDIN_ALL : STDIN_RANK;
    o->spec.stdin_rank = (uint32_t)rank;
    o->types = true;
    o->types_to = all ? RANK_ALL : (uint32_t)rank;
    return 0;
}

static int check_pattern(const char *option, const char *pattern) {
    const char *wrong = pattern != NULL ? pattern_wrong(pattern) : NULL;
    if (wrong == NULL)
        return 0;
    return complain(option, "%.2s means nothing; %%j job, %%r rank, %%n node, %%%% percent", wrong);
}

/* One open file, or one terminal, pipe or device. */
static bool same_place(int a, int b) {
    struct stat one, other;
    if (fstat(a, &one) < 0 || fstat(b, &other) < 0 || one.st_dev != other.st_dev ||
        one.st_ino != other.st_ino)
        return false;
    return !S_ISREG(one.st_mode) || syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, a, b) == 0;
}

/* Two streams to one place keep their order only as one. Lines with labels are not torn apart. */
static bool order_merged(const struct wish *w, enum wish_command command) {
    if (w->label || (w->error != NULL && (w->output == NULL || strcmp(w->output, w->error) != 0)))
        return false;
    return command == WISH_SUBMIT || w->output != NULL || same_place(STDOUT_FILENO, STDERR_FILENO);
}

static int order_output(struct order *o, const struct wish *w, enum wish_command command) {
    o->spec.merged = order_merged(w, command);
    int r = check_pattern("--output", w->output);
    if (r == 0)
        r = check_pattern("--error", w->error);
    if (r != 0 || command != WISH_SUBMIT)
        return r;
    o->spec.output = bytes_from_str(w->output != NULL ? w->output : "storm-%j.out");
    if (w->error != NULL)
        o->spec.error = bytes_from_str(w->error);
    return 0;
}

static void order_terminal(struct order *o, const struct wish *w) {
    struct winsize size;
    o->spec.terminal = w->pty;
    o->spec.hold = w->hold;
    if (!w->pty || ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0)
        return;
    o->spec.columns = size.ws_col;
    o->spec.rows = size.ws_row;
}

/* ---- the rest ---- */

static int order_array(struct order *o, const struct wish *w) {
    if (w->array == NULL)
        return 0;
    uint64_t first, last;
    const char *dash = strchr(w->array, '-');
    snprintf(o->array, sizeof o->array, "%.*s", dash ? (int)(dash - w->array) : 0, w->array);
    if (dash == NULL || !options_number(o->array, &first) || !options_number(dash + 1, &last) ||
        first == 0 || last < first || last > UINT32_MAX)
        return complain("--array", "\"%s\" will not do; for example --array 1-100", w->array);
    o->submit.array_first = (uint32_t)first;
    o->submit.array_last = (uint32_t)last;
    return 0;
}

/* A run inside an allocation is a step of it. */
static void order_kind(struct order *o, enum wish_command command) {
    uint64_t job = 0;
    const char *id = getenv("STORM_JOB_ID");
    o->submit.kind = command == WISH_RUN ? JOB_RUN : command == WISH_SUBMIT ? JOB_BATCH : JOB_ALLOC;
    if (command != WISH_RUN || getenv(inside) == NULL || id == NULL)
        return;
    if (options_number(id, &job) && job > 0 && job <= UINT32_MAX) {
        o->submit.kind = JOB_STEP;
        o->submit.inside = (uint32_t)job;
    }
}

/* When it may start. */
static int order_when(struct order *o, const struct wish *w) {
    const struct {
        const char *option;
        const struct text_list *jobs;
        enum await_kind kind;
    } lists[] = {{"--after", &w->after, AWAIT_ANY},
                 {"--after-ok", &w->after_ok, AWAIT_OK},
                 {"--after-not-ok", &w->after_not_ok, AWAIT_NOT_OK}};
    size_t len = 0;
    int r = when_begin(w->begin, &o->submit.begin_ns);
    if (w->reservation != NULL && strlen(w->reservation) > RESERVATION_NAME_MAX)
        return complain("--reservation", "there is none of that name; see: storm reserve");
    o->submit.reservation = bytes_from_str(w->reservation != NULL ? w->reservation : "");
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (uint32_t k = 0; k < lists[i].jobs->count && r == 0; k++)
            r = when_after(lists[i].option, lists[i].jobs->at[k], lists[i].kind, o->after, &len);
    o->submit.after = bytes_of(o->after, len);
    return r;
}

/* As storm ps has it; of several programs the first, and how many there are besides. */
static void order_name(struct order *o, const struct wish *w, const char *program) {
    const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;
    if (w->name == NULL && o->programs.count > 1) {
        snprintf(o->name, sizeof o->name, "%.200s+%" PRIu32, name, o->programs.count - 1);
        name = o->name;
    }
    o->submit.name = bytes_from_str(w->name != NULL ? w->name : name);
}

static void order_flags(struct order *o, const struct wish *w, bool alone) {
    o->submit.flags |= (w->detach ? JOB_DETACHED : 0U) | (w->requeue ? JOB_REQUEUE : 0U) |
                       (w->bad_exit ? JOB_BAD_EXIT : 0U) | (alone ? JOB_EXCLUSIVE : 0U);
    o->submit.limit_ns = w->time_ns;
    o->submit.priority = (int32_t)w->priority;
}

/* A text, not a program: it is run once, as a script. */
static bool is_script(const char *path) {
    char head[2] = "";
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return false;
    size_t n = fread(head, 1, sizeof head, f);
    fclose(f);
    return n == 2 && memcmp(head, "#!", 2) == 0;
}

static int order_program(struct order *o, enum wish_command command, char **argv) {
    const char *name = argv[0];
    const char *path = surroundings_get(&o->around, "PATH");
    char here[1024];
    struct stat st;
    /* A script is named like a file: one of this folder needs no "./". */
    if (command == WISH_SUBMIT && strchr(name, '/') == NULL && stat(name, &st) == 0 &&
        snprintf(here, sizeof here, "./%s", name) < (int)sizeof here)
        name = here;
    int r = program_find(name, name, o->folder, path ? path : "", o->program, sizeof o->program);
    if (r != 0)
        return r;
    if (command == WISH_SUBMIT && is_script(o->program)) {
        if (o->placing.kind == MAP_LIST)
            return complain("--map",
                            "a script runs once, on the first node; say it to the storm run in it");
        o->submit.flags |= JOB_SCRIPT;
        o->submit.procs = 1; /* it holds the rest for what it runs */
        if (surroundings_set(&o->around, "STORM_INSIDE=1") < 0 ||
            surroundings_strings(&o->around, &o->spec.environment) < 0)
            return no_memory();
    }
    order_arguments(o, argv);
    return 0;
}

/* Of several, the first is where the only one would be. */
static int order_programs(struct order *o, const struct wish *w) {
    int r = programs_find(&o->programs, &w->parts, o->folder, &o->around);
    if (r != 0)
        return r;
    const struct ordered *first = &o->programs.at[0];
    snprintf(o->program, sizeof o->program, "%s", first->path);
    o->spec.arguments = first->spec.arguments;
    o->submit.flags |= JOB_SEVERAL;
    return 0;
}

/* A folder for the job on each of its nodes, where it runs unless it is told where. */
static int order_own_folder(struct order *o, const struct wish *w) {
    struct output_wish wish;
    bool files = w->inputs.count > 0 || w->fetches.count > 0;
    bool fetches = w->fetches.count > 0 || w->cores;
    if (!files && !fetches)
        return 0;
    if (fetches && w->detach)
        return complain(w->cores ? "--cores" : "--fetch",
                        "who is to fetch it? with --detach this command may be gone");
    for (uint32_t i = 0; i < w->fetches.count; i++) {
        int r = output_wish_read(w->fetches.at[i], &wish);
        if (r != 0)
            return r;
    }
    o->spec.own = w->inputs.count > 0 ? OWN_FILLED : OWN_MADE;
    o->spec.inside = files && w->chdir == NULL;
    o->spec.cores = w->cores;
    o->submit.flags |= JOB_FOLDER | (fetches ? JOB_FETCH : 0U);
    return w->inputs.count > 0 ? freight_load_inputs(&o->freight, &w->sending, &w->inputs) : 0;
}

static int order_freight(struct order *o, const struct wish *w) {
    const char *library_path = surroundings_get(&o->around, "LD_LIBRARY_PATH");
    struct spec_program alone = {.ranks = o->submit.procs};
    if (o->programs.count > 0)
        return programs_load(&o->programs, &o->freight, &w->sending, w->libraries, library_path);
    int r = freight_load(&o->freight, &w->sending, o->program, w->libraries, library_path, &alone);
    if (r == 0)
        spec_take_files(&o->spec, &alone);
    return r;
}

/* Nodes look before anything begins: whether what was sent is there, or else whether they see the program as we do. */
static void order_look(struct order *o, const struct wish *w) {
    struct ordered alone = {.path = o->program};
    struct programs one = {.count = 1, .at = &alone};
    struct programs *p = o->programs.count > 0 ? &o->programs : &one;
    bool sent = w->copy || w->libraries;
    if (!sent && !w->no_copy)
        programs_see(p);
    if (p == &one && !sent)
        spec_take_files(&o->spec, &alone.spec);
    if (sent || programs_seen(p) || o->spec.own == OWN_FILLED)
        o->submit.flags |= JOB_LOOK;
}

static int order_encode(struct order *o) {
    struct spec *s = &o->spec;
    s->umask = surroundings_umask();
    s->limits = surroundings_limits(o->limits);
    s->folder = bytes_from_str(o->folder);
    s->program = bytes_from_str(o->program);
    if (o->programs.count > 0) {
        spec_take_files(s, &o->programs.at[0].spec);
        programs_tell(&o->programs, s);
    }
    size_t cap = 256 + s->limits.len + s->folder.len + s->program.len + s->arguments.len +
                 s->environment.len + s->output.len + s->error.len + s->image.len + s->outfit.len +
                 s->stubborn.len + s->places.len + s->first_folder.len + s->first_environment.len +
                 s->programs.len + s->debugger.len + s->debugged.len;
    o->encoded = malloc(cap);
    if (o->encoded == NULL)
        return no_memory();
    long len = spec_encode(s, room_of(o->encoded, cap));
    ASSERT(len > 0);
    o->submit.spec = bytes_of(o->encoded, (size_t)len);
    return 0;
}

int order_make(struct order *o, struct wish *w, enum wish_command command,
               const struct cluster *cluster, char **argv) {
    const char *name = command_name(command);
    *o = (struct order){0};
    int r = order_nodes(o, w, cluster, name);
    if (r == 0)
        r = order_size(o, w, cluster, name);
    if (r == 0)
        r = debugging_ranks(o, w);
    if (r == 0)
        r = order_memory(o, w);
    if (r == 0)
        r = order_bind(o, w);
    if (r == 0)
        r = order_need(o, w, name);
    if (r == 0)
        r = order_classes(o, w);
    if (r == 0)
        r = order_input(o, w, command);
    if (r == 0)
        r = order_output(o, w, command);
    if (r == 0)
        r = order_array(o, w);
    if (r == 0)
        r = order_when(o, w);
    if (r == 0)
        r = order_folder(o, w);
    if (r == 0)
        r = order_surroundings(o, w);
    if (r == 0)
        r = debugging_command(o, w);
    if (r == 0 && o->programs.count > 0)
        r = order_programs(o, w);
    else if (r == 0)
        r = order_program(o, command, argv);
    if (r == 0 && w->no_copy && (w->copy || w->libraries))
        r = complain(name, "--no-copy does not go with --copy or --with-libs");
    sending_to(&w->sending, cluster, o->submit.nodes);
    if (r == 0 && (w->copy || w->libraries))
        r = order_freight(o, w);
    if (r == 0)
        r = order_own_folder(o, w);
    if (r == 0 && command == WISH_RUN)
        order_look(o, w);
    order_kind(o, command);
    order_flags(o, w, w->exclusive || cluster->alone);
    order_name(o, w, argv[0]);
    order_terminal(o, w);
    return r == 0 ? order_encode(o) : r;
}

void order_fini(struct order *o) {
    surroundings_fini(&o->around);
    freight_fini(&o->freight);
    programs_fini(&o->programs);
    sections_fini(&o->sections);
    free(o->sets);
    placing_fini(&o->placing);
    free(o->arguments);
    free(o->encoded);
    free(o->classes);
}

void order_print(const struct order *o, const struct cluster *cluster) {
    printf("cluster   %s\n", cluster->name);
    if (o->programs.count > 0)
        programs_print(&o->programs);
    else
        printf("program   %s\n", o->program);
    printf("folder    %s\nsize      %" PRIu32 " nodes, %s%" PRIu32 " processes on each, %" PRIu32
           " in all\n",
           o->folder, o->size.nodes, o->sections.count > 0 ? "at most " : "", o->size.ppn,
           o->size.procs);
    placing_print(&o->placing, cluster, &o->size, o->submit.on, &o->programs, &o->sections);
    if (o->submit.need.len > 0)
        printf("nodes     with %.*s\n", (int)o->submit.need.len, (const char *)o->submit.need.at);
    if (o->submit.limit_ns != 0) {
        char text[UNITS_TEXT_MAX];
        units_format_duration(o->submit.limit_ns, text, sizeof text);
        printf("time      at most %s\n", text);
    }
    if (o->spec.memory != 0) {
        char text[UNITS_TEXT_MAX];
        units_format_size(o->spec.memory, text, sizeof text);
        printf("memory    at most %s for each process\n", text);
    }
    if (o->spec.debugger.len > 0) {
        size_t at = 0;
        printf("debugger ");
        for (const char *s; (s = strings_next(o->spec.debugger, &at)) != NULL;)
            printf(" %s", s);
        printf(", for %" PRIu64 " of them\n", ranks_count(o->spec.debugged));
    }
    printf("request   %zu bytes\n", o->submit.spec.len);
}
