/* SPDX-License-Identifier: MIT */
/* The programs of a job as they were typed: see parts.h. */
#include "cli/parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/list.h"
#include "base/words.h"
#include "cli/complain.h"
#include "cli/wish.h"

enum { FILE_BYTES_MAX = 4 * 1024 * 1024 };

const char *part_place(const struct part *p, const char *word, const char *command,
                       char out[PART_PLACE_MAX]) {
    uint32_t column = 0;
    if (p->file == NULL)
        return command;
    for (uint32_t i = 0; p->words[i] != NULL; i++)
        if (word != NULL && word >= p->words[i] && word <= p->words[i] + strlen(p->words[i]))
            column = p->where[i] + (uint32_t)(word - p->words[i]);
    snprintf(out, PART_PLACE_MAX, "%.280s:%" PRIu32 ":%" PRIu32, p->file, p->line, column + 1);
    return out;
}

/* ---- options of a part ---- */

/* Wherever an option of the table may point to. */
union value {
    uint8_t bytes[sizeof(struct text_list)];
    bool flag;
    const char *text;
    uint64_t number;
    struct text_list texts;
};

/* Options of the whole job are known, so that it can be said why they will not do. */
struct part_table {
    struct option options[WISH_OPTIONS_MAX];
    union value others[WISH_OPTIONS_MAX];
};

static bool is(const struct option *o, const char *name) {
    size_t len = strcspn(o->name, ",");
    return strlen(name) == len && strncmp(o->name, name, len) == 0;
}

static void *own(const struct option *o, struct part *part) {
    return is(o, "procs")   ? (void *)&part->procs
           : is(o, "nodes") ? (void *)&part->nodes
           : is(o, "size")  ? (void *)&part->size
           : is(o, "need")  ? (void *)&part->need
           : is(o, "chdir") ? (void *)&part->chdir
           : is(o, "env")   ? (void *)&part->env
                            : NULL;
}

static void make_table(struct part_table *t, struct part *part) {
    struct wish scratch;
    memset(t, 0, sizeof *t);
    wish_table(&scratch, WISH_RUN, t->options);
    for (size_t i = 0; t->options[i].name != NULL; i++) {
        void *to = own(&t->options[i], part);
        t->options[i].to = to != NULL ? to : &t->others[i];
    }
}

