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

#include "base/units.h"
#include "os/files.h"
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

static void make_elf(const char *path, pid_t pid, uint16_t type) {
    struct {
        Elf64_Ehdr head;
        Elf64_Phdr part;
        Elf64_Nhdr note;
        char name[8];
        struct elf_prpsinfo info;
    } __attribute__((packed))
    file = {.head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64},
                     .e_type = type,
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

static bool is_of(const char *path, pid_t pid) {
    struct corefile c = sample;
    c.pid = pid;
    return corefile_is_of(path, &c);
}

static char folder[32], path[64];

static void begin(void) {
    snprintf(folder, sizeof folder, "/tmp/storm-core-XXXXXX");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/core", folder);
}

static void finish(void) {
    remove(path);
    rmdir(folder);
}

static void test_owner(void) {
    begin();
    CHECK(!is_of(path, 77));
    make_elf(path, 77, ET_CORE);
    CHECK(is_of(path, 77));
    CHECK(!is_of(path, 78));
    CHECK(truncate(path, sizeof(Elf64_Ehdr)) == 0); /* it does not tell */
    CHECK(!is_of(path, 77));
    finish();
}

/* What a user has of that name stays where it is. */
static void test_other_files(void) {
    struct corefile apart = sample;
    char link[80];
    apart.apart = true;
    begin();
    CHECK(mkdir(path, 0700) == 0);
    CHECK(!is_of(path, 77) && !corefile_is_of(path, &apart));
    CHECK(rmdir(path) == 0);
    make_elf(path, 77, ET_EXEC);
    CHECK(!is_of(path, 77) && !corefile_is_of(path, &apart));
    CHECK(truncate(path, 3) == 0);
    CHECK(!is_of(path, 77) && !corefile_is_of(path, &apart));
    CHECK(unlink(path) == 0 && mkfifo(path, 0600) == 0);
    CHECK(!is_of(path, 77) && !corefile_is_of(path, &apart));
    CHECK(unlink(path) == 0);
    make_elf(path, 77, ET_CORE);
    snprintf(link, sizeof link, "%s.link", path);
    CHECK(symlink(path, link) == 0);
    CHECK(!is_of(link, 77) && !corefile_is_of(link, &apart));
    unlink(link);
    finish();
}

/* Its number says nothing to us: it has to be new, and ours. */
static void test_owner_apart(void) {
    struct corefile c = sample;
    begin();
    c.apart = true;
    c.began_ns = files_now_ns();
    make_elf(path, 2, ET_CORE);
    CHECK(corefile_is_of(path, &c));
    c.began_ns += NS_PER_S;
    CHECK(!corefile_is_of(path, &c));
    c.began_ns -= NS_PER_S;
    if (geteuid() == 0) {
        CHECK(chown(path, 1, 1) == 0);
        CHECK(!corefile_is_of(path, &c));
    }
    finish();
}

int main(void) {
    TEST(test_patterns);
    TEST(test_owner);
    TEST(test_other_files);
    TEST(test_owner_apart);
    return tap_finish();
}
