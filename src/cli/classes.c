/* SPDX-License-Identifier: MIT */
/* --class NAME:EXPR:MIN:MAX: see classes.h. */
#include "cli/classes.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/complain.h"
#include "wire/kinds.h"

static int unread(const char *text, const char *why) {
    return complain("--class", "\"%.60s\": %s; for example workers:MEM>=2GB:1:8", text, why);
}

/* The number that ends at *end, behind a colon, which *end is then. */
static bool number_before(const char *text, const char **end, uint32_t *ret) {
    const char *at = *end;
    char word[16];
    uint64_t number;
    while (at > text && at[-1] != ':')
        at--;
    size_t len = (size_t)(*end - at);
    if (at == text || len == 0 || len >= sizeof word)
        return false;
    memcpy(word, at, len);
    word[len] = '\0';
    if (!options_number(word, &number) || number > UINT32_MAX)
        return false;
    *ret = (uint32_t)number;
    *end = at - 1;
    return true;
}

/* "...*PPN": processors of each host. */
static bool read_each(const char *text, const char **end, uint32_t *ret) {
    const char *star = strrchr(text, '*'), *colon = strrchr(text, ':');
    uint64_t number;
    *ret = 1;
    if (star == NULL || colon == NULL || star < colon)
        return true;
    *end = star;
    if (!options_number(star + 1, &number) || number == 0 || number > UINT32_MAX)
        return false;
    *ret = (uint32_t)number;
    return true;
}

static bool is_name(const char *at, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)at[i]) && strchr("_-.", at[i]) == NULL)
            return false;
    return len > 0;
}

int class_read(const char *text, struct host_class *ret) {
    const char *colon = strchr(text, ':'), *end = text + strlen(text);
    *ret = (struct host_class){0};
    if (!read_each(text, &end, &ret->ppn) || !number_before(text, &end, &ret->most) ||
        !number_before(text, &end, &ret->least) || colon == NULL || end <= colon)
        return unread(text, "it is a name, what hosts need, the fewest and the most of them");
    if (!is_name(text, (size_t)(colon - text)))
        return unread(text, "a name is of letters, digits, - _ and .");
    if ((size_t)(colon - text) > CLASS_NAME_MAX)
        return unread(text, "the name is too long");
    if (ret->most == 0 || ret->least > ret->most)
        return unread(text, "the most are at least one, and not fewer than the fewest");
    ret->name = bytes_of(text, (size_t)(colon - text));
    ret->need = bytes_of(colon + 1, (size_t)(end - colon) - 1);
    return ret->need.len > NEED_TEXT_MAX ? unread(text, "what hosts need is too long") : 0;
}

int classes_read(const struct text_list *texts, uint8_t **ret, size_t *ret_len) {
    size_t cap = 0;
    *ret_len = 0;
    for (uint32_t i = 0; i < texts->count; i++)
        cap += strlen(texts->at[i]) + 64;
    *ret = malloc(cap + 1);
    if (*ret == NULL)
        return complain("--class", "there is not enough memory");
    for (uint32_t i = 0; i < texts->count; i++) {
        struct host_class one;
        int r = class_read(texts->at[i], &one);
        if (r != 0)
            return r;
        for (uint32_t k = 0; k < i; k++)
            if (strncmp(texts->at[k], texts->at[i], one.name.len + 1) == 0)
                return unread(texts->at[i], "this name is there twice");
        long len = class_store(&one, room_of(*ret + *ret_len, cap - *ret_len));
        *ret_len += len > 0 ? (size_t)len : 0;
    }
    return 0;
}
