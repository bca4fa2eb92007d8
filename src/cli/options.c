/* SPDX-License-Identifier: MIT */
/* Options of a subcommand: see options.h. */
#include "cli/options.h"

#include <string.h>

#include "base/nearest.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/complain.h"

/* ---- values ---- */

/* Digits at *at, which moves behind them. */
static bool scan(const char **at, uint64_t *ret) {
    int digits = text_scan_u64(*at, ret);
    if (digits <= 0)
        return false;
    *at += digits;
    return true;
}

bool options_number(const char *text, uint64_t *ret) {
    return scan(&text, ret) && *text == '\0';
}

static bool add_number(struct number_list *list, uint64_t number) {
    if (list->count == NUMBERS_MAX)
        return false;
    list->at[list->count++] = number;
    return true;
}

/* 4..20 is 4, 8, 16, 20. */
static bool add_doubling(struct number_list *list, uint64_t first, uint64_t last) {
    if (first == 0 || first > last)
        return false;
    uint64_t number = first;
    while (number <= last / 2) {
        if (!add_number(list, number))
            return false;
        number *= 2;
    }
    return add_number(list, number) && (number == last || add_number(list, last));
}

bool options_list(const char *text, struct number_list *ret) {
    struct number_list list = {0};
    for (;;) {
        uint64_t first, last;
        if (!scan(&text, &first))
            return false;
        if (strncmp(text, "..", 2) == 0) {
            text += 2;
            if (!scan(&text, &last) || !add_doubling(&list, first, last))
                return false;
        } else if (!add_number(&list, first)) {
            return false;
        }
        if (*text == '\0')
            break;
        if (*text++ != ',')
            return false;
    }
    *ret = list;
    return true;
}

bool options_range(const char *text, struct number_range *ret) {
    struct number_range range = {.first = 1};
    if (!scan(&text, &range.last))
        return false;
    if (strncmp(text, "..", 2) == 0) {
        text += 2;
        range.first = range.last;
        if (!scan(&text, &range.last))
            return false;
    }
    if (*text != '\0' || range.first > range.last)
        return false;
    *ret = range;
    return true;
}

static uint64_t rate_unit(const char *text) {
    static const struct {
        const char *name;
        uint64_t unit;
    } units[] = {
        {"", 1}, {"KB", 1000}, {"MB", (uint64_t)1000 * 1000}, {"GB", (uint64_t)1000 * 1000 * 1000}};
    size_t len = strlen(text);
    if (len >= 2 && strcmp(text + len - 2, "/s") == 0)
        len -= 2;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i].name) == len && strncmp(text, units[i].name, len) == 0)
            return units[i].unit;
    return 0;
}

bool options_rate(const char *text, uint64_t *ret) {
    uint64_t whole, part = 0, scale = 1;
    if (!scan(&text, &whole))
        return false;
    if (*text == '.') {
        const char *begin = ++text;
        if (!scan(&text, &part) || text - begin > 9)
            return false;
        for (; begin < text; begin++)
            scale *= 10;
    }
    uint64_t unit = rate_unit(text);
    if (unit == 0 || whole > UINT64_MAX / 2 / unit)
        return false;
    *ret = whole * unit + part * unit / scale;
    return true;
}

static const char *example(const struct option *o) {
    static const char *const examples[] = {
        [OPTION_FLAG] = "",        [OPTION_TEXT] = "a name", [OPTION_NUMBER] = "64",
        [OPTION_LIST] = "4..1024", [OPTION_RANGE] = "1..20", [OPTION_DURATION] = "20us",
        [OPTION_RATE] = "1.25GB",  [OPTION_SIGNED] = "-5",   [OPTION_TEXTS] = "NAME=VALUE",
    };
    return o->kind == OPTION_TEXT && o->value != NULL ? o->value : examples[o->kind];
}

