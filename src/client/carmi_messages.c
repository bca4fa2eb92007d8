/* SPDX-License-Identifier: MIT */
/* CARMI for programs: messages between processes. */
#include <errno.h>

#include "client/carmi_inside.h"

_Static_assert(CARMI_DATA_MAX == PEER_DATA_MAX, "what may be sent can be received");

carmi_process carmi_self(const struct carmi *c) {
    return c->post.self;
}

carmi_process carmi_parent(const struct carmi *c) {
    return c->parent;
}

carmi_request carmi_peers(struct carmi *c, int tag) {
    struct call *call = call_add(&c->steward, CALL_PEERS, tag);
    if (call != NULL)
        call->book = book_want(&c->steward);
    return carmi_begun(c, call);
}

static carmi_request judge(const void *data, size_t bytes) {
    return bytes > CARMI_DATA_MAX ? -EMSGSIZE : bytes > 0 && data == NULL ? -EINVAL : 0;
}

/* It may be answered already. Who waits for answers itself need not look now. */
static carmi_request begun(struct carmi *c, struct call *call, carmi_request id, int error) {
    if (error != 0)
        call_end(call);
    if (!c->post.awake || !list_empty(&c->steward.errands) || !list_empty(&c->steward.letters))
        carmi_pump(c);
    return error != 0 ? error : c->steward.failed ? -ENOMEM : id;
}

carmi_request carmi_send(struct carmi *c, carmi_process process, int tag, const void *data,
                         size_t bytes) {
    carmi_request r = judge(data, bytes);
    if (r != 0)
        return r;
    struct call *call = call_add(&c->steward, CALL_SEND, tag);
    if (call == NULL)
        return -ENOMEM;
    carmi_request id = call->id;
    int error = process == 0 ? -EINVAL : post_send(&c->post, call, process, bytes_of(data, bytes));
    if (error == -EAGAIN) { /* perhaps it has taken something meanwhile */
        carmi_pump(c);
        error = post_send(&c->post, call, process, bytes_of(data, bytes));
    }
    return begun(c, call, id, error);
}

carmi_request carmi_broadcast(struct carmi *c, const char *class_name, int tag, const void *data,
                              size_t bytes) {
    carmi_request r = judge(data, bytes);
    if (r != 0)
        return r;
    struct call *call = call_add(&c->steward, CALL_BROADCAST, tag);
    if (call == NULL)
        return -ENOMEM;
    carmi_request id = call->id;
    return begun(c, call, id, post_broadcast(&c->post, call, class_name, bytes_of(data, bytes)));
}
