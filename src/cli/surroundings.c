/* SPDX-License-Identifier: MIT */
/* What a process of a job finds around it: see surroundings.h. */
#include "cli/surroundings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static size_t name_len(const char *setting) {
    return strcspn(setting, "=");
}

static const char **find(const struct surroundings *s, const char *name, size_t len) {
    for (uint32_t i = 0; i < s->count; i++)
        if (strncmp(s->at[i], name, len) == 0 && s->at[i][len] == '=')
            return &s->at[i];
    return NULL;
}

static int append(struct surroundings *s, const char *setting) {
    if (s->count == s->cap) {
        uint32_t cap = s->cap ? s->cap * 2 : 64;
        const char **more = realloc(s->at, cap * sizeof *more);
        if (more == NULL)
            return -ENOMEM;
        s->at = more;
        s->cap = cap;
    }
    s->at[s->count++] = setting;
    return 0;
}

int surroundings_set(struct surroundings *s, const char *setting) {
    size_t len = name_len(setting);
    if (len == 0 || setting[len] != '=')
        return -EINVAL;
    const char **at = find(s, setting, len);
    if (at == NULL)
        return append(s, setting);
    *at = setting;
    return 0;
}

void surroundings_unset(struct surroundings *s, const char *name) {
    const char **at = find(s, name, strlen(name));
    if (at != NULL)
        *at = s->at[--s->count];
}

const char *surroundings_get(const struct surroundings *s, const char *name) {
    size_t len = strlen(name);
    const char **at = find(s, name, len);
    return at == NULL ? NULL : *at + len + 1;
}

/* Ours is in order: no need to look for doubles. */
static int inherit_all(struct surroundings *s) {
    for (char **at = environ; at != NULL && *at != NULL; at++)
        if ((*at)[0] != '=' && strchr(*at, '=') != NULL && append(s, *at) < 0)
            return -ENOMEM;
    return 0;
}

/* "HOME,LANG": those of ours; what is not set is left out. */
static int inherit_some(struct surroundings *s, const char *names) {
    while (*names != '\0') {
        size_t len = strcspn(names, ",");
        for (char **at = environ; at != NULL && *at != NULL; at++)
            if (len > 0 && strncmp(*at, names, len) == 0 && (*at)[len] == '=') {
                int r = surroundings_set(s, *at);
                if (r < 0)
                    return r;
            }
        names += len + (names[len] == ',');
    }
    return 0;
}

int surroundings_make(struct surroundings *s, const char *exported, const struct text_list *more) {
    int r = 0;
    *s = (struct surroundings){0};
    if (exported == NULL || strcmp(exported, "all") == 0)
        r = inherit_all(s);
    else if (strcmp(exported, "none") != 0)
        r = inherit_some(s, exported);
    for (uint32_t i = 0; r == 0 && i < more->count; i++)
        r = surroundings_set(s, more->at[i]);
    if (r == 0 && surroundings_get(s, "PATH") == NULL)
        r = append(s, "PATH=/usr/local/bin:/usr/bin:/bin");
    return r;
}

int surroundings_strings(struct surroundings *s, struct bytes *ret) {
    size_t len = 0, at = 0;
    for (uint32_t i = 0; i < s->count; i++)
        len += strlen(s->at[i]) + 1;
    free(s->bytes);
    s->bytes = malloc(len + 1);
    if (s->bytes == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < s->count; i++) {
        size_t n = strlen(s->at[i]) + 1;
        memcpy(s->bytes + at, s->at[i], n);
        at += n;
    }
    *ret = bytes_of(s->bytes, len);
    return 0;
}

void surroundings_fini(struct surroundings *s) {
    free(s->at);
    free(s->bytes);
    *s = (struct surroundings){0};
}

struct bytes surroundings_limits(uint8_t out[LIMITS_MAX * SPEC_LIMIT_BYTES]) {
    size_t len = 0;
    for (int i = 0; i < RLIM_NLIMITS && i < LIMITS_MAX; i++) {
        struct rlimit r;
        if (getrlimit((__rlimit_resource_t)i, &r) < 0)
            continue;
        struct rlimit_spec l = {
            .resource = (uint8_t)i, .soft = (uint64_t)r.rlim_cur, .hard = (uint64_t)r.rlim_max};
        spec_limit_store(out + len, &l);
        len += SPEC_LIMIT_BYTES;
    }
    return bytes_of(out, len);
}

uint32_t surroundings_umask(void) {
    mode_t mask = umask(0);
    umask(mask);
    return (uint32_t)mask;
}
