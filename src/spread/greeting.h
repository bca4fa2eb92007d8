/* SPDX-License-Identifier: MIT */
/* How a helper gets to a host where there is nothing but a shell.
 *
 * A connector is a command that takes a host and a line for a shell there: words in which %h stands for the host, %c for the
 * line, %% for a percent sign; where there is no %h or no %c it comes last. The line looks for the helper in a cache
 * under its digest. If it is there it is executed. If not, the line says which processor this is and takes the helper from its
 * standard input; the helper looks whether it is as it should be, and takes its name. Whatever the shell prints before
 * that, as it starts, is passed over. */
#pragma once

#include "base/bytes.h"
#include "base/text.h"

/* The line for a shell; `digest` in hexadecimal. */
void greeting_line(struct text *out, const char *digest, uint64_t helper_bytes);

/* The next word of a connector, with what stands for host and line; the word is taken off `words`. False at the end. */
struct greeting_words {
    struct bytes left; /* each ends in a zero */
    bool host, line;   /* they were in it */
};
bool greeting_word(struct greeting_words *w, struct bytes host, struct bytes line,
                   struct text *out);

/* What a helper says first. */
#define GREETING_HERE "storm-hop here\n"

enum greeting { GREETING_MORE, GREETING_NEED, GREETING_READY, GREETING_NONE };
enum { GREETING_MAX = 64 * 1024, GREETING_PROCESSOR_MAX = 32 };

/* What came so far of a greeting, noise before it included: more is to come; it wants the helper, for that processor; it
 * is there; or nobody greets like that. *ret_used: so many bytes were needed for it. */
enum greeting greeting_read(struct bytes in, size_t *ret_used,
                            char ret_processor[GREETING_PROCESSOR_MAX]);
