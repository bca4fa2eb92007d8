/* SPDX-License-Identifier: MIT */
/* Bodies that may be wanted again soon: see recent.h. */
#include "os/recent.h"

#include <stdlib.h>
#include <string.h>

#include "base/units.h"

#define BYTES_MAX (16 * MIB)

struct recent_entry {
    struct recent_entry *next;  /* in the bucket */
    struct recent_entry *newer; /* in order of age */
    uint64_t key;
    size_t len;
    uint8_t body[];
};

static struct recent_entry **bucket_of(struct recent *r, uint64_t key) {
    return &r->buckets[(key ^ key >> 12) % RECENT_BUCKETS];
}

static void drop_oldest(struct recent *r) {
    struct recent_entry *e = r->oldest;
    struct recent_entry **at = bucket_of(r, e->key);
    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    r->oldest = e->newer;
    if (r->oldest == NULL)
        r->newest = NULL;
    r->bytes -= e->len;
    free(e);
}

void recent_keep(struct recent *r, uint64_t key, struct bytes body) {
    while (r->oldest != NULL && r->bytes + body.len > BYTES_MAX)
        drop_oldest(r);
    struct recent_entry *e = malloc(sizeof *e + body.len);
    if (e == NULL)
        return; /* it can be read from the disk */
    struct recent_entry **bucket = bucket_of(r, key);
    *e = (struct recent_entry){.next = *bucket, .key = key, .len = body.len};
    memcpy(e->body, body.at, body.len);
    *bucket = e; /* found before an older one */
    if (r->newest != NULL)
        r->newest->newer = e;
    else
        r->oldest = e;
    r->newest = e;
    r->bytes += body.len;
}

bool recent_find(const struct recent *r, uint64_t key, struct bytes *ret) {
    for (const struct recent_entry *e = r->buckets[(key ^ key >> 12) % RECENT_BUCKETS]; e != NULL;
         e = e->next)
        if (e->key == key) {
            *ret = bytes_of(e->body, e->len);
            return true;
        }
    return false;
}

void recent_fini(struct recent *r) {
    while (r->oldest != NULL)
        drop_oldest(r);
}
