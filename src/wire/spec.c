/* SPDX-License-Identifier: MIT */
/* What is to be run: see spec.h. */
#include "wire/spec.h"

#include <errno.h>
#include <string.h>

#include "sched/map.h"
#include "wire/ranks.h"

static void walk_strings(struct codec *c, struct bytes *list) {
    codec_bytes(c, list, 1);
    if (!c->failed && list->len > 0 && list->at[list->len - 1] != 0)
        c->failed = true;
}

/* Paths and names must be usable as C strings. */
static void walk_word(struct codec *c, struct bytes *word) {
    codec_bytes(c, word, 1);
    if (!c->failed && word->len > 0 && memchr(word->at, 0, word->len) != NULL)
        c->failed = true;
}

static bool has_programs(const struct spec *s) {
    return s->programs.len > 0;
}

static bool has_debug(const struct spec *s) {
    return s->debugger.len > 0 || s->debugged.len > 0 || s->terminal_rank != 0 || s->hold ||
           s->cores;
}

static bool has_more(const struct spec *s) {
    return s->places.len > 0 || s->bind != 0 || s->bind_told || s->memory != 0 || has_debug(s) ||
           s->gpus || has_programs(s);
}

static void walk_program(struct codec *c, struct spec_program *p) {
    codec_u32(c, &p->ranks);
    walk_word(c, &p->program);
    walk_word(c, &p->image);
    walk_strings(c, &p->outfit);
    walk_strings(c, &p->stubborn);
    codec_bool(c, &p->argv0);
    walk_strings(c, &p->arguments);
    walk_word(c, &p->folder);
    walk_strings(c, &p->environment);
    codec_bool(c, &p->seen);
    codec_u64(c, &p->device);
    codec_u64(c, &p->inode);
    codec_u64(c, &p->bytes);
    codec_u64(c, &p->mtime_ns);
}

/* Each can be run by somebody, and ranks can be counted. */
static bool programs_good(const struct spec *s) {
    uint64_t ranks = s->ranks;
    struct codec c = {.in = s->programs.at, .len = s->programs.len};
    while (c.at < c.len && !c.failed) {
        struct spec_program p = {0};
        walk_program(&c, &p);
        ranks += p.ranks;
        if (p.ranks == 0 || p.program.len == 0 || p.arguments.len == 0 || ranks > UINT32_MAX)
            return false;
    }
    return !c.failed && s->ranks > 0;
}

/* Blocks that came later begin with a byte of their own, so that they are told apart. */
enum { BLOCK_DEBUG = 'D', BLOCK_GPUS = 'G', BLOCK_PROGRAMS = 'P' };

static bool block_begins(struct codec *c, uint8_t block, bool said) {
    if (c->encoding ? !said : c->at >= c->len || c->in[c->at] != block)
        return false;
    codec_u8(c, &block);
    return true;
}

static void walk_debug(struct codec *c, struct spec *s) {
    walk_strings(c, &s->debugger);
    codec_bytes(c, &s->debugged, RANKS_RANGE_BYTES);
    codec_u32(c, &s->terminal_rank);
    codec_bool(c, &s->hold);
    codec_bool(c, &s->cores);
    if (!c->failed && (!has_debug(s) || !ranks_good(s->debugged)))
        c->failed = true;
}

static void walk_programs(struct codec *c, struct spec *s) {
    codec_u32(c, &s->ranks);
    walk_word(c, &s->first_folder);
    walk_strings(c, &s->first_environment);
    codec_bytes(c, &s->programs, 1);
    if (!c->encoding && !c->failed && !(has_programs(s) && programs_good(s)))
        c->failed = true;
}

/* What came later. A tail that says nothing is not written, so none is read: every spec has one form. */
static void walk_tails(struct codec *c, struct spec *s) {
    if (c->encoding ? !has_more(s) : c->at == c->len) /* specs of before end here */
        return;
    codec_bytes(c, &s->places, MAP_PLACE_BYTES);
    codec_enum(c, &s->bind, BINDS);
    codec_bool(c, &s->bind_told);
    codec_u64(c, &s->memory);
    if (block_begins(c, BLOCK_DEBUG, has_debug(s)))
        walk_debug(c, s);
    if (block_begins(c, BLOCK_GPUS, s->gpus))
        s->gpus = true; /* there is nothing more to say */
    if (block_begins(c, BLOCK_PROGRAMS, has_programs(s)))
        walk_programs(c, s);
    if (!has_more(s))
        c->failed = true;
}

static void walk(struct codec *c, struct spec *s) {
    codec_enum(c, &s->stdin_mode, STDIN_MODES);
    codec_u32(c, &s->stdin_rank);
    codec_bool(c, &s->terminal);
    codec_bool(c, &s->merged);
    codec_u32(c, &s->columns);
    codec_u32(c, &s->rows);
    codec_u32(c, &s->umask);
    codec_bytes(c, &s->limits, SPEC_LIMIT_BYTES);
    walk_word(c, &s->folder);
    walk_word(c, &s->program);
    walk_word(c, &s->image);
    walk_strings(c, &s->outfit);
    walk_strings(c, &s->stubborn);
    codec_bool(c, &s->argv0);
    walk_strings(c, &s->arguments);
    walk_strings(c, &s->environment);
    walk_word(c, &s->output);
    walk_word(c, &s->error);
    codec_enum(c, &s->own, OWN_FOLDERS);
    codec_bool(c, &s->inside);
    codec_bool(c, &s->seen);
    codec_u64(c, &s->device);
    codec_u64(c, &s->inode);
    codec_u64(c, &s->bytes);
    codec_u64(c, &s->mtime_ns);
    walk_tails(c, s);
}

