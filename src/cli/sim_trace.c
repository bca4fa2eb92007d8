/* SPDX-License-Identifier: MIT */
/* storm sim: where its jobs come from. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "cli/complain.h"
#include "cli/sim.h"

enum { CHUNK = 1 << 17, LINE_MAX_BYTES = 1 << 16, REPORTED_MAX = 10 };

struct reader {
    const struct sim_request *q;
    struct workload *w;
    char line[LINE_MAX_BYTES];
    size_t len;
    bool too_long;
    uint64_t reported;
};

/* Of a line that is no job: strictly the end, else a word on it, unless there were many. */
static int malformed(struct reader *r, const char *why) {
    if (r->q->strict)
        return complain(r->q->trace, "line %" PRIu64 ": %s", r->w->lines, why);
    if (r->reported++ < REPORTED_MAX)
        complain(r->q->trace, "line %" PRIu64 ": %s; passed over", r->w->lines, why);
    return 0;
}

static int end_line(struct reader *r) {
    char why[WORKLOAD_WHY_MAX];
    struct bytes line = {(const uint8_t *)r->line, r->len};
    int e = 0;
    r->len = 0;
    if (r->too_long) {
        r->too_long = false;
        r->w->lines++;
        r->w->malformed++;
        return malformed(r, "too long for a job");
    }
    e = workload_line(r->w, line, why);
    if (e == -ENOMEM)
        return complain("sim", "%s", strerror(ENOMEM)), STATUS_STORM;
    return e < 0 ? malformed(r, why) : 0;
}

static int take(struct reader *r, const char *bytes, size_t len) {
    int status = 0;
    while (len > 0 && status == 0) {
        const char *end = memchr(bytes, '\n', len);
        size_t part = end ? (size_t)(end - bytes) : len;
        if (r->len + part > sizeof r->line) {
            r->too_long = true;
            r->len = 0;
        } else if (!r->too_long) {
            memcpy(r->line + r->len, bytes, part);
            r->len += part;
        }
        if (end) {
            status = end_line(r);
            part++;
        }
        bytes += part;
        len -= part;
    }
    return status;
}

static int read_all(struct reader *r, gzFile file) {
    char *chunk = malloc(CHUNK);
    int status = chunk == NULL ? complain("sim", "%s", strerror(ENOMEM)) : 0, n = 0, code;
    while (status == 0 && (n = gzread(file, chunk, CHUNK)) > 0)
        status = take(r, chunk, (size_t)n);
    free(chunk);
    if (status == 0 && (r->len > 0 || r->too_long))
        status = end_line(r);
    const char *why = gzerror(file, &code);
    if (status == 0 && (n < 0 || (code != Z_OK && code != Z_STREAM_END)))
        status = complain(r->q->trace, "cannot be read to its end: %s",
                          code == Z_ERRNO       ? strerror(errno)
                          : code == Z_BUF_ERROR ? "it is cut off"
                                                : why);
    return status;
}

int sim_read(const struct sim_request *q, struct workload *w) {
    bool standard = strcmp(q->trace, "-") == 0;
    gzFile file = standard ? gzdopen(dup(STDIN_FILENO), "rb") : gzopen(q->trace, "rb");
    if (file == NULL)
        return complain(q->trace, "%s", strerror(errno));
    struct reader *r = calloc(1, sizeof *r);
    int status = STATUS_STORM;
    if (r != NULL) {
        r->q = q;
        r->w = w;
        status = read_all(r, file);
        if (status == 0 && r->reported > REPORTED_MAX)
            complain(q->trace, "%" PRIu64 " more such lines", r->reported - REPORTED_MAX);
    }
    free(r);
    gzclose(file);
    if (status == 0 && workload_sort(w) < 0)
        return complain("sim", "%s", strerror(ENOMEM)), STATUS_STORM;
    if (status == 0 && w->count == 0)
        return complain(q->trace,
                        "there is no job in it; it should be in the Standard Workload Format");
    return status;
}
