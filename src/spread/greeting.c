/* SPDX-License-Identifier: MIT */
/* How a helper gets to a host: see greeting.h. */
#include "spread/greeting.h"

#include <string.h>

#define NEED "storm-hop need "

#define FOLDER "~/.cache/storm"

/* The first part is the usual one, and runs in whatever shell the user has: it means the same in all of them, and costs no
 * other process. */
void greeting_line(struct text *out, const char *digest, uint64_t helper_bytes) {
    static const char *const parts[] = {"test -x " FOLDER "/hop-", "&&exec " FOLDER "/hop-",
                                        "||exec sh -c 'd=" FOLDER ";f=$d/hop-"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        text_str(out, parts[i]);
        text_str(out, digest);
    }
    text_str(out,
             ";u=$(umask);umask 077;mkdir -p \"$d\"&&t=$d/.hop-$(uname -n)-$$"
             "&&trap \"rm -f $t;exit 1\" HUP INT TERM PIPE&&echo " NEED "$(uname -m)&&head -c ");
    text_u64(out, helper_bytes);
    text_str(out, " >\"$t\"&&chmod 700 \"$t\"&&\"$t\" --install \"$f\" ");
    text_str(out, digest);
    text_str(out, "&&umask $u&&exec \"$f\";rm -f \"$t\";exit 1'");
}

/* A word, with what its signs stand for. */
static void write_word(struct greeting_words *w, const char *word, struct bytes host,
                       struct bytes line, struct text *out) {
    for (; *word != '\0'; word++) {
        if (word[0] != '%' || (word[1] != 'h' && word[1] != 'c' && word[1] != '%')) {
            text_char(out, word[0]);
            continue;
        }
        word++;
        struct bytes value = *word == 'h' ? host : *word == 'c' ? line : bytes_of("%", 1);
        w->host = w->host || *word == 'h';
        w->line = w->line || *word == 'c';
        text_strn(out, (const char *)value.at, value.len);
    }
}

bool greeting_word(struct greeting_words *w, struct bytes host, struct bytes line,
                   struct text *out) {
    if (w->left.len > 0) {
        const char *word = (const char *)w->left.at;
        size_t len = strlen(word) + 1;
        write_word(w, word, host, line, out);
        w->left = bytes_of(w->left.at + len, w->left.len - len);
        return true;
    }
    if (!w->host) {
        w->host = true;
        text_strn(out, (const char *)host.at, host.len);
        return true;
    }
    if (!w->line) {
        w->line = true;
        text_strn(out, (const char *)line.at, line.len);
        return true;
    }
    return false;
}

/* What stands behind these words, where they are for the last time. Before them may be what the shell has printed without
 * ending its line. */
static bool behind(struct bytes line, const char *words, struct bytes *ret) {
    size_t len = strlen(words);
    for (size_t n = line.len; n >= len; n--) {
        if (memcmp(line.at + n - len, words, len) != 0)
            continue;
        *ret = bytes_of(line.at + n, line.len - n);
        return true;
    }
    return false;
}

/* "aarch64": letters, digits and _. */
static bool read_processor(struct bytes line, char ret[GREETING_PROCESSOR_MAX]) {
    if (line.len == 0 || line.len >= GREETING_PROCESSOR_MAX)
        return false;
    for (size_t i = 0; i < line.len; i++) {
        char c = (char)line.at[i];
        bool fine =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || text_is_digit(c) || c == '_';
        if (!fine)
            return false;
        ret[i] = c;
    }
    ret[line.len] = '\0';
    return true;
}

enum greeting greeting_read(struct bytes in, size_t *ret_used,
                            char ret_processor[GREETING_PROCESSOR_MAX]) {
    size_t at = 0;
    while (at < in.len) {
        const uint8_t *end = memchr(in.at + at, '\n', in.len - at);
        if (end == NULL)
            break;
        struct bytes line = bytes_of(in.at + at, (size_t)(end - in.at) - at), rest;
        at += line.len + 1;
        *ret_used = at;
        if (behind(bytes_of(line.at, line.len + 1), GREETING_HERE, &rest))
            return GREETING_READY;
        if (behind(line, NEED, &rest) && read_processor(rest, ret_processor))
            return GREETING_NEED;
    }
    return in.len >= GREETING_MAX ? GREETING_NONE : GREETING_MORE;
}
