/* SPDX-License-Identifier: MIT */
/* Which way the pieces of a mover's links go: as bytes of the link's stream, or by a fabric.
 *
 * The mover knows nothing of it: it puts, and hears of puts. A transfer that asks for a fabric has every taker tell its giver, before
 * it joins, where its slots are there (WINDOW). For each put the giver then says on the stream what comes (PLACED), and the fabric
 * carries the bytes; when both are there, and all that was put before it, the taker's mover is told. So puts are
 * told in their order, whatever the fabric does with it, and may go either way.
 *
 * Whatever does not work ends the link and no more: the taker asks another giver, or the same by streams. A window is shut
 * when its link ends, and after that nothing gets into its memory (os/ferry.h). */
#pragma once

#include "machine/machine.h"
#include "os/buffers.h"
#include "os/loop.h"
#include "wire/message.h"

struct carriage;

struct carriage_config {
    struct loop *loop;
    const char *source; /* IP address to be at; NULL: as the provider has it */
    /* Not from within calls, but for `send` and `sent`. */
    void (*send)(void *context, uint32_t link, uint16_t type, const union message *m);
    void (*put)(void *context, const struct input_put *put);
    void (*sent)(void *context, uint64_t tag); /* feed nothing */
    void (*drop)(void *context, uint32_t link, enum role peer);
    void *context;
};

struct carriage *carriage_new(const struct carriage_config *c); /* NULL: no memory */
void carriage_free(struct carriage *c);

/* This fabric will be used: opens it, and waits for that. 0, or -errno with the reason. */
int carriage_prepare(struct carriage *c, struct bytes fabric, char why[256]);
/* Must buffers that are opened now be such as can be shared? */
bool carriage_shares(const struct carriage *c);

/* Heard of, whichever way it goes; begins to open its fabric. */
void carriage_transfer(struct carriage *c, const struct message_transfer *t);
/* Is its fabric being opened? It should not begin to move before. */
bool carriage_opening(const struct carriage *c, uint64_t transfer);

/* ---- taking ---- */

/* We are about to join: opens a window if it is to be. */
void carriage_join(struct carriage *c, uint32_t link, const struct message_join *j,
                   const struct buffer *b);
/* What the giver says. False: it makes no sense. */
bool carriage_placed(struct carriage *c, uint32_t link, const struct message_placed *p,
                     const struct buffer *b);
/* A put has come by the stream, and is where it should be. */
void carriage_came(struct carriage *c, const struct input_put *put);

/* ---- giving ---- */

void carriage_joined(struct carriage *c, uint32_t link, const struct message_join *j);
void carriage_window(struct carriage *c, uint32_t link, const struct message_window *w);
/* True: it is on its way, and `sent` tells. False: it goes by the stream. */
bool carriage_put(struct carriage *c, const struct effect_put *put, const struct buffer *b,
                  uint64_t tag);

/* ---- ends ---- */

/* The link is no more; `ours`: by our own doing. */
void carriage_link_gone(struct carriage *c, uint32_t link, bool ours);
void carriage_buffer_gone(struct carriage *c, uint32_t buffer);
/* At the end of every turn. */
void carriage_settle(struct carriage *c);

/* What went which way for an offer; the text stays until the next call. */
void carriage_count(const struct carriage *c, uint64_t offer, struct message_counted *ret);
