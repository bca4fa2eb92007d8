/* SPDX-License-Identifier: MIT */
/* A program that brings its libraries along: how it is started from a folder that has all of them, so that
 * it runs with those and with its own loader, whatever this node has.
 *
 *   FOLDER/program, FOLDER/libfoo.so.1, ..., FOLDER/ld-linux-aarch64.so.1
 *   FOLDER/start/program         a link to the loader: processes are called as what is executed is
 *
 * The loader is executed, is told where to look first, and loads the program. Nothing is left in the
 * environment, so what the program starts runs as ever. Why it is done so, and what a program can notice, is in
 * docs/decisions/0023-libraries-of-a-program.md. */
#pragma once

#include "wire/codec.h"

#define OUTFIT_START "start"

struct outfit {
    struct bytes folder;  /* absolute; only the node knows it */
    struct bytes program; /* its name there */
    /* Strings (see spec.h): names of libraries that say where theirs are in a way that is stronger than ours
     * (DT_RPATH). The program itself is "". */
    struct bytes stubborn;
    bool argv0; /* its loader knows --argv0: else the program is called FOLDER/program */
};

/* The file to execute. -ENAMETOOLONG; -EINVAL: a name or folder that cannot be in such a command. */
int outfit_file(const struct outfit *o, char *out, size_t cap);

/* The list of arguments for that file, from the one for the program. After the folder libraries are looked for in
 * `library_path`, the LD_LIBRARY_PATH of the program's environment; "": none. The length, which the room
 * must exceed: -ENOBUFS; or -EINVAL. */
long outfit_arguments(const struct outfit *o, struct bytes arguments, const char *library_path,
                      struct room out);
