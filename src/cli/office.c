/* SPDX-License-Identifier: MIT */
/* A work distributor of a command's own: see office.h. */
#include "cli/office.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/companion.h"
#include "storm/wodi.h"

enum { START_MS = 10000, PATIENCE_S = 5, RESTARTS_MAX = 8 };

static int fail(struct office *o, int error, const char *what) {
    snprintf(o->why, sizeof o->why, "%.150s: %.80s", what, strerror(-error));
    return error;
}

/* ---- the server ---- */

static void end_server(struct office *o) {
    if (o->server.pid == 0)
        return;
    kill(o->server.pid, SIGTERM);
    while (waitpid(o->server.pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    close(o->server.out);
    close(o->server.err);
    o->server.pid = 0;
}

/* The first line from a descriptor; false: there is none. */
static bool read_line(int fd, char *line, size_t cap) {
    size_t len = 0;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    line[0] = '\0';
    while (strchr(line, '\n') == NULL && len < cap - 1 && poll(&p, 1, START_MS) > 0) {
        ssize_t n = read(fd, line + len, cap - 1 - len);
        if (n <= 0)
            break;
        len += (size_t)n;
        line[len] = '\0';
    }
    bool whole = strchr(line, '\n') != NULL;
    line[strcspn(line, "\n")] = '\0';
    return whole;
}

static int start_server(struct office *o) {
    char program[OFFICE_PATH_MAX], workers[16];
    const char *argv[16] = {program, "--folder",    o->folder,    "--sync",
                            "none",  "--no-copies", "--no-ahead", "--masters",
                            "1",     "--workers",   workers};
    size_t argc = 11;
    snprintf(workers, sizeof workers, "%u", o->workers);
    if (o->listen[0] != '\0') {
        argv[argc++] = "--listen";
        argv[argc++] = o->listen;
    }
    int r = companion_find("storm-wodi", program, sizeof program);
    if (r < 0)
        return fail(o, r, "storm-wodi");
    r = piped_start(&(struct piped_order){.argv = argv, .session = true, .deaf = true}, &o->server);
    if (r < 0)
        return fail(o, r, program);
    if (read_line(o->server.out, o->setting, sizeof o->setting))
        return 0;
    read_line(o->server.err, o->why, sizeof o->why);
    end_server(o);
    return o->why[0] != '\0' ? -EIO : fail(o, -ETIMEDOUT, program);
}

/* ---- the conversation ---- */

static void on_ready(struct source *s, uint32_t events) {
    (void)s; /* the turn has ended its wait: that is all it is for */
    (void)events;
}

static int connect_server(struct office *o) {
    int r = wodi_link_connect(&o->link);
    if (r == 0) {
        o->source = (struct source){.fd = o->link.fd, .ready = on_ready};
        r = loop_add(o->loop, &o->source, EPOLLIN);
    }
    if (r < 0)
        return fail(o, r, o->setting);
    side_connect(&o->side);
    return 0;
}

static void disconnect(struct office *o) {
    if (o->source.fd >= 0)
        loop_forget(o->loop, &o->source);
    o->source.fd = -1;
    wodi_link_drop(&o->link);
}

/* The connection is gone, and so is the server, or there is something wrong with it. */
static int begin_again(struct office *o) {
    disconnect(o);
    end_server(o);
    if (o->restarts++ == RESTARTS_MAX)
        return fail(o, -EIO, "storm-wodi");
    int r = start_server(o);
    return r < 0 ? r : connect_server(o);
}

static int hear_words(struct office *o) {
    struct word word;
    int status;
    while ((status = wodi_link_next(&o->link, &word)) > 0)
        if (!side_hear(&o->side, &word))
            return fail(o, o->side.refused ? -(int)o->side.refused : -EPROTO, "storm-wodi");
    return status < 0       ? fail(o, -EPROTO, "storm-wodi")
           : o->side.failed ? fail(o, -ENOMEM, "storm-wodi")
                            : 0;
}

int office_hear(struct office *o) {
    if (!wodi_link_exchange(&o->link, &o->side.out, false)) {
        int r = begin_again(o);
        if (r < 0)
            return r;
    }
    return hear_words(o);
}

int office_say(struct office *o) {
    side_ack(&o->side);
    side_say_ack(&o->side);
    wodi_link_send(&o->link, &o->side.out);
    bool more = wodi_bytes_left(&o->side.out).len > 0;
    loop_change(o->loop, &o->source, EPOLLIN | (more ? EPOLLOUT : 0U));
    return o->side.failed ? fail(o, -ENOMEM, "storm-wodi") : 0;
}

int office_send(struct office *o, uint64_t step, struct bytes work) {
    return work.len > WODI_BYTES_MAX ? -EMSGSIZE : side_work(&o->side, step, work);
}

struct side_result *office_take(struct office *o) {
    return side_take(&o->side);
}

bool office_idle(const struct office *o) {
    return o->side.welcomed && o->side.outstanding == 0 && o->side.inbox_count == 0;
}

/* ---- life ---- */

static int make_profile(struct office *o, struct bytes init) {
    struct profile p = {.classes = 1, .needs = {1}, .speeds = {wodi_link_speed(1)}, .init = init};
    size_t most = 256 + init.len;
    uint8_t *to = init.len <= WODI_BYTES_MAX ? wodi_bytes_room(&o->side.profile, most) : NULL;
    if (to == NULL)
        return fail(o, -E2BIG, "the environment");
    o->side.profile.len = profile_write(&p, room_of(to, most));
    return 0;
}

static int wait_for(struct office *o, const bool *what) {
    int r = 0;
    while (r == 0 && !*what) {
        r = office_say(o);
        if (r == 0)
            loop_turn(o->loop, -1);
        if (r == 0)
            r = office_hear(o);
    }
    return r;
}

void office_init(struct office *o, struct loop *loop, uint32_t workers) {
    *o =
        (struct office){.loop = loop, .source = {.fd = -1}, .link = {.fd = -1}, .workers = workers};
    side_init(&o->side);
}

int office_open(struct office *o, const char *folder, const char *listen, struct bytes init) {
    snprintf(o->folder, sizeof o->folder, "%s", folder);
    snprintf(o->listen, sizeof o->listen, "%s", listen);
    snprintf(o->side.name, sizeof o->side.name, "work");
    int r = make_profile(o, init);
    if (r == 0)
        r = start_server(o);
    if (r < 0)
        return r;
    r = wodi_link_init(&o->link, strchr(o->setting, '=') + 1, PATIENCE_S);
    if (r < 0 || getrandom(&o->side.cookie, 8, 0) != 8)
        return fail(o, r < 0 ? r : -EIO, o->setting);
    memcpy(o->side.token, o->link.token, sizeof o->side.token);
    r = connect_server(o);
    return r < 0 ? r : wait_for(o, &o->side.welcomed);
}

int office_finish(struct office *o) {
    side_ack(&o->side);
    side_ask(&o->side, WORD_COMPLETE, 0, 0, bytes_of(NULL, 0));
    return wait_for(o, &o->side.answered);
}

void office_close(struct office *o) {
    disconnect(o);
    end_server(o);
    wodi_link_fini(&o->link);
    side_fini(&o->side);
}
