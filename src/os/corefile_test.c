/* SPDX-License-Identifier: MIT */
/* Cores: where they are looked for, and whose they are. */
#include "os/corefile.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

static struct corefile sample = {
    .folder = "/job", .own = "/own", .name = "core.1.2.n3", .pid = 77, .signal = 11};

static const char *expand(const char *pattern, bool uses_pid) {
    static char out[128];
    return corefile_expand(pattern, uses_pid, &sample, out, sizeof out) ? out : NULL;
}

static void test_patterns(void) {
    CHECK_STR(expand("core", false), "/job/core");
    CHECK_STR(expand("core", true), "/job/core.77");
    CHECK_STR(expand("core.%p", true), "/job/core.77");
    CHECK_STR(expand("/var/cores/%e.%s.%P%%", false), "/var/cores/*.11.77%");
    CHECK_STR(expand("%h-%t/core%", false), "/job/*-*/core");
    CHECK_STR(expand("co[r]e", false), "/job/co\\[r]e");
    CHECK(expand("|/usr/share/apport/apport %p", false) == NULL);
    CHECK(expand("@socket", false) == NULL);
    sample.apart = true;
    CHECK_STR(expand("core.%p", false), "/job/core.*");
    CHECK_STR(expand("core", true), "/job/core.*");
    sample.apart = false;
    char little[8];
    CHECK(!corefile_expand("core.%p", false, &sample, little, sizeof little));
}

static void make_core(const char *path, pid_t pid) {
    struct {
        Elf64_Ehdr head;
        Elf64_Phdr part;
        Elf64_Nhdr note;
        char name[8];
        struct elf_prpsinfo info;
    } __attribute__((packed))
    file = {.head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64},
                     .e_phoff = sizeof(Elf64_Ehdr),
                     .e_phentsize = sizeof(Elf64_Phdr),
                     .e_phnum = 1},
            .part = {.p_type = PT_NOTE},
            .note = {.n_namesz = 5, .n_type = NT_PRPSINFO, .n_descsz = sizeof file.info},
            .name = "CORE",
            .info = {.pr_pid = pid}};
    file.part.p_offset = sizeof file.head + sizeof file.part;
    file.part.p_filesz = sizeof file - file.part.p_offset;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && write(fd, &file, sizeof file) == (ssize_t)sizeof file);
    close(fd);
}

static void test_owner(void) {
    char folder[] = "/tmp/storm-core-XXXXXX", path[64];
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/core", folder);
    CHECK(!corefile_is_of(path, 77));
    make_core(path, 77);
    CHECK(corefile_is_of(path, 77));
    CHECK(!corefile_is_of(path, 78));
    CHECK(truncate(path, 3) == 0); /* it does not tell */
    CHECK(corefile_is_of(path, 78));
    unlink(path);
    rmdir(folder);
}

int main(void) {
    TEST(test_patterns);
    TEST(test_owner);
    return tap_finish();
}
