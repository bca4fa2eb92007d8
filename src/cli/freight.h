/* SPDX-License-Identifier: MIT */
/* What goes to the nodes before a job begins: its program, and files for its folder.
 *
 * Looked over when the request is made, given out by the command itself while the job is being started. */
#pragma once

#include "cli/options.h"
#include "client/giver.h"
#include "rm/spread.h"
#include "wire/spec.h"

/* How files are to be sent; the options of run, submit and cp. */
struct sending {
    const char *tree, *chunk, *send, *fabric;
    uint64_t slots;
    struct spread spread; /* AUTO: as is best */
    uint64_t chunk_bytes; /* 0: the usual */
    enum send_type type;
    struct spread_terms terms; /* if the speed of links is known */
    enum digest_kind digest;   /* by which pieces are checked */
    /* Called now and then while files are looked over, as that may take long. May be NULL. */
    void (*meanwhile)(void *context);
    void *context;
};

/* Reads the texts. 0, or the exit status after a complaint. */
int sending_check(struct sending *s, const char *command);

/* So many nodes of this cluster shall have it. */
void sending_to(struct sending *s, const struct cluster *cluster, uint32_t nodes);

/* Which fabric it comes to ("": streams), and opens it for who gives, if we do. 0, or the exit status after a complaint. */
int sending_prepare(const struct sending *s, const char *command, const struct cluster *cluster,
                    struct giver *giver, char out[FABRIC_NAME_MAX + 1]);

/* So many different programs can be sent with one job. */
enum { FREIGHT_BUNDLES_MAX = 24 };

/* A program that is sent, and its libraries. */
struct freight_bundle {
    char *program; /* its path */
    char *library_path;
    struct survey *survey;
    struct closure *closure; /* NULL: it brings no libraries */
    char image[400];
    char *outfit; /* of the spec */
    size_t outfit_len;
    uint8_t stubborn[4096];
    size_t stubborn_len;
    uint8_t *ranges; /* who runs it, as wire/crates.h has it */
    uint32_t range_count;
};

struct freight {
    struct freight_bundle *bundles[FREIGHT_BUNDLES_MAX];
    uint32_t count;
    struct survey *inputs; /* of what goes to the job's folder; NULL: none */
    struct giver *giver;
    uint8_t *files, *files_inside; /* of the SUBMIT */
};

/* Looks a program over and says where it will be. With its libraries: as they are found with this
 * LD_LIBRARY_PATH (NULL: none). One that is loaded already is sent once. 0, or the exit status. */
int freight_load(struct freight *f, const struct sending *s, const char *program, bool libraries,
                 const char *library_path, struct spec_program *ret);
/* Looks over what goes to the job's folder, see inputs.h. 0, or the exit status. */
int freight_load_inputs(struct freight *f, const struct sending *s, const struct text_list *inputs);
/* Gives out all that was loaded from now on, and says so in the request. 0, or the exit status. */
int freight_open(struct freight *f, const struct sending *s, struct loop *loop,
                 const struct cluster *cluster, struct message_submit *submit);
void freight_fini(struct freight *f);

/* A folder where digests of files are remembered; "" if there is none. */
void freight_ledger(char *out, size_t cap);
