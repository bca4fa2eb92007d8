/* SPDX-License-Identifier: MIT */
/* A work distributor of a command's own: its server, storm-wodi, is a child of this process and ends with it, and this process
 * is the only master. If the server dies it is started again on its folder, and nothing is lost but time. */
#pragma once

#include "client/wodi_link.h"
#include "os/loop.h"
#include "os/piped.h"

enum { OFFICE_WHY_MAX = 256, OFFICE_LINE_MAX = 256, OFFICE_PATH_MAX = 1200 };

struct office {
    struct loop *loop;
    struct source source; /* of the connection */
    struct wodi_link link;
    struct side side;
    struct piped server; /* pid 0: it does not run */
    char folder[OFFICE_PATH_MAX];
    char listen[ADDRESS_TEXT_MAX]; /* "": a socket in the folder */
    char setting[OFFICE_LINE_MAX]; /* "STORM_WODI=ADDRESS#TOKEN": for workers */
    uint32_t workers;              /* at most */
    uint32_t restarts;
    char why[OFFICE_WHY_MAX]; /* it does not go on: in words */
};

/* Before anything else; then office_close may follow. */
void office_init(struct office *o, struct loop *loop, uint32_t workers);
void office_close(struct office *o);

/* `listen`: where, "" for a socket in the folder; `init`: what every worker is told. 0, or -errno and the reason in o->why. */
int office_open(struct office *o, const char *folder, const char *listen, struct bytes init);

/* Steps and results. -EAGAIN: results have to be taken first; -ENOMEM, -EMSGSIZE. */
int office_send(struct office *o, uint64_t step, struct bytes work);
/* NULL: none is here. To be freed. */
struct side_result *office_take(struct office *o);
/* No step is under way, and no result is here. */
bool office_idle(const struct office *o);

/* After a turn of the loop: hears what has come. Before the next: says what is to be said, and that results taken so far are
 * done with. 0 or -errno, with the reason. */
int office_hear(struct office *o);
int office_say(struct office *o);

/* There will be no more steps: workers are told so. 0 or -errno. */
int office_finish(struct office *o);
