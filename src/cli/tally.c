/* SPDX-License-Identifier: MIT */
/* What a copy came to: see tally.h. */
#include "cli/tally.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/json.h"

static const struct stage_words {
    const char *name; /* in JSON */
    const char *words;
} stages[TALLY_STAGES] = {
    [TALLY_LOOKED] = {"looked_ms", "looked over"},
    [TALLY_CONNECTED] = {"connected_ms", "connected"},
    [TALLY_ACCEPTED] = {"accepted_ms", "accepted"},
    [TALLY_MET] = {"met_ms", "first node here"},
    [TALLY_FIRST] = {"first_ms", "first piece"},
    [TALLY_LAST] = {"last_ms", "last piece left"},
    [TALLY_DONE] = {"done_ms", "on all nodes"},
};

const char *tally_word(enum tally_stage stage) {
    return stages[stage].words;
}

const char *tally_name(enum tally_stage stage) {
    return stages[stage].name;
}

uint64_t tally_since(const struct tally *t, enum tally_stage stage) {
    uint64_t latest = t->began_ns;
    for (int i = 0; i <= (int)stage; i++)
        if (t->at_ns[i] > latest)
            latest = t->at_ns[i];
    return latest - t->began_ns;
}

void tally_mover_set(struct tally_mover *v, const struct message_counted *m) {
    v->silent = m == NULL;
    if (m == NULL)
        return;
    v->put_fabric = m->put_fabric;
    v->put_stream = m->put_stream;
    v->came_fabric = m->came_fabric;
    v->came_stream = m->came_stream;
    snprintf(v->why, sizeof v->why, "%.*s", (int)m->text.len, (const char *)m->text.at);
}

static void print_movers(const struct tally *t, FILE *out) {
    uint64_t fabric = 0, streams = 0;
    for (uint32_t i = 0; i < t->mover_count; i++) {
        const struct tally_mover *v = &t->movers[i];
        fabric += v->put_fabric;
        streams += v->put_stream;
        if (v->silent)
            fprintf(out, "  %-6s does not say what it gave\n", v->name);
        else
            fprintf(out, "  %-6s gave %" PRIu64 " by fabric, %" PRIu64 " by streams%s%s\n", v->name,
                    v->put_fabric, v->put_stream, v->why[0] == '\0' ? "" : ": ", v->why);
    }
    if (t->mover_count > 0)
        fprintf(out, "cp: %" PRIu64 " bytes by fabric, %" PRIu64 " by streams\n", fabric, streams);
}

void tally_print(const struct tally *t, FILE *out) {
    char bytes[UNITS_TEXT_MAX], given[UNITS_TEXT_MAX], read[UNITS_TEXT_MAX], time[UNITS_TEXT_MAX];
    units_format_size(t->bytes, bytes, sizeof bytes);
    units_format_size(t->given, given, sizeof given);
    units_format_size(t->read, read, sizeof read);
    fprintf(out,
            "cp: %s in %" PRIu32 " pieces to %" PRIu32 " nodes, %s, by %s\n"
            "cp: %s (%" PRIu64 " bytes) given from here; %s read to look it over\n",
            bytes, t->pieces, t->nodes, t->shape, t->fabric[0] == '\0' ? "streams" : t->fabric,
            given, t->given, read);
    if (t->switches > 0)
        fprintf(out, "cp: %" PRIu32 " switches, %" PRIu32 " links of its way lead to another\n",
                t->switches, t->crossed);
    for (int i = 0; i < TALLY_STAGES; i++) {
        units_format_duration(tally_since(t, i), time, sizeof time);
        fprintf(out, "  %-16s %10s\n", stages[i].words, time);
    }
    print_movers(t, out);
}

static void json_movers(struct json *j, const struct tally *t) {
    json_open(j, "movers", '[');
    for (uint32_t i = 0; i < t->mover_count; i++) {
        const struct tally_mover *v = &t->movers[i];
        json_open(j, NULL, '{');
        json_word(j, "name", v->name);
        json_bool(j, "silent", v->silent);
        json_number(j, "put_fabric", v->put_fabric);
        json_number(j, "put_stream", v->put_stream);
        json_number(j, "came_fabric", v->came_fabric);
        json_number(j, "came_stream", v->came_stream);
        json_word(j, "why", v->why);
        json_close(j, '}');
    }
    json_close(j, ']');
}

void tally_json(const struct tally *t, FILE *out) {
    struct json j = {.out = out};
    json_open(&j, NULL, '{');
    json_number(&j, "nodes", t->nodes);
    json_number(&j, "pieces", t->pieces);
    json_number(&j, "bytes", t->bytes);
    json_number(&j, "read", t->read);
    json_number(&j, "given", t->given);
    json_word(&j, "shape", t->shape);
    json_number(&j, "switches", t->switches);
    json_number(&j, "crossed", t->crossed);
    for (int i = 0; i < TALLY_STAGES; i++)
        json_ms(&j, stages[i].name, tally_since(t, i));
    json_word(&j, "fabric", t->fabric[0] == '\0' ? "streams" : t->fabric);
    if (t->mover_count > 0)
        json_movers(&j, t);
    json_close(&j, '}');
    fputc('\n', out);
}

/* What follows `"key":`; NULL if it is not there. */
static const char *value_of(const char *text, const char *key) {
    char quoted[32];
    int len = snprintf(quoted, sizeof quoted, "\"%s\":", key);
    const char *at = strstr(text, quoted);
    return at == NULL ? NULL : at + len;
}

static bool read_number(const char *text, const char *key, uint64_t *ret) {
    const char *at = value_of(text, key);
    char *end;
    if (at == NULL)
        return false;
    *ret = strtoull(at, &end, 10);
    return end != at;
}

/* Milliseconds with as many decimals as there are, in nanoseconds. */
static bool read_ms(const char *text, const char *key, uint64_t *ret) {
    const char *at = value_of(text, key);
    uint64_t whole, scale = NS_PER_MS, ns;
    if (!read_number(text, key, &whole))
        return false;
    ns = whole * NS_PER_MS;
    at += strspn(at, "0123456789");
    if (*at++ == '.')
        for (; *at >= '0' && *at <= '9' && scale >= 10; at++) {
            scale /= 10;
            ns += (uint64_t)(*at - '0') * scale;
        }
    *ret = ns;
    return true;
}

int tally_read(struct tally *t, const char *text) {
    uint64_t nodes, pieces;
    *t = (struct tally){0};
    bool good = read_number(text, "nodes", &nodes) && read_number(text, "pieces", &pieces) &&
                read_number(text, "bytes", &t->bytes) && read_number(text, "read", &t->read) &&
                read_number(text, "given", &t->given) && nodes <= UINT32_MAX &&
                pieces <= UINT32_MAX;
    for (int i = 0; i < TALLY_STAGES && good; i++)
        good = read_ms(text, stages[i].name, &t->at_ns[i]);
    const char *shape = value_of(text, "shape");
    if (!good || shape == NULL || shape[0] != '"')
        return -EBADMSG;
    t->nodes = (uint32_t)nodes;
    t->pieces = (uint32_t)pieces;
    snprintf(t->shape, sizeof t->shape, "%.*s", (int)strcspn(shape + 1, "\""), shape + 1);
    return 0;
}
