/* SPDX-License-Identifier: MIT */
/* Bytes through a Unix socket, and with them a descriptor: see enclosure.h. */
#include "os/enclosure.h"

#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
};

ssize_t enclosure_send(int to, const void *bytes, size_t len, int descriptor, int flags) {
    union control control = {0};
    struct iovec part = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        control.header = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(&control.header), &descriptor, sizeof descriptor);
    }
    return sendmsg(to, &message, flags);
}

/* The room for one has room for two where it is rounded up. */
static int descriptor_in(struct msghdr *message) {
    int got[2];
    const struct cmsghdr *c = CMSG_FIRSTHDR(message);
    if (c == NULL || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
        return -1;
    size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof *got;
    if (count > sizeof got / sizeof *got)
        count = sizeof got / sizeof *got;
    memcpy(got, CMSG_DATA(c), count * sizeof *got);
    if (count == 1)
        return got[0];
    for (size_t i = 0; i < count; i++)
        close(got[i]);
    return -1;
}

ssize_t enclosure_receive(int from, void *bytes, size_t len, int *ret_descriptor) {
    union control control;
    struct iovec part = {.iov_base = bytes, .iov_len = len};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t n = recvmsg(from, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    *ret_descriptor = n < 0 ? -1 : descriptor_in(&message);
    return n;
}
