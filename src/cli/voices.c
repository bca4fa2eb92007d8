/* SPDX-License-Identifier: MIT */
/* What hosts say: see voices.h. */
#include "cli/voices.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "cli/complain.h"
#include "cli/json.h"
#include "cli/terminal.h"
#include "os/spool.h"

enum {
    FULL_BYTES = 256 * 1024,
    LINE_BYTES_MAX = 64 * 1024,
    STATUS_TIMED = 124,
    GATHER_BYTES_MAX = 64 * 1024 * 1024
};

enum fate { WAITING, AT_WORK, EXITED, KILLED, TIMED, NOT_BEGUN, NOT_REACHED, LOST };

struct voice {
    struct spool said[2]; /* lines without an end; in gathering manners, everything */
    enum fate fate;
    uint32_t number; /* exit code or signal */
    char *words;
    bool cut; /* it has said more than we keep */
};

int voices_init(struct voices *v, const struct roll *roll, struct loop *loop,
                enum voices_manner manner) {
    *v = (struct voices){.roll = roll, .manner = manner};
    v->each = calloc(roll->count, sizeof *v->each);
    sink_init(&v->out, loop, STDOUT_FILENO, false);
    sink_init(&v->err, loop, STDERR_FILENO, false);
    return v->each == NULL ? -ENOMEM : 0;
}

void voices_fini(struct voices *v) {
    for (uint32_t i = 0; v->each != NULL && i < v->roll->count; i++) {
        spool_fini(&v->each[i].said[0]);
        spool_fini(&v->each[i].said[1]);
        free(v->each[i].words);
    }
    free(v->each);
    sink_fini(&v->out);
    sink_fini(&v->err);
}

static bool at_the_end(const struct voices *v) {
    return v->manner == VOICES_GATHER || v->manner == VOICES_JSON;
}

/* ---- Lines ------------------------------------------------------------------------------------- */

static void write_text(struct sink *s, const char *text) {
    sink_write(s, bytes_from_str(text));
}

/* With its end, or without: then it gets one. */
static void write_line(struct voices *v, uint32_t host, int stream, struct bytes line) {
    struct sink *s = stream == 2 ? &v->err : &v->out;
    FILE *f = stream == 2 ? stderr : stdout;
    if (v->manner == VOICES_LINES) {
        write_text(s, terminal_tint(f, stream == 2 ? TINT_BAD : TINT_HEAD));
        write_text(s, v->roll->names[host]);
        write_text(s, ":");
        write_text(s, terminal_tint(f, TINT_NONE));
        write_text(s, " ");
    }
    sink_write(s, line);
    if (line.len == 0 || line.at[line.len - 1] != '\n')
        write_text(s, "\n");
}

/* The lines of which all is there; a very long one is cut. */
static void write_lines(struct voices *v, uint32_t host, int stream, struct spool *said) {
    for (;;) {
        struct bytes b = spool_bytes(said);
        const uint8_t *end = b.len > 0 ? memchr(b.at, '\n', b.len) : NULL;
        size_t len = end != NULL ? (size_t)(end - b.at) + 1 : b.len;
        if (end == NULL && b.len < LINE_BYTES_MAX)
            return;
        write_line(v, host, stream, bytes_of(b.at, len));
        spool_drop(said, len);
    }
}

static void take_output(struct voices *v, const struct frame *f) {
    struct voice *voice = &v->each[f->host];
    int stream = f->flag == 2 ? 2 : 1;
    if (v->manner == VOICES_PLAIN) {
        sink_write(stream == 2 ? &v->err : &v->out, f->body);
        return;
    }
    /* Gathered, both streams are one, as they came. */
    struct spool *said = &voice->said[v->manner == VOICES_GATHER ? 0 : stream - 1];
    bool room = !at_the_end(v) || said->to - said->from + f->body.len <= GATHER_BYTES_MAX;
    if (room && spool_add(said, f->body) == 0) {
        if (!at_the_end(v))
            write_lines(v, f->host, stream, said);
        return;
    }
    if (!voice->cut)
        complain(v->roll->names[f->host],
                 "says more than can be kept (%d MiB); without -b and --json all of it is shown",
                 GATHER_BYTES_MAX >> 20);
    voice->cut = true;
    v->unwritten = -ENOSPC;
}

static void write_rest(struct voices *v, uint32_t host) {
    for (int i = 0; i < 2 && !at_the_end(v); i++) {
        struct spool *said = &v->each[host].said[i];
        struct bytes b = spool_bytes(said);
        if (b.len > 0)
            write_line(v, host, i + 1, b);
        spool_fini(said);
    }
}

