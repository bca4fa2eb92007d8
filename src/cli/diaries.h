/* SPDX-License-Identifier: MIT */
/* Diaries that the movers of a bench's cluster keep, and the command that gives: laid out before, read afterwards. */
#pragma once

#include "cli/cargo.h"
#include "os/diary.h"

/* The command's own. */
enum { DIARY_OF_COMMAND = -1 };

struct notes {
    struct diary_note *list;
    uint32_t count;
};

/* Empty ones, for everybody who has a folder. Movers look for theirs when they begin: before the first transfer, then
 * again before each. */
void diaries_lay(const struct cargo *c);
/* What is in one; nothing if there is none. */
struct notes diaries_read(const struct cargo *c, int64_t node);
void notes_free(struct notes *n);
/* When the first, or the last, of a kind began or ended; 0 if there is none. */
uint64_t notes_first(const struct notes *n, enum diary_deed deed);
uint64_t notes_last(const struct notes *n, enum diary_deed deed);
/* How long all of a kind took together. */
uint64_t notes_busy(const struct notes *n, enum diary_deed deed);

/* Where the time of a node goes that gets files: table 1 of the file-distribution paper, seen from the other side. */
enum node_stage { NODE_CONNECT, NODE_READY, NODE_FIRST, NODE_DATA, NODE_OVERHEAD, NODE_STAGES };

const char *node_stage_words(enum node_stage stage); /* for people */
const char *node_stage_name(enum node_stage stage);  /* in JSON */
/* What each took on a node. False if the notes are not of a transfer that came to its end. */
bool notes_stages(const struct notes *n, uint64_t ret_ns[NODE_STAGES]);
