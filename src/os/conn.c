/* SPDX-License-Identifier: MIT */
/* Sockets that carry frames: see conn.h. */
#include "os/conn.h"

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/units.h"
#include "os/address.h"
#include "os/calls.h"

/* A piece of output with its head fits into one packet; much more would ask the kernel for memory in one
 * piece. */
enum { SCRATCH_BYTES = 256 * 1024, KEEP_BYTES = 8192 };
/* Of a connection that carries bulk so much is read before we know where the rest is to go. */
enum { BULKY_BYTES = 4096 };
enum { PACKET_BYTES = 80 * 1024, PACKET_BYTES_MIN = 1024 };

/* A peer that does not read is cut off when so much waits for it: the machines bound what they send
 * by windows and credits, so this is far beyond what a healthy peer can owe. */
#define BACKLOG_BYTES_MAX (256 * MIB)

/* A peer that neither takes what it is owed nor closes its side is left after this time. */
#define LINGER_NS (2 * NS_PER_S)

void conns_keep_memory(void) {
    mallopt(M_TRIM_THRESHOLD, 2 * SCRATCH_BYTES);
    mallopt(M_MMAP_THRESHOLD, SCRATCH_BYTES);
}

int conns_init(struct conns *all, struct loop *loop) {
    *all = (struct conns){
        .loop = loop, .backlog_bytes_max = BACKLOG_BYTES_MAX, .linger_ns = LINGER_NS};
    list_init(&all->flush);
    list_init(&all->linger);
    list_init(&all->dead);
    all->scratch = malloc(SCRATCH_BYTES);
    return all->scratch == NULL ? -ENOMEM : 0;
}

static void conn_free(struct conn *c) {
    list_remove(&c->at);
    list_remove(&c->flush);
    if (c->seal != NULL)
        c->sealer->free(c->seal);
    free(c->in);
    free(c->out);
    free(c->loans);
    free(c);
}

static void forget_file(struct loan *loan) {
    if (loan->fd >= 0)
        close(loan->fd);
    loan->fd = -1;
}

static void return_loan(struct conn *c) {
    struct loan loan = c->loans[c->loan_at++];
    if (--c->loan_count == 0)
        c->loan_at = 0;
    forget_file(&loan);
    if (c->all->returned != NULL)
        c->all->returned(c, &loan);
}

static void return_all(struct conn *c) {
    while (c->loan_count > 0)
        return_loan(c);
}

/* Out of the loop and off the network; the memory stays until the turn is over. */
static void bury(struct conn *c) {
    c->open = false;
    if (c->source.fd < 0)
        return;
    loop_remove(c->all->loop, &c->source);
    close(c->source.fd);
    c->source.fd = -1;
    return_all(c);
    list_remove(&c->flush);
    list_remove(&c->at);
    list_push_back(&c->all->dead, &c->at);
}

void conns_fini(struct conns *all) {
    LIST_EACH_SAFE (at, &all->linger)
        bury(CONTAINER_OF(at, struct conn, at));
    LIST_EACH_SAFE (at, &all->dead)
        conn_free(CONTAINER_OF(at, struct conn, at));
    free(all->scratch);
    all->scratch = NULL;
}

/* ---- in ---- */

static void end(struct conn *c, enum refusal why) {
    if (!c->open)
        return;
    c->open = false;
    c->all->ended(c, why);
}

/* Looks at a header that has come in whole; false if the connection is over. */
static bool take_header(struct conn *c, const uint8_t *at) {
    header_decode(&c->header, at);
    enum refusal r = c->all->judge(c, &c->header);
    c->judged = true;
    c->skipped = r == REFUSAL_DUPLICATE;
    if (r == REFUSAL_NONE || c->skipped)
        return true;
    end(c, r);
    return false;
}

static size_t frame_bytes(const struct conn *c) {
    return HEADER_BYTES + (c->judged ? c->header.length : 0);
}

static void hand_on(struct conn *c, const uint8_t *at) {
    c->judged = false;
    if (!c->skipped)
        c->all->frame(c, &c->header, bytes_of(at + HEADER_BYTES, c->header.length));
}

/* Hands on all whole frames; returns how many bytes that were. */
static size_t take_frames(struct conn *c, const uint8_t *at, size_t len) {
    size_t used = 0;
    while (c->open && len - used >= HEADER_BYTES) {
        if (!c->judged && !take_header(c, at + used))
            break;
        size_t bytes = frame_bytes(c);
        if (len - used < bytes)
            break;
        hand_on(c, at + used);
        used += bytes;
    }
    return used;
}

