/* SPDX-License-Identifier: MIT */
/* What processes can be bound to: see topology.h. */
#include "os/topology.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "os/companion.h"
#include "os/errand.h"

enum { WORD_BITS = 8 * sizeof(unsigned long), NUMBERS = HOME_WORDS * WORD_BITS };
enum { TEXT_BYTES = 256 * 1024 };

/* ---- sets ---- */

void cpuset_add(struct cpuset *s, uint32_t number) {
    if (number < NUMBERS)
        s->bits[number / WORD_BITS] |= 1UL << (number % WORD_BITS);
}

bool cpuset_has(const struct cpuset *s, uint32_t number) {
    return number < NUMBERS && (s->bits[number / WORD_BITS] >> (number % WORD_BITS) & 1) != 0;
}

bool cpuset_empty(const struct cpuset *s) {
    for (size_t i = 0; i < HOME_WORDS; i++)
        if (s->bits[i] != 0)
            return false;
    return true;
}

static void keep(struct cpuset *s, const struct cpuset *others, bool inside) {
    for (size_t i = 0; i < HOME_WORDS; i++)
        s->bits[i] &= inside ? others->bits[i] : ~others->bits[i];
}

void cpuset_format(const struct cpuset *s, char *out, size_t cap) {
    struct text t;
    text_init(&t, out, cap);
    for (uint32_t i = 0; i < NUMBERS; i++) {
        uint32_t last = i;
        if (!cpuset_has(s, i))
            continue;
        while (cpuset_has(s, last + 1))
            last++;
        if (t.len > 0)
            text_char(&t, ',');
        text_u64(&t, i);
        if (last > i) {
            text_char(&t, '-');
            text_u64(&t, last);
        }
        i = last;
    }
}

/* The text behind it; NULL if it is no list of numbers. */
static const char *parse_list(const char *at, struct cpuset *ret) {
    uint64_t first, last;
    for (;; at++) {
        int n = text_scan_u64(at, &first);
        if (n <= 0)
            return NULL;
        at += n;
        last = first;
        if (*at == '-') {
            n = text_scan_u64(at + 1, &last);
            if (n <= 0)
                return NULL;
            at += 1 + n;
        }
        if (last < first || last >= NUMBERS)
            return NULL;
        for (uint64_t i = first; i <= last; i++)
            cpuset_add(ret, (uint32_t)i);
        if (*at != ',')
            return at;
    }
}

/* ---- the text ---- */

static int add(struct topology *t, enum topology_level level, const struct cpuset *set) {
    size_t count = t->count[level];
    struct cpuset *more = realloc(t->sets[level], (count + 1) * sizeof *more);
    if (more == NULL)
        return -ENOMEM;
    more[count] = *set;
    t->sets[level] = more;
    t->count[level]++;
    return 0;
}

static const char *parse_line(struct topology *t, const char *line, int *ret_error) {
    static const char *const names[] = {
        [TOPOLOGY_CORE] = "core ", [TOPOLOGY_SOCKET] = "socket ", [TOPOLOGY_NUMA] = "numa "};
    struct cpuset set = {0};
    for (enum topology_level level = 0; level < TOPOLOGY_LEVELS; level++) {
        size_t len = strlen(names[level]);
        if (strncmp(line, names[level], len) != 0)
            continue;
        const char *end = parse_list(line + len, &set);
        bool whole = end != NULL && *end == '\n';
        *ret_error = whole ? add(t, level, &set) : -EINVAL;
        return whole ? end + 1 : line;
    }
    *ret_error = -EINVAL;
    return line;
}

int topology_parse(struct topology *t, const char *text) {
    int error = 0;
    while (*text != '\0' && error == 0)
        text = parse_line(t, text, &error);
    if (error == 0 && t->count[TOPOLOGY_CORE] == 0)
        error = -EINVAL;
    if (error < 0)
        topology_fini(t);
    return error;
}

/* ---- asking ---- */

