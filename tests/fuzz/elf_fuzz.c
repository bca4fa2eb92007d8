/* SPDX-License-Identifier: MIT */
/* Fuzzes the reader of ELF files, and what is read from a loader: any bytes, read to the end.
 *
 * A string that is read ends within its room, and the walk along what is needed ends. */
#include <stdint.h>
#include <string.h>

#include "base/assert.h"
#include "base/elf.h"
#include "base/rtld.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static long read_memory(void *self, uint64_t at, void *to, size_t len) {
    const struct bytes *b = self;
    if (at >= b->len)
        return 0;
    size_t n = b->len - (size_t)at < len ? b->len - (size_t)at : len;
    memcpy(to, b->at + at, n);
    return (long)n;
}

static void check_string(const struct elf *e, uint64_t name) {
    char text[64];
    long n = elf_string(e, name, text, sizeof text);
    ASSERT(n < (long)sizeof text);
    ASSERT(n < 0 || text[n] == '\0');
}

static void check_elf(struct bytes file) {
    struct elf e;
    struct elf_need need;
    char name[ELF_INTERPRETER_MAX];
    uint32_t at = 0, count = 0;
    if (elf_read(&e, (struct elf_source){.read = read_memory, .self = &file}) < 0)
        return;
    if (elf_interpreter(&e, name, sizeof name) == 0)
        ASSERT(strlen(name) > 0);
    check_string(&e, e.soname);
    check_string(&e, e.rpath);
    check_string(&e, e.runpath);
    while (elf_next_need(&e, &at, &need) == 1 && ++count <= ELF_DYNAMIC_MAX)
        check_string(&e, need.name);
    ASSERT(count <= ELF_DYNAMIC_MAX);
}

static void check_rtld(struct bytes file) {
    struct rtld r;
    if (rtld_read(&r, file) < 0)
        return;
    ASSERT(r.folders > 0 && r.folders <= RTLD_FOLDERS_MAX);
    for (uint32_t i = 0; i < r.folders; i++)
        ASSERT(r.folder[i][0] == '/' && r.folder[i][strlen(r.folder[i]) - 1] == '/');
    ASSERT(strlen(r.lib) < RTLD_TEXT_MAX && strlen(r.cache) < RTLD_TEXT_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check_elf(bytes_of(data, size));
    check_rtld(bytes_of(data, size));
    return 0;
}
