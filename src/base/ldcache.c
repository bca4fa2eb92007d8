/* SPDX-License-Identifier: MIT */
/* The loader's table of libraries: see ldcache.h. Names are those of glibc's sysdeps/generic/dl-cache.h. */
#include "base/ldcache.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const char magic_old[] = "ld.so-1.7.0";
static const char magic_new[] = "glibc-ld.so.cache1.1";

enum {
    OLD_HEADER_BYTES = 16, /* the magic, padded, and a count */
    OLD_ENTRY_BYTES = 12,
    HEADER_BYTES = 48,
    ENTRY_BYTES = 24,
    SECTION_BYTES = 16,
    SECTION_HWCAPS = 1,
    ORDER_LITTLE = 2,
    ORDER_BIG = 3,
};

static const uint32_t extension_magic = (uint32_t)-358342284;

/* An entry whose hwcap is the number of a folder below glibc-hwcaps; ten more bits are levels. */
static const uint64_t hwcap_folder = UINT64_C(1) << 62;
static const uint64_t hwcap_ignored = UINT64_C(0x3ffffffffff);

static uint32_t load_u32(const struct ldcache *c, const uint8_t *at) {
    if (c->big)
        return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
    return load_le32(at);
}

static uint64_t load_u64(const struct ldcache *c, const uint8_t *at) {
    uint64_t first = load_u32(c, at), second = load_u32(c, at + 4);
    return c->big ? first << 32 | second : second << 32 | first;
}

static bool begins(struct bytes b, const char *magic) {
    size_t len = strlen(magic);
    return b.len >= len && memcmp(b.at, magic, len) == 0;
}

/* The text at this offset, NULL if it does not lie inside with its end. */
static const char *text_at(struct bytes b, uint32_t at) {
    if (at >= b.len || memchr(b.at + at, '\0', b.len - at) == NULL)
        return NULL;
    return (const char *)b.at + at;
}

/* The table of folders below glibc-hwcaps; none is no mistake. */
static void read_extensions(struct ldcache *c, uint32_t at) {
    struct bytes head, sections, part;
    if (at == 0 || at % 4 != 0 || bytes_sub(c->file, at, 8, &head) < 0 ||
        load_u32(c, head.at) != extension_magic)
        return;
    uint32_t count = load_u32(c, head.at + 4);
    if (count > c->file.len / SECTION_BYTES ||
        bytes_sub(c->file, at + (size_t)8, (size_t)count * SECTION_BYTES, &sections) < 0)
        return;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *s = sections.at + (size_t)i * SECTION_BYTES;
        if (load_u32(c, s) == SECTION_HWCAPS &&
            bytes_sub(c->file, load_u32(c, s + 8), load_u32(c, s + 12), &part) == 0 &&
            part.len % 4 == 0)
            c->hwcaps = part;
    }
}

/* Where the present format begins. */
static int find_table(struct ldcache *c) {
    if (begins(c->file, magic_new)) {
        c->table = c->file;
        return 0;
    }
    if (!begins(c->file, magic_old) || c->file.len < OLD_HEADER_BYTES)
        return -EBADMSG;
    uint64_t count = load_u32(c, c->file.at + sizeof magic_old);
    uint64_t at = OLD_HEADER_BYTES + count * OLD_ENTRY_BYTES;
    at = (at + 7) & ~UINT64_C(7);
    if (at > c->file.len)
        return -EBADMSG;
    c->table = bytes_of(c->file.at + at, c->file.len - (size_t)at);
    return begins(c->table, magic_new) ? 0 : -EBADMSG;
}

int ldcache_read(struct ldcache *ret, struct bytes file, bool big) {
    struct ldcache c = {.file = file, .big = big};
    int r = find_table(&c);
    if (r < 0)
        return r;
    if (c.table.len < HEADER_BYTES)
        return -EBADMSG;
    uint8_t order = c.table.at[28];
    if (order != 0 && (order & 3) != (big ? ORDER_BIG : ORDER_LITTLE))
        return -EBADMSG;
    c.entries = load_u32(&c, c.table.at + 20);
    if (c.entries > (c.table.len - HEADER_BYTES) / ENTRY_BYTES)
        return -EBADMSG;
    read_extensions(&c, load_u32(&c, c.table.at + 32));
    *ret = c;
    return 0;
}

uint32_t ldcache_mark(uint16_t machine, bool wide, uint32_t flags) {
    static const struct {
        uint16_t machine;
        bool wide;
        uint32_t mask, flags; /* flags of the file */
        uint32_t mark;
    } marks[] = {
        {62, true, 0, 0, 0x0303},          /* x86-64 */
        {62, false, 0, 0, 0x0803},         /* x32 */
        {183, true, 0, 0, 0x0a03},         /* aarch64 */
        {22, true, 0, 0, 0x0403},          /* s390x */
        {21, true, 0, 0, 0x0503},          /* ppc64 */
        {43, true, 0, 0, 0x0103},          /* sparc64 */
        {40, false, 0x400, 0x400, 0x0903}, /* arm, hard float */
        {243, true, 6, 4, 0x1003},         /* riscv64, floats in registers of 64 bits */
        {243, true, 6, 0, 0x0f03},         /* riscv64, no floats in registers */
        {258, true, 7, 3, 0x1203},         /* loongarch64, as above */
        {258, true, 7, 1, 0x1103},
    };
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (marks[i].machine == machine && marks[i].wide == wide &&
            (flags & marks[i].mask) == marks[i].flags)
            return marks[i].mark;
    return 3; /* a library of glibc, as those of a machine with one kind of libraries are marked */
}

/* The place of a folder in the list, 1 for the first; 0: it is not there. */
static uint32_t preference(const char *hwcaps, const char *folder) {
    size_t len = strlen(folder);
    uint32_t place = 1;
    for (const char *at = hwcaps; *at != '\0'; place++) {
        const char *end = strchr(at, ':');
        size_t n = end == NULL ? strlen(at) : (size_t)(end - at);
        if (n == len && memcmp(at, folder, n) == 0)
            return place;
        at += end == NULL ? n : n + 1;
    }
    return 0;
}

/* 0: this entry is not for us; UINT32_MAX: for any machine; else the smaller the better. */
static uint32_t judge(const struct ldcache *c, const uint8_t *entry, const char *hwcaps) {
    uint64_t hwcap = load_u64(c, entry + 16);
    if (hwcap == 0)
        return UINT32_MAX;
    uint32_t index = (uint32_t)hwcap;
    if ((hwcap & ~hwcap_ignored) != hwcap_folder || index >= c->hwcaps.len / 4)
        return 0;
    const char *folder = text_at(c->file, load_u32(c, c->hwcaps.at + (size_t)index * 4));
    return folder == NULL ? 0 : preference(hwcaps, folder);
}

const char *ldcache_find(const struct ldcache *c, const char *name, uint32_t mark,
                         const char *hwcaps) {
    const char *best = NULL;
    uint32_t best_rank = 0;
    for (uint32_t i = 0; i < c->entries; i++) {
        const uint8_t *entry = c->table.at + HEADER_BYTES + (size_t)i * ENTRY_BYTES;
        if (load_u32(c, entry) != mark)
            continue;
        const char *key = text_at(c->table, load_u32(c, entry + 4));
        if (key == NULL || strcmp(key, name) != 0)
            continue;
        const char *path = text_at(c->table, load_u32(c, entry + 8));
        uint32_t rank = judge(c, entry, hwcaps);
        if (path != NULL && rank != 0 && (best == NULL || rank < best_rank)) {
            best = path;
            best_rank = rank;
        }
    }
    return best;
}
