/* SPDX-License-Identifier: MIT */
/* The node file: what the administrator says of nodes.
 *
 *     # a comment
 *     n[0-31]       switch=s1
 *     n[32-63,70]   switch=s2 label=big
 *     0          4  CPU=500MHZ, MEM=512MB, NIC=SLOW
 *     [1-3]         labels=big+new role=service dedicated=no owner=keyboard
 *
 * A line names nodes, by their names or numbers, and says what holds for each of them: how many processors they have
 * (their width), then words KEY=VALUE with blanks or commas between them. Keys are `switch`, `label` and `labels`,
 * `role`, `dedicated`, `owner` (wire/owner.h), and attributes of the attribute file (attribs.h). Who says one of the latter of a node says all
 * of them. What is said of a node twice must be the same; only labels add up.
 *
 * Where there is an attribute file and some nodes are given a width, those that no line names have one processor. */
#pragma once

#include "base/mistake.h"
#include "client/cluster.h"
#include "machine/machine.h"
#include "wire/owner.h"

enum { NODESPEC_WORD_MAX = 32, NODESPEC_OWNERS_MAX = 256 };

struct nodespec {
    uint32_t nodes;
    uint32_t *switches; /* of each node: 0, or one more than the place of its name */
    char (*names)[NODESPEC_WORD_MAX];
    uint32_t switch_count;
    uint32_t *widths; /* of each node: 0 if nothing is said */
    uint8_t *traits;  /* what is said of attributes: for traits_take */
    size_t traits_len;
    uint32_t *owners; /* of each node: 0, or one more than the place of what tells of its owner */
    char (*owner_texts)[OWNER_TEXT_MAX];
    uint32_t owner_count;
};

/* What is wrong, and in which of the two files. */
struct nodespec_mistake {
    bool in_attribs;
    struct mistake at;
};

/* Both texts; `attribs` is NULL if there is no attribute file. -EBADMSG, -ENOMEM. nodespec_free is needed in any case. */
int nodespec_read(const struct cluster *c, const char *attribs, const char *text,
                  struct nodespec *ret, struct nodespec_mistake *m);

/* Without an attribute file. -EBADMSG: `trouble` says in which line what is wrong. */
int nodespec_parse(const struct cluster *c, const char *text, struct nodespec *ret,
                   struct cluster_trouble *trouble);
enum { NODESPEC_WHY_MAX = 640 };

/* Of files; NULL: there is no such file. -errno: `why` says which file and what is wrong, with the place in it. */
int nodespec_load(const struct cluster *c, const char *attribs, const char *path,
                  struct nodespec *ret, char why[NODESPEC_WHY_MAX]);
/* Those that a cluster keeps in its folder, as far as there are any. */
int nodespec_load_kept(const struct cluster *c, const char *folder, struct nodespec *ret,
                       char why[NODESPEC_WHY_MAX]);
/* The path of one of them; false: there is none. */
enum nodespec_file { NODESPEC_ATTRIBS, NODESPEC_NODES, NODESPEC_FILES };
bool nodespec_kept(const char *folder, enum nodespec_file file, char out[CLUSTER_PATH_MAX]);
/* Copies of these files are kept from now on, NULL: none is; whoever reads them hears of it. -errno. */
int nodespec_keep(const char *folder, const char *attribs, const char *path);
/* One more node of a cluster of so many hangs there, unless the file has said where. -ENOMEM. */
int nodespec_add(struct nodespec *n, uint32_t nodes, uint32_t node, const char *on_switch);
void nodespec_free(struct nodespec *n);

/* As a machine hears it (struct input_traits). */
struct nodespec_told {
    struct input_traits in;
    void *memory; /* to be freed */
};
/* -ENOMEM. */
int nodespec_tell(const struct nodespec *n, struct nodespec_told *ret);

/* Of a node; NULL if it is not known. */
const char *nodespec_switch(const struct nodespec *n, uint32_t node);
/* Of a node, or the largest of all; 0 if nothing is said. */
uint32_t nodespec_widest(const struct nodespec *n);
uint32_t nodespec_width(const struct nodespec *n, uint32_t node);
