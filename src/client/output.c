/* SPDX-License-Identifier: MIT */
/* What the processes of a job have written: see output.h. */
#include "client/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/list.h"
#include "base/text.h"
#include "base/units.h"
#include "client/pattern.h"
#include "client/tally.h"
#include "sched/map.h"

enum {
    RANKS_MAX = 1 << 20,
    LINE_MAX = 64 * 1024,   /* a longer line is broken */
    TAKE_BYTES = 16 * 1024, /* acknowledged at once; less, when there is a lull */
    PATH_BYTES = 4096
};

#define WAITING_MAX (64 * MIB) /* for all sinks of a job; what is more will come again */
#define LULL_NS     NS_PER_MS
#define GATHER_NS   (200 * NS_PER_MS) /* who comes late looks so long where each stream begins */

struct outlet {
    struct list at;
    struct sink sink;
    bool told; /* its trouble */
    char name[];
};

struct stream {
    uint64_t expected; /* everything before has come */
    uint64_t taken;    /* and this was acknowledged */
    struct outlet *outlet;
    uint8_t *held; /* the beginning of a line */
    uint32_t held_len;
    uint32_t next; /* dirty: the next of them, by index + 1 */
    bool dirty;
    uint64_t kept; /* a former life has left its file this long */
    bool again;    /* to be acknowledged whatever was before */
    bool seen;     /* late: the oldest offset that was seen is `base` */
    bool based;    /* late: it begins there */
    uint64_t base;
};

struct output {
    struct output_config config;
    struct list outlets;
    struct outlet *plain[2]; /* the same for all ranks */
    bool each[2];            /* a file for each rank or node */
    bool named;              /* some name needs a node's */
    uint32_t job;
    uint64_t run;
    uint32_t *nodes; /* of the run nodes_run, ascending */
    uint64_t nodes_run;
    enum map_kind map; /* of it */
    struct bytes places;
    uint8_t *places_kept;
    struct bytes sections; /* of the run nodes_run */
    uint8_t *sections_kept;
    uint32_t node_count, procs;
    struct stream *streams; /* rank * 2 + stream - 1 */
    uint32_t ranks;
    uint32_t dirty; /* first of the list, by index + 1 */
    uint64_t lull_at;
    uint64_t received;
    struct tally *tally;
    bool dropped;          /* for want of room: to be sent again */
    uint64_t gather_until; /* 0: not gathering */
};

/* ---- where it goes ---- */

static struct outlet *outlet_new(struct output *o, const char *name, int fd, bool own) {
    size_t len = strlen(name);
    struct outlet *out = calloc(1, sizeof *out + len + 1);
    if (out == NULL)
        return NULL;
    memcpy(out->name, name, len + 1);
    sink_init(&out->sink, o->config.loop, fd, own);
    list_init(&out->at);
    list_push_back(&o->outlets, &out->at);
    return out;
}

static void tell(struct output *o, struct outlet *out) {
    if (out->told || out->sink.error == 0)
        return;
    out->told = true;
    if (o->config.trouble != NULL)
        o->config.trouble(o->config.context, out->name, out->sink.error);
}

static struct map map_of(const struct output *o) {
    return (struct map){.kind = o->map,
                        .nodes = o->node_count,
                        .procs = o->procs,
                        .places = o->places,
                        .sections = o->sections};
}

static const char *node_of(struct output *o, uint32_t rank, char *out, size_t cap) {
    if (o->node_count == 0 || o->nodes_run < o->run || rank >= o->procs)
        return NULL;
    struct map map = map_of(o);
    uint32_t place = map_place(&map, rank);
    cluster_node_name(o->config.cluster, o->nodes[place], out, cap);
    return out;
}