/* Keeps the beginning of a frame, with room for all of it that we know of. */
static void keep(struct conn *c, const uint8_t *at, size_t len) {
    c->in_cap = frame_bytes(c);
    c->in = malloc(c->in_cap);
    if (c->in == NULL) {
        end(c, REFUSAL_SIZE);
        return;
    }
    memcpy(c->in, at, len);
    c->in_len = len;
}

static void forget_kept(struct conn *c) {
    free(c->in);
    c->in = NULL;
    c->in_len = c->in_cap = 0;
}

/* More of a frame whose beginning we have kept. */
static void complete(struct conn *c, size_t got) {
    c->in_len += got;
    if (c->in_len < c->in_cap)
        return;
    if (!c->judged) {
        if (!take_header(c, c->in))
            return;
        uint8_t *more = realloc(c->in, frame_bytes(c));
        if (more == NULL) {
            end(c, REFUSAL_SIZE);
            return;
        }
        c->in = more;
        c->in_cap = frame_bytes(c);
        if (c->in_len < c->in_cap)
            return;
    }
    hand_on(c, c->in);
    forget_kept(c);
}

/* The beginning of a frame has come that may have a place of its own for the rest. */
static bool find_place(struct conn *c, const uint8_t *at, size_t len) {
    size_t head = HEADER_BYTES + CONN_HEAD;
    if (!c->bulky || !c->judged || c->skipped || len < head || frame_bytes(c) <= len)
        return false;
    size_t rest = frame_bytes(c) - head;
    c->put_at = c->all->place(c, &c->header, at + HEADER_BYTES, rest);
    if (c->put_at == NULL)
        return false;
    memcpy(c->put_head, at + HEADER_BYTES, CONN_HEAD);
    memcpy(c->put_at, at + head, len - head);
    c->put_left = rest - (len - head);
    return true;
}

static void take_scratch(struct conn *c, size_t got) {
    size_t used = take_frames(c, c->all->scratch, got);
    if (c->open && used < got && !find_place(c, c->all->scratch + used, got - used))
        keep(c, c->all->scratch + used, got - used);
}

static void take_bytes(struct conn *c, size_t got) {
    c->all->bytes_in += got;
    if (c->in != NULL)
        complete(c, got);
    else
        take_scratch(c, got);
}

/* All of a frame is at its place. */
static void tell_placed(struct conn *c) {
    size_t rest = frame_bytes(c) - HEADER_BYTES - CONN_HEAD;
    struct header h = c->header;
    c->put_at = NULL;
    c->judged = false;
    c->all->placed(c, &h, c->put_head, rest);
}

/* So much more of a frame that has a place. */
static ssize_t count_placed(struct conn *c, ssize_t got) {
    if (got <= 0)
        return got;
    c->all->bytes_in += (size_t)got;
    c->put_left -= (size_t)got;
    if (c->put_left == 0)
        tell_placed(c);
    return got;
}

/* More of a frame that has a place goes elsewhere. -EOPNOTSUPP: it does not. */
static ssize_t draw(struct conn *c) {
    size_t rest = frame_bytes(c) - HEADER_BYTES - CONN_HEAD;
    ssize_t got = c->all->draw == NULL || c->packets
                      ? -EOPNOTSUPP
                      : c->all->draw(c, c->put_head, rest, rest - c->put_left);
    c->draws = got != -EOPNOTSUPP;
    return count_placed(c, got);
}

/* Reads the rest of a frame to its place, and what follows it, in one call. */
static ssize_t read_to_place(struct conn *c) {
    size_t rest = frame_bytes(c) - HEADER_BYTES - CONN_HEAD;
    ssize_t drawn = draw(c);
    if (drawn != -EOPNOTSUPP) {
        errno = drawn < 0 ? (int)-drawn : 0;
        return drawn < 0 ? -1 : drawn;
    }
    struct iovec parts[2] = {{c->put_at + (rest - c->put_left), c->put_left},
                             {c->all->scratch, BULKY_BYTES}};
    ssize_t got = readv(c->source.fd, parts, 2);
    if (got <= 0)
        return got;
    c->all->bytes_in += (size_t)got;
    if ((size_t)got < c->put_left) {
        c->put_left -= (size_t)got;
        return got;
    }
    size_t more = (size_t)got - c->put_left;
    tell_placed(c);
    if (c->open && more > 0)
        take_scratch(c, more);
    return got;
}

