/* SPDX-License-Identifier: MIT */
/* Pieces that the writer still has when a bundle is closed or committed. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/depot_inside.h"
#include "os/porter_inside.h"
#include "tap.h"

enum { PIECE = 256 * KIB, BUFFER = 7 };

static struct loop loop;
static struct porter p;
static struct opened bundles[2];
static struct buffer *buffer;
static int told;              /* inputs that the mover has had */
static uint64_t written_then; /* when it was told that the bundle is committed */

static void step(void *self, const struct input *in, struct effects *out) {
    (void)self;
    (void)out;
    told++;
    if (in->kind == INPUT_BUNDLE && in->bundle.committed) {
        pthread_mutex_lock(&p.writer.mutex);
        written_then = p.writer.done;
        pthread_mutex_unlock(&p.writer.mutex);
    }
}

static void begin(void) {
    told = 0;
    written_then = 0;
    bundles[0] = bundles[1] = (struct opened){0};
    p = (struct porter){.config = {.loop = &loop},
                        .machine = {.step = step},
                        .limits = {.hauls = 2},
                        .bundles = bundles};
    CHECK_EQ(loop_init(&loop), 0);
    writer_init(&p.writer, &loop, porter_written);
    buffer = buffers_open(&p.buffers, BUFFER, PIECE);
    CHECK(buffer != NULL);
}

static void end(void) {
    writer_fini(&p.writer);
    buffers_fini(&p.buffers);
    free(p.deeds);
    loop_fini(&loop);
}

/* As many pieces of a bundle as the writer takes. */
static void fill(uint32_t bundle) {
    int fd = memfd_create("piece", MFD_CLOEXEC);
    struct writing w = {.bytes = bytes_of(buffer->at, PIECE)};
    for (w.fd = dup(fd); writer_give(&p.writer, &w); w.fd = dup(fd)) {
        p.pending[p.pending_count++] =
            (struct pending){.piece = {.bundle = bundle, .buffer = BUFFER}};
        w.tag = p.pending_count;
        buffers_lend(&p.buffers, BUFFER);
    }
    close(w.fd);
    close(fd);
    CHECK_EQ(p.pending_count, WRITER_MAX);
}

static void later(enum effect_kind kind, uint32_t bundle) {
    struct effect e = {.kind = kind};
    e.bundle.bundle = bundle;
    porter_do_later(&p, &e);
}

/* Both transfers are over, one after the other: while the first is closed nobody may be told of the second, whose
 * number may be another's already. */
static void test_over_before_it_is_closed(void) {
    begin();
    fill(1);
    buffers_close(&p.buffers, BUFFER);
    later(EFFECT_BUNDLE_CLOSE, 0);
    later(EFFECT_BUNDLE_CLOSE, 1);
    porter_work_off(&p);
    CHECK_EQ(told, 0);
    CHECK_EQ(p.writer.out, WRITER_MAX);
    CHECK_EQ(p.buffers.count, 0);
    end();
}

/* A piece may come twice: when the files have their names nobody writes to them any more. */
static void test_all_is_written_before_a_commit(void) {
    static struct depot_bundle in = {.committed = true};
    begin();
    bundles[0] = (struct opened){.open = true, .in = &in};
    fill(0);
    later(EFFECT_BUNDLE_COMMIT, 0);
    porter_work_off(&p);
    CHECK_EQ(told, 1);
    CHECK_EQ(written_then, WRITER_MAX);
    end();
}

int main(void) {
    TEST(test_over_before_it_is_closed);
    TEST(test_all_is_written_before_a_commit);
    return tap_finish();
}
