/* SPDX-License-Identifier: MIT */
/* <storm/wodi.h> for masters.
 *
 * Acknowledgements: results have numbers, so "all up to this one" is a single word. On the server's machine it lies in a file
 * that the program has mapped: storing it is the acknowledgement, which then survives the death of the program, of the server
 * and of both, and costs no system call. Elsewhere rcvresult waits until the server has confirmed it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "client/wodi_link.h"
#include "client/wodi_server.h"
#include "storm/wodi.h"

enum { ACKS_GATHER = 64, OUT_MAX = 1 << 20, FILE_BYTES = 8, OWN_PATIENCE_NS = 100000000 };

struct wodi {
    struct side side;
    struct wodi_link link;
    struct wodi_server *own; /* NULL: it is somebody else's */
    struct side_result *current;
    uint64_t *word; /* NULL: none, ask for confirmations */
    char word_path[WORD_NAME_MAX + 32];
};

/* ---- the word of acknowledgements ---- */

static void word_close(struct wodi *w) {
    if (w->word)
        munmap(w->word, FILE_BYTES);
    w->word = NULL;
}

static void word_store(struct wodi *w) {
    uint8_t bytes[FILE_BYTES];
    uint64_t value;
    store_le64(bytes, w->side.acked);
    memcpy(&value, bytes, sizeof value);
    __atomic_store_n(w->word, value, __ATOMIC_RELEASE);
}

static uint64_t word_load(const struct wodi *w) {
    uint64_t value = __atomic_load_n(w->word, __ATOMIC_ACQUIRE);
    return load_le64(&value);
}