/* As much as there is room for, of what the socket was taken from: a record of the seal is often less. */
static ssize_t unseal(struct conn *c, uint8_t *at, size_t room) {
    size_t total = 0;
    while (total < room) {
        ssize_t got = c->sealer->read(c->seal, at + total, room - total);
        if (got <= 0)
            return total > 0 ? (ssize_t)total : got; /* the end is told again */
        total += (size_t)got;
    }
    return (ssize_t)total;
}

/* More of a frame that has a place. */
static ssize_t unseal_to_place(struct conn *c) {
    size_t rest = frame_bytes(c) - HEADER_BYTES - CONN_HEAD;
    return count_placed(c, unseal(c, c->put_at + (rest - c->put_left), c->put_left));
}

static ssize_t unseal_some(struct conn *c) {
    if (c->put_at != NULL)
        return unseal_to_place(c);
    uint8_t *at = c->in != NULL ? c->in + c->in_len : c->all->scratch;
    size_t room = c->in != NULL ? c->in_cap - c->in_len : c->bulky ? BULKY_BYTES : SCRATCH_BYTES;
    ssize_t got = unseal(c, at, room);
    if (got > 0)
        take_bytes(c, (size_t)got);
    return got;
}

/* All that was taken from the socket: what is left is in the socket, which will say so. */
static void read_sealed(struct conn *c) {
    ssize_t got;
    c->sealer->heard(c->seal);
    do
        got = unseal_some(c);
    while (c->open && got > 0);
    if (!c->open || got == -EAGAIN)
        return;
    c->broken |= got < 0;
    end(c, c->in != NULL || c->put_at != NULL ? REFUSAL_TRUNCATED
           : got == -EBADMSG                  ? REFUSAL_SEAL
                                              : REFUSAL_NONE);
}

/* A packet is read whole, or its rest is lost; so never straight into a frame that wants less. */
static void take_packet(struct conn *c, size_t len) {
    const uint8_t *at = c->all->scratch;
    if (len > SCRATCH_BYTES) {
        end(c, REFUSAL_SIZE);
        return;
    }
    c->all->bytes_in += len;
    while (c->open && len > 0) {
        size_t part = len;
        if (c->in == NULL) {
            part = take_frames(c, at, len);
            if (c->open && part < len)
                keep(c, at + part, len - part);
            return;
        }
        if (part > c->in_cap - c->in_len)
            part = c->in_cap - c->in_len;
        memcpy(c->in + c->in_len, at, part);
        complete(c, part);
        at += part;
        len -= part;
    }
}

/* Whether anything came. */
static bool read_some(struct conn *c) {
    bool direct = c->in != NULL && !c->packets, placed = c->put_at != NULL;
    uint8_t *at = direct ? c->in + c->in_len : c->all->scratch;
    size_t room = direct     ? c->in_cap - c->in_len
                  : c->draws ? HEADER_BYTES + CONN_HEAD
                  : c->bulky ? BULKY_BYTES
                             : SCRATCH_BYTES;
    ssize_t got =
        placed ? read_to_place(c) : call_recv(c->source.fd, at, room, c->packets ? MSG_TRUNC : 0);
    if (got > 0 && c->packets && !placed) {
        take_packet(c, (size_t)got);
    } else if (got > 0 && !placed) {
        take_bytes(c, (size_t)got);
    } else if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
        c->broken |= got < 0;
        end(c, c->in != NULL || placed ? REFUSAL_TRUNCATED : REFUSAL_NONE);
    }
    return got > 0;
}

/* What goes elsewhere is large, and there as a rule when its beginning is: a turn is saved, or several. */
static void read_frame(struct conn *c) {
    while (read_some(c) && c->open && c->draws && c->put_at != NULL)
        ;
}

/* ---- out ---- */

static void want(struct conn *c, bool more) {
    if (c->waiting == more)
        return;
    c->waiting = more;
    loop_change(c->all->loop, &c->source, EPOLLIN | (more ? EPOLLOUT : 0U));
}

static void drop_out(struct conn *c) {
    c->out_at = c->out_len = 0;
    if (c->out_cap > KEEP_BYTES) {
        free(c->out);
        c->out = NULL;
        c->out_cap = 0;
    }
}

static bool has_out(const struct conn *c) {
    return c->out_at < c->out_len || c->loan_count > 0;
}

/* What cannot go out must not leave a hole: the socket is shut, and reading tells of its end after
 * what the peer has still said. */
static void give_up_out(struct conn *c) {
    drop_out(c);
    return_all(c);
    shutdown(c->source.fd, SHUT_RDWR);
}

