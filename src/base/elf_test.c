/* SPDX-License-Identifier: MIT */
/* Tests of the reader of ELF files: all four kinds of them, cut and garbled ones. */
#include "base/elf.h"

#include <errno.h>

#include "base/random.h"
#include "elfmaker.h"
#include "tap.h"

struct memory {
    const uint8_t *at;
    size_t len;
};

static long read_memory(void *self, uint64_t at, void *to, size_t len) {
    const struct memory *m = self;
    if (at >= m->len)
        return 0;
    size_t n = m->len - (size_t)at < len ? m->len - (size_t)at : len;
    memcpy(to, m->at + at, n);
    return (long)n;
}

static struct elfmaker sample(bool wide, bool big) {
    return (struct elfmaker){.wide = wide,
                             .big = big,
                             .machine = 183,
                             .flags = 0x12345678,
                             .interpreter = "/lib/ld.so",
                             .soname = "libme.so.1",
                             .rpath = "/rpath",
                             .needs = {"liba.so.1", "libb.so.2"},
                             .auxiliary = "libaux.so",
                             .flags_1 = 0x801};
}

static void check_needs(const struct elf *e) {
    static const char *const names[] = {"liba.so.1", "libb.so.2", "libaux.so"};
    struct elf_need need;
    uint32_t at = 0;
    for (int i = 0; i < 3; i++) {
        char name[32];
        if (!CHECK_EQ(elf_next_need(e, &at, &need), 1))
            return;
        CHECK_EQ(need.kind, i == 2 ? ELF_AUXILIARY : ELF_NEEDED);
        CHECK_EQ(elf_string(e, need.name, name, sizeof name), (long)strlen(names[i]));
        CHECK_STR(name, names[i]);
    }
    CHECK_EQ(elf_next_need(e, &at, &need), 0);
}

static void check_kind(bool wide, bool big) {
    static uint8_t file[ELFMAKER_BYTES_MAX];
    struct elfmaker maker = sample(wide, big);
    struct memory m = {file, elfmaker_make(&maker, file, sizeof file)};
    struct elf e;
    char text[32];
    if (!CHECK_EQ(elf_read(&e, (struct elf_source){read_memory, &m}), 0))
        return;
    CHECK(e.wide == wide && e.big == big && e.machine == 183 && e.type == ELF_TYPE_DYN);
    CHECK_EQ(e.flags, 0x12345678);
    CHECK(e.no_default && e.runpath == ELF_ABSENT);
    CHECK_EQ(elf_interpreter(&e, text, sizeof text), 0);
    CHECK_STR(text, "/lib/ld.so");
    CHECK_EQ(elf_interpreter(&e, text, 10), -ENAMETOOLONG);
    CHECK_EQ(elf_string(&e, e.soname, text, sizeof text), 10);
    CHECK_STR(text, "libme.so.1");
    CHECK_EQ(elf_string(&e, e.soname, text, 10), -ENAMETOOLONG);
    CHECK_EQ(elf_string(&e, e.rpath, text, sizeof text), 6);
    CHECK_EQ(elf_string(&e, e.strings_bytes, text, sizeof text), -EBADMSG);
    CHECK_EQ(elf_string(&e, ELF_ABSENT, text, sizeof text), -EBADMSG);
    check_needs(&e);
}

static void test_kinds(void) {
    for (int kind = 0; kind < 4; kind++)
        check_kind(kind & 1, kind & 2);
}

static void test_runpath_wins(void) {
    static uint8_t file[ELFMAKER_BYTES_MAX];
    struct elfmaker maker = {.wide = true, .machine = 62, .rpath = "/r", .runpath = "/u"};
    struct memory m = {file, elfmaker_make(&maker, file, sizeof file)};
    struct elf e;
    char text[8];
    CHECK_EQ(elf_read(&e, (struct elf_source){read_memory, &m}), 0);
    CHECK(e.rpath == ELF_ABSENT && e.soname == ELF_ABSENT && !e.no_default);
    CHECK_EQ(elf_string(&e, e.runpath, text, sizeof text), 2);
    CHECK_EQ(elf_interpreter(&e, text, sizeof text), -ENOENT);
}

static void test_other_files(void) {
    struct memory script = {(const uint8_t *)"#!/bin/sh\n12345678", 18};
    struct memory stump = {(const uint8_t *)"\177ELF", 4};
    struct memory wrong = {(const uint8_t *)"\177ELF\3\1\1---------", 16};
    struct memory cut = {(const uint8_t *)"\177ELF\2\1\1---------", 16};
    struct elf e;
    CHECK_EQ(elf_read(&e, (struct elf_source){read_memory, &script}), -ENOEXEC);
    CHECK_EQ(elf_read(&e, (struct elf_source){read_memory, &stump}), -ENOEXEC);
    CHECK_EQ(elf_read(&e, (struct elf_source){read_memory, &wrong}), -EBADMSG);
    CHECK_EQ(elf_read(&e, (struct elf_source){read_memory, &cut}), -EBADMSG);
}

static long read_nothing(void *self, uint64_t at, void *to, size_t len) {
    (void)self, (void)at, (void)to, (void)len;
    return -EIO;
}

static void test_source_fails(void) {
    struct elf e;
    CHECK_EQ(elf_read(&e, (struct elf_source){read_nothing, NULL}), -EIO);
}

/* Whatever can be read of it, nothing outside is touched (a sanitizer looks on) and it ends. */
static void read_everything(struct memory *m) {
    struct elf e;
    struct elf_need need;
    char text[64];
    uint32_t at = 0;
    if (elf_read(&e, (struct elf_source){read_memory, m}) < 0)
        return;
    elf_interpreter(&e, text, sizeof text);
    elf_string(&e, e.soname, text, sizeof text);
    while (elf_next_need(&e, &at, &need) == 1)
        elf_string(&e, need.name, text, sizeof text);
    CHECK(at <= ELF_DYNAMIC_MAX);
}

static void test_garbled(void) {
    static uint8_t file[ELFMAKER_BYTES_MAX], copy[ELFMAKER_BYTES_MAX];
    struct random random;
    random_init(&random, 7);
    for (int i = 0; i < 4000; i++) {
        struct elfmaker maker = sample(i & 1, i & 2);
        size_t len = elfmaker_make(&maker, file, sizeof file);
        memcpy(copy, file, len);
        for (int k = 0; k < 3; k++) /* mostly in the headers */
            copy[random_below(&random, k == 0 ? 240 : (uint32_t)len)] =
                (uint8_t)random_below(&random, 256);
        struct memory m = {copy, i % 5 == 0 ? random_below(&random, (uint32_t)len) : len};
        read_everything(&m);
    }
}

int main(void) {
    TEST(test_kinds);
    TEST(test_runpath_wins);
    TEST(test_other_files);
    TEST(test_source_fails);
    TEST(test_garbled);
    return tap_finish();
}