static bool set_signed(const char *text, int64_t *ret) {
    uint64_t value;
    bool negative = *text == '-';
    if (!options_number(text + negative, &value) || value > INT64_MAX)
        return false;
    *ret = negative ? -(int64_t)value : (int64_t)value;
    return true;
}

static bool add_text(struct text_list *list, const char *text) {
    if (list->count == NUMBERS_MAX)
        return false;
    list->at[list->count++] = text;
    return *text != '\0';
}

static bool set_value(const struct option *o, const char *text) {
    switch (o->kind) {
    case OPTION_FLAG:
        return false;
    case OPTION_TEXT:
        *(const char **)o->to = text;
        return *text != '\0';
    case OPTION_NUMBER:
        return options_number(text, o->to);
    case OPTION_LIST:
        return options_list(text, o->to);
    case OPTION_RANGE:
        return options_range(text, o->to);
    case OPTION_DURATION:
        return units_parse_duration(text, o->to) == 0;
    case OPTION_RATE:
        return options_rate(text, o->to);
    case OPTION_SIGNED:
        return set_signed(text, o->to);
    case OPTION_TEXTS:
        return add_text(o->to, text);
    }
    return false;
}

/* ---- names ---- */

static size_t name_len(const struct option *o) {
    return strcspn(o->name, ",");
}

static char letter_of(const struct option *o) {
    size_t len = name_len(o);
    return o->name[len] == ',' ? o->name[len + 1] : '\0';
}

static const struct option *find(const struct option *table, const char *name, size_t len) {
    for (const struct option *o = table; o->name != NULL; o++)
        if (name_len(o) == len && strncmp(o->name, name, len) == 0)
            return o;
    return NULL;
}

static const struct option *find_letter(const struct option *table, char letter) {
    for (const struct option *o = table; o->name != NULL; o++)
        if (letter_of(o) == letter)
            return o;
    return NULL;
}

/* Options in a file are those of storm submit: the command's name is a place then, "job.sh:3". */
static const char *help_on(const char *command) {
    return strchr(command, ':') != NULL ? "submit" : command;
}

static void complain_unknown(const struct option *table, const char *command, const char *typed,
                             size_t len) {
    enum { NAME_MAX_LEN = 32 };
    char words[NUMBERS_MAX][NAME_MAX_LEN], wrong[NAME_MAX_LEN];
    const char *names[NUMBERS_MAX] = {"help"};
    uint32_t count = 1;
    for (const struct option *o = table; o->name != NULL && count < NUMBERS_MAX; o++) {
        snprintf(words[count], NAME_MAX_LEN, "%.*s", (int)name_len(o), o->name);
        names[count] = words[count];
        count++;
    }
    snprintf(wrong, sizeof wrong, "%.*s", (int)(len < NAME_MAX_LEN ? len : NAME_MAX_LEN), typed);
    const char *near = nearest_name(wrong, names, count);
    if (near != NULL)
        complain(command, "there is no option --%.*s; did you mean --%s?", (int)len, typed, near);
    else
        complain(command, "there is no option --%.*s; see: storm help %s", (int)len, typed,
                 help_on(command));
}

/* ---- arguments ---- */

struct cursor {
    const struct option *table;
    char **argv;
    int argc;
    int at;
};

/* The option as it was typed, for complaints: "-n" or "--procs". */
struct spelling {
    char text[40];
};

static struct spelling spell(const struct option *o, bool letter) {
    struct spelling s;
    if (letter)
        snprintf(s.text, sizeof s.text, "-%c", letter_of(o));
    else
        snprintf(s.text, sizeof s.text, "--%.*s", (int)name_len(o), o->name);
    return s;
}

