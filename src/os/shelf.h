/* SPDX-License-Identifier: MIT */
/* A shelf: files that are kept by their SHA-256, to be run and to have their pieces used again.
 *
 *   HH/HEX/.data    the contents, read-only
 *   HH/HEX/NAME     the same file under the name that a process of it shall have; there may be several
 *   HH/HEX/.table   which pieces it was made of when it came, and its size, inode and times then
 *
 * An object is put together elsewhere and moved here as a whole. As long as it is as it was when it came it is
 * believed; one that is not, or is older than the last boot (nothing is synced), is read again
 * before it is used, and removed if its digest is wrong. When an object was last used is the time of
 * its table. */
#pragma once

#include "base/bytes.h"
#include "os/mark.h"
#include "wire/bundle.h"

enum { SHELF_OBJECTS_MAX = 16384, SHELF_BUCKETS = 1024 };
#define SHELF_NONE UINT32_MAX

struct object {
    uint8_t sum[32];
    struct mark mark;
    uint64_t used_ns;
    uint32_t pins;
    uint32_t next; /* of its bucket, or of the free ones */
    bool here;
    bool damaged; /* it goes as soon as it is not pinned */
};

struct shelf {
    int folder;
    int waste; /* folder where things may be moved to be removed */
    uint64_t boot;
    uint64_t bytes;   /* of all objects */
    uint64_t last_ns; /* uses have different times */
    uint32_t objects_cap, objects_end, free;
    struct object *objects; /* slots stay where they are, and are used again */
    uint32_t buckets[SHELF_BUCKETS];
};

/* Looks through the folder. The descriptors are borrowed. */
int shelf_init(struct shelf *s, int folder, int waste);
void shelf_fini(struct shelf *s);

/* A slot, or SHELF_NONE. */
uint32_t shelf_find(const struct shelf *s, const uint8_t sum[32]);
/* Is it as it came? -ENOENT: it was not, and is no more. */
int shelf_check(struct shelf *s, uint32_t slot);
/* The contents for reading, checked or not. */
int shelf_open(struct shelf *s, uint32_t slot);
int shelf_open_unchecked(const struct shelf *s, uint32_t slot);
/* It is not what it seems to be: nobody gets it any more, but who has it pinned may read it. */
void shelf_damaged(struct shelf *s, uint32_t slot);
/* One that is pinned is not the oldest. If it is not here, nothing happens. */
void shelf_pin(struct shelf *s, const uint8_t sum[32]);
void shelf_unpin(struct shelf *s, const uint8_t sum[32]);
/* It is used now. */
void shelf_use(struct shelf *s, uint32_t slot);
/* Gives it this name too, and at least these bits of its mode; it was checked. */
int shelf_name(struct shelf *s, uint32_t slot, const char *name, unsigned mode);
bool shelf_name_fits(const char *name);
/* "HH/HEX/name" */
enum { SHELF_PATH_MAX = 2 + 1 + 64 + 1 + 255 + 1 };
void shelf_path(const uint8_t sum[32], const char *name, char path[SHELF_PATH_MAX]);

/* The pieces of a file, one a call, ascending; false at the end. */
struct shelf_source {
    bool (*next)(struct shelf_source *s, uint64_t *ret_offset, struct piece *ret);
    enum digest_kind digest;
};

/* Moves the file `part` of the folder `dir` onto the shelf. If it is there already, `part` stays. On failure it stays
 * as well. */
int shelf_put(struct shelf *s, int dir, const char *part, const uint8_t sum[32], const char *name,
              struct shelf_source *source, uint32_t *ret_slot);
void shelf_remove(struct shelf *s, uint32_t slot);
/* The one that was not used for the longest time, and is not pinned. */
uint32_t shelf_oldest(const struct shelf *s);

/* 1: its contents have this sum; 0: another; -errno. */
int shelf_fits(int fd, const uint8_t sum[32]);

/* The pieces that an object came in. */
struct shelf_table {
    int fd;
    enum digest_kind digest;
    uint32_t rows;
};

int shelf_table_open(const struct shelf *s, uint32_t slot, struct shelf_table *ret);
bool shelf_table_row(const struct shelf_table *t, uint32_t row, uint64_t *ret_offset,
                     struct piece *ret);
