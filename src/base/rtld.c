/* SPDX-License-Identifier: MIT */
/* What a loader of glibc has built in: see rtld.h. */
#include "base/rtld.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* The place of these bytes at or after `from`; NULL if there is none. */
static const uint8_t *find(struct bytes in, size_t from, const char *what, size_t len) {
    while (from + len <= in.len) {
        const uint8_t *at = memchr(in.at + from, what[0], in.len - len - from + 1);
        if (at == NULL)
            return NULL;
        if (memcmp(at, what, len) == 0)
            return at;
        from = (size_t)(at - in.at) + 1;
    }
    return NULL;
}

static bool is_path(const uint8_t *at, size_t len) {
    for (size_t i = 0; i < len; i++)
        if (at[i] <= ' ' || at[i] > '~')
            return false;
    return len > 0 && len < RTLD_TEXT_MAX && at[0] == '/';
}

/* The length of a folder of libraries that begins here, with its slash; 0 if there is none. */
static size_t folder_at(struct bytes file, size_t at) {
    size_t most = file.len - at < RTLD_TEXT_MAX ? file.len - at : RTLD_TEXT_MAX;
    const uint8_t *text = file.at + at;
    const uint8_t *end = most == 0 ? NULL : memchr(text, '\0', most);
    size_t len = end == NULL ? 0 : (size_t)(end - text);
    if (len < 3 || text[len - 1] != '/' || !is_path(text, len))
        return 0;
    return find(bytes_of(text, len), 0, "/lib", 4) == NULL ? 0 : len;
}

static bool read_folders(struct rtld *r, struct bytes file) {
    for (size_t at = 0; at + 1 < file.len && r->folders == 0;) {
        const uint8_t *slash = find(file, at, "\0/", 2);
        if (slash == NULL)
            return false;
        at = (size_t)(slash - file.at) + 1;
        size_t len, next = at;
        while (r->folders < RTLD_FOLDERS_MAX && (len = folder_at(file, next)) > 0) {
            memcpy(r->folder[r->folders++], file.at + next, len + 1);
            next += len + 1;
        }
    }
    return r->folders > 0;
}

/* $LIB is the first folder without its slashes: glibc is built so that this is true. */
static void set_lib(struct rtld *r) {
    size_t len = strlen(r->folder[0]) - 2;
    memcpy(r->lib, r->folder[0] + 1, len);
    r->lib[len] = '\0';
}

static bool read_cache(struct rtld *r, struct bytes file) {
    static const char name[] = "/ld.so.cache";
    const uint8_t *at = find(file, 0, name, sizeof name);
    if (at == NULL)
        return false;
    const uint8_t *end = at + sizeof name - 1;
    while (at > file.at && at[-1] != '\0' && end - at < RTLD_TEXT_MAX)
        at--;
    size_t len = (size_t)(end - at);
    if (!is_path(at, len))
        return false;
    memcpy(r->cache, at, len + 1);
    return true;
}

int rtld_read(struct rtld *ret, struct bytes file) {
    static const char argv0[] = "\0--argv0";
    struct rtld r = {0};
    if (!read_folders(&r, file) || !read_cache(&r, file))
        return -ENOENT;
    set_lib(&r);
    r.argv0 = find(file, 0, argv0, sizeof argv0) != NULL;
    *ret = r;
    return 0;
}

static bool has_word(const char *line, size_t line_len, const char *word, size_t len) {
    for (size_t i = 0; i + len <= line_len; i++)
        if (memcmp(line + i, word, len) == 0 && (i == 0 || line[i - 1] == ' ') &&
            (i + len == line_len || line[i + len] == ' '))
            return true;
    return false;
}

/* All of the words, which have a blank between them. */
static bool has_all(const char *line, size_t line_len, const char *words) {
    while (*words != '\0') {
        const char *end = strchr(words, ' ');
        size_t len = end == NULL ? strlen(words) : (size_t)(end - words);
        if (!has_word(line, line_len, words, len))
            return false;
        words += end == NULL ? len : len + 1;
    }
    return true;
}

const char *rtld_hwcaps(const char *cpuinfo) {
    /* As glibc's get-isa-level.h asks, in the words of Linux; a level asks for those before it too. */
    static const char *const levels[] = {
        "cx16 lahf_lm popcnt pni ssse3 sse4_1 sse4_2",
        "avx avx2 f16c fma abm movbe bmi1 bmi2",
        "avx512f avx512bw avx512cd avx512dq avx512vl",
    };
    static const char *const folders[] = {
        "",
        "x86-64-v2",
        "x86-64-v3:x86-64-v2",
        "x86-64-v4:x86-64-v3:x86-64-v2",
    };
    struct bytes text = bytes_from_str(cpuinfo);
    const char *line = (const char *)find(text, 0, "\nflags\t", 7);
    if (line == NULL)
        return "";
    line += 7;
    const char *end = strchr(line, '\n');
    size_t len = end == NULL ? strlen(line) : (size_t)(end - line);
    unsigned level = 0;
    while (level < 3 && has_all(line, len, levels[level]))
        level++;
    return folders[level];
}
