/* SPDX-License-Identifier: MIT */
/* Command lines as work steps: see chore.h. */
#include "wodi/chore.h"

#include <string.h>

#include "base/words.h"
#include "wire/codec.h"

static void walk_setting(struct codec *c, struct chore_setting *s) {
    codec_u64(c, &s->limit_ns);
    codec_bytes(c, &s->folder, 1);
    codec_rest(c, &s->environment);
}

size_t chore_setting_write(const struct chore_setting *s, struct room out) {
    struct chore_setting copy = *s;
    struct codec c = {.encoding = true, .out = out.at, .len = out.len};
    walk_setting(&c, &copy);
    return c.failed ? 0 : c.at;
}

/* A folder is one string, the environment any number of whole ones. */
static bool is_sound(const struct chore_setting *s) {
    bool folder = s->folder.len > 1 && memchr(s->folder.at, 0, s->folder.len) ==
                                           (const void *)(s->folder.at + s->folder.len - 1);
    return folder && (s->environment.len == 0 || s->environment.at[s->environment.len - 1] == 0);
}

bool chore_setting_read(struct chore_setting *s, struct bytes in) {
    *s = (struct chore_setting){0};
    struct codec c = {.in = in.at, .len = in.len};
    walk_setting(&c, s);
    return !c.failed && is_sound(s);
}

static void walk_result(struct codec *c, struct chore_result *r) {
    codec_enum(c, &r->end, CHORE_ENDS);
    codec_u32(c, &r->value);
    codec_u64(c, &r->began_ns);
    codec_u64(c, &r->ns);
    codec_u64(c, &r->cut);
    codec_bytes(c, &r->node, 1);
    codec_bytes(c, &r->out, 1);
    codec_rest(c, &r->err);
}

size_t chore_result_write(const struct chore_result *r, struct room out) {
    struct chore_result copy = *r;
    struct codec c = {.encoding = true, .out = out.at, .len = out.len};
    walk_result(&c, &copy);
    return c.failed ? 0 : c.at;
}

bool chore_result_read(struct chore_result *r, struct bytes in) {
    *r = (struct chore_result){0};
    struct codec c = {.in = in.at, .len = in.len};
    walk_result(&c, r);
    return !c.failed && r->node.len <= CHORE_NODE_MAX;
}

uint32_t chore_status(const struct chore_result *r) {
    enum { LATE = 124, SIGNAL = 128 };
    return r->end == CHORE_LATE ? LATE : r->end == CHORE_SIGNALLED ? SIGNAL + r->value : r->value;
}

/* Commands of the shell that do something else than the program of that name, or that no program can do. */
static bool is_shells(const char *name) {
    static const char *const names[] = {
        ".",     ":",     "[",      "alias", "bg",    "case",   "cd",    "command", "echo",
        "eval",  "exec",  "exit",   "fg",    "for",   "hash",   "if",    "jobs",    "kill",
        "pwd",   "read",  "printf", "set",   "test",  "times",  "trap",  "type",    "ulimit",
        "umask", "unset", "until",  "wait",  "while", "export", "local", "time",    "return"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool is_one_of(char c, const char *chars) {
    return c != 0 && strchr(chars, c);
}

static const char *behind(const char *text, const char *chars, bool inside) {
    while (*text && is_one_of(*text, chars) == inside)
        text++;
    return text;
}

/* The first word decides; it ends at a blank. */
static bool begins_plainly(const char *line) {
    char first[16] = "";
    const char *begin = behind(line, " \t", true), *end = behind(begin, " \t", false);
    size_t len = (size_t)(end - begin);
    if (len == 0 || behind(begin, "='\"", false) < end)
        return false;
    if (len < sizeof first)
        memcpy(first, begin, len);
    return !is_shells(first);
}

/* Quotes are closed, and keep nothing that would mean something. */
static bool quotes_close(const char *line) {
    char quote = 0;
    for (; *line; line++) {
        if (quote == 0 && (*line == '"' || *line == '\''))
            quote = *line;
        else if (*line == quote)
            quote = 0;
    }
    return quote == 0;
}

/* Blanks in quotes count as well: never too few. */
static int count_words(const char *line) {
    int count = 0;
    for (line = behind(line, " \t", true); *line; line = behind(line, " \t", true)) {
        count++;
        line = behind(line, " \t", false);
    }
    return count;
}

int chore_words(char *line, char **words, int most) {
    if (*behind(line, "|&;<>()$`\\*?[]{}#~!^%\r\n\v\f", false) || !begins_plainly(line) ||
        !quotes_close(line) || count_words(line) > most)
        return 0;
    int count = words_split(line, words, most);
    return count > 0 ? count : 0;
}