/* As send: -1 and errno. */
static ssize_t send_sealed(struct conn *c, const uint8_t *at, size_t len) {
    ssize_t sent = c->sealer->write(c->seal, at, len);
    if (sent >= 0)
        return sent;
    errno = (int)-sent;
    return -1;
}

static ssize_t send_gathered(struct conn *c, size_t len, int flags) {
    const uint8_t *at = c->out + c->out_at;
    ssize_t sent = c->seal != NULL ? send_sealed(c, at, len)
                                   : call_send(c->source.fd, at, len, MSG_NOSIGNAL | flags);
    if (sent > 0) {
        c->out_at += (size_t)sent;
        c->out_gone += (uint64_t)sent;
    }
    return sent;
}

/* What was to be sent is nowhere: as send, that there is no more of this connection. */
static ssize_t gone(void) {
    errno = EIO;
    return -1;
}

/* The rest of a loan out of its file. If that does not work, for whatever reason, the file is forgotten. */
static ssize_t send_file(struct conn *c, struct loan *loan) {
    off_t at = (off_t)(loan->offset + loan->done);
    ssize_t sent = sendfile(c->source.fd, loan->fd, &at, loan->bytes.len - loan->done);
    if (sent > 0) {
        loan->done += (size_t)sent;
        c->all->bytes_out += (uint64_t)sent;
    } else if (sent == 0 || (errno != EAGAIN && errno != EINTR)) {
        forget_file(loan);
        return loan->bytes.at == NULL ? gone() : 0;
    } else {
        return sent;
    }
    if (loan->done == loan->bytes.len)
        return_loan(c);
    return 0;
}

/* What is sealed is read by us, from memory: the file is of no use. */
static ssize_t send_loan_sealed(struct conn *c, struct loan *loan, size_t before) {
    forget_file(loan);
    if (loan->bytes.at == NULL)
        return gone();
    if (before > 0)
        return send_gathered(c, before, 0);
    ssize_t sent = send_sealed(c, loan->bytes.at + loan->done, loan->bytes.len - loan->done);
    if (sent < 0)
        return sent;
    loan->done += (size_t)sent;
    c->all->bytes_out += (size_t)sent;
    if (loan->done == loan->bytes.len)
        return_loan(c);
    return 0;
}

/* Sends of what has gathered, as far as it goes before the next loan, and that loan behind it. */
static ssize_t send_with_loan(struct conn *c) {
    struct loan *loan = &c->loans[c->loan_at];
    size_t before = (size_t)(loan->at - c->out_gone);
    if (c->seal != NULL)
        return send_loan_sealed(c, loan, before);
    if (loan->fd >= 0)
        return before > 0 ? send_gathered(c, before, MSG_MORE) : send_file(c, loan);
    if (loan->bytes.at == NULL)
        return gone();
    struct iovec parts[2] = {
        {c->out + c->out_at, before},
        {(void *)(uintptr_t)(loan->bytes.at + loan->done), loan->bytes.len - loan->done}};
    struct msghdr m = {.msg_iov = parts + (before == 0), .msg_iovlen = before == 0 ? 1 : 2};
    ssize_t sent = sendmsg(c->source.fd, &m, MSG_NOSIGNAL);
    if (sent < 0)
        return sent;
    size_t gathered = (size_t)sent < before ? (size_t)sent : before;
    loan->done += (size_t)sent - gathered;
    c->out_at += gathered;
    c->out_gone += gathered;
    c->all->bytes_out += (size_t)sent - gathered;
    if (loan->done == loan->bytes.len)
        return_loan(c);
    return (ssize_t)gathered;
}

static void write_some(struct conn *c) {
    while (has_out(c)) {
        size_t len = c->out_len - c->out_at;
        if (c->packets && len > c->packet_bytes)
            len = c->packet_bytes;
        ssize_t sent = c->loan_count > 0 ? send_with_loan(c) : send_gathered(c, len, 0);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EMSGSIZE && c->packets && len > PACKET_BYTES_MIN) {
            c->packet_bytes = len / 2; /* the system gives sockets little memory */
            continue;
        }
        if (sent < 0 && errno == EAGAIN) {
            want(c, true);
            return;
        }
        if (sent < 0) {
            give_up_out(c);
            break;
        }
        c->all->bytes_out += (uint64_t)sent;
    }
    drop_out(c);
    want(c, false);
}

