/* SPDX-License-Identifier: MIT */
/* Fuzzes what strangers say to a sealed listener before they have proved anything: whatever it is, it ends, and nobody gets in.
 * The first byte says in which portions the rest comes. The corpus has hellos that are right, so that the way beyond the key is
 * looked at too. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "sealed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void feed(struct seal *s, int fd, const uint8_t *data, size_t size, size_t portion) {
    int r = SEAL_HEAR;
    for (size_t at = 0; at < size && r >= 0; at += portion) {
        size_t len = size - at < portion ? size - at : portion;
        if (send(fd, data + at, len, MSG_NOSIGNAL) < 0)
            return;
        seal_heard(s);
        r = seal_shake(s);
        ASSERT(r != SEAL_DONE);
    }
    shutdown(fd, SHUT_WR);
    for (int i = 0; i < 64 && r >= 0; i++) {
        seal_heard(s);
        r = seal_shake(s);
        ASSERT(r != SEAL_DONE);
    }
    ASSERT(r < 0 && seal_reason(s)[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct seals *all; /* costs more than a handshake */
    int pair[2];
    if (all == NULL)
        all = sealed_party();
    if (size == 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return 0;
    struct seal *s = seal_accept(all, pair[1]);
    ASSERT(s != NULL);
    feed(s, pair[0], data + 1, size - 1, data[0] == 0 ? 4096 : (size_t)data[0] * 8);
    seal_free(s);
    close(pair[0]);
    close(pair[1]);
    return 0;
}
