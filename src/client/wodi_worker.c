/* SPDX-License-Identifier: MIT */
/* <storm/wodi.h> for workers.
 *
 * Each result leaves at once: a step that follows may take long. When the connection is lost so is what was asked over it:
 * the server gives those steps to others, and a result of one of them is not sent. */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "client/wodi_link.h"
#include "storm/wodi.h"

struct wodi_worker {
    struct wodi_link link;
    struct wodi_bytes out;
    uint32_t class_index;
    uint64_t speed;
    bool working; /* a step of this connection is to be answered */
    uint32_t id;
    uint64_t began;
    uint32_t masters; /* that it knows of on this connection */
};

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int connect_and_say(struct wodi_worker *w) {
    int status = wodi_link_connect(&w->link);
    w->out.from = w->out.len = 0;
    w->working = false;
    w->masters = 0;
    struct word hello = {.kind = (uint8_t)WORD_WORKER,
                         .token = {w->link.token[0], w->link.token[1]},
                         .id = w->class_index,
                         .ns = w->speed,
                         .name = bytes_from_str(wodi_link_setting(NULL, "STORM_WODI_HOST", ""))};
    if (status == 0 && !wodi_bytes_say(&w->out, &hello))
        status = -ENOMEM;
    return status;
}

int wodi_join(struct wodi_worker **ret, const struct wodi_worker_options *options) {
    struct wodi_worker *w = calloc(1, sizeof *w);
    if (!w)
        return -ENOMEM;
    double speed = options->speed > 0 ? options->speed
                                      : atof(wodi_link_setting(NULL, "STORM_WODI_SPEED", "1"));
    w->class_index =
        options->class_index > 0
            ? options->class_index
            : (uint32_t)strtoul(wodi_link_setting(NULL, "STORM_WODI_CLASS", "0"), NULL, 10);
    w->speed = wodi_link_speed(speed);
    int status = wodi_link_init(&w->link, options->server, options->patience_s);
    if (status == 0)
        status = connect_and_say(w);
    if (status < 0) {
        wodi_leave(w);
        return status;
    }
    *ret = w;
    return 0;
}

void wodi_leave(struct wodi_worker *w) {
    if (!w)
        return;
    wodi_link_fini(&w->link);
    free(w->out.at);
    free(w);
}

/* True: it is one for the program. */
static bool event_of(struct wodi_worker *w, const struct word *word, struct wodi_event *ret) {
    *ret = (struct wodi_event){.master = word->session,
                               .cycle = word->cycle,
                               .step = word->step,
                               .data = word->body.at,
                               .bytes = word->body.len};
    switch ((enum word_kind)word->kind) {
    case WORD_INIT:
        w->masters++;
        ret->kind = WODI_INIT;
        return true;
    case WORD_START:
        ret->kind = WODI_CYCLE_START;
        return true;
    case WORD_FINISH:
        ret->kind = WODI_CYCLE_END;
        return true;
    case WORD_OVER:
        w->masters -= w->masters > 0;
        ret->kind = WODI_OVER;
        return true;
    case WORD_STEP:
        ret->kind = WODI_WORK;
        ret->bench = word->flag & STEP_BENCH;
        w->working = true;
        w->id = word->id;
        w->began = now_ns();
        return true;
    default:
        return false;
    }
}

int wodi_rcvwork(struct wodi_worker *w, struct wodi_event *ret) {
    static const struct word pong = {.kind = (uint8_t)WORD_PONG};
    if (w->working)
        return -EINVAL; /* the step before has no result */
    for (;;) {
        struct word word;
        int status = w->link.fd < 0 ? connect_and_say(w) : wodi_link_next(&w->link, &word);
        if (status < 0)
            return w->link.fd < 0 ? status : -EPROTO;
        if (w->link.fd >= 0 && status == 0) {
            wodi_link_exchange(&w->link, &w->out, true);
            continue;
        }
        if (word.kind == WORD_REFUSED && word.status != ETIMEDOUT)
            return -(int)word.status;
        if (word.kind == WORD_REFUSED)
            wodi_link_drop(&w->link); /* it stood still, and was given up: it comes again */
        else if (word.kind == WORD_PING)
            wodi_bytes_say(&w->out, &pong);
        else if (event_of(w, &word, ret))
            return 0;
    }
}

int wodi_sendresult(struct wodi_worker *w, uint32_t status, const void *result, size_t bytes) {
    if (!w->working || bytes > WODI_BYTES_MAX)
        return w->working ? -EMSGSIZE : -EINVAL;
    struct word word = {.kind = (uint8_t)WORD_RESULT,
                        .id = w->id,
                        .status = status,
                        .ns = now_ns() - w->began,
                        .body = bytes_of(result, bytes)};
    w->working = false;
    if (!wodi_bytes_say(&w->out, &word))
        return -ENOMEM;
    /* What the socket does not take now leaves with the next words. Of a lost connection nothing is to be told here. */
    if (w->link.fd >= 0)
        wodi_link_send(&w->link, &w->out);
    return 0;
}

static int call_back(const struct wodi_callbacks *c, void *context, struct wodi_worker *w,
                     const struct wodi_event *e) {
    switch (e->kind) {
    case WODI_INIT:
        return c->init ? c->init(context, e) : 0;
    case WODI_CYCLE_START:
        return c->cycle_start ? c->cycle_start(context, e) : 0;
    case WODI_WORK:
        return c->work(context, w, e);
    case WODI_CYCLE_END:
        return c->cycle_end ? c->cycle_end(context, e) : 0;
    case WODI_OVER:
        break;
    }
    return 0;
}

int wodi_worker(const struct wodi_worker_options *options, const struct wodi_callbacks *callbacks,
                void *context) {
    struct wodi_worker *w;
    struct wodi_event e = {.kind = WODI_INIT};
    int status = wodi_join(&w, options);
    if (status < 0)
        return status;
    while (status == 0 && !(e.kind == WODI_OVER && w->masters == 0)) {
        status = wodi_rcvwork(w, &e);
        if (status == 0)
            status = call_back(callbacks, context, w, &e);
    }
    wodi_leave(w);
    return status;
}
