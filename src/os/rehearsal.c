/* SPDX-License-Identifier: MIT */
/* One launcher, its manager played by us: see rehearsal.h. */
#include "os/rehearsal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/units.h"
#include "os/child.h"
#include "wire/setup.h"
#include "wire/spec.h"

enum { NODE = 0, PATIENCE_MS = 10000, BODY_BYTES = 8192 };

static const uint64_t key[2] = {1, 2};

/* ---- saying ---- */

static void say(struct rehearsal *r, uint16_t type, const union message *m) {
    uint8_t body[BODY_BYTES];
    long len = message_encode(type, m, room_of(body, sizeof body));
    ASSERT(len >= 0);
    struct effect_send send = {
        .links = &r->link, .link_count = 1, .type = type, .head = bytes_of(body, (size_t)len)};
    if (r->link != 0)
        links_send(r->links, &send);
    links_settle(r->links);
}

void rehearsal_command(struct rehearsal *r, uint32_t gang, enum verb verb, uint32_t value) {
    union message m = {.command = {.run = run_of(gang, 0), .verb = (uint8_t)verb, .value = value}};
    say(r, MESSAGE_COMMAND, &m);
}

/* Its body is as say_strobe's. */
static void cast(struct rehearsal *r, const union message *m) {
    uint8_t body[64];
    uint64_t word;
    struct nodeset set;
    nodeset_init(&set, 1, &word);
    nodeset_clear(&set);
    nodeset_add(&set, NODE);
    store_le16(body, MESSAGE_TURN);
    long len = message_encode(MESSAGE_TURN, m, room_of(body + 2, sizeof body - 2));
    ASSERT(len >= 0);
    struct effect_cast e = {.set = &set,
                            .channel = CHANNEL_TURN,
                            .number = r->number,
                            .body = bytes_of(body, 2 + (size_t)len)};
    caster_send(&r->caster, &e);
}

uint64_t rehearsal_cycle(struct rehearsal *r, uint8_t slot, uint32_t quantum_us, uint64_t cycle,
                         bool tell) {
    uint64_t now = clock_ns();
    union message m = {.turn = {.number = ++r->number,
                                .slot = slot,
                                .tell = tell,
                                .sent_ns = now,
                                .quantum_us = quantum_us,
                                .cycle = cycle}};
    if (r->by_link)
        say(r, MESSAGE_TURN, &m);
    else
        cast(r, &m);
    return now;
}

uint64_t rehearsal_turn(struct rehearsal *r, uint8_t slot, uint32_t quantum_us, bool tell) {
    return rehearsal_cycle(r, slot, quantum_us, 0, tell);
}

void rehearsal_slots(struct rehearsal *r, uint32_t gang, uint64_t slots) {
    uint8_t row[SLOTS_ROW_BYTES];
    store_le64(row, run_of(gang, 0));
    store_le64(row + 8, slots);
    union message m = {.slots = {.version = ++r->number, .rows = bytes_of(row, sizeof row)}};
    say(r, MESSAGE_SLOTS, &m);
}

int rehearsal_launch(struct rehearsal *r, uint32_t gang, uint64_t slots, uint32_t processes,
                     const char *program, struct bytes arguments) {
    uint8_t spec_bytes[2048], setup_bytes[4096];
    struct spec spec = {.stdin_mode = STDIN_NONE,
                        .umask = 022,
                        .program = bytes_from_str(program),
                        .arguments = arguments};
    long spec_len = spec_encode(&spec, room_of(spec_bytes, sizeof spec_bytes));
    if (spec_len < 0)
        return (int)spec_len;
    struct setup setup = {.run = run_of(gang, 0),
                          .count = processes,
                          .size = processes,
                          .window = 64 * KIB,
                          .spec = bytes_of(spec_bytes, (size_t)spec_len)};
    long len = setup_encode(&setup, room_of(setup_bytes, sizeof setup_bytes));
    if (len < 0)
        return (int)len;
    r->gangs[gang] = (struct rehearsal_gang){0};
    union message m = {
        .setup = {.run = setup.run, .slots = slots, .setup = bytes_of(setup_bytes, (size_t)len)}};
    say(r, MESSAGE_SETUP, &m);
    rehearsal_command(r, gang, VERB_START, 0);
    return 0;
}

/* ---- hearing ---- */

static void on_output(struct rehearsal *r, const struct message_output *o) {
    uint32_t gang = run_job(o->run);
    if (gang >= REHEARSAL_GANGS)
        return;
    struct rehearsal_gang *g = &r->gangs[gang];
    size_t used = strlen(g->text), room = sizeof g->text - 1 - used;
    size_t take = o->bytes.len < room ? o->bytes.len : room;
    memcpy(g->text + used, o->bytes.at, take);
    g->output += o->bytes.len;
    union message m = {.taken = {.run = o->run,
                                 .rank = o->rank,
                                 .stream = o->stream,
                                 .offset = o->offset + o->bytes.len}};
    say(r, MESSAGE_TAKEN, &m);
}