/* What a host says is shown on a terminal: no sign of it means anything there. */
char *voices_words(struct bytes from) {
    enum { MOST = 500 };
    size_t len = from.len < MOST ? from.len : MOST;
    char *words = malloc(len + 1);
    if (words == NULL)
        return NULL;
    for (size_t i = 0; i < len; i++)
        words[i] = from.at[i] >= ' ' && from.at[i] != 0x7f ? (char)from.at[i] : '?';
    words[len] = '\0';
    return words;
}

/* ---- Fates ------------------------------------------------------------------------------------- */

static void settle_fate(struct voices *v, const struct frame *f, enum fate fate) {
    struct voice *voice = &v->each[f->host];
    if (voice->fate > AT_WORK)
        return;
    v->reached -= voice->fate == AT_WORK;
    voice->fate = fate;
    voice->number = f->number & (fate == KILLED ? 0x7f : 0xff); /* whatever a host says */
    voice->words = voices_words(f->body);
    v->over++;
    v->failed += fate >= NOT_BEGUN;
    write_rest(v, f->host);
    if (fate >= NOT_BEGUN && !v->quiet && v->manner != VOICES_JSON) {
        sink_settle(&v->out);
        terminal_progress(NULL);
        complain(v->roll->names[f->host], "%s: %s",
                 fate == NOT_REACHED ? "not reached"
                 : fate == LOST      ? "lost"
                                     : "not run",
                 voice->words != NULL ? voice->words : "");
    }
}

void voices_take(struct voices *v, const struct frame *f) {
    static const enum fate fates[FRAME_ENDS] = {[FRAME_EXITED] = EXITED,
                                                [FRAME_KILLED] = KILLED,
                                                [FRAME_TIMED] = TIMED,
                                                [FRAME_FAILED] = NOT_BEGUN,
                                                [FRAME_STRANGE] = NOT_BEGUN};
    switch (f->kind) {
    case FRAME_READY:
        v->each[f->host].fate = AT_WORK;
        v->reached++;
        break;
    case FRAME_OUTPUT:
        take_output(v, f);
        break;
    case FRAME_OVER:
        settle_fate(v, f, fates[f->flag]);
        break;
    case FRAME_RETURN:
        settle_fate(v, f, NOT_REACHED);
        break;
    case FRAME_LOST:
        settle_fate(v, f, LOST);
        break;
    default:
        break;
    }
}

bool voices_full(const struct voices *v) {
    return sink_waiting(&v->out) > FULL_BYTES || sink_waiting(&v->err) > FULL_BYTES;
}

void voices_settle(struct voices *v) {
    sink_settle(&v->out);
    sink_settle(&v->err);
}

bool voices_waiting(const struct voices *v) {
    return (v->out.error == 0 && sink_waiting(&v->out) > 0) ||
           (v->err.error == 0 && sink_waiting(&v->err) > 0);
}

int voices_error(const struct voices *v) {
    const int errors[] = {v->out.error, v->err.error, v->unwritten};
    for (int i = 0; i < 3; i++)
        if (errors[i] != 0 && errors[i] != -EPIPE)
            return errors[i];
    return 0;
}

char *voices_at_work(const struct voices *v, uint32_t *ret_count) {
    uint32_t *which = calloc(v->roll->count, sizeof *which), n = 0;
    for (uint32_t i = 0; which != NULL && i < v->roll->count; i++)
        if (v->each[i].fate == AT_WORK)
            which[n++] = i;
    char *text = which != NULL ? roll_fold(v->roll, which, n) : NULL;
    *ret_count = n;
    free(which);
    return text;
}

static int status_of(const struct voice *v) {
    switch (v->fate) {
    case EXITED:
        return (int)v->number;
    case KILLED:
        return STATUS_SIGNAL + (int)v->number;
    case TIMED:
        return STATUS_TIMED;
    case NOT_BEGUN:
        return STATUS_NOT_RUN;
    default:
        return STATUS_STORM;
    }
}

int voices_status(const struct voices *v) {
    int highest = 0;
    bool lost = false, timed = false;
    for (uint32_t i = 0; i < v->roll->count; i++) {
        int status = status_of(&v->each[i]);
        lost = lost || v->each[i].fate >= NOT_REACHED || v->each[i].fate <= AT_WORK;
        timed = timed || v->each[i].fate == TIMED;
        highest = status > highest ? status : highest;
    }
    return lost ? STATUS_STORM : timed ? STATUS_TIMED : highest;
}

/* ---- The end ----------------------------------------------------------------------------------- */