/* The name of a stream's file; false if it cannot be said yet. */
static bool name_of(struct output *o, int which, uint32_t rank, char out[PATH_BYTES]) {
    char node[CLUSTER_NODE_NAME_MAX];
    const char *pattern = o->config.file[which];
    struct pattern_values v = {.job = o->job, .rank = rank};
    v.node = node_of(o, rank, node, sizeof node);
    if ((v.node == NULL && pattern_has(pattern, 'n')) || (o->job == 0 && pattern_has(pattern, 'j')))
        return false;
    v.node = v.node == NULL ? "" : v.node;
    return pattern_expand(pattern, &v, out, PATH_BYTES) == 0;
}

/* How much of this file was written and acknowledged by a former life. */
static uint64_t kept_of(struct output *o, const char *name) {
    uint64_t kept = 0;
    char other[PATH_BYTES];
    for (uint32_t i = 0; o->tally != NULL && i < o->ranks * 2; i++)
        if (o->streams[i].kept > kept && name_of(o, (int)(i % 2), i / 2, other) &&
            strcmp(other, name) == 0)
            kept = o->streams[i].kept;
    return kept;
}

/* Two streams of one name share a file. */
static struct outlet *outlet_file(struct output *o, const char *name) {
    LIST_EACH (at, &o->outlets) {
        struct outlet *out = CONTAINER_OF(at, struct outlet, at);
        if (out->sink.own && strcmp(out->name, name) == 0)
            return out;
    }
    uint64_t kept = kept_of(o, name);
    int fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    int error = fd < 0 || (ftruncate(fd, (off_t)kept) < 0 && errno != EINVAL) ? -errno : 0;
    struct outlet *out = outlet_new(o, name, fd, true);
    if (out != NULL && error < 0) {
        out->sink.error = error;
        tell(o, out);
    }
    return out;
}

/* NULL if it cannot be said yet. */
static struct outlet *outlet_find(struct output *o, int which, uint32_t rank) {
    char name[PATH_BYTES];
    if (o->plain[which] != NULL)
        return o->plain[which];
    if (!name_of(o, which, rank, name))
        return NULL;
    struct outlet *out = outlet_file(o, name);
    if (!o->each[which])
        o->plain[which] = out;
    return out;
}

int output_open(struct output *o) {
    for (int i = 0; i < 2; i++) {
        const char *file = o->config.file[i];
        if (file == NULL || o->each[i] || pattern_has(file, 'j'))
            continue;
        struct outlet *out = outlet_find(o, i, 0);
        if (out == NULL)
            return -ENOMEM;
        if (out->sink.error < 0)
            return out->sink.error;
    }
    return 0;
}

/* ---- streams ---- */

static struct stream *stream_of(struct output *o, uint32_t rank, uint8_t stream) {
    if (rank >= RANKS_MAX || stream < 1 || stream > 2)
        return NULL;
    if (rank >= o->ranks) {
        uint32_t ranks = o->ranks ? o->ranks : 8;
        while (ranks <= rank)
            ranks *= 2;
        struct stream *more = realloc(o->streams, (size_t)ranks * 2 * sizeof *more);
        if (more == NULL)
            return NULL;
        memset(more + (size_t)o->ranks * 2, 0, (size_t)(ranks - o->ranks) * 2 * sizeof *more);
        o->streams = more;
        o->ranks = ranks;
    }
    return &o->streams[(size_t)rank * 2 + stream - 1];
}

static void mark(struct output *o, struct stream *s) {
    if (s->dirty)
        return;
    s->dirty = true;
    s->next = o->dirty;
    o->dirty = (uint32_t)(s - o->streams) + 1;
    if (o->lull_at == 0)
        o->lull_at = o->config.loop->now + LULL_NS;
}

static void resume_stream(void *context, const struct tally_note *n) {
    struct output *o = context;
    struct stream *s = stream_of(o, n->stream / 2, (uint8_t)(n->stream % 2 + 1));
    if (s == NULL)
        return;
    o->received += n->taken - s->expected;
    s->expected = s->taken = n->taken;
    s->kept = n->size;
}

