/* SPDX-License-Identifier: MIT */
/* A program that brings its libraries along: see outfit.h. */
#include "wire/outfit.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "wire/spec.h"

static bool has_any(struct bytes b, const char *of) {
    for (size_t i = 0; i < b.len; i++)
        if (b.at[i] == '\0' || strchr(of, b.at[i]) != NULL)
            return true;
    return false;
}

/* In a search path colons and semicolons part the folders, and the loader replaces what begins with a dollar. */
static bool folder_fits(struct bytes folder) {
    return folder.len > 1 && folder.at[0] == '/' && folder.at[folder.len - 1] != '/' &&
           !has_any(folder, ":;$");
}

static bool name_fits(struct bytes name) {
    return name.len > 0 && !has_any(name, "/:");
}

static bool fits(const struct outfit *o) {
    return folder_fits(o->folder) && name_fits(o->program);
}

static void add(struct text *t, struct bytes b) {
    text_strn(t, (const char *)b.at, b.len);
}

int outfit_file(const struct outfit *o, char *out, size_t cap) {
    struct text t;
    if (!fits(o))
        return -EINVAL;
    text_init(&t, out, cap);
    add(&t, o->folder);
    text_str(&t, "/" OUTFIT_START "/");
    add(&t, o->program);
    return t.cut ? -ENAMETOOLONG : 0;
}

/* Strings are ended by a NUL that counts. */
static void end(struct text *t) {
    text_strn(t, "", 1);
}

static void add_string(struct text *t, const char *s) {
    text_str(t, s);
    end(t);
}

/* Objects as the loader calls them: libraries by the path it found them at, the program by nothing. */
static int add_stubborn(struct text *t, const struct outfit *o) {
    const char *name;
    for (size_t at = 0; (name = strings_next(o->stubborn, &at)) != NULL;) {
        if (*name == '\0' && at > 1)
            return -EINVAL; /* the program is the first or not in the list */
        if (at > strlen(name) + 1)
            text_char(t, ':');
        if (*name == '\0')
            continue;
        if (!name_fits(bytes_from_str(name)))
            return -EINVAL;
        add(t, o->folder);
        text_char(t, '/');
        text_str(t, name);
    }
    end(t);
    return 0;
}

static void add_path(struct text *t, const struct outfit *o, const char *library_path) {
    add_string(t, "--library-path");
    add(t, o->folder);
    if (*library_path != '\0') {
        text_char(t, ':');
        text_str(t, library_path);
    }
    end(t);
}

long outfit_arguments(const struct outfit *o, struct bytes arguments, const char *library_path,
                      struct room out) {
    struct text t;
    size_t at = 0;
    const char *name = strings_next(arguments, &at);
    if (!fits(o) || name == NULL || arguments.at[arguments.len - 1] != '\0' ||
        (o->stubborn.len > 0 && o->stubborn.at[o->stubborn.len - 1] != '\0'))
        return -EINVAL;
    text_init(&t, (char *)out.at, out.len);
    add_string(&t, name);
    add_path(&t, o, library_path);
    if (o->stubborn.len > 0) {
        add_string(&t, "--inhibit-rpath");
        if (add_stubborn(&t, o) < 0)
            return -EINVAL;
    }
    if (o->argv0) {
        add_string(&t, "--argv0");
        add_string(&t, name);
    }
    add(&t, o->folder);
    text_char(&t, '/');
    add(&t, o->program);
    end(&t);
    text_strn(&t, (const char *)arguments.at + at, arguments.len - at);
    return t.cut ? -ENOBUFS : (long)t.len;
}
