/* SPDX-License-Identifier: MIT */
/* What is found where files to be sent are said to be: files, folders, links, each with what tells whether it was
 * changed since.
 *
 * Inside a folder no link is followed, whatever is put there while we look. Nothing stays open but
 * one folder: what is needed again is opened again, and must be what it was. */
#pragma once

#include <sys/stat.h>

#include "os/survey.h"
#include "wire/bundle.h"

struct found {
    struct entry e; /* its digest comes later */
    uint32_t item;  /* that it is, or is in */
    uint32_t
        inside; /* where in its path the part behind the item's name begins; 0: it is the item */
    uint64_t offset;     /* of its contents in the stream; comes later */
    uint64_t disk_bytes; /* that it takes */
    uint64_t device, inode;
    int64_t ctime_ns;
};

struct walk_block;

struct walk {
    int beneath; /* our own, or AT_FDCWD */
    bool follow;
    char **paths; /* of the items */
    uint32_t items;
    struct found *found;
    uint32_t count, room;
    uint64_t bytes;            /* of all files */
    uint64_t manifest_bytes;   /* of all entries */
    struct walk_block *blocks; /* paths and targets, which stay where they are */
    int folder;                /* the item that was opened last; -1: none */
    uint32_t folder_item;
};

/* 0 or -errno with the reason. `walk_fini` is needed in either case. */
int walk_init(struct walk *w, const struct survey_config *c, const struct survey_item *items,
              uint32_t count, char why[256]);
void walk_fini(struct walk *w);

/* Opens a file that was found for reading; -ESTALE if it is another one now or was changed. */
int walk_open(struct walk *w, const struct found *f, char why[256]);
/* 0 if the open file is still as it was found, or -ESTALE. */
int walk_check(const struct walk *w, const struct found *f, int fd, char why[256]);

/* Says what is wrong with it (an empty text: what `status` means) and returns `status`. */
int walk_blame(const struct walk *w, const struct found *f, int status, const char *text,
               char why[256]);
