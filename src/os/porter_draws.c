/* SPDX-License-Identifier: MIT */
/* Pieces that go from a link's socket straight into their file: see porter_inside.h.
 *
 * Within one machine what is in the socket are pages of the giver's file. By way of a slot they are copied twice, into it and out of it; so
 * only once. A piece is in its file before it is judged then, but counts for nothing until it is: its digest is that of
 * what was just written, read there. Only a piece that is not here may be written so, and only once at a time: what was judged stays.
 *
 * It comes in small parts, and the system keeps a file in units as large as what is written at once, where its place allows: so parts wait in
 * the pipe until there is a large one. Only one piece at a time has some of it there. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "os/files.h"
#include "os/porter_inside.h"

/* Less is copied as fast. */
enum { DRAWN_BYTES_MIN = 32 * KIB };

/* What is written and then digested at once: it stays in a processor's cache, and so does what it is copied from. */
enum { CACHED_BYTES = 256 * KIB, PIPE_BYTES = MIB };

/* What waits of it is wanted no more. */
static void throw_away(struct porter *p, struct inflow *f) {
    uint8_t scratch[4096];
    while (f->waiting > 0) {
        ssize_t n =
            read(p->pipe[0], scratch, f->waiting < sizeof scratch ? f->waiting : sizeof scratch);
        ASSERT(n > 0 || (n < 0 && errno == EINTR)); /* they are in the pipe */
        f->waiting -= n > 0 ? (size_t)n : 0;
    }
}

static void end_inflow(struct porter *p, struct inflow *f) {
    throw_away(p, f);
    close(f->fd);
    *f = (struct inflow){.digest = f->digest};
}

static struct inflow *find(struct porter *p, uint32_t buffer, uint64_t offset) {
    for (struct inflow *f = p->inflows; f < p->inflows + INFLOWS; f++)
        if (f->buffer == buffer && f->offset == offset)
            return f;
    return NULL;
}

static bool has_pipe(struct porter *p) {
    if (p->pipe[0] >= 0)
        return true;
    if (pipe2(p->pipe, O_CLOEXEC) < 0)
        return false;
    fcntl(p->pipe[1], F_SETPIPE_SZ, PIPE_BYTES); /* if it stays smaller there are more turns */
    return true;
}

/* May pieces of this bundle come so at all? Those that a thread writes meanwhile need not. */
static bool may_flow(const struct porter *p, uint32_t bundle) {
    const struct opened *o = &p->bundles[bundle];
    return o->open && o->in != NULL && o->near && !o->beside && !carriage_shares(p->carriage);
}

/* A place for it. What a link has left behind that is gone is over. */
static struct inflow *free_place(struct porter *p, uint32_t bundle, uint32_t piece) {
    struct inflow *place = NULL;
    for (struct inflow *f = p->inflows; f < p->inflows + INFLOWS; f++) {
        const struct buffer *b = f->buffer == 0 ? NULL : buffers_find(&p->buffers, f->buffer);
        if (f->buffer != 0 && (b == NULL || b->link != f->link))
            end_inflow(p, f);
        if (f->buffer == 0)
            place = f;
        else if (f->bundle == bundle && f->piece == piece)
            return NULL;
    }
    return place;
}

static bool has_digest(struct inflow *f) {
    if (f->digest == NULL)
        f->digest = digesting_new(DIGEST_XXH3); /* as all that stays near */
    else
        digesting_restart(f->digest);
    return f->digest != NULL;
}

static struct inflow *begin(struct porter *p, uint32_t link, const struct message_put *m) {
    uint32_t bundle = buffers_find(&p->buffers, m->buffer)->bundle, piece = (uint32_t)m->note;
    if (piece != m->note || m->body.len < DRAWN_BYTES_MIN || p->no_splice || !may_flow(p, bundle) ||
        !has_pipe(p))
        return NULL;
    struct inflow *f = free_place(p, bundle, piece);
    uint64_t at;
    int fd = f == NULL || !has_digest(f)
                 ? -1
                 : depot_space(p->bundles[bundle].in, piece, (uint32_t)m->body.len, &at);
    fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return NULL;
    *f = (struct inflow){.buffer = m->buffer,
                         .offset = m->offset,
                         .bundle = bundle,
                         .piece = piece,
                         .link = link,
                         .fd = fd,
                         .at = at,
                         .digest = f->digest};
    return f;
}

/* The one that this put belongs to; NULL: it goes to its slot. */
static struct inflow *inflow_of(struct porter *p, uint32_t link, const struct message_put *m,
                                size_t done) {
    struct inflow *f = find(p, m->buffer, m->offset);
    if (f != NULL && (f->link != link || f->piece != m->note || f->done + f->waiting > done)) {
        end_inflow(p, f); /* of a link before */
        f = NULL;
    }
    return f != NULL ? f : begin(p, link, m);
}

/* Not every file system takes it, nor is every process allowed to do it: then no piece comes so any more. */
static bool is_refused(struct porter *p) {
    bool refused = errno == EINVAL || errno == ENOSYS || errno == EPERM || errno == EOPNOTSUPP;
    p->no_splice |= refused;
    return refused;
}

/* A part of what is in the pipe: by way of the slot if it must be, where it stays if the file has failed. */
static ssize_t pour_part(struct porter *p, struct inflow *f, loff_t *to, size_t len,
                         uint8_t *slot) {
    if (f->error == 0 && !p->no_splice) {
        ssize_t n = splice(p->pipe[0], NULL, f->fd, to, len, SPLICE_F_MOVE);
        if (n >= 0 || !is_refused(p))
            return n;
    }
    ssize_t n = read(p->pipe[0], slot, len);
    if (n > 0 && f->error == 0) {
        f->error = files_write(f->fd, bytes_of(slot, (size_t)n), (uint64_t)*to);
        *to += n;
    }
    return n;
}

