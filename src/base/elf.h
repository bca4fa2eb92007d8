/* SPDX-License-Identifier: MIT */
/* What an ELF file says about how it is to be loaded: its interpreter, the libraries it needs, where they
 * are looked for.
 *
 * Files of both widths and byte orders are read, whatever this machine is. Any bytes may be given: every
 * number is judged before it is used, and what is read goes through a function of the caller's, so that a file
 * need not be in memory and may even change while it is read. As the loader does, the dynamic section is found
 * by its address, the interpreter's name by its offset. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many bytes were read at this offset (fewer than asked for only at the end), or -errno. */
struct elf_source {
    long (*read)(void *self, uint64_t at, void *to, size_t len);
    void *self;
};

#define ELF_ABSENT UINT64_MAX

enum { ELF_TYPE_EXEC = 2, ELF_TYPE_DYN = 3 };
enum { ELF_INTERPRETER_MAX = 4096, ELF_DYNAMIC_MAX = 65536 };

struct elf {
    struct elf_source source;
    bool wide; /* 64 bits */
    bool big;  /* the most significant byte first */
    uint16_t type, machine;
    uint32_t flags;
    uint64_t segments_at;
    uint32_t segments;
    uint64_t interpreter_at, interpreter_bytes; /* ELF_ABSENT: none */
    uint64_t dynamic_at;                        /* ELF_ABSENT: none */
    uint32_t dynamic_count;
    uint64_t strings_at, strings_bytes;
    uint64_t soname, rpath, runpath; /* strings, ELF_ABSENT: none; no rpath beside a runpath */
    bool no_default; /* its libraries are not looked for where all are (DF_1_NODEFLIB) */
};

/* 0; -ENOEXEC: not an ELF file; -EBADMSG: a damaged one; or what the source said. */
int elf_read(struct elf *ret, struct elf_source source);

/* -ENOENT: it has none; -EBADMSG; -ENAMETOOLONG. */
int elf_interpreter(const struct elf *e, char *out, size_t cap);

enum elf_need_kind {
    ELF_NEEDED,
    ELF_AUXILIARY, /* wanted, if it is there */
    ELF_FILTER,
};

struct elf_need {
    enum elf_need_kind kind;
    uint64_t name; /* a string */
};

/* The next library that it asks for, from *at (0 at first) on, which moves: 1, 0 at the end, -errno. */
int elf_next_need(const struct elf *e, uint32_t *at, struct elf_need *ret);

/* A string by its place in the table: its length, -EBADMSG (outside, or it does not end),
 * -ENAMETOOLONG. */
long elf_string(const struct elf *e, uint64_t name, char *out, size_t cap);
