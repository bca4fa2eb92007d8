/* SPDX-License-Identifier: MIT */
/* That the bytes of a put have left: what its sender waits for before it uses their place again.
 *
 * They have left when the network interface has taken them, unless more than a window of bytes is on the way
 * to that end: then when those before them have been looked at, as a socket takes no more than its
 * buffers hold. When the link is gone they have left, too. */
#pragma once

#include "sim/event.h"

struct end;
struct node;

/* Counts the put among those that leave. */
struct notice *sent_new(struct world *w, struct node *n, const struct effect_put *p);

/* They leave at that time, if there is a window for them. */
void sent_tell(struct world *w, struct notice *n, uint64_t at);

/* Its time has come; true if it has to wait for the window. */
bool sent_hold(struct world *w, struct notice *n);

/* Something was looked at that was sent to this end; nothing sent to it will be, or is waited for. */
void sent_look(struct world *w, struct end *to);
void sent_release(struct world *w, struct end *to);

/* Tells the sender's machine. Takes the notice. */
void sent_feed(struct world *w, struct notice *n);