/* `value` is what stands behind it in the same argument, NULL if nothing does. */
static bool take_value(struct cursor *c, const struct option *o, const char *value, bool letter) {
    const char *command = c->argv[0];
    struct spelling s = spell(o, letter);
    if (value == NULL && c->at + 1 < c->argc)
        value = c->argv[++c->at];
    if (value == NULL) {
        complain(command, "%s needs a value; for example %s %s", s.text, s.text, example(o));
        return false;
    }
    if (set_value(o, value))
        return true;
    complain(command, "%s: \"%s\" will not do; for example %s %s", s.text, value, s.text,
             example(o));
    return false;
}

static bool take_option(struct cursor *c) {
    const char *command = c->argv[0];
    const char *name = c->argv[c->at] + 2;
    size_t len = strcspn(name, "=");
    const struct option *o = find(c->table, name, len);
    if (o == NULL) {
        complain_unknown(c->table, command, name, len);
        return false;
    }
    const char *value = name[len] == '=' ? name + len + 1 : NULL;
    if (o->kind != OPTION_FLAG)
        return take_value(c, o, value, false);
    if (value != NULL)
        complain(command, "%s takes no value; leave \"=%s\" out", spell(o, false).text, value);
    *(bool *)o->to = true;
    return value == NULL;
}

/* "-n 4", "-n4", "-lv": flags may follow each other, a value ends them. */
static bool take_letters(struct cursor *c) {
    const char *at = c->argv[c->at] + 1;
    for (; *at != '\0'; at++) {
        const struct option *o = find_letter(c->table, *at);
        if (o == NULL) {
            complain(c->argv[0], "there is no option -%c; see: storm help %s", *at,
                     help_on(c->argv[0]));
            return false;
        }
        if (o->kind != OPTION_FLAG)
            return take_value(c, o, at[1] != '\0' ? at + 1 : NULL, true);
        *(bool *)o->to = true;
    }
    return true;
}

static int parse(const struct option *table, int argc, char **argv, bool leading,
                 struct option_reader *r) {
    struct cursor c = {.table = table, .argv = argv, .argc = argc, .at = 1};
    int kept = 0;
    bool options = true;
    for (; c.at < argc; c.at++) {
        char *arg = argv[c.at];
        if (r->reads != NULL)
            r->reads(r, arg);
        if (options && strcmp(arg, "--") == 0) {
            options = false;
            r->plain = true;
        } else if (options && (strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0)) {
            return OPTIONS_HELP;
        } else if (options && strncmp(arg, "--", 2) == 0) {
            if (!take_option(&c))
                return OPTIONS_WRONG;
        } else if (options && arg[0] == '-' && arg[1] != '\0') {
            if (!take_letters(&c))
                return OPTIONS_WRONG;
        } else {
            argv[1 + kept++] = arg;
            options = options && !leading;
        }
    }
    argv[1 + kept] = NULL;
    return kept;
}

int options_parse(const struct option *table, int argc, char **argv) {
    return parse(table, argc, argv, false, &(struct option_reader){0});
}

int options_parse_leading(const struct option *table, int argc, char **argv) {
    return parse(table, argc, argv, true, &(struct option_reader){0});
}

int options_parse_program(const struct option *table, int argc, char **argv,
                          struct option_reader *r) {
    r->plain = false;
    return parse(table, argc, argv, true, r);
}

void options_print(const struct option *table, FILE *out) {
    bool letters = false;
    for (const struct option *o = table; o->name != NULL; o++)
        letters = letters || letter_of(o) != '\0';
    fputs("\noptions:\n", out);
    for (const struct option *o = table; o->name != NULL; o++) {
        char left[64], letter[8] = "";
        if (o->words == NULL)
            continue;
        if (letters)
            snprintf(letter, sizeof letter, letter_of(o) ? "-%c, " : "    ", letter_of(o));
        snprintf(left, sizeof left, "%s--%.*s%s%s", letter, (int)name_len(o), o->name,
                 o->value ? " " : "", o->value ? o->value : "");
        fprintf(out, "  %-22s %s\n", left, o->words);
    }
    fprintf(out, "  %-22s %s\n", letters ? "-h, --help" : "--help", "show this text");
}
