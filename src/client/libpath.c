/* SPDX-License-Identifier: MIT */
/* Lists of folders for the dynamic loader: see libpath.h. As glibc's elf/dl-load.c does it. */
#include "client/libpath.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/text.h"

static bool is_letter(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || text_is_digit(c) || c == '_';
}

/* The length of the word behind a dollar sign with its braces; 0: it is another. */
static size_t word_at(const char *at, size_t left, const char *word) {
    size_t len = strlen(word);
    bool braces = left > 0 && *at == '{';
    if (braces) {
        at++;
        left--;
    }
    if (left < len || memcmp(at, word, len) != 0)
        return 0;
    char next = left > len ? at[len] : '\0';
    if (is_letter(next) || (braces && next != '}'))
        return 0;
    return braces ? len + 2 : len;
}

/* Also what it stands for. */
static size_t known_word_at(const char *at, size_t left, const struct libpath_words *w,
                            const char **ret_meaning) {
    const struct {
        const char *word, *meaning;
    } known[] = {{"ORIGIN", w->origin}, {"PLATFORM", w->platform}, {"LIB", w->lib}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t len = word_at(at, left, known[i].word);
        *ret_meaning = known[i].meaning;
        if (len > 0)
            return len;
    }
    return 0;
}

int libpath_expand(const char *text, size_t len, const struct libpath_words *w, char *out,
                   size_t cap) {
    struct text t;
    text_init(&t, out, cap);
    for (size_t i = 0; i < len;) {
        const char *meaning = NULL;
        size_t word = 0;
        if (text[i++] == '$')
            word = known_word_at(text + i, len - i, w, &meaning);
        if (word == 0)
            text_char(&t, text[i - 1]);
        else if (meaning == NULL)
            return -ENOENT;
        else
            text_str(&t, meaning);
        i += word;
    }
    return t.cut ? -ENAMETOOLONG : 0;
}

int libpath_next(const char **at, const char *parting, const struct libpath_words *w, char *out,
                 size_t cap) {
    while (*at != NULL) {
        const char *from = *at;
        size_t len = strcspn(from, parting);
        *at = from[len] == '\0' ? NULL : from + len + 1;
        if (len == 0) {
            out[0] = '\0';
            return 1;
        }
        if (libpath_expand(from, len, w, out, cap) < 0)
            continue;
        size_t n = strlen(out);
        if (n == 0 || n + 1 >= cap)
            continue;
        while (n > 1 && out[n - 1] == '/')
            n--;
        if (out[n - 1] != '/')
            out[n++] = '/';
        out[n] = '\0';
        return 1;
    }
    return 0;
}
