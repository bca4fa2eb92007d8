/* SPDX-License-Identifier: MIT */
/* Reading ELF files: see elf.h.
 *
 * Offsets in a file are sums of numbers that the file gives; `inside` and the translation of addresses are the
 * only places that add them, and neither wraps. */
#include "base/elf.h"

#include <errno.h>
#include <string.h>

enum {
    HEADER_BYTES_MAX = 64,
    SEGMENT_BYTES_MAX = 56,
    SEGMENT_LOAD = 1,
    SEGMENT_DYNAMIC = 2,
    SEGMENT_INTERPRETER = 3,
};

enum {
    TAG_END = 0,
    TAG_NEEDED = 1,
    TAG_STRINGS = 5,
    TAG_STRINGS_BYTES = 10,
    TAG_SONAME = 14,
    TAG_RPATH = 15,
    TAG_RUNPATH = 29,
    TAG_FLAGS_1 = 0x6ffffffb,
    TAG_AUXILIARY = 0x7ffffffd,
    TAG_FILTER = 0x7fffffff,
    FLAGS_1_NO_DEFAULT = 0x800,
};

/* ---- numbers ---- */

static uint64_t number(const struct elf *e, const uint8_t *at, unsigned bytes) {
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value = value << 8 | at[e->big ? i : bytes - 1 - i];
    return value;
}

static uint16_t half(const struct elf *e, const uint8_t *at) {
    return (uint16_t)number(e, at, 2);
}

static uint32_t word(const struct elf *e, const uint8_t *at) {
    return (uint32_t)number(e, at, 4);
}

/* An address or offset: the i-th of those that follow each other from `at` on. */
static uint64_t address(const struct elf *e, const uint8_t *at, unsigned i) {
    unsigned bytes = e->wide ? 8 : 4;
    return number(e, at + (size_t)i * bytes, bytes);
}

/* Offsets above are none that a file can have; it also keeps sums from wrapping. */
static bool inside(uint64_t at, uint64_t len) {
    return at <= INT64_MAX && len <= INT64_MAX - at;
}

/* All of these bytes. */
static int fetch(const struct elf *e, uint64_t at, void *to, size_t len) {
    if (!inside(at, len))
        return -EBADMSG;
    long n = e->source.read(e->source.self, at, to, len);
    if (n < 0)
        return (int)n;
    return (size_t)n == len ? 0 : -EBADMSG;
}

/* ---- header and segments ---- */

static int read_header(struct elf *e) {
    uint8_t h[HEADER_BYTES_MAX];
    long n = e->source.read(e->source.self, 0, h, 16);
    if (n < 0)
        return (int)n;
    if (n < 16 || memcmp(h, "\177ELF", 4) != 0)
        return -ENOEXEC;
    if ((h[4] != 1 && h[4] != 2) || (h[5] != 1 && h[5] != 2) || h[6] != 1)
        return -EBADMSG;
    e->wide = h[4] == 2;
    e->big = h[5] == 2;
    int r = fetch(e, 0, h, e->wide ? 64 : 52);
    if (r < 0)
        return r;
    e->type = half(e, h + 16);
    e->machine = half(e, h + 18);
    e->segments_at = address(e, h + 24, 1);
    const uint8_t *rest = h + 24 + 3 * (e->wide ? 8 : 4);
    e->flags = word(e, rest);
    e->segments = half(e, rest + 8);
    if (e->segments > 0 && half(e, rest + 6) != (e->wide ? 56 : 32))
        return -EBADMSG;
    return 0;
}

struct segment {
    uint32_t type;
    uint64_t offset, address, bytes; /* in the file */
};

static int read_segment(const struct elf *e, uint32_t i, struct segment *ret) {
    uint8_t s[SEGMENT_BYTES_MAX];
    size_t bytes = e->wide ? 56 : 32;
    if (!inside(e->segments_at, (i + UINT64_C(1)) * bytes))
        return -EBADMSG;
    int r = fetch(e, e->segments_at + i * bytes, s, bytes);
    if (r < 0)
        return r;
    const uint8_t *first = s + (e->wide ? 8 : 4);
    *ret = (struct segment){.type = word(e, s),
                            .offset = address(e, first, 0),
                            .address = address(e, first, 1),
                            .bytes = address(e, first, 3)};
    return 0;
}

/* Where in the file the bytes of this address are, and how many follow them in the segment. */
static int find_address(const struct elf *e, uint64_t where, uint64_t *ret_at,
                        uint64_t *ret_bytes) {
    for (uint32_t i = 0; i < e->segments; i++) {
        struct segment s;
        int r = read_segment(e, i, &s);
        if (r < 0)
            return r;
        if (s.type != SEGMENT_LOAD || where < s.address || where - s.address >= s.bytes)
            continue;
        uint64_t skip = where - s.address;
        if (!inside(s.offset, skip))
            return -EBADMSG;
        *ret_at = s.offset + skip;
        *ret_bytes = s.bytes - skip;
        return 0;
    }
    return -EBADMSG;
}

static int find_dynamic(struct elf *e, const struct segment *s) {
    uint64_t there;
    int r = find_address(e, s->address, &e->dynamic_at, &there);
    if (r < 0)
        return r;
    uint64_t bytes = s->bytes < there ? s->bytes : there;
    uint64_t count = bytes / (e->wide ? 16 : 8);
    if (count > ELF_DYNAMIC_MAX)
        return -EBADMSG;
    e->dynamic_count = (uint32_t)count;
    return 0;
}