static void on_message(struct rehearsal *r, const struct input_message *in) {
    union message m;
    if (message_decode(in->type, in->body, NULL, &m) < 0)
        return;
    if (in->type == MESSAGE_OUTPUT)
        on_output(r, &m.output);
    if (in->type == MESSAGE_TURNED) {
        r->turned++;
        r->answer = m.turned;
    }
    uint32_t gang = in->type == MESSAGE_ENDED ? run_job(m.ended.run) : REHEARSAL_GANGS;
    struct ending e;
    if (gang >= REHEARSAL_GANGS || !ending_load(&e, m.ended.ends, 0) || e.more)
        return;
    r->gangs[gang].end = e;
    r->gangs[gang].ended = true;
    r->gangs[gang].ended_at = clock_ns();
    rehearsal_command(r, gang, VERB_DROP, 0);
}

static void on_link(void *context, enum purpose purpose, const struct input *in) {
    struct rehearsal *r = context;
    (void)purpose;
    if (in->kind == INPUT_LINK_UP)
        r->link = in->link.link;
    else if (in->kind == INPUT_LINK_DOWN)
        r->link = 0;
    else if (in->kind == INPUT_MESSAGE)
        on_message(r, &in->message);
}

static enum refusal on_put(void *context, uint32_t link, const struct message_put *put) {
    (void)context, (void)link, (void)put;
    return REFUSAL_ROLE;
}

void rehearsal_listen(struct rehearsal *r, int timeout_ms) {
    loop_turn(&r->loop, timeout_ms);
    links_settle(r->links);
}

/* ---- from begin to end ---- */

static _Noreturn void become_launcher(const struct rehearsal *r, const char *storm_pl,
                                      enum confine confine) {
    const char *argv[20] = {"storm-pl", "--socket",  r->address.local.sun_path,
                            "--node",   "0",         "--key-fd",
                            "3",        "--confine", confine_name(confine)};
    char group[PATH_MAX], pes[24];
    size_t count = 9;
    child_place(child_secret(key), 3, 0);
    snprintf(pes, sizeof pes, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    argv[count++] = "--first";
    argv[count++] = "1";
    argv[count++] = "--pes";
    argv[count++] = pes;
    argv[count++] = "--strobe";
    argv[count++] = r->caster.to[0].sun_path;
    if (r->grouped) {
        grounds_node_path(&r->ground, NODE, group);
        argv[count++] = "--cgroup";
        argv[count++] = group;
    }
    execv(storm_pl, (char *const *)argv);
    _exit(127);
}

/* Until it listens nobody answers. */
static int reach(struct rehearsal *r) {
    uint64_t until = clock_ns() + PATIENCE_MS * NS_PER_MS;
    while (r->link == 0 && clock_ns() < until && waitpid(r->launcher, NULL, WNOHANG) == 0) {
        struct effect_open open = {.node = NODE, .purpose = PURPOSE_LAUNCHER, .cookie = 1};
        links_open(r->links, &open);
        for (int i = 0; i < 10 && r->link == 0; i++)
            rehearsal_listen(r, 5);
    }
    return r->link == 0 ? -ECONNREFUSED : 0;
}

static int open_links(struct rehearsal *r) {
    struct links_config c = {.loop = &r->loop,
                             .self = NODE,
                             .life = 1,
                             .key = {key[0], key[1]},
                             .launcher = &r->address,
                             .listener = -1,
                             .frame_bytes_max = MIB,
                             .counts = &r->counts,
                             .feed = on_link,
                             .put = on_put,
                             .context = r};
    r->links = links_new(&c);
    return r->links == NULL ? -ENOMEM : reach(r);
}

static void make_ground(struct rehearsal *r) {
    char name[64];
    snprintf(name, sizeof name, "storm-rehearsal-%d", (int)getpid());
    r->grouped = grounds_make(&r->ground, name) == 0 && grounds_make_node(&r->ground, NODE) == 0;
}

int rehearsal_begin(struct rehearsal *r, const char *storm_pl, enum confine confine) {
    char text[96];
    memset(r, 0, sizeof *r);
    snprintf(r->folder, sizeof r->folder, "/tmp/storm-rehearsal-XXXXXX");
    if (mkdtemp(r->folder) == NULL)
        return -errno;
    snprintf(text, sizeof text, "seqpacket:%s/pl", r->folder);
    int e = address_parse(&r->address, text);
    if (e == 0)
        e = loop_init(&r->loop);
    if (e == 0)
        e = caster_init(&r->caster, 1);
    if (e == 0)
        snprintf(r->caster.to[0].sun_path, sizeof r->caster.to[0].sun_path, "%s/strobe", r->folder);
    if (confine == CONFINE_AUTO || confine == CONFINE_CGROUP)
        make_ground(r);
    r->launcher = e == 0 ? fork() : -1;
    if (r->launcher == 0)
        become_launcher(r, storm_pl, confine);
    if (e == 0)
        e = r->launcher < 0 ? -errno : open_links(r);
    if (e < 0) {
        fprintf(stderr, "%s: %s\n", storm_pl, strerror(-e));
        rehearsal_end(r);
    }
    return e;
}

void rehearsal_end(struct rehearsal *r) {
    if (r->launcher > 0) {
        kill(r->launcher, SIGTERM);
        waitpid(r->launcher, NULL, 0);
    }
    links_free(r->links);
    loop_fini(&r->loop);
    if (r->grouped)
        grounds_remove(r->ground.path);
    unlink(r->address.local.sun_path);
    if (r->caster.to != NULL)
        unlink(r->caster.to[0].sun_path);
    caster_fini(&r->caster);
    rmdir(r->folder);
}