/* The server has told where. If it cannot be, there is another way. */
static void word_open(struct wodi *w) {
    word_close(w);
    if (!*w->side.folder)
        return;
    snprintf(w->word_path, sizeof w->word_path, "%s/ack.%016llx", w->side.folder,
             (unsigned long long)w->side.cookie_told);
    int fd = open(w->word_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    void *at = ftruncate(fd, FILE_BYTES) == 0
                   ? mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                   : MAP_FAILED;
    close(fd);
    w->word = at == MAP_FAILED ? NULL : at;
    if (!w->word)
        return;
    /* It may be ahead of what the server has heard, and must never go back. */
    side_found(&w->side, word_load(w));
    word_store(w);
}

/* ---- the conversation ---- */

/* Whatever is here is heard. 0 or -errno. */
static int hear_all(struct wodi *w) {
    struct word word;
    int status;
    while ((status = wodi_link_next(&w->link, &word)) > 0) {
        bool was = w->side.welcomed;
        if (!side_hear(&w->side, &word))
            return w->side.refused ? -(int)w->side.refused : -EPROTO;
        if (!was && w->side.welcomed)
            word_open(w);
    }
    return status < 0 ? -EPROTO : w->side.failed ? -ENOMEM : 0;
}

/* A server of its own is waited for as long as it lives. */
static int connect_again(struct wodi *w) {
    int status;
    do {
        status = w->own ? wodi_server_look(w->own) : 0;
        if (status < 0)
            return status;
        status = wodi_link_connect(&w->link);
    } while (w->own && status < 0);
    return status;
}

/* Sends and hears; a connection that has ended is made again. */
static int turn(struct wodi *w, bool wait) {
    if (w->link.fd < 0) {
        int status = connect_again(w);
        if (status < 0)
            return status;
        side_connect(&w->side);
    }
    wodi_link_exchange(&w->link, &w->side.out, wait);
    return hear_all(w);
}

static int ask(struct wodi *w, enum word_kind kind, uint64_t cycle, uint64_t steps,
               const void *buffer, size_t bytes) {
    if (bytes > WODI_BYTES_MAX)
        return -EMSGSIZE;
    side_ask(&w->side, kind, cycle, steps, bytes_of(buffer, bytes));
    int status = turn(w, false);
    while (status == 0 && !w->side.answered)
        status = turn(w, true);
    if (status < 0)
        return status;
    return w->side.answer > 1 ? -(int)w->side.answer : (int)w->side.answer;
}

/* ---- the interface ---- */

static int make_profile(struct wodi *w, const struct wodi_options *o) {
    struct profile p = {.classes = (uint8_t)o->class_count,
                        .fewest = o->fewest != 0,
                        .bench = bytes_of(o->bench, o->bench_bytes),
                        .init = bytes_of(o->init, o->init_bytes)};
    size_t most = 256 + o->bench_bytes + o->init_bytes;
    if (w->own && o->class_count == 0) {
        p.classes = 1;
        p.needs[0] = UINT32_MAX;
        p.speeds[0] = wodi_link_speed(1);
    }
    for (unsigned i = 0; i < o->class_count; i++) {
        p.needs[i] = w->own && o->classes[i].need == 0 ? UINT32_MAX : o->classes[i].need;
        p.speeds[i] = wodi_link_speed(o->classes[i].speed);
    }
    uint8_t *to = wodi_bytes_room(&w->side.profile, most);
    if (!to)
        return -ENOMEM;
    w->side.profile.len = profile_write(&p, room_of(to, most));
    return 0;
}

static bool options_good(const struct wodi_options *o) {
    return o->class_count <= WODI_CLASSES_MAX && o->init_bytes <= WODI_BYTES_MAX &&
           o->bench_bytes <= WODI_BYTES_MAX - o->init_bytes && (unsigned)o->speed < SPEED_SOURCES;
}

static int find_server(struct wodi *w, const struct wodi_options *o) {
    const char *server = wodi_link_setting(o->server, "STORM_WODI", NULL);
    if (server || !o->worker)
        return wodi_link_init(&w->link, server, o->patience_s);
    w->own = calloc(1, sizeof *w->own);
    int status = w->own ? wodi_server_start(w->own, o) : -ENOMEM;
    if (status == 0)
        status = wodi_link_init(&w->link, w->own->line, 1);
    w->link.patience_ns = OWN_PATIENCE_NS;
    return status;
}

int wodi_init(struct wodi **ret, const struct wodi_options *options) {
    struct wodi *w = options_good(options) ? calloc(1, sizeof *w) : NULL;
    if (!w)
        return options_good(options) ? -ENOMEM : -EINVAL;
    side_init(&w->side);
    w->link.fd = -1;
    int status = find_server(w, options);
    if (status == 0)
        status = make_profile(w, options);
    const char *name = wodi_link_setting(options->name, "STORM_WODI_NAME", "master");
    if (status == 0 && (strlen(name) > UINT8_MAX || getrandom(&w->side.cookie, 8, 0) != 8))
        status = -EINVAL;
    if (status == 0) {
        snprintf(w->side.name, sizeof w->side.name, "%s", name);
        w->side.speed_source = (uint8_t)options->speed;
        memcpy(w->side.token, w->link.token, sizeof w->side.token);
    }
    while (status == 0 && !w->side.welcomed)
        status = turn(w, true);
    if (status < 0) {
        wodi_free(w);
        return status;
    }
    *ret = w;
    return 0;
}

int wodi_begin_cycle(struct wodi *w, uint64_t cycle, const void *buffer, size_t bytes,
                     uint64_t steps) {
    return ask(w, WORD_BEGIN, cycle, steps, buffer, bytes);
}

int wodi_sendwork(struct wodi *w, uint64_t step, const void *work, size_t bytes) {
    if (bytes > WODI_BYTES_MAX || step == UINT64_MAX)
        return bytes > WODI_BYTES_MAX ? -EMSGSIZE : -EINVAL;
    int status;
    while ((status = side_work(&w->side, step, bytes_of(work, bytes))) == -EAGAIN) {
        if (w->side.inbox_count > 0)
            return -EAGAIN;
        side_say_ack(&w->side);
        int heard = turn(w, true);
        if (heard < 0)
            return heard;
    }
    if (status < 0)
        return status;
    do
        status = turn(w, wodi_bytes_left(&w->side.out).len > OUT_MAX);
    while (status == 0 && wodi_bytes_left(&w->side.out).len > OUT_MAX);
    return status;
}

/* What was received before is done with, and that will survive. */
static int acknowledge(struct wodi *w) {
    free(w->current);
    w->current = NULL;
    side_ack(&w->side);
    int status = 0;
    if (w->word)
        word_store(w);
    while (status == 0 && !w->word && w->side.confirmed < w->side.acked) {
        side_say_ack(&w->side);
        status = turn(w, true);
    }
    return status;
}

int wodi_rcvresult(struct wodi *w, struct wodi_result *ret) {
    int status = acknowledge(w);
    if (status == 0 && w->side.acked - w->side.ack_said >= ACKS_GATHER) {
        side_say_ack(&w->side);
        status = turn(w, false);
    }
    while (status == 0 && !(w->current = side_take(&w->side))) {
        if (w->side.outstanding == 0)
            return 0;
        side_say_ack(&w->side);
        status = turn(w, true);
    }
    if (status < 0)
        return status;
    const struct side_result *r = w->current;
    *ret = (struct wodi_result){.cycle = r->cycle,
                                .step = r->step,
                                .status = r->status,
                                .ns = r->ns,
                                .data = r->body,
                                .bytes = r->len};
    return 1;
}

int wodi_end_cycle(struct wodi *w, uint64_t cycle, const void *buffer, size_t bytes) {
    int status = acknowledge(w);
    return status < 0 ? status : ask(w, WORD_END, cycle, 0, buffer, bytes);
}

int wodi_complete(struct wodi *w) {
    int status = acknowledge(w);
    if (status == 0)
        status = ask(w, WORD_COMPLETE, 0, 0, NULL, 0);
    if (status == 0 && w->word)
        unlink(w->word_path);
    wodi_free(w);
    return status;
}

void wodi_free(struct wodi *w) {
    if (!w)
        return;
    if (w->own)
        wodi_server_end(w->own);
    free(w->own);
    word_close(w);
    free(w->current);
    side_fini(&w->side);
    wodi_link_fini(&w->link);
    free(w);
}

void wodi_state(const struct wodi *w, struct wodi_state *ret) {
    *ret = (struct wodi_state){
        .cycle = w->side.cycle, .ended = w->side.ended, .outstanding = w->side.outstanding};
}
