/* SPDX-License-Identifier: MIT */
/* The processes of a program pass a number round a ring; each adds its rank. The last to have it is the first, which prints it.
 *
 *     cc -o ring ring.c -lstorm
 *     storm run -n 4 ./ring 1000
 *
 * All wait in one place: a process that also asks for hosts, or wants to know of them, gets that from the same carmi_receive.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <storm/carmi.h>

enum { NUMBER = 1, END };

struct baton {
    uint64_t rounds; /* that are left */
    uint64_t sum;
};

static int send_on(struct carmi *c, carmi_process to, int tag, const struct baton *b) {
    struct carmi_message m;
    carmi_request r = carmi_send(c, to, tag, b, sizeof *b);
    /* What has not been said to be there may be lost when this process ends. */
    return r > 0 && (tag != END || (carmi_wait(c, r, &m, -1) == 1 && m.success)) ? 0 : 1;
}

int main(int argc, char **argv) {
    uint64_t rank = strtoull(getenv("STORM_RANK") ? getenv("STORM_RANK") : "0", NULL, 10);
    uint64_t size = strtoull(getenv("STORM_SIZE") ? getenv("STORM_SIZE") : "1", NULL, 10);
    struct baton b = {.rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000};
    struct carmi *c;
    struct carmi_message m;
    int r = carmi_init(&c), status = 0;
    if (r < 0) {
        fprintf(stderr, "ring: %s (it is run by storm run)\n", strerror(-r));
        return 1;
    }
    carmi_process next = (carmi_self(c) & UINT32_MAX) | (rank + 1) % size << 32;
    if (rank == 0)
        status = send_on(c, next, NUMBER, &b);
    while (status == 0 && carmi_receive(c, &m, -1) == 1) {
        if (m.kind == CARMI_SENT && !m.success)
            status = 1;
        if (m.kind != CARMI_DATA || m.bytes != sizeof b)
            continue;
        int tag = m.tag;
        memcpy(&b, m.data, sizeof b);
        if (rank == 0 && tag == END)
            break;
        b.sum += rank;
        if (rank == 0 && --b.rounds == 0) {
            printf("%" PRIu64 "\n", b.sum);
            tag = END;
        }
        status = send_on(c, next, tag, &b);
        if (tag == END && rank != 0)
            break;
    }
    carmi_exit(c);
    return status;
}