/* Another attempt of the job begins from nothing, or where a former life of ours was. */
static void begin_run(struct output *o, uint64_t run) {
    output_finish(o);
    for (size_t i = 0; i < (size_t)o->ranks * 2; i++)
        free(o->streams[i].held);
    if (o->streams != NULL)
        memset(o->streams, 0, (size_t)o->ranks * 2 * sizeof *o->streams);
    o->dirty = 0;
    o->received = 0;
    o->run = run;
    if (o->tally != NULL)
        tally_each(o->tally, run, resume_stream, o);
}

/* ---- lines ---- */

static void write_label(struct sink *sink, uint32_t rank) {
    char label[16];
    struct text t;
    text_init(&t, label, sizeof label);
    text_u64(&t, rank);
    text_str(&t, ": ");
    sink_write(sink, bytes_of(label, t.len));
}

static void write_line(struct stream *s, uint32_t rank, struct bytes rest, bool whole) {
    struct sink *sink = &s->outlet->sink;
    write_label(sink, rank);
    if (s->held_len > 0)
        sink_write(sink, bytes_of(s->held, s->held_len));
    sink_write(sink, rest);
    if (!whole)
        sink_write(sink, bytes_of("\n", 1));
    s->held_len = 0;
}

/* Less than a line. */
static void hold(struct stream *s, uint32_t rank, struct bytes rest) {
    while (rest.len > 0) {
        size_t room = LINE_MAX - s->held_len;
        size_t n = rest.len < room ? rest.len : room;
        uint8_t *held = realloc(s->held, s->held_len + n);
        if (held == NULL || n == room) {
            write_line(s, rank, bytes_of(rest.at, n), false);
        } else {
            s->held = held;
            memcpy(held + s->held_len, rest.at, n);
            s->held_len += (uint32_t)n;
        }
        if (held != NULL)
            s->held = held;
        rest = bytes_of(rest.at + n, rest.len - n);
    }
}

static void write_lines(struct stream *s, uint32_t rank, struct bytes bytes) {
    const uint8_t *newline;
    while (bytes.len > 0 && (newline = memchr(bytes.at, '\n', bytes.len)) != NULL) {
        size_t n = (size_t)(newline - bytes.at) + 1;
        write_line(s, rank, bytes_of(bytes.at, n), true);
        bytes = bytes_of(bytes.at + n, bytes.len - n);
    }
    hold(s, rank, bytes);
}

static void end_line(struct stream *s, uint32_t rank) {
    if (s->held_len > 0)
        write_line(s, rank, (struct bytes){0}, false);
    free(s->held);
    s->held = NULL;
}

/* ---- taking ---- */

static void deliver(struct output *o, struct stream *s, uint32_t rank, struct bytes bytes) {
    s->expected += bytes.len;
    o->received += bytes.len;
    if (o->config.label)
        write_lines(s, rank, bytes);
    else
        sink_write(&s->outlet->sink, bytes);
    mark(o, s);
}

/* New output may be faster than what waits to be sent again: the oldest of both is where a stream
 * begins. False while that is not known. */
static bool find_base(struct output *o, struct stream *s, uint64_t offset) {
    if (!o->config.late || s->based)
        return true;
    if (!s->seen || offset < s->base)
        s->base = offset;
    s->seen = true;
    if (o->gather_until != 0)
        return false;
    s->based = true;
    s->expected = s->taken = s->base;
    o->received += s->base;
    return true;
}

void output_gather(struct output *o) {
    o->gather_until = o->config.loop->now + GATHER_NS;
}

static void gathered(struct output *o) {
    if (o->gather_until > o->config.loop->now) {
        loop_wake_at(o->config.loop, o->gather_until);
        return;
    }
    o->gather_until = 0;
    session_do(o->config.session, o->job, VERB_FOLLOW, 1, NULL, NULL); /* all of it again */
}

static bool has_room(const struct stream *s, size_t len) {
    size_t waiting = sink_waiting(&s->outlet->sink);
    return waiting == 0 || waiting + len <= WAITING_MAX;
}

