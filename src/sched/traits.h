/* SPDX-License-Identifier: MIT */
/* What the nodes of a cluster are like: attributes, and a value of each for every node.
 *
 * Some attributes are built in. Nodes report most of these themselves; until one has, its value is not known, and no
 * comparison with it holds. The others are said by the administrator, as are those that he has defined: each has an
 * order of names, and nodes of which nothing is said have the first. So every attribute has one source, and a node's
 * report and the administrator's word are never at odds.
 *
 * A value is a number: a place in the order of names, bytes, bits per second, a packed version, the number of an
 * interned text, a set of labels as bits. Values of one attribute lie side by side, as who looks for nodes compares one
 * attribute of all of them. Names of attributes and of values are the same in capital and small letters.
 *
 * What the administrator says is replaced as a whole (traits_clear, or a blob that is taken): the table has another
 * edition then, and what was compiled for the one before (need.h) is to be compiled again. */
#pragma once

#include "base/bytes.h"
#include "base/intern.h"
#include "base/nodeset.h"
#include "base/text.h"

enum {
    TRAITS_MAX = 64,        /* attributes, built in ones included */
    TRAITS_WORD_MAX = 32,   /* of a name, with its NUL */
    TRAITS_NAMES_MAX = 512, /* names of values of all attributes together */
    TRAITS_LABELS_MAX = 64,
    TRAITS_VALUE_MAX = 128 /* of a value as it is written, with its NUL */
};

/* The value is not known. No value is this, except that a node may have all labels. */
#define TRAITS_UNKNOWN UINT64_MAX

/* Built in: first those that nodes report, texts before numbers. */
enum traits_id {
    TRAITS_ARCH,
    TRAITS_OPSYS,
    TRAITS_HOST,
    TRAITS_TEXTS,
    TRAITS_PROCESSORS = TRAITS_TEXTS,
    TRAITS_MEMORY,
    TRAITS_KERNEL,
    TRAITS_NUMA,
    TRAITS_GPUS,
    TRAITS_NETWORK,
    TRAITS_SPEED,
    TRAITS_REPORTED,
    TRAITS_LABELS = TRAITS_REPORTED,
    TRAITS_ROLE,
    TRAITS_DEDICATED,
    TRAITS_BUILT_IN
};

enum traits_kind {
    TRAITS_NAME,    /* one of the attribute's names; the value is its place */
    TRAITS_SIZE,    /* bytes; a bare number is of MiB */
    TRAITS_COUNT,   /* a number */
    TRAITS_RATE,    /* bits per second */
    TRAITS_VERSION, /* up to four numbers of 16 bits, the first on top */
    TRAITS_TEXT,    /* an interned text */
    TRAITS_FLAG,    /* TRUE or FALSE */
    TRAITS_WORDS    /* a set of labels: a bit for each */
};

enum traits_operator {
    TRAITS_IS,
    TRAITS_IS_NOT,
    TRAITS_BELOW,
    TRAITS_AT_MOST,
    TRAITS_ABOVE,
    TRAITS_AT_LEAST,
    TRAITS_OPERATORS
};

struct trait {
    char name[TRAITS_WORD_MAX];
    uint8_t kind;
    uint8_t operators;     /* a bit for each that it allows */
    uint16_t first, count; /* names of its values */
    uint64_t usual;        /* of nodes of which nothing is said */
};

struct traits {
    uint32_t nodes;
    uint32_t capacity; /* attributes that there is room for */
    uint32_t count;
    uint32_t name_count, label_count;
    uint64_t edition;
    struct trait *at;
    char (*names)[TRAITS_WORD_MAX];
    char (*labels)[TRAITS_WORD_MAX];
    uint64_t *values; /* those of the first attribute, by node; those of the second ... */
    struct intern texts;
};

/* For so many nodes, and attributes (at most TRAITS_MAX, TRAITS_BUILT_IN included); the storage is aligned to 8. At 32
 * attributes it is 472 bytes a node at most, and 20 KiB. */
size_t traits_bytes(uint32_t nodes, uint32_t attributes);
void traits_init(struct traits *t, uint32_t nodes, uint32_t attributes, void *storage);

/* The attribute of this name; -ENOENT. */
int traits_find(const struct traits *t, const char *name);
/* That somebody may have meant; NULL if none is near. */
const char *traits_nearest(const struct traits *t, const char *name);

