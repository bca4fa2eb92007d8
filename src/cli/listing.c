/* SPDX-License-Identifier: MIT */
/* A list that is shown: see listing.h. */
#include "cli/listing.h"

#include <stdio.h>

void listing_begin(struct listing *l, const char *const *titles, bool as_json) {
    *l = (struct listing){.as_json = as_json, .json = {.out = stdout}};
    table_init(&l->table, titles);
    if (as_json)
        json_open(&l->json, NULL, '[');
}

void listing_end(struct listing *l, const char *none) {
    if (l->as_json) {
        json_close(&l->json, ']');
        putchar('\n');
    } else if (l->table.rows <= 1 && none != NULL) { /* the head is a row */
        puts(none);
    } else {
        table_print(&l->table, stdout);
    }
    table_fini(&l->table);
}
