/* SPDX-License-Identifier: MIT */
/* Files for benches: see sample.h. */
#include "cli/sample.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/units.h"
#include "os/files.h"

/* Pages of any machine fit in it. */
enum { ALIGN = 65536 };

static uint64_t rounded(uint64_t value) {
    return (value + ALIGN - 1) / ALIGN * ALIGN;
}

static int fill(int fd, uint64_t from, uint64_t to, struct random *r) {
    size_t cap = MIB;
    uint8_t *block = malloc(cap);
    int error = block == NULL ? -ENOMEM : 0;
    while (error == 0 && from < to) {
        size_t len = to - from < cap ? (size_t)(to - from) : cap;
        random_bytes(r, block, len);
        error = files_write(fd, bytes_of(block, len), from);
        from += len;
    }
    free(block);
    return error;
}

static int create(const char *path, unsigned mode) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    return fd < 0 ? -errno : fd;
}

static int finish(int fd, int r) {
    return close(fd) < 0 && r == 0 ? -errno : r;
}

int sample_file(const char *path, uint64_t bytes, struct random *r) {
    int fd = create(path, 0644);
    return fd < 0 ? fd : finish(fd, fill(fd, 0, bytes, r));
}

/* ---- programs ---- */

static bool is_ours(const Elf64_Ehdr *h, size_t len) {
    return len >= sizeof *h && memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 &&
           h->e_ident[EI_CLASS] == ELFCLASS64 && h->e_type == ET_EXEC &&
           h->e_phentsize == sizeof(Elf64_Phdr) && h->e_phoff <= len &&
           h->e_phnum <= (len - h->e_phoff) / sizeof(Elf64_Phdr);
}

bool sample_pad(struct room program, uint64_t bytes) {
    Elf64_Ehdr h;
    Elf64_Phdr note, p;
    uint64_t end = 0, spare = 0, begin = rounded(program.len);
    if (program.len < sizeof h || bytes <= begin)
        return false;
    memcpy(&h, program.at, sizeof h);
    if (!is_ours(&h, program.len))
        return false;
    for (uint32_t i = 0; i < h.e_phnum; i++) {
        uint64_t at = h.e_phoff + i * sizeof p;
        memcpy(&p, program.at + at, sizeof p);
        if (p.p_type == PT_NOTE)
            spare = at;
        else if (p.p_type == PT_LOAD && p.p_vaddr + p.p_memsz > end)
            end = p.p_vaddr + p.p_memsz;
    }
    if (spare == 0)
        return false;
    uint64_t base = rounded(end) + ALIGN;
    note = (Elf64_Phdr){.p_type = PT_LOAD,
                        .p_flags = PF_R,
                        .p_offset = begin,
                        .p_vaddr = base,
                        .p_paddr = base,
                        .p_filesz = bytes - begin,
                        .p_memsz = bytes - begin,
                        .p_align = ALIGN};
    memcpy(program.at + spare, &note, sizeof note);
    return true;
}

int sample_map(const char *path, struct bytes *ret) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = fstat(fd, &st) < 0 ? -errno : st.st_size == 0 ? -ENODATA : 0;
    void *at = MAP_FAILED;
    if (r == 0) {
        at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
        r = at == MAP_FAILED ? -errno : 0;
    }
    close(fd);
    if (r == 0)
        *ret = bytes_of(at, (size_t)st.st_size);
    return r;
}

int sample_program(const char *path, const char *nop, uint64_t bytes, struct random *r) {
    struct bytes source;
    int error = sample_map(nop, &source);
    if (error < 0)
        return error;
    struct room program = room_of(malloc(source.len), source.len);
    int fd = program.at == NULL ? -ENOMEM : create(path, 0755);
    if (fd >= 0) {
        memcpy(program.at, source.at, source.len);
        sample_pad(program, bytes); /* else it follows and is not mapped */
        error = files_write(fd, room_bytes(program), 0);
        error = finish(fd, error < 0 ? error : fill(fd, source.len, bytes, r));
    }
    free(program.at);
    munmap((void *)source.at, source.len);
    return fd < 0 ? fd : error;
}
