/* SPDX-License-Identifier: MIT */
/* How a program of a job reaches its launcher: what its library and the launcher agree on.
 *
 * The environment variable STORM_PETITION is the number of a descriptor that all processes of a run on a node have, the bell.
 * Who wants to talk makes a pair of sockets (AF_UNIX, SOCK_SEQPACKET) and sends one end of it through the bell, with
 * BELL_BYTES: the version, then the rank, 4 bytes each. The pair is its line. A frame on a line is the type of a
 * message of the table, 4 bytes, and the message's body: what a client of the machine manager says and hears. A
 * frame of type MESSAGE_NONE says, downwards: something was lost, begin anew; upwards: this is the beginning. */
#pragma once

#include "machine/machine.h"

enum {
    BELL_VERSION = 1,
    BELL_BYTES = 8,
    LINE_HEAD_BYTES = 4,
    LINE_FRAME_MAX = LINE_HEAD_BYTES + PETITION_BYTES_MAX
};