/* Numbers of hosts that are alike, the first of which is `first`; those are marked in `done`. */
static uint32_t alike(const struct voices *v, uint32_t first, bool *done, uint32_t *which,
                      bool (*like)(const struct voice *a, const struct voice *b)) {
    uint32_t n = 0;
    for (uint32_t i = first; i < v->roll->count; i++) {
        if (done[i] || !like(&v->each[first], &v->each[i]))
            continue;
        done[i] = true;
        which[n++] = i;
    }
    return n;
}

static bool say_the_same(const struct voice *a, const struct voice *b) {
    return bytes_equal(spool_bytes(&a->said[0]), spool_bytes(&b->said[0])) &&
           (a->fate >= NOT_REACHED) == (b->fate >= NOT_REACHED);
}

static bool end_the_same(const struct voice *a, const struct voice *b) {
    return a->fate == b->fate && a->number == b->number;
}

static void write_group(struct voices *v, const char *hosts, uint32_t count, struct bytes said) {
    char number[32] = "";
    static const char rule[] = "---------------\n";
    if (count > 1)
        snprintf(number, sizeof number, " (%" PRIu32 ")", count);
    write_text(&v->out, terminal_tint(stdout, TINT_HEAD));
    write_text(&v->out, rule);
    write_text(&v->out, hosts);
    write_text(&v->out, number);
    write_text(&v->out, "\n");
    write_text(&v->out, rule);
    write_text(&v->out, terminal_tint(stdout, TINT_NONE));
    sink_write(&v->out, said);
    if (said.at[said.len - 1] != '\n')
        write_text(&v->out, "\n");
}

static void show_group(struct voices *v, uint32_t first, const uint32_t *which, uint32_t n) {
    struct bytes said = spool_bytes(&v->each[first].said[0]);
    char *hosts = said.len > 0 ? roll_fold(v->roll, which, n) : NULL;
    if (hosts != NULL)
        write_group(v, hosts, n, said);
    free(hosts);
}

/* Commands that have not ended well; those that were not reached were told of already. */
static void show_ends(struct voices *v, uint32_t first, const uint32_t *which, uint32_t n) {
    const struct voice *voice = &v->each[first];
    bool ended = voice->fate == EXITED || voice->fate == KILLED || voice->fate == TIMED;
    if (!ended || status_of(voice) == 0 || v->quiet)
        return;
    char *hosts = roll_fold(v->roll, which, n);
    if (voice->fate == TIMED)
        complain(hosts, "the command took too long and was ended");
    else if (voice->fate == KILLED)
        complain(hosts, "the command was killed by signal %" PRIu32 " (%s)", voice->number,
                 strsignal((int)voice->number));
    else
        complain(hosts, "exit %" PRIu32, voice->number);
    free(hosts);
}

static void show_groups(struct voices *v, bool (*like)(const struct voice *, const struct voice *),
                        void (*show)(struct voices *, uint32_t, const uint32_t *, uint32_t)) {
    bool *done = calloc(v->roll->count, sizeof *done);
    uint32_t *which = calloc(v->roll->count, sizeof *which);
    for (uint32_t i = 0; done != NULL && which != NULL && i < v->roll->count; i++) {
        if (done[i])
            continue;
        uint32_t n = alike(v, i, done, which, like);
        show(v, i, which, n);
    }
    free(done);
    free(which);
}

static void show_json(struct voices *v) {
    static const char *const names[] = {"waiting", "running", "exited",      "killed",
                                        "timeout", "not run", "not reached", "lost"};
    struct json j = {.out = stdout};
    json_open(&j, NULL, '{');
    json_open(&j, "hosts", '[');
    for (uint32_t i = 0; i < v->roll->count; i++) {
        const struct voice *voice = &v->each[i];
        json_open(&j, NULL, '{');
        json_word(&j, "host", v->roll->names[i]);
        json_word(&j, "state", names[voice->fate]);
        json_number(&j, "status", (uint64_t)status_of(voice));
        json_text(&j, "output", spool_bytes(&voice->said[0]));
        json_text(&j, "error", spool_bytes(&voice->said[1]));
        if (voice->words != NULL && voice->words[0] != '\0')
            json_word(&j, "reason", voice->words);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_number(&j, "status", (uint64_t)voices_status(v));
    json_close(&j, '}');
    putchar('\n');
    if (fflush(stdout) != 0 || ferror(stdout))
        v->unwritten = errno != 0 ? -errno : -EIO;
}

void voices_finish(struct voices *v) {
    for (uint32_t i = 0; i < v->roll->count; i++)
        write_rest(v, i);
    if (v->manner == VOICES_GATHER)
        show_groups(v, say_the_same, show_group);
    if (v->manner == VOICES_JSON)
        show_json(v);
    voices_settle(v);
    if (v->manner != VOICES_JSON)
        show_groups(v, end_the_same, show_ends);
}