void output_run(struct output *o, uint64_t run) {
    if (run > o->run)
        begin_run(o, run);
}

void output_take(struct output *o, const struct message_output *m) {
    if (m->run < o->run || (o->job != 0 && run_job(m->run) != o->job))
        return;
    output_run(o, m->run);
    struct stream *s = stream_of(o, m->rank, m->stream);
    if (s == NULL || !find_base(o, s, m->offset) || m->offset > s->expected)
        return;
    if (s->outlet == NULL)
        s->outlet = outlet_find(o, m->stream - 1, m->rank);
    if (s->outlet == NULL) {
        o->dropped = o->nodes_run < m->run; /* its name is not known yet: it will be told */
        return;
    }
    uint64_t have = s->expected - m->offset;
    if (m->bytes.len > have) {
        struct bytes fresh = bytes_of(m->bytes.at + have, m->bytes.len - have);
        if (!has_room(s, fresh.len)) {
            o->dropped = true;
            return;
        }
        deliver(o, s, m->rank, fresh);
    } else if (m->bytes.len > 0) {
        s->again = true;
        mark(o, s);
    }
    if (m->end && o->config.label && m->offset + m->bytes.len == s->expected)
        end_line(s, m->rank);
}

/* ---- acknowledging ---- */

/* Before it is acknowledged: that leaves at the end of the turn. */
static void note_taken(struct output *o, const struct stream *s) {
    struct stat st;
    if (o->tally == NULL || fstat(s->outlet->sink.source.fd, &st) < 0)
        return;
    struct tally_note n = {.run = o->run,
                           .stream = (uint32_t)(s - o->streams),
                           .taken = s->expected,
                           .size = (uint64_t)st.st_size};
    tally_add(o->tally, &n);
}

static void acknowledge(struct output *o, struct stream *s) {
    size_t index = (size_t)(s - o->streams);
    struct message_taken m = {.run = o->run,
                              .rank = (uint32_t)(index / 2),
                              .stream = (uint8_t)(index % 2 + 1),
                              .offset = s->expected};
    if (s->taken == s->expected && !s->again)
        return;
    s->taken = s->expected;
    s->again = false;
    note_taken(o, s);
    session_taken(o->config.session, &m);
}

/* Those whose bytes are out, and that have enough of them or have waited long enough. */
static void acknowledge_some(struct output *o, bool all) {
    uint32_t left = 0, at = o->dirty;
    while (at != 0) {
        struct stream *s = &o->streams[at - 1];
        bool out = sink_waiting(&s->outlet->sink) == 0;
        at = s->next;
        if (out && (all || s->again || s->expected - s->taken >= TAKE_BYTES)) {
            s->dirty = false;
            acknowledge(o, s);
            continue;
        }
        s->next = left;
        left = (uint32_t)(s - o->streams) + 1;
    }
    o->dirty = left;
    if (o->tally != NULL && tally_commit(o->tally) < 0 && o->config.trouble != NULL)
        o->config.trouble(o->config.context, o->config.tally, -errno);
}

static void flush(struct output *o) {
    LIST_EACH (at, &o->outlets) {
        struct outlet *out = CONTAINER_OF(at, struct outlet, at);
        if (sink_waiting(&out->sink) > 0 && !out->sink.waiting)
            sink_settle(&out->sink);
        tell(o, out);
    }
}

bool output_waiting(const struct output *o) {
    LIST_EACH (at, &o->outlets)
        if (sink_waiting(&CONTAINER_OF(at, struct outlet, at)->sink) > 0)
            return true;
    return false;
}

void output_settle(struct output *o) {
    uint64_t now = o->config.loop->now;
    flush(o);
    bool lull = o->lull_at != 0 && o->lull_at <= now;
    if (o->dirty != 0)
        acknowledge_some(o, lull);
    if (lull || o->dirty == 0)
        o->lull_at = 0;
    if (o->dirty != 0 && !output_waiting(o)) {
        o->lull_at = o->lull_at == 0 ? now + LULL_NS : o->lull_at;
        loop_wake_at(o->config.loop, o->lull_at);
    }
    if (o->gather_until != 0)
        gathered(o);
    if (o->dropped && !output_waiting(o)) {
        o->dropped = false;
        session_do(o->config.session, o->job, VERB_FOLLOW, 1, NULL, NULL); /* all of it again */
    }
}

