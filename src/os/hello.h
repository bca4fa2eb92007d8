/* SPDX-License-Identifier: MIT */
/* Who may say HELLO, and as whom: what links (os/links.h) ask before one of another is let in. */
#pragma once

#include "os/conn.h"
#include "os/links.h"
#include "wire/message.h"

/* It is of this cluster, for us, and on a lane that links of its purpose have. */
bool hello_fits(const struct links_config *l, const struct message_hello *m);

/* Whose key a peer has is who it must say it is. What we have opened is with whom we have a key for. */
bool hello_named(const struct conn *c, const struct message_hello *m, const struct header *h);

/* Whether this sender may open a link of this purpose to us. */
bool hello_welcome(const struct links_config *l, const struct conn *c,
                   const struct message_hello *m, const struct header *h);

/* One of the nodes whose addresses are known by number. */
bool links_in_book(const struct links_config *l, uint32_t node);
