/* SPDX-License-Identifier: MIT */
/* The conformance scripts on real processes: a process for each node, links over Unix and TCP
 * sockets.
 *
 * What the simulator promises (NAME.history) must come about here too, byte for byte. */
#include "conformance/suite.h"
#include "conformance/theatre_real.h"

int main(int argc, char **argv) {
    static const struct theatre *const theatres[] = {&theatre_unix, &theatre_tcp};
    bool found = suite_play(argc, argv, theatres, 2, 1);
    return tap_finish() || !found;
}
