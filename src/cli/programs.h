/* SPDX-License-Identifier: MIT */
/* The programs of a job, ready to be asked for: which ranks each has, its file, what it gets. */
#pragma once

#include "cli/freight.h"
#include "cli/parts.h"
#include "cli/surroundings.h"
#include "sched/size.h"
#include "wire/spec.h"

struct ordered {
    const char *name; /* as it was typed */
    char *path;
    char *folder;             /* NULL: the job's */
    char *arguments;          /* as the spec has them */
    struct surroundings more; /* of the environment */
    struct spec_program spec;
};

/* Of a job that has only one program: none. */
struct programs {
    uint32_t count;
    struct ordered *at;
    uint8_t *encoded;
};

/* They have so many processes. All of this give 0, or the exit status after a complaint. programs_fini is needed in any
 * case. */
int programs_count(struct programs *p, const struct parts *parts, const struct size *sizes,
                   const char *command);
/* Finds their files, with this environment, from the job's folder. */
int programs_find(struct programs *p, const struct parts *parts, const char *folder,
                  const struct surroundings *around);
/* Notes how their files look here. */
void programs_see(struct programs *p);
/* Is there one of which that is known? */
bool programs_seen(const struct programs *p);
/* Loads those that are to be sent. */
int programs_load(struct programs *p, struct freight *f, const struct sending *s, bool libraries,
                  const char *library_path);
/* Says all of it in the spec. */
void programs_tell(struct programs *p, struct spec *spec);
void programs_fini(struct programs *p);

/* The one that a rank runs; p->count > 0. */
const struct ordered *programs_of(const struct programs *p, uint32_t rank);

/* For people: "worker" of "bin/worker". */
const char *ordered_short(const struct ordered *o);

void programs_print(const struct programs *p);

/* A list of strings as a spec has them, made of words; to be freed. */
char *strings_join(char *const *words, size_t *ret_len);
