/* SPDX-License-Identifier: MIT */
/* What hops of a tree of remote shells say to each other, over the pipes of the shells.
 *
 * A frame has a head of fixed size and a body that is not longer than FRAME_BODY_MAX. `host` is the host that it is about,
 * wherever in the tree that is. Frames that go up from any host are passed on as they are. */
#pragma once

#include "base/bytes.h"

enum { FRAME_HEAD = 16, FRAME_BODY_MAX = 64 * 1024 };
#define FRAME_ALL UINT32_MAX /* as host: all of them */

enum frame_kind {
    /* Down. */
    FRAME_TASK,   /* the first; body: task.h */
    FRAME_HOSTS,  /* to be reached; body: task.h */
    FRAME_LAST,   /* no more hosts will come */
    FRAME_INPUT,  /* for the command on `host`, or all; no body: the end of it */
    FRAME_SIGNAL, /* `number`, for all commands */
    FRAME_PUT,    /* file `number`; flag FRAME_END: that was all, body: its SHA-256 */
    /* Up. */
    FRAME_READY,   /* the command begins there; flag 1: the helper was not there before */
    FRAME_OUTPUT,  /* flag: stream 1 or 2 */
    FRAME_FETCHED, /* file `number`; flag: see enum frame_fetched */
    FRAME_OVER, /* the command has ended; flag: enum frame_end, number: its status; body: words, if there are any */
    FRAME_RETURN, /* could not be reached; flag: enum hop_why; body: words */
    FRAME_LOST,   /* was reached, and is no more; body: words */
    FRAME_IDLE,   /* could reach more */
    FRAME_TAKEN,  /* `number` kilobytes of input are with the slowest behind us */
    FRAME_BEAT,   /* still here */
    FRAME_KINDS
};
enum { FRAME_END = 1 };

/* How a command has ended. */
enum frame_end {
    FRAME_EXITED, /* number: exit code */
    FRAME_KILLED, /* number: signal */
    FRAME_TIMED,  /* it took too long and was ended */
    FRAME_FAILED, /* it could not be begun: words say why */
    FRAME_STRANGE, /* it was not begun: the folder that must be ours is somebody else's, or is not there */
    FRAME_ENDS
};

enum frame_fetched {
    FETCHED_FILE,   /* number: of --get; body: mode (2 bytes), then its name below DIR */
    FETCHED_BYTES,  /* of that file, the next */
    FETCHED_DONE,   /* all of it */
    FETCHED_FAILED, /* words */
    FETCHED_KINDS
};

struct frame {
    enum frame_kind kind;
    uint8_t flag;
    uint32_t host;
    uint32_t number;
    struct bytes body;
};

/* The head of a frame; its body is to follow. */
void frame_head(const struct frame *f, uint8_t out[FRAME_HEAD]);

/* The frame at the beginning of `in`: how many bytes it takes, 0 if some are missing; -EPROTO: that is none, or not one
 * that goes up (or down). The body borrows from `in`. */
long frame_read(struct bytes in, bool up, struct frame *ret);
