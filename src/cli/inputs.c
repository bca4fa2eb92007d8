/* SPDX-License-Identifier: MIT */
/* What goes into a job's folder, and what comes back from it: see inputs.h. */
#include "cli/inputs.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/complain.h"
#include "wire/bundle.h"

/* Writes a relative path in the one way that nodes are told it: "a//./b/" is "a/b". False if it leads out. */
static bool straighten(const char *path, size_t path_len, char out[INPUT_NAME_MAX]) {
    size_t len = 0;
    if (path_len >= INPUT_NAME_MAX || (path_len > 0 && path[0] == '/'))
        return false;
    for (size_t at = 0; at < path_len;) {
        size_t part = 0;
        while (at + part < path_len && path[at + part] != '/')
            part++;
        if (part == 2 && path[at] == '.' && path[at + 1] == '.')
            return false;
        if (part > 0 && !(part == 1 && path[at] == '.')) {
            if (len > 0)
                out[len++] = '/';
            memcpy(out + len, path + at, part);
            len += part;
        }
        at += part + 1;
    }
    out[len] = '\0';
    return true;
}

/* The last colon, unless that is part of the name of a file. */
static const char *find_colon(const char *text) {
    struct stat st;
    return lstat(text, &st) == 0 ? NULL : strrchr(text, ':');
}

static int name_itself(const char *text, struct job_input *ret) {
    size_t len = strlen(ret->path);
    while (len > 1 && ret->path[len - 1] == '/')
        ret->path[--len] = '\0';
    const char *slash = strrchr(ret->path, '/');
    snprintf(ret->name, sizeof ret->name, "%s", slash != NULL ? slash + 1 : ret->path);
    if (entry_path_fits(bytes_from_str(ret->name)))
        return 0;
    return complain("--input", "%s: has no name of its own; give it one: --input %s:NAME", text,
                    text);
}

/* A name that ends in a slash is that of a folder to put it in. */
static int put_inside(const char *text, struct job_input *ret) {
    char folder[INPUT_NAME_MAX];
    snprintf(folder, sizeof folder, "%s", ret->name);
    int r = name_itself(text, ret);
    size_t len = strlen(folder);
    if (r != 0 || len == 0)
        return r;
    if (len + strlen(ret->name) + 2 > sizeof folder)
        return complain("--input", "%s: the name is too long", text);
    memmove(ret->name + len + 1, ret->name, strlen(ret->name) + 1);
    memcpy(ret->name, folder, len);
    ret->name[len] = '/';
    return 0;
}

int input_read(const char *text, struct job_input *ret) {
    const char *colon = find_colon(text);
    size_t len = colon == NULL ? strlen(text) : (size_t)(colon - text);
    if (len == 0 || len >= sizeof ret->path)
        return complain("--input", "\"%s\" will not do; a file, or FILE:NAME", text);
    memcpy(ret->path, text, len);
    ret->path[len] = '\0';
    if (colon == NULL || colon[1] == '\0')
        return name_itself(text, ret);
    size_t name_len = strlen(colon + 1);
    if (!straighten(colon + 1, name_len, ret->name))
        return complain("--input",
                        "%s: the name must lie in the job's folder; without a slash at its "
                        "beginning, and without \"..\"",
                        colon + 1);
    if (colon[name_len] == '/' || ret->name[0] == '\0')
        return put_inside(text, ret);
    if (!entry_path_fits(bytes_from_str(ret->name)))
        return complain("--input", "%s: the name is too long", colon + 1);
    return 0;
}

int output_wish_read(const char *text, struct output_wish *ret) {
    const char *colon = strrchr(text, ':');
    size_t len = colon == NULL ? strlen(text) : (size_t)(colon - text);
    if (!straighten(text, len, ret->pattern))
        return complain("--fetch",
                        "%s: what is fetched lies in the job's folder; without a slash at its "
                        "beginning, and without \"..\"",
                        text);
    const char *slash = strrchr(ret->pattern, '/');
    size_t before = slash == NULL ? 0 : (size_t)(slash - ret->pattern);
    if (ret->pattern[0] == '\0' || strcspn(ret->pattern, "*?[") < before)
        return complain("--fetch", "\"%s\" will not do; a pattern for files: 'out/*.dat'", text);
    const char *folder = colon == NULL || colon[1] == '\0' ? "." : colon + 1;
    if (snprintf(ret->folder, sizeof ret->folder, "%s", folder) >= (int)sizeof ret->folder)
        return complain("--fetch", "%s: the name is too long", folder);
    return 0;
}
