/* SPDX-License-Identifier: MIT */
/* A command with places for values: see template.h. */
#include "cli/template.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What becomes of a value. */
enum part { PART_WHOLE, PART_STEM, PART_NAME, PART_FOLDER, PART_NAME_STEM, PART_SEQ, PARTS };

struct place {
    size_t len; /* 0: there is none */
    enum part part;
    uint32_t number; /* of the value; 0: all */
};

static const char *const part_names[PARTS] = {"", ".", "/", "//", "/.", "#"};

/* The place that begins here, if one does. */
static struct place place_at(const char *text) {
    struct place p = {0};
    if (*text != '{')
        return p;
    const char *end = strchr(text, '}');
    char *rest;
    unsigned long number = text[1] >= '1' && text[1] <= '9' ? strtoul(text + 1, &rest, 10) : 0;
    if (number == 0)
        rest = (char *)text + 1;
    if (end == NULL || rest > end || number > TEMPLATE_VALUES_MAX)
        return p;
    size_t len = (size_t)(end - rest);
    for (int i = 0; i < PARTS; i++) {
        if (strlen(part_names[i]) != len || strncmp(part_names[i], rest, len) != 0)
            continue;
        if (i == PART_SEQ && number > 0)
            continue;
        p = (struct place){
            .len = (size_t)(end + 1 - text), .part = (enum part)i, .number = (uint32_t)number};
    }
    return p;
}

bool template_has_place(const char *text) {
    for (; *text != '\0'; text++)
        if (place_at(text).len > 0)
            return true;
    return false;
}

uint32_t template_highest(const char *text) {
    uint32_t highest = 0;
    for (; *text != '\0'; text++) {
        struct place p = place_at(text);
        if (p.len > 0 && p.number > highest)
            highest = p.number;
    }
    return highest;
}

/* ---- parts of values ---- */

static struct bytes from(struct bytes v, size_t at) {
    return bytes_of(v.at + at, v.len - at);
}

/* Where the name begins, behind the last slash. */
static size_t name_begins(struct bytes v) {
    const uint8_t *slash = v.len > 0 ? memrchr(v.at, '/', v.len) : NULL;
    return slash != NULL ? (size_t)(slash - v.at) + 1 : 0;
}

/* A name that begins with its only dot has no extension. */
static struct bytes without_extension(struct bytes v) {
    size_t name = name_begins(v);
    const uint8_t *dot = v.len > name ? memrchr(v.at + name, '.', v.len - name) : NULL;
    return dot != NULL && dot > v.at + name ? bytes_of(v.at, (size_t)(dot - v.at)) : v;
}

static struct bytes folder_of(struct bytes v) {
    size_t name = name_begins(v);
    if (name == 0)
        return bytes_from_str(".");
    return bytes_of(v.at, name > 1 ? name - 1 : 1);
}

static struct bytes part_of(struct bytes v, enum part part) {
    switch (part) {
    case PART_STEM:
        return without_extension(v);
    case PART_NAME:
        return from(v, name_begins(v));
    case PART_FOLDER:
        return folder_of(v);
    case PART_NAME_STEM:
        return without_extension(from(v, name_begins(v)));
    default:
        return v;
    }
}

/* ---- filling in ---- */

static bool is_safe(struct bytes v) {
    static const char safe[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                               "_-+=:,./@%";
    for (size_t i = 0; i < v.len; i++)
        if (v.at[i] == 0 || strchr(safe, v.at[i]) == NULL)
            return false;
    return v.len > 0;
}

static void put_quoted(FILE *f, struct bytes v) {
    if (is_safe(v)) {
        fwrite(v.at, 1, v.len, f);
        return;
    }
    fputc('\'', f);
    for (size_t i = 0; i < v.len; i++) {
        if (v.at[i] == '\'')
            fputs("'\\''", f);
        else
            fputc(v.at[i], f);
    }
    fputc('\'', f);
}

static void put_place(FILE *f, const struct place *p, const struct bytes *values, uint32_t count,
                      uint64_t seq) {
    if (p->part == PART_SEQ) {
        fprintf(f, "%" PRIu64, seq);
        return;
    }
    uint32_t first = p->number > 0 ? p->number - 1 : 0;
    uint32_t end = p->number > 0 ? p->number : count;
    for (uint32_t i = first; i < end && i < count; i++) {
        if (i > first)
            fputc(' ', f);
        put_quoted(f, part_of(values[i], p->part));
    }
}

char *template_fill(const char *text, const struct bytes *values, uint32_t count, uint64_t seq) {
    static const struct place all = {.part = PART_WHOLE};
    char *command = NULL;
    size_t len;
    bool placed = template_has_place(text);
    FILE *f = open_memstream(&command, &len);
    if (f == NULL)
        return NULL;
    while (*text != '\0') {
        struct place p = place_at(text);
        if (p.len > 0)
            put_place(f, &p, values, count, seq);
        else
            fputc(*text, f);
        text += p.len > 0 ? p.len : 1;
    }
    if (!placed) {
        fputc(' ', f);
        put_place(f, &all, values, count, seq);
    }
    if (fclose(f) == 0)
        return command;
    free(command);
    return NULL;
}
