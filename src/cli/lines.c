/* SPDX-License-Identifier: MIT */
/* The lines of a file: see lines.h. */
#include "cli/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "cli/complain.h"

enum { CHUNK = 1 << 17, LINE_MAX_BYTES = 1 << 16, REPORTED_MAX = 10 };

struct reader {
    struct lines *l;
    char line[LINE_MAX_BYTES];
    size_t len;
    bool too_long;
};

/* Of a line that is no job: strictly the end, else a word on it, unless there were many. */
static int malformed(struct lines *l, const char *why) {
    l->malformed++;
    if (l->strict)
        return complain(l->path, "line %" PRIu64 ": %s", l->count, why);
    if (l->malformed <= REPORTED_MAX)
        complain(l->path, "line %" PRIu64 ": %s; passed over", l->count, why);
    return 0;
}

static int end_line(struct reader *r) {
    char why[LINES_WHY_MAX];
    struct lines *l = r->l;
    struct bytes line = {(const uint8_t *)r->line, r->len};
    r->len = 0;
    l->count++;
    int e = 0;
    if (r->too_long)
        snprintf(why, sizeof why, "too long for a job");
    else
        e = l->take(l->context, line, why);
    if (e == -ENOMEM)
        return complain(l->command, "%s", strerror(ENOMEM)), STATUS_STORM;
    bool bad = e < 0 || r->too_long;
    r->too_long = false;
    return bad ? malformed(l, why) : 0;
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
    struct lines *l = r->l;
    char *chunk = malloc(CHUNK);
    int status = chunk == NULL ? complain(l->command, "%s", strerror(ENOMEM)) : 0, n = 0, code;
    while (status == 0 && (n = gzread(file, chunk, CHUNK)) > 0)
        status = take(r, chunk, (size_t)n);
    free(chunk);
    if (status == 0 && (r->len > 0 || r->too_long))
        status = end_line(r);
    const char *why = gzerror(file, &code);
    if (status == 0 && (n < 0 || (code != Z_OK && code != Z_STREAM_END)))
        status = complain(l->path, "cannot be read to its end: %s",
                          code == Z_ERRNO       ? strerror(errno)
                          : code == Z_BUF_ERROR ? "it is cut off"
                                                : why);
    return status;
}

int lines_read(struct lines *l) {
    bool standard = strcmp(l->path, "-") == 0;
    gzFile file = standard ? gzdopen(dup(STDIN_FILENO), "rb") : gzopen(l->path, "rb");
    if (file == NULL)
        return complain(l->path, "%s", strerror(errno));
    struct reader *r = calloc(1, sizeof *r);
    int status = STATUS_STORM;
    l->count = l->malformed = 0;
    if (r != NULL) {
        r->l = l;
        status = read_all(r, file);
        if (status == 0 && l->malformed > REPORTED_MAX)
            complain(l->path, "%" PRIu64 " more such lines", l->malformed - REPORTED_MAX);
    }
    free(r);
    gzclose(file);
    return status;
}
