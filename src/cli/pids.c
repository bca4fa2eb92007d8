/* SPDX-License-Identifier: MIT */
/* Where the processes of a run are: see pids.h. */
#include "cli/pids.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

void pids_begin(struct pids *p, uint64_t run, uint32_t procs) {
    pids_fini(p);
    p->run = run;
    p->procs = procs;
    p->rows = calloc(procs, sizeof *p->rows);
    ASSERT(p->rows != NULL || procs == 0);
}

void pids_fini(struct pids *p) {
    for (uint32_t i = 0; i < p->text_count; i++)
        free(p->texts[i]);
    free(p->texts);
    free(p->rows);
    *p = (struct pids){0};
}

static const char *keep(struct pids *p, struct bytes text) {
    if (p->text_count == p->text_cap) {
        p->text_cap = p->text_cap == 0 ? 16 : 2 * p->text_cap;
        p->texts = reallocarray(p->texts, p->text_cap, sizeof *p->texts);
        ASSERT(p->texts != NULL);
    }
    char *copy = strndup(text.len > 0 ? (const char *)text.at : "", text.len);
    ASSERT(copy != NULL);
    return p->texts[p->text_count++] = copy;
}

/* Names are kept only if there is news in it: nodes say the same again when they are asked again. */
bool pids_take(struct pids *p, const struct message_pids *m) {
    const char *node = NULL, *host = NULL;
    if (m->run != p->run || pids_complete(p))
        return false;
    for (size_t at = 0; at < m->rows.len; at += PIDS_ROW_BYTES) {
        uint32_t rank = load_le32(m->rows.at + at), pid = load_le32(m->rows.at + at + 4);
        if (rank >= p->procs)
            continue;
        if (p->rows[rank].node != NULL) {
            p->rows[rank].pid = pid == 0 ? 0 : p->rows[rank].pid; /* it has ended since */
            continue;
        }
        if (node == NULL) {
            node = keep(p, m->node);
            host = keep(p, m->host);
        }
        p->rows[rank] = (struct pids_row){.pid = pid, .node = node, .host = host};
        p->known++;
    }
    return pids_complete(p);
}

uint32_t pids_running(const struct pids *p) {
    uint32_t count = 0;
    for (uint32_t rank = 0; rank < p->procs; rank++)
        count += p->rows[rank].pid != 0;
    return count;
}