long spec_encode(const struct spec *s, struct room out) {
    struct spec copy = *s;
    struct codec c = {.encoding = true, .out = out.at, .len = out.len};
    walk(&c, &copy);
    return c.failed ? -ENOBUFS : (long)c.at;
}

int spec_decode(struct bytes in, struct spec *ret) {
    memset(ret, 0, sizeof *ret);
    struct codec c = {.in = in.at, .len = in.len};
    walk(&c, ret);
    bool good = !c.failed && c.at == c.len && ret->arguments.len > 0 && ret->program.len > 0;
    return good ? 0 : -EBADMSG;
}

/* ---- programs ---- */

void spec_program_first(const struct spec *s, struct spec_program *ret) {
    *ret = (struct spec_program){.ranks = s->ranks,
                                 .program = s->program,
                                 .image = s->image,
                                 .outfit = s->outfit,
                                 .stubborn = s->stubborn,
                                 .argv0 = s->argv0,
                                 .arguments = s->arguments,
                                 .folder = s->first_folder,
                                 .environment = s->first_environment,
                                 .seen = s->seen,
                                 .device = s->device,
                                 .inode = s->inode,
                                 .bytes = s->bytes,
                                 .mtime_ns = s->mtime_ns};
}

bool spec_program_next(const struct spec *s, struct spec_program *p) {
    struct spec_program next = {.index = p->index + 1, .first = p->first + p->ranks};
    struct codec c = {.in = s->programs.at, .len = s->programs.len, .at = p->end};
    if (p->end >= s->programs.len)
        return false;
    walk_program(&c, &next);
    next.end = c.at;
    *p = next;
    return !c.failed;
}

bool spec_program_of(const struct spec *s, uint32_t rank, struct spec_program *ret) {
    spec_program_first(s, ret);
    while (ret->ranks > 0 && rank - ret->first >= ret->ranks)
        if (!spec_program_next(s, ret))
            return false;
    return true;
}

void spec_take_files(struct spec *s, const struct spec_program *p) {
    s->image = p->image;
    s->outfit = p->outfit;
    s->stubborn = p->stubborn;
    s->argv0 = p->argv0;
    s->seen = p->seen;
    s->device = p->device;
    s->inode = p->inode;
    s->bytes = p->bytes;
    s->mtime_ns = p->mtime_ns;
}

uint32_t spec_programs(const struct spec *s) {
    struct spec_program p;
    spec_program_first(s, &p);
    while (spec_program_next(s, &p))
        ;
    return p.index + 1;
}

uint64_t spec_ranks(const struct spec *s) {
    struct spec_program p;
    spec_program_first(s, &p);
    while (spec_program_next(s, &p))
        ;
    return (uint64_t)p.first + p.ranks;
}

long spec_program_store(const struct spec_program *p, struct room out) {
    struct spec_program copy = *p;
    struct codec c = {.encoding = true, .out = out.at, .len = out.len};
    walk_program(&c, &copy);
    return c.failed ? -ENOBUFS : (long)c.at;
}

/* ---- strings ---- */

uint32_t strings_count(struct bytes list) {
    uint32_t n = 0;
    const uint8_t *end = list.at + list.len;
    for (const uint8_t *at = list.at; at < end; n++) {
        at = memchr(at, 0, (size_t)(end - at));
        if (at++ == NULL)
            break;
    }
    return n;
}

const char *strings_next(struct bytes list, size_t *at) {
    if (*at >= list.len)
        return NULL;
    const char *s = (const char *)list.at + *at;
    *at += strnlen(s, list.len - *at) + 1;
    return s;
}

/* ---- limits ---- */

static void walk_limit(struct codec *c, struct rlimit_spec *l) {
    codec_u8(c, &l->resource);
    codec_u64(c, &l->soft);
    codec_u64(c, &l->hard);
}

void spec_limit_store(uint8_t out[SPEC_LIMIT_BYTES], const struct rlimit_spec *l) {
    struct rlimit_spec copy = *l;
    struct codec c = {.encoding = true, .out = out, .len = SPEC_LIMIT_BYTES};
    walk_limit(&c, &copy);
}

bool spec_limit_load(struct rlimit_spec *ret, struct bytes limits, uint32_t index) {
    if ((size_t)index >= limits.len / SPEC_LIMIT_BYTES)
        return false;
    struct codec c = {.in = limits.at + (size_t)index * SPEC_LIMIT_BYTES, .len = SPEC_LIMIT_BYTES};
    walk_limit(&c, ret);
    return !c.failed;
}
