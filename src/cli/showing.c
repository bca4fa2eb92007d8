/* SPDX-License-Identifier: MIT */
/* How storm work shows what has become of a line: see showing.h. */
#include "cli/showing.h"

#include <errno.h>
#include <inttypes.h>

#include "base/units.h"
#include "cli/complain.h"
#include "cli/json.h"

/* ---- the log: the columns of GNU parallel's ---- */

int showing_open_log(struct showing *e, const char *path) {
    e->log = fopen(path, "ae");
    if (e->log == NULL)
        return -errno;
    if (fseek(e->log, 0, SEEK_END) == 0 && ftell(e->log) == 0)
        fputs("Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n",
              e->log);
    return 0;
}

static double seconds(uint64_t ns) {
    return (double)ns / (double)NS_PER_S;
}

void showing_log(struct showing *e, uint64_t seq, const char *command,
                 const struct chore_result *r) {
    if (e->log == NULL)
        return;
    bool exited = r->end == CHORE_EXITED;
    fprintf(e->log, "%" PRIu64 "\t%.*s\t%.3f\t%10.3f\t0\t%zu\t%" PRId64 "\t%" PRIu32 "\t", seq,
            (int)r->node.len, (const char *)r->node.at, seconds(r->began_ns), seconds(r->ns),
            r->out.len,
            exited                 ? (int64_t)r->value
            : r->end == CHORE_LATE ? -1
                                   : 0,
            exited ? 0 : r->value);
    for (; *command != '\0'; command++)
        fputc(*command == '\n' || *command == '\t' ? ' ' : *command, e->log);
    fputc('\n', e->log);
}

/* ---- output ---- */

static void show_json(uint64_t seq, const char *command, const struct chore_result *r) {
    struct json j = {.out = stdout};
    json_open(&j, NULL, '{');
    json_number(&j, "seq", seq);
    json_word(&j, "command", command);
    json_number(&j, "status", chore_status(r));
    json_time(&j, "start", r->began_ns);
    json_decimal(&j, "time", seconds(r->ns), 6);
    json_text(&j, "node", r->node);
    json_text(&j, "stdout", r->out);
    json_text(&j, "stderr", r->err);
    json_number(&j, "cut", r->cut);
    json_close(&j, '}');
    fputc('\n', stdout);
}

/* A stream forgets what it could not write, and then says that all is well: the first error counts. */
static void flush(struct showing *e, FILE *stream) {
    errno = 0;
    if ((fflush(stream) != 0 || ferror(stream)) && e->error == 0)
        e->error = errno != 0 ? -errno : -EIO;
}

static void show_text(struct showing *e, const struct chore_result *r) {
    if (r->out.len > 0 && fwrite(r->out.at, 1, r->out.len, stdout) < r->out.len && e->error == 0)
        e->error = errno != 0 ? -errno : -EIO;
    if (r->err.len == 0)
        return;
    flush(e, stdout); /* what went before it stands before it */
    fwrite(r->err.at, 1, r->err.len, stderr);
}

void showing_show(struct showing *e, uint64_t seq, const char *command,
                  const struct chore_result *r) {
    if (e->json)
        show_json(seq, command, r);
    else
        show_text(e, r);
    if (r->cut == 0)
        return;
    e->cut++;
    flush(e, stdout);
    complain("work",
             "line %" PRIu64 " has written %" PRIu64 " bytes more than the 1 MB that are kept; "
             "let it write to a file: %.60s",
             seq, r->cut, command);
}

int showing_flush(struct showing *e) {
    flush(e, stdout);
    if (e->log != NULL)
        flush(e, e->log);
    return e->error;
}

int showing_close(struct showing *e) {
    int r = showing_flush(e);
    if (e->log != NULL && fclose(e->log) != 0 && r == 0)
        r = -errno;
    e->log = NULL;
    return r;
}