/* Of several dynamic sections the last counts, as for the loader; of interpreters the first, as for the
 * kernel. */
static int read_segments(struct elf *e) {
    struct segment dynamic = {0};
    for (uint32_t i = 0; i < e->segments; i++) {
        struct segment s;
        int r = read_segment(e, i, &s);
        if (r < 0)
            return r;
        if (s.type == SEGMENT_INTERPRETER && e->interpreter_at == ELF_ABSENT) {
            e->interpreter_at = s.offset;
            e->interpreter_bytes = s.bytes;
        }
        if (s.type == SEGMENT_DYNAMIC)
            dynamic = s;
    }
    return dynamic.type == SEGMENT_DYNAMIC ? find_dynamic(e, &dynamic) : 0;
}

/* ---- the dynamic section ---- */

static int read_entry(const struct elf *e, uint32_t i, uint64_t *ret_tag, uint64_t *ret_value) {
    uint8_t d[16];
    size_t bytes = e->wide ? 16 : 8;
    int r = fetch(e, e->dynamic_at + i * bytes, d, bytes);
    if (r < 0)
        return r;
    *ret_tag = address(e, d, 0);
    *ret_value = address(e, d, 1);
    return 0;
}

static int find_strings(struct elf *e, uint64_t where, uint64_t bytes) {
    uint64_t there;
    if (where == ELF_ABSENT)
        return 0; /* then no name in it can be read */
    int r = find_address(e, where, &e->strings_at, &there);
    if (r < 0)
        return r;
    e->strings_bytes = bytes < there ? bytes : there;
    return 0;
}

/* Of several entries of a kind the last counts, as for the loader. */
static int read_dynamic(struct elf *e) {
    uint64_t strings = ELF_ABSENT, bytes = UINT64_MAX;
    for (uint32_t i = 0; i < e->dynamic_count; i++) {
        uint64_t tag, value;
        int r = read_entry(e, i, &tag, &value);
        if (r < 0)
            return r;
        if (tag == TAG_END)
            e->dynamic_count = i;
        else if (tag == TAG_STRINGS)
            strings = value;
        else if (tag == TAG_STRINGS_BYTES)
            bytes = value;
        else if (tag == TAG_SONAME)
            e->soname = value;
        else if (tag == TAG_RPATH)
            e->rpath = value;
        else if (tag == TAG_RUNPATH)
            e->runpath = value;
        else if (tag == TAG_FLAGS_1)
            e->no_default = (value & FLAGS_1_NO_DEFAULT) != 0;
    }
    if (e->runpath != ELF_ABSENT)
        e->rpath = ELF_ABSENT;
    return find_strings(e, strings, bytes);
}

int elf_read(struct elf *ret, struct elf_source source) {
    struct elf e = {.source = source,
                    .interpreter_at = ELF_ABSENT,
                    .dynamic_at = ELF_ABSENT,
                    .soname = ELF_ABSENT,
                    .rpath = ELF_ABSENT,
                    .runpath = ELF_ABSENT};
    int r = read_header(&e);
    if (r < 0 || (r = read_segments(&e)) < 0 || (r = read_dynamic(&e)) < 0)
        return r;
    *ret = e;
    return 0;
}

int elf_interpreter(const struct elf *e, char *out, size_t cap) {
    if (e->interpreter_at == ELF_ABSENT)
        return -ENOENT;
    if (e->interpreter_bytes < 2 || e->interpreter_bytes > ELF_INTERPRETER_MAX)
        return -EBADMSG;
    size_t bytes = (size_t)e->interpreter_bytes;
    if (bytes > cap)
        return -ENAMETOOLONG;
    int r = fetch(e, e->interpreter_at, out, bytes);
    if (r < 0)
        return r;
    return out[bytes - 1] == '\0' && out[0] != '\0' ? 0 : -EBADMSG;
}

int elf_next_need(const struct elf *e, uint32_t *at, struct elf_need *ret) {
    while (*at < e->dynamic_count) {
        uint64_t tag, value;
        int r = read_entry(e, (*at)++, &tag, &value);
        if (r < 0)
            return r;
        if (tag != TAG_NEEDED && tag != TAG_AUXILIARY && tag != TAG_FILTER)
            continue;
        *ret = (struct elf_need){.kind = tag == TAG_NEEDED      ? ELF_NEEDED
                                         : tag == TAG_AUXILIARY ? ELF_AUXILIARY
                                                                : ELF_FILTER,
                                 .name = value};
        return 1;
    }
    return 0;
}

long elf_string(const struct elf *e, uint64_t name, char *out, size_t cap) {
    if (name >= e->strings_bytes || !inside(e->strings_at, name))
        return -EBADMSG;
    uint64_t left = e->strings_bytes - name;
    size_t len = left < cap ? (size_t)left : cap;
    long n = e->source.read(e->source.self, e->strings_at + name, out, len);
    if (n < 0)
        return n;
    const char *end = memchr(out, '\0', (size_t)n);
    if (end == NULL)
        return (size_t)n == cap ? -ENAMETOOLONG : -EBADMSG;
    return end - out;
}
