/* SPDX-License-Identifier: MIT */
/* What goes to the nodes before a job begins: its program, for a start.
 *
 * Looked over when the request is made, given out by the command itself while the job is being started. */
#pragma once

#include "client/giver.h"
#include "rm/spread.h"
#include "wire/spec.h"

/* How files are to be sent; the options of run, submit and cp. */
struct sending {
    const char *tree, *chunk, *send;
    uint64_t slots;
    struct spread spread; /* AUTO: as is best */
    uint64_t chunk_bytes; /* 0: the usual */
    enum send_type type;
};

/* Reads the texts. 0, or the exit status after a complaint. */
int sending_check(struct sending *s, const char *command);

struct freight {
    struct survey *survey;
    struct giver *giver;
    uint8_t *files; /* of the SUBMIT */
    char image[400];
    struct closure *closure; /* NULL: it brings no libraries */
    char *outfit;            /* of the spec */
    uint8_t stubborn[4096];
};

/* Looks the program over and says in the spec where it will be. With its libraries: as they are found with this
 * LD_LIBRARY_PATH (NULL: none). 0, or the exit status. */
int freight_load(struct freight *f, const struct sending *s, const char *program, bool libraries,
                 const char *library_path, struct spec *spec);
/* Gives it out from now on; `ret` gets what the request says of it. 0, or the exit status. */
int freight_open(struct freight *f, const struct sending *s, struct loop *loop,
                 const struct cluster *cluster, struct bytes *ret);
void freight_fini(struct freight *f);

/* A folder where digests of files are remembered; "" if there is none. */
void freight_ledger(char *out, size_t cap);
