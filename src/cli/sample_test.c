/* SPDX-License-Identifier: MIT */
/* Tests of samples: sizes, other bytes each time, programs that map what follows them. */
#include "cli/sample.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/units.h"
#include "tap.h"

static const char path[] = "sample_test.tmp";

static void test_file(void) {
    struct random r;
    struct bytes a, b;
    random_init(&r, 1);
    CHECK_EQ(sample_file(path, 3 * MIB + 7, &r), 0);
    CHECK_EQ(sample_map(path, &a), 0);
    CHECK_EQ(a.len, 3 * MIB + 7);
    CHECK_EQ(unlink(path), 0);
    CHECK_EQ(sample_file(path, 3 * MIB + 7, &r), 0);
    CHECK_EQ(sample_map(path, &b), 0);
    CHECK_EQ(b.len, a.len);
    CHECK(memcmp(a.at, b.at, MIB) != 0);
    munmap((void *)a.at, a.len);
    munmap((void *)b.at, b.len);
    CHECK_EQ(sample_file(path, 0, &r), 0);
    CHECK_EQ(sample_map(path, &a), -ENODATA);
    CHECK_EQ(sample_file("/no/such/folder/x", 1, &r), -ENOENT);
    unlink(path);
}

struct program {
    Elf64_Ehdr head;
    Elf64_Phdr parts[2];
    uint8_t rest[3000];
};

static struct program make_program(void) {
    struct program p = {.head = {.e_type = ET_EXEC,
                                 .e_phoff = sizeof(Elf64_Ehdr),
                                 .e_phentsize = sizeof(Elf64_Phdr),
                                 .e_phnum = 2},
                        .parts = {{.p_type = PT_NOTE},
                                  {.p_type = PT_LOAD, .p_vaddr = 0x400000, .p_memsz = 0x12345}}};
    memcpy(p.head.e_ident, ELFMAG, SELFMAG);
    p.head.e_ident[EI_CLASS] = ELFCLASS64;
    return p;
}

static void test_pad(void) {
    struct program p = make_program();
    CHECK(sample_pad(room_of(&p, sizeof p), MIB));
    CHECK_EQ(p.parts[0].p_type, PT_LOAD);
    CHECK_EQ(p.parts[0].p_offset, 65536);
    CHECK_EQ(p.parts[0].p_filesz, MIB - 65536);
    CHECK_EQ(p.parts[0].p_vaddr, 0x430000);
    CHECK(!sample_pad(room_of(&p, sizeof p), MIB)); /* there is no other note */

    p = make_program();
    CHECK(!sample_pad(room_of(&p, sizeof p), 65536)); /* nothing to map */
    CHECK(!sample_pad(room_of(&p, 10), MIB));
    CHECK(!sample_pad(room_of(&p, sizeof p.head + 5), MIB));
    p.head.e_type = ET_DYN;
    CHECK(!sample_pad(room_of(&p, sizeof p), MIB));
}

static void test_program(void) {
    struct random r;
    struct bytes made;
    random_init(&r, 1);
    CHECK_EQ(sample_file(path, 1000, &r), 0); /* of no kind that could be padded */
    CHECK_EQ(sample_program("sample_test.out", path, 5000, &r), 0);
    CHECK_EQ(sample_map("sample_test.out", &made), 0);
    CHECK_EQ(made.len, 5000);
    munmap((void *)made.at, made.len);
    CHECK_EQ(access("sample_test.out", X_OK), 0);
    CHECK_EQ(sample_program("sample_test.out", path, 10, &r), 0);
    CHECK_EQ(sample_map("sample_test.out", &made), 0);
    CHECK_EQ(made.len, 1000);
    munmap((void *)made.at, made.len);
    unlink("sample_test.out");
    unlink(path);
    CHECK_EQ(sample_program("sample_test.out", path, 10, &r), -ENOENT);
}

int main(void) {
    TEST(test_file);
    TEST(test_pad);
    TEST(test_program);
    return tap_finish();
}