/* What a program of its own could have one day. */
static bool is_of_nodes(const struct option *o) {
    static const char *const names[] = {"map", "on", "exclude", "exclusive", "mem", "bind"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (is(o, names[i]))
            return true;
    return false;
}

/* The word of a line that it was given by; NULL: it was typed. */
static const char *spelled(const struct part *part, const struct option *o) {
    size_t len = strcspn(o->name, ",");
    char letter = o->name[len] == ',' ? o->name[len + 1] : '\0';
    for (char **w = part->words; w != NULL && *w != NULL; w++) {
        const char *word = *w;
        bool named = strncmp(word, "--", 2) == 0 && strncmp(word + 2, o->name, len) == 0 &&
                     (word[2 + len] == '\0' || word[2 + len] == '=');
        if (named || (word[0] == '-' && letter != '\0' && word[1] == letter))
            return word;
    }
    return NULL;
}

static int judge(const struct part_table *t, const struct part *part, const char *command) {
    static const union value none;
    char room[PART_PLACE_MAX];
    for (size_t i = 0; t->options[i].name != NULL; i++) {
        const struct option *o = &t->options[i];
        int len = (int)strcspn(o->name, ",");
        if (memcmp(&t->others[i], &none, sizeof none) == 0)
            continue;
        const char *place = part_place(part, spelled(part, o), command, room);
        if (is_of_nodes(o))
            return complain(place,
                            "--%.*s: not yet: one program of several has only a size, --need, "
                            "-D and --env of its own",
                            len, o->name);
        return complain(place, "--%.*s is for the whole job: say it before its first program", len,
                        o->name);
    }
    return 0;
}

/* ---- parts ---- */

static struct part *add(struct parts *p) {
    struct part *at = reallocarray(p->at, p->count + 1, sizeof *at);
    ASSERT(at != NULL);
    p->at = at;
    at[p->count] = (struct part){0};
    return &at[p->count++];
}

void parts_fini(struct parts *p) {
    for (uint32_t i = 0; i < p->count; i++)
        if (p->at[i].file != NULL) {
            free(p->at[i].argv - 1);
            free(p->at[i].words);
            free(p->at[i].where);
        }
    free(p->at);
    free(p->text);
    *p = (struct parts){0};
}

/* ---- of the command line ---- */

static bool is_colon(const char *word) {
    return strcmp(word, ":") == 0;
}

bool parts_several(char *const *argv) {
    for (; *argv != NULL; argv++)
        if (is_colon(*argv))
            return true;
    return false;
}

/* Ends the program at argv[0], of `count` words, before the next colon; how many words there are up to there. */
static int end_program(int count, char **argv) {
    int words = 0;
    while (words < count && !is_colon(argv[words]))
        words++;
    argv[words] = NULL;
    return words;
}

/* The part behind a colon, at argv[0]: what is left of the words, and where. */
static int take_part(struct parts *p, const char *command, int *count, char ***argv) {
    struct part_table *t = malloc(sizeof *t);
    struct part part = {0};
    struct option_reader reader = {0};
    ASSERT(t != NULL);
    make_table(t, &part);
    (*argv)[0] = (char *)command;
    int kept = options_parse_program(t->options, *count, *argv, &reader);
    (*argv)[0] = NULL; /* there the part before ends */
    int r = kept < 0 ? STATUS_USAGE : judge(t, &part, command);
    free(t);
    if (kept == OPTIONS_HELP)
        complain(command, "--help is no option of one program of several");
    if (r != 0)
        return r;
    part.argv = *argv + 1;
    int words = reader.plain ? kept : end_program(kept, part.argv);
    if (words == 0)
        return complain(command, "there is no program behind a colon; -- before a program makes "
                                 "colons its arguments");
    *add(p) = part;
    *argv = part.argv + words;
    *count = kept - words;
    return 0;
}

int parts_split(struct parts *p, const char *command, const struct part *own, int count,
                char **argv) {
    int words = end_program(count, argv), r = 0;
    if (words == count)
        return 0;
    if (words == 0)
        return complain(command, "there is no program before the first colon");
    struct part first = *own;
    first.argv = argv;
    *add(p) = first;
    argv += words;
    count -= words;
    while (r == 0 && count > 0)
        r = p->count < PARTS_MAX ? take_part(p, command, &count, &argv)
                                 : complain(command, "more than %d programs", PARTS_MAX);
    return r;
}

/* ---- of a file ---- */

/* A line that is being read; its place moves from word to word. */
struct line_reader {
    struct option_reader reader;
    const struct part *part;
    char *place;
};

static void reads(struct option_reader *r, const char *argument) {
    const struct line_reader *l = CONTAINER_OF(r, struct line_reader, reader);
    part_place(l->part, argument, "", l->place);
}

static int read_part(struct part *part, int count, char place[PART_PLACE_MAX]) {
    struct part_table *t = malloc(sizeof *t);
    struct line_reader l = {.reader = {.reads = reads}, .part = part, .place = place};
    ASSERT(t != NULL);
    make_table(t, part);
    part->argv[-1] = place;
    int kept = options_parse_program(t->options, count + 1, part->argv - 1, &l.reader);
    part_place(part, part->words[0], "", place);
    int r = kept == OPTIONS_WRONG ? STATUS_USAGE
            : kept < 0            ? complain(place, "--help is no option of a program")
                                  : judge(t, part, place);
    free(t);
    return r == 0 && kept == 0 ? complain(place, "there is no program behind the options") : r;
}

static int read_line(struct parts *p, char *line, const char *file, uint32_t number) {
    char place[PART_PLACE_MAX];
    words_cut_comment(line);
    if (line[strspn(line, " \t\r\v\f")] == '\0')
        return 0;
    size_t most = strlen(line) / 2 + 1;
    struct part *part = add(p);
    char **room = calloc(most + 3, sizeof *room);
    *part = (struct part){.argv = room + 1,
                          .file = file,
                          .line = number,
                          .words = calloc(most + 2, sizeof(char *)),
                          .where = calloc(most + 1, sizeof *part->where)};
    ASSERT(room != NULL && part->words != NULL && part->where != NULL);
    int count = words_split_where(line, part->words, part->where, (int)most);
    memcpy(part->argv, part->words, (most + 1) * sizeof(char *));
    if (count < 0) {
        uint32_t last = 0;
        while (part->words[last + 1] != NULL)
            last++;
        return complain(part_place(part, part->words[last], "", place), "a quote is not closed");
    }
    return p->count <= PARTS_MAX ? read_part(part, count, place)
                                 : complain(file, "more than %d programs", PARTS_MAX);
}

static char *read_text(const char *path) {
    FILE *f = fopen(path, "re");
    char *text = malloc(FILE_BYTES_MAX + 1);
    ASSERT(text != NULL);
    size_t len = f == NULL ? 0 : fread(text, 1, FILE_BYTES_MAX + 1, f);
    bool good = f != NULL && ferror(f) == 0;
    if (!good)
        complain(path, "%s", strerror(errno));
    else if (len > FILE_BYTES_MAX)
        complain(path, "it is larger than 4 MiB");
    if (f != NULL)
        fclose(f);
    if (good && len <= FILE_BYTES_MAX) {
        text[len] = '\0';
        return text;
    }
    free(text);
    return NULL;
}

int parts_load(struct parts *p, const char *path) {
    int r = 0;
    uint32_t number = 1;
    p->text = read_text(path);
    if (p->text == NULL)
        return STATUS_STORM;
    for (char *line = p->text, *next; line != NULL && r == 0; line = next, number++) {
        next = strchr(line, '\n');
        if (next != NULL)
            *next++ = '\0';
        r = read_line(p, line, path, number);
    }
    if (r == 0 && p->count == 0)
        r = complain(path, "there is no program in it");
    return r;
}