/* Moves what waits to the front only when that is the smaller part, so that a reader who takes
 * little at a time does not make us move much each time. */
static uint8_t *out_room(struct conn *c, size_t len) {
    size_t waiting = c->out_len - c->out_at;
    if (waiting + len > c->backlog_bytes_max)
        return NULL;
    if (c->out_at > 0 && c->out_at >= waiting && c->out_len + len > c->out_cap) {
        memmove(c->out, c->out + c->out_at, waiting);
        c->out_len = waiting;
        c->out_at = 0;
    }
    if (c->out_len + len > c->out_cap) {
        size_t cap = c->out_cap ? c->out_cap : 512;
        while (cap < c->out_len + len)
            cap *= 2;
        uint8_t *more = realloc(c->out, cap);
        if (more == NULL)
            return NULL;
        c->out = more;
        c->out_cap = cap;
    }
    uint8_t *room = c->out + c->out_len;
    c->out_len += len;
    if (c->all->backlog_max < c->out_len - c->out_at)
        c->all->backlog_max = c->out_len - c->out_at;
    return room;
}

static void flush_later(struct conn *c) {
    if (c->connecting || c->waiting || list_linked(&c->flush))
        return;
    if (c->packets) /* a launcher has its part before anybody hears that we are prepared: we may die */
        list_push_front(&c->all->flush, &c->flush);
    else
        list_push_back(&c->all->flush, &c->flush);
}

void conn_send(struct conn *c, const struct header *h, struct bytes head, struct bytes tail) {
    if (!c->open)
        return;
    uint8_t *at = out_room(c, HEADER_BYTES + head.len + tail.len);
    if (at == NULL) { /* the owner hears of it when the socket says so */
        c->broken = true;
        give_up_out(c);
        return;
    }
    header_encode(h, at);
    if (head.len > 0)
        memcpy(at + HEADER_BYTES, head.at, head.len);
    if (tail.len > 0)
        memcpy(at + HEADER_BYTES + head.len, tail.at, tail.len);
    flush_later(c);
}

static bool loan_room(struct conn *c) {
    if (c->loan_at > 0 && c->loan_at + c->loan_count == c->loan_cap) {
        memmove(c->loans, c->loans + c->loan_at, c->loan_count * sizeof *c->loans);
        c->loan_at = 0;
    }
    if (c->loan_count < c->loan_cap)
        return true;
    uint32_t cap = c->loan_cap ? 2 * c->loan_cap : 8;
    struct loan *more = realloc(c->loans, cap * sizeof *more);
    if (more == NULL)
        return false;
    c->loans = more;
    c->loan_cap = cap;
    return true;
}

void conn_lend(struct conn *c, const struct header *h, struct bytes head, struct bytes lent,
               uint64_t tag, int fd, uint64_t offset) {
    struct loan loan = {.bytes = lent, .fd = fd, .offset = offset, .tag = tag};
    uint8_t *at = c->open && loan_room(c) ? out_room(c, HEADER_BYTES + head.len) : NULL;
    if (at == NULL) {
        if (c->open) {
            c->broken = true;
            give_up_out(c);
        }
        forget_file(&loan);
        if (c->all->returned != NULL)
            c->all->returned(c, &loan);
        return;
    }
    header_encode(h, at);
    memcpy(at + HEADER_BYTES, head.at, head.len);
    loan.at = c->out_gone + (c->out_len - c->out_at);
    c->loans[c->loan_at + c->loan_count++] = loan;
    flush_later(c);
}

/* ---- beginning and end ---- */

static enum refusal refusal_of(int status) {
    switch (status) {
    case -ECONNRESET:
    case -EPIPE:
    case -ETIMEDOUT:
        return REFUSAL_TRUNCATED;
    case -ESTALE:
        return REFUSAL_EPOCH;
    default:
        return REFUSAL_SEAL;
    }
}

static void shake(struct conn *c) {
    c->sealer->heard(c->seal);
    int r = c->sealer->shake(c->seal);
    if (r < 0) {
        c->broken = true;
        end(c, refusal_of(r));
        return;
    }
    want(c, r == SEAL_SEND);
    if (r != SEAL_DONE)
        return;
    c->connecting = c->shaking = false;
    if (c->ours)
        c->all->connected(c);
    if (c->open) /* some of it may have come with the end of the handshake */
        read_sealed(c);
}