/* So much more of it is in its file. */
static void advance(struct porter *p, struct inflow *f, size_t len) {
    if (f->error == 0)
        f->error = depot_digest(p->bundles[f->bundle].in, f->piece, (uint32_t)f->done,
                                (uint32_t)len, f->digest);
    f->done += len;
}

/* All that waits of it. */
static void pour(struct porter *p, struct inflow *f, uint8_t *slot) {
    loff_t to = (loff_t)(f->at + f->done);
    size_t whole = f->waiting;
    while (f->waiting > 0) {
        ssize_t n = pour_part(p, f, &to, f->waiting, slot);
        ASSERT(n > 0 || f->error == 0 || errno == EINTR); /* they are in the pipe */
        if (n > 0)
            f->waiting -= (size_t)n;
        else if (n == 0 || errno != EINTR)
            f->error = n == 0 ? -EIO : -errno;
    }
    advance(p, f, whole);
}

/* It has come by another way meanwhile. */
static bool is_here(const struct porter *p, const struct inflow *f) {
    return depot_has(p->bundles[f->bundle].in, f->piece);
}

/* The pipe is this one's: what another has there goes first. */
static void make_way(struct porter *p, const struct inflow *mine) {
    for (struct inflow *f = p->inflows; f < p->inflows + INFLOWS; f++) {
        if (f == mine || f->waiting == 0)
            continue;
        const struct buffer *b = buffers_find(&p->buffers, f->buffer);
        if (b == NULL || b->link != f->link || is_here(p, f))
            throw_away(p, f);
        else
            pour(p, f, b->at + f->offset);
    }
}

/* Up to where the next ones are aligned. */
static size_t at_once(uint64_t at, size_t left) {
    size_t most = CACHED_BYTES - at % CACHED_BYTES;
    return left < most ? left : most;
}

/* Of parts that are small; or it is itself: not everybody gets a large one. */
static bool is_full(const struct porter *p) {
    struct pollfd pipe = {.fd = p->pipe[1], .events = POLLOUT};
    return poll(&pipe, 1, 0) == 0;
}

/* What is there, into the pipe, which is emptied if it cannot take more. */
static ssize_t fill(struct porter *p, struct inflow *f, int socket, size_t most, uint8_t *slot) {
    ssize_t got = splice(socket, NULL, p->pipe[1], NULL, most, SPLICE_F_NONBLOCK);
    if (got >= 0 || errno != EAGAIN || f->waiting == 0)
        return got;
    if (!is_full(p)) {
        errno = EAGAIN;
        return -1;
    }
    pour(p, f, slot);
    return splice(socket, NULL, p->pipe[1], NULL, most, SPLICE_F_NONBLOCK);
}

ssize_t porter_draw(void *context, uint32_t link, int socket, const struct message_put *m,
                    size_t done) {
    struct porter *p = context;
    uint8_t *slot = porter_place(context, link, m);
    struct inflow *f = slot == NULL ? NULL : inflow_of(p, link, m, done);
    if (f == NULL || f->error < 0)
        return -EOPNOTSUPP;
    if (is_here(p, f)) {
        throw_away(p, f);
        return -EOPNOTSUPP;
    }
    make_way(p, f);
    if (f->done + f->waiting < done) { /* what came with the head */
        f->error = files_write(f->fd, bytes_of(slot + f->done, done - f->done), f->at + f->done);
        advance(p, f, done - f->done);
    }
    size_t most = at_once(f->at + f->done + f->waiting, m->body.len - done);
    ssize_t got = fill(p, f, socket, most, slot);
    if (got < 0 && is_refused(p)) { /* at the first try, so the slot has all of it */
        end_inflow(p, f);
        return -EOPNOTSUPP;
    }
    if (got < 0)
        return -errno;
    f->waiting += (size_t)got;
    if (got == (ssize_t)most)
        pour(p, f, slot);
    return got;
}

bool porter_drawn(struct porter *p, const struct effect_piece *e, int *ret_status,
                  uint8_t ret_digest[DIGEST_BYTES_MAX]) {
    struct inflow *f = find(p, e->buffer, e->offset);
    if (f == NULL)
        return false;
    bool same = f->piece == e->piece && f->bundle == e->bundle;
    bool here = same && is_here(p, f);              /* the slot has half of it */
    bool whole = f->error < 0 || f->done == e->len; /* if not, it is of a link before */
    if (here) { /* by another way, while some of it came by this one: what is there counts */
        digesting_restart(f->digest);
        f->error = depot_digest(p->bundles[f->bundle].in, f->piece, 0, e->len, f->digest);
    }
    *ret_status = f->error;
    digesting_end(f->digest, ret_digest);
    end_inflow(p, f);
    return here || (same && whole);
}

void porter_draws_forget(struct porter *p, uint32_t bundle) {
    for (struct inflow *f = p->inflows; f < p->inflows + INFLOWS; f++)
        if (f->buffer != 0 && f->bundle == bundle)
            end_inflow(p, f);
}

void porter_draws_fini(struct porter *p) {
    for (uint32_t i = 0; i < p->limits.hauls; i++)
        porter_draws_forget(p, i);
    for (struct inflow *f = p->inflows; f < p->inflows + INFLOWS; f++)
        digesting_free(f->digest);
    for (int i = 0; i < 2 && p->pipe[i] >= 0; i++)
        close(p->pipe[i]);
}