static int ask_program(struct topology *t) {
    char program[PATH_MAX];
    int r = companion_find("storm-topo", program, sizeof program);
    if (r < 0)
        return r;
    char *text = calloc(1, TEXT_BYTES);
    if (text == NULL)
        return -ENOMEM;
    const char *argv[] = {program, NULL};
    struct errand e = {.argv = argv, .output = text, .output_cap = TEXT_BYTES, .silent = true};
    r = errand_run(&e);
    if (r == 0)
        r = e.status != 0 ? -EIO : topology_parse(t, text);
    free(text);
    return r;
}

/* A list of numbers in a file. */
__attribute__((format(printf, 2, 3))) static bool read_list(struct cpuset *ret, const char *format,
                                                            ...) {
    char path[PATH_MAX], text[4096] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(path, sizeof path, format, args);
    va_end(args);
    FILE *f = fopen(path, "re");
    *ret = (struct cpuset){0};
    bool good = f != NULL && fgets(text, sizeof text, f) != NULL && parse_list(text, ret) != NULL;
    if (f != NULL)
        fclose(f);
    return good;
}

/* Whoever has a lower one beside it has been counted with that. */
static int add_once(struct topology *t, enum topology_level level, struct cpuset *set,
                    uint32_t number) {
    for (uint32_t i = 0; i < number; i++)
        if (cpuset_has(set, i))
            return 0;
    return add(t, level, set);
}

int topology_read(struct topology *t, const char *system) {
    struct cpuset online, set, nodes;
    int r = read_list(&online, "%s/cpu/online", system) ? 0 : -ENOENT;
    for (uint32_t i = 0; i < NUMBERS && r == 0; i++) {
        if (!cpuset_has(&online, i))
            continue;
        if (!read_list(&set, "%s/cpu/cpu%u/topology/thread_siblings_list", system, i))
            cpuset_add(&set, i);
        r = add_once(t, TOPOLOGY_CORE, &set, i);
        if (r == 0 && read_list(&set, "%s/cpu/cpu%u/topology/core_siblings_list", system, i))
            r = add_once(t, TOPOLOGY_SOCKET, &set, i);
    }
    if (!read_list(&nodes, "%s/node/has_cpu", system))
        nodes = (struct cpuset){0};
    for (uint32_t i = 0; i < NUMBERS && r == 0; i++)
        if (cpuset_has(&nodes, i) && read_list(&set, "%s/node/node%u/cpulist", system, i))
            r = add(t, TOPOLOGY_NUMA, &set);
    if (r == 0 && t->count[TOPOLOGY_SOCKET] == 0)
        r = add(t, TOPOLOGY_SOCKET, &online);
    if (r == 0 && t->count[TOPOLOGY_NUMA] == 0)
        r = add(t, TOPOLOGY_NUMA, &online); /* kernels that know of no nodes have one */
    if (r < 0)
        topology_fini(t);
    return r;
}

int topology_ask(struct topology *t) {
    if (t->asked)
        return t->error;
    t->asked = true;
    t->error = ask_program(t);
    if (t->error < 0)
        t->error = topology_read(t, "/sys/devices/system");
    return t->error;
}

void topology_fini(struct topology *t) {
    for (enum topology_level level = 0; level < TOPOLOGY_LEVELS; level++) {
        free(t->sets[level]);
        t->sets[level] = NULL;
        t->count[level] = 0;
    }
}

/* ---- places ---- */

uint32_t topology_place(const struct topology *t, enum topology_level level,
                        const struct cpuset *may, uint32_t index, struct cpuset *ret,
                        uint32_t *ret_number) {
    uint32_t places = 0;
    for (uint32_t i = 0; i < t->count[level]; i++) {
        struct cpuset set = t->sets[level][i];
        keep(&set, may, true);
        places += !cpuset_empty(&set);
    }
    if (places == 0)
        return 0;
    index %= places;
    for (uint32_t i = 0; i < t->count[level]; i++) {
        *ret = t->sets[level][i];
        keep(ret, may, true);
        *ret_number = i;
        if (!cpuset_empty(ret) && index-- == 0)
            break;
    }
    return places;
}

void topology_spare(const struct topology *t, uint32_t cores, struct cpuset *set) {
    struct cpuset left = *set;
    for (uint32_t i = 0; i < cores && i < t->count[TOPOLOGY_CORE]; i++)
        keep(&left, &t->sets[TOPOLOGY_CORE][i], false);
    if (!cpuset_empty(&left))
        *set = left;
}