void output_finish(struct output *o) {
    for (uint32_t i = 0; i < o->ranks * 2; i++)
        if (o->streams[i].outlet != NULL && o->streams[i].held_len > 0)
            end_line(&o->streams[i], i / 2);
    flush(o);
    acknowledge_some(o, true);
}

void output_say(struct output *o, uint32_t rank, struct bytes words) {
    struct outlet *out = outlet_find(o, 1, rank);
    if (out == NULL)
        return;
    sink_write(&out->sink, words);
    sink_settle(&out->sink);
    tell(o, out);
}

uint64_t output_received(const struct output *o) {
    return o->received;
}

/* ---- beginning and end ---- */

void output_job(struct output *o, uint32_t job) {
    o->job = job;
}

static bool keep_sections(struct output *o, struct bytes sections) {
    free(o->sections_kept);
    o->sections = (struct bytes){0};
    o->sections_kept = sections.len == 0 ? NULL : malloc(sections.len);
    if (o->sections_kept == NULL)
        return sections.len == 0;
    memcpy(o->sections_kept, sections.at, sections.len);
    o->sections = bytes_of(o->sections_kept, sections.len);
    return true;
}

void output_nodes(struct output *o, const struct message_news *n) {
    const struct nodeset *nodes = n->nodes;
    if (!o->named || n->run <= o->nodes_run || nodeset_empty(nodes) ||
        n->procs < nodeset_count(nodes))
        return;
    uint32_t *room = realloc(o->nodes, nodeset_count(nodes) * sizeof *room);
    if (room == NULL)
        return;
    o->nodes = room;
    o->nodes_run = n->run;
    o->node_count = 0;
    o->procs = n->procs;
    o->map = (enum map_kind)n->map;
    if (!keep_sections(o, n->sections))
        return;
    NODESET_EACH (i, nodes)
        o->nodes[o->node_count++] = i;
    struct map map = map_of(o);
    if (!map_good(&map))
        o->node_count = 0; /* its list is not known here: its files cannot be named */
}

struct output *output_new(const struct output_config *config) {
    static const char *const names[2] = {"standard output", "standard error"};
    struct output *o = calloc(1, sizeof *o);
    if (o == NULL)
        return NULL;
    o->config = *config;
    list_init(&o->outlets);
    if (config->places.len > 0 && (o->places_kept = malloc(config->places.len)) != NULL) {
        memcpy(o->places_kept, config->places.at, config->places.len);
        o->places = bytes_of(o->places_kept, config->places.len);
    }
    if (config->tally != NULL && (o->tally = tally_open(config->tally)) == NULL) {
        free(o->places_kept);
        free(o);
        return NULL;
    }
    for (int i = 0; i < 2; i++) {
        const char *file = config->file[i];
        if (file == NULL) {
            o->plain[i] = outlet_new(o, names[i], config->fd[i], false);
            continue;
        }
        o->each[i] = pattern_has(file, 'r') || pattern_has(file, 'n');
        o->named = o->named || pattern_has(file, 'n');
    }
    return o;
}

void output_free(struct output *o) {
    if (o == NULL)
        return;
    LIST_EACH_SAFE (at, &o->outlets) {
        struct outlet *out = CONTAINER_OF(at, struct outlet, at);
        sink_fini(&out->sink);
        free(out);
    }
    for (size_t i = 0; i < (size_t)o->ranks * 2; i++)
        free(o->streams[i].held);
    free(o->streams);
    free(o->nodes);
    free(o->sections_kept);
    free(o->places_kept);
    tally_close(o->tally);
    free(o);
}