static inline uint64_t traits_get(const struct traits *t, uint32_t node, uint32_t id) {
    return t->values[(size_t)id * t->nodes + node];
}

/* ---- what the administrator says ---- */

/* He has said nothing: his attributes are gone, nodes have usual values. */
void traits_clear(struct traits *t);

/* An attribute of his, whose number is returned; names of its values follow, each with its place returned. -EINVAL: that
 * cannot be a name; -EEXIST: it is taken; -ENOBUFS: there are too many. */
int traits_define(struct traits *t, const char *name, uint8_t operators);
int traits_define_value(struct traits *t, const char *name);
/* The bit of a label, a new one if need be; -EINVAL, -ENOBUFS. */
int traits_label(struct traits *t, const char *word);

/* Letters, digits and . _ - + / : @ %: what an expression takes for one word. */
bool traits_is_word(char c);
/* Can it be the name of an attribute? A letter, then letters, digits, _ - and . */
bool traits_is_name(const char *name);

/* Nodes have that value, or those labels too; the attribute is one that the administrator speaks of. */
void traits_say(struct traits *t, const struct nodeset *nodes, uint32_t id, uint64_t value);
/* May he say so? For what comes from others. */
bool traits_can_be_said(const struct traits *t, uint32_t id, uint64_t value);

static inline bool traits_is_said(uint32_t id) {
    return id >= TRAITS_REPORTED;
}

/* All that he says, for another table of as many nodes or more: length written, or -ENOBUFS. */
long traits_encode(const struct traits *t, struct room out);
/* In place of what he said before. -EBADMSG: these are no such bytes; -ENOBUFS: the table is too small; then he has
 * said nothing. */
int traits_take(struct traits *t, struct bytes in);

/* ---- what a node reports ---- */

struct traits_report {
    uint64_t values[TRAITS_REPORTED];          /* TRAITS_UNKNOWN; not used for texts */
    char texts[TRAITS_TEXTS][INTERN_TEXT_MAX]; /* "": not known */
};

/* With nothing in it. */
struct traits_report traits_report_empty(void);
/* A text of it, cut if it is too long. */
void traits_report_text(struct traits_report *r, enum traits_id id, const char *text);
/* Length written, or -ENOBUFS; 0, or -EBADMSG. */
long traits_report_encode(const struct traits_report *r, struct room out);
int traits_report_decode(struct bytes in, struct traits_report *ret);

/* In place of what it has reported before. */
void traits_hear(struct traits *t, uint32_t node, const struct traits_report *r);
/* One value of those that nodes report, from who knows better. */
void traits_know(struct traits *t, uint32_t node, enum traits_id id, uint64_t value);
/* Nothing is known of it but what the administrator says. */
void traits_forget(struct traits *t, uint32_t node);

/* Those in which not all of these nodes are the same, as far as that is known: a bit for each. Without what any two machines
 * differ in (host, speed), and what is known of a node anyway (processors, memory). */
uint64_t traits_apart(const struct traits *t, const struct nodeset *nodes);

/* ---- as text ---- */

/* What was read: most values are one number; a version of few parts stands for all that begin so. */
struct traits_value {
    uint64_t first, last;
};

/* A value of the attribute, which is not one of texts. -EINVAL: `why` says in words what would do. */
int traits_read(const struct traits *t, uint32_t id, const char *word, struct traits_value *ret,
                struct text *why);

/* "=", ">=" ...; -1: there is no such operator. */
const char *traits_operator_name(enum traits_operator o);
int traits_operator_find(const char *name);
/* Those of a mask, with commas. */
void traits_write_operators(struct text *out, uint8_t operators);

/* Of all attributes, the administrator's first, with commas, as far as a line goes. */
void traits_write_names(const struct traits *t, struct text *out);

/* As it is read again. A label's bit, not a set of them, is what is compared with. */
void traits_write_value(const struct traits *t, uint32_t id, struct traits_value v,
                        struct text *out);
/* What a node has, for people: sizes are rounded, labels are joined by +. Nothing if it is not known. */
void traits_write(const struct traits *t, uint32_t node, uint32_t id, struct text *out);

/* All that is known of a node: "CPU=1GHZ MEMORY=24GiB ...". With a NUL, cut to `cap`; the length of the whole. */
size_t traits_format(const struct traits *t, uint32_t node, char *buf, size_t cap);
/* The same of some attributes, a bit for each. */
size_t traits_format_some(const struct traits *t, uint32_t node, uint64_t which, char *buf,
                          size_t cap);
