/* SPDX-License-Identifier: MIT */
/* Tests of manifests in files: every byte of the stream belongs to the file that it came from. */
#include "os/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tap.h"

struct made {
    int fd;
    uint32_t bytes;
    uint64_t stream;
};

/* Entry i is a folder if i % 5 == 0, otherwise a file of i % 7 bytes. */
static uint64_t bytes_of_entry(uint32_t i) {
    return i % 5 == 0 ? 0 : i % 7;
}

static struct made make(uint32_t entries) {
    struct made m = {.fd = memfd_create("manifest", MFD_CLOEXEC)};
    CHECK(m.fd >= 0);
    for (uint32_t i = 0; i < entries; i++) {
        uint8_t out[256];
        char name[32];
        snprintf(name, sizeof name, "name%u", i);
        struct entry e = {.kind = i % 5 == 0 ? ENTRY_FOLDER : ENTRY_FILE,
                          .mode = 0644,
                          .bytes = bytes_of_entry(i),
                          .path = bytes_from_str(name)};
        long len = entry_encode(&e, room_of(out, sizeof out));
        CHECK(len > 0 && pwrite(m.fd, out, (size_t)len, m.bytes) == len);
        m.bytes += (uint32_t)len;
        m.stream += e.bytes;
    }
    m.stream += m.bytes;
    return m;
}

static void check_all(uint32_t entries) {
    struct made made = make(entries);
    struct manifest m;
    struct manifest_cursor c;
    CHECK_EQ(manifest_open(&m, made.fd, made.bytes, made.stream), 0);
    CHECK_EQ(m.entries, entries);
    uint64_t offset = made.bytes;
    bool more = manifest_first(&m, &c), right = true;
    for (uint32_t i = 0; i < entries; i++) {
        right =
            right && more && c.number == i && c.offset == offset && c.e.bytes == bytes_of_entry(i);
        offset += bytes_of_entry(i);
        more = manifest_next(&m, &c);
    }
    CHECK(right && !more);
    offset = made.bytes;
    for (uint32_t i = 0; i < entries; i++)
        for (uint64_t b = 0; b < bytes_of_entry(i); b++, offset++)
            right =
                right && manifest_seek(&m, offset, &c) && c.number == i && c.offset == offset - b;
    for (uint32_t i = 0; i < entries; i++)
        right = right && manifest_at(&m, i, &c) && c.number == i && c.e.bytes == bytes_of_entry(i);
    CHECK(right);
    CHECK(!manifest_at(&m, entries, &c));
    CHECK_EQ(offset, made.stream);
    CHECK(!manifest_seek(&m, offset, &c));
    manifest_close(&m);
    close(made.fd);
}

static void test_few(void) {
    check_all(2);
    check_all(3);
    check_all(100);
}

/* More than there are marks. */
static void test_many(void) {
    check_all(20000);
}

static void test_nonsense(void) {
    struct made made = make(10);
    struct manifest m;
    CHECK_EQ(manifest_open(&m, made.fd, made.bytes, made.stream - 1), -EBADMSG);
    CHECK_EQ(manifest_open(&m, made.fd, made.bytes - 1, made.stream), -EBADMSG);
    CHECK_EQ(manifest_open(&m, made.fd, made.bytes + 100000, made.stream + 100000), -EBADMSG);
    CHECK_EQ(pwrite(made.fd, "\xff", 1, 0), 1);
    CHECK_EQ(manifest_open(&m, made.fd, made.bytes, made.stream), -EBADMSG);
    manifest_close(&m);
    close(made.fd);
}

/* The file is spoiled after it was judged: then it ends early, and that is all. */
static void test_spoilt_later(void) {
    struct made made = make(100);
    struct manifest m;
    struct manifest_cursor c;
    uint32_t seen = 0;
    uint8_t spoilt[200]; /* more than an entry takes */
    memset(spoilt, 0xff, sizeof spoilt);
    CHECK_EQ(manifest_open(&m, made.fd, made.bytes, made.stream), 0);
    CHECK_EQ(pwrite(made.fd, spoilt, sizeof spoilt, made.bytes / 2), sizeof spoilt);
    for (bool more = manifest_first(&m, &c); more; more = manifest_next(&m, &c))
        seen++;
    CHECK(seen > 10 && seen < 90);
    manifest_close(&m);
    close(made.fd);
}

int main(void) {
    TEST(test_few);
    TEST(test_many);
    TEST(test_nonsense);
    TEST(test_spoilt_later);
    return tap_finish();
}
