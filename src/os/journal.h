/* SPDX-License-Identifier: MIT */
/* The machine manager's durable log, on SQLite.
 *
 * Events gather while a thread writes those before them: what arrived during one sync is the next
 * batch, and one commit makes all of it safe. An event that is safe is told in the loop. A key is open
 * from its first event to the one that closes it; at start only events of open keys and of the last that were
 * closed are told, however long the history is. First events of keys are kept in memory for a while, so what was just submitted is fetched
 * without the disk.
 *
 * On a full disk a batch is refused, except for events that close a key: for those a reserve is given up.
 * Any other failure to write ends the process: what cannot be trusted must not go on. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "os/life.h"

struct journal;

/* Opens or makes FOLDER/state.db. `cluster` is what the state must belong to (16 bytes). NULL and -errno:
 * -EXDEV: it is another cluster's; -EBUSY: another process has it; -EUCLEAN: it is damaged; -ENOTSUP: a newer STORM has written
 * it, and nothing of it was changed. */
struct journal *journal_open(const char *folder, const uint64_t cluster[2], int *ret_error);
void journal_close(struct journal *j);

/* Whether FOLDER/state.db, which must be there, can be opened; without doing so. 0, -EUCLEAN, -ENOTSUP or -EIO. */
int journal_check(const char *folder);

/* What the manager's life uses. It lives as long as the journal. */
const struct life_log *journal_log(struct journal *j);

/* For tests and benches. */
uint64_t journal_commits(const struct journal *j);

/* Events of all keys from this one on, or from the highest below it if it has none, in order, also while a
 * manager writes: calls until `event` says false. 0 or -errno. */
int journal_history(const char *folder, uint64_t from,
                    bool (*event)(void *context, uint64_t key, struct bytes body), void *context);