static void finish_connect(struct conn *c) {
    int status = 0;
    socklen_t len = sizeof status;
    getsockopt(c->source.fd, SOL_SOCKET, SO_ERROR, &status, &len);
    if (status != 0 || address_self_connected(c->source.fd)) {
        c->broken = true;
        end(c, REFUSAL_NONE);
        return;
    }
    c->waiting = true; /* as it was added to the loop */
    want(c, false);
    if (c->seal != NULL) {
        c->shaking = true;
        shake(c);
        return;
    }
    c->connecting = false;
    c->all->connected(c);
}

static void ready(struct source *s, uint32_t events) {
    struct conn *c = CONTAINER_OF(s, struct conn, source);
    if (c->connecting) {
        if (c->shaking)
            shake(c);
        else
            finish_connect(c);
        return;
    }
    if (events & EPOLLOUT)
        write_some(c);
    if (events & ~(uint32_t)EPOLLOUT) {
        if (c->seal != NULL)
            read_sealed(c);
        else
            read_frame(c);
    }
}

static bool keeps_packets(int fd) {
    int type = 0;
    socklen_t len = sizeof type;
    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len);
    return type == SOCK_SEQPACKET;
}

struct conn *conn_new(struct conns *all, int fd, bool connecting) {
    struct conn *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->all = all;
    c->source = (struct source){.fd = fd, .ready = ready};
    c->connecting = c->ours = connecting;
    c->open = true;
    c->packets = keeps_packets(fd);
    c->packet_bytes = PACKET_BYTES;
    c->backlog_bytes_max = all->backlog_bytes_max;
    c->since = all->loop->now;
    list_init(&c->at);
    list_init(&c->flush);
    list_init(&c->place);
    if (loop_add(all->loop, &c->source, connecting ? EPOLLOUT : EPOLLIN) < 0) {
        free(c);
        return NULL;
    }
    return c;
}

struct conn *conn_new_sealed(struct conns *all, int fd, bool ours, const struct sealer *sealer,
                             struct seal *seal) {
    struct conn *c = conn_new(all, fd, ours);
    if (c == NULL)
        return NULL;
    c->sealer = sealer;
    c->seal = seal;
    c->shaking = !ours;
    c->connecting = true;
    return c;
}

void conn_flush(struct conn *c) {
    list_remove(&c->flush);
    write_some(c);
}

void conn_abort(struct conn *c) {
    list_remove(&c->place);
    bury(c);
}

/* The time begins anew: the list is in the order in which it will be over. */
static void linger_on(struct conn *c) {
    c->since = c->all->loop->now;
    list_remove(&c->at);
    list_push_back(&c->all->linger, &c->at);
}

/* All has gone out: the peer hears that nothing follows. */
static void finish_out(struct conn *c) {
    if (c->seal != NULL && c->sealer->finish(c->seal) == -EAGAIN)
        want(c, true);
    else
        shutdown(c->source.fd, SHUT_WR);
}

/* Reads and forgets until the peer closes. As long as it takes what it is owed it is waited for. */
static void linger_ready(struct source *s, uint32_t events) {
    struct conn *c = CONTAINER_OF(s, struct conn, source);
    if (events & EPOLLOUT) {
        write_some(c);
        linger_on(c);
        if (!has_out(c))
            finish_out(c);
    }
    if (!(events & ~(uint32_t)EPOLLOUT))
        return;
    ssize_t got = recv(c->source.fd, c->all->scratch, SCRATCH_BYTES, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        bury(c);
}

void conn_close(struct conn *c) {
    list_remove(&c->place);
    if (c->connecting || !c->open) {
        bury(c);
        return;
    }
    c->open = false;
    list_remove(&c->flush);
    write_some(c);
    if (!has_out(c))
        finish_out(c);
    c->source.ready = linger_ready;
    linger_on(c);
    loop_wake_at(c->all->loop, c->since + c->all->linger_ns);
}

void conns_settle(struct conns *all) {
    struct list *at;
    while ((at = list_pop_front(&all->flush)) != NULL)
        write_some(CONTAINER_OF(at, struct conn, flush));
    uint64_t now = all->loop->now;
    LIST_EACH_SAFE (l, &all->linger) {
        struct conn *c = CONTAINER_OF(l, struct conn, at);
        if (now - c->since >= all->linger_ns)
            bury(c);
        else
            break;
    }
    LIST_EACH_SAFE (l, &all->dead)
        conn_free(CONTAINER_OF(l, struct conn, at));
    if (!list_empty(&all->linger)) {
        const struct conn *first = CONTAINER_OF(all->linger.next, struct conn, at);
        loop_wake_at(all->loop, first->since + all->linger_ns);
    }
}
