/* SPDX-License-Identifier: MIT */
/* A smaller copy of a program: see slim.h. */
#include "cli/slim.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/files.h"

#define OUR_CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)

static bool is_program(struct bytes file) {
    const ElfW(Ehdr) *head = (const void *)file.at;
    return file.len >= sizeof *head && memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 &&
           head->e_ident[EI_CLASS] == OUR_CLASS && head->e_phentsize == sizeof(ElfW(Phdr)) &&
           head->e_phoff % sizeof(void *) == 0 && head->e_phoff < file.len &&
           head->e_phnum * sizeof(ElfW(Phdr)) <= file.len - head->e_phoff;
}

/* Where the last byte is that is loaded. What describes the rest of the file lies behind it, as a rule. */
static size_t loaded_bytes(struct bytes file) {
    const ElfW(Ehdr) *head = (const void *)file.at;
    const ElfW(Phdr) *parts = (const void *)(file.at + head->e_phoff);
    size_t end = head->e_phoff + head->e_phnum * sizeof *parts;
    for (int i = 0; i < head->e_phnum; i++)
        if (parts[i].p_filesz > 0 && parts[i].p_offset + parts[i].p_filesz > end)
            end = parts[i].p_offset + parts[i].p_filesz;
    return end;
}

static int write_copy(struct bytes file, int out) {
    size_t end = is_program(file) ? loaded_bytes(file) : file.len;
    if (end >= file.len)
        return files_write(out, file, 0);
    ElfW(Ehdr) head;
    memcpy(&head, file.at, sizeof head);
    head.e_shoff = 0;
    head.e_shnum = head.e_shstrndx = 0;
    int r = files_write(out, bytes_of(&head, sizeof head), 0);
    return r < 0
               ? r
               : files_write(out, bytes_of(file.at + sizeof head, end - sizeof head), sizeof head);
}

static int copy(int in, const char *to) {
    struct stat s;
    if (fstat(in, &s) < 0)
        return -errno;
    void *at = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, in, 0);
    if (at == MAP_FAILED)
        return -errno;
    unlink(to); /* it may be executed just now */
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    int r = out < 0 ? -errno : write_copy(bytes_of(at, (size_t)s.st_size), out);
    if (out >= 0)
        close(out);
    munmap(at, (size_t)s.st_size);
    return r;
}

int slim_copy(const char *from, const char *to) {
    int in = open(from, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return -errno;
    int r = copy(in, to);
    close(in);
    return r;
}
