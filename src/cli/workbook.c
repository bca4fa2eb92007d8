/* SPDX-License-Identifier: MIT */
/* What became of each line of storm work: see workbook.h. */
#include "cli/workbook.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/hash.h"
#include "os/files.h"

/* A record: state, whether it failed (1 byte each), two bytes, length of the result (4 bytes), number and hash (8 bytes each),
 * the result. All numbers are little-endian. */
enum { HEAD = 24, LINES_MAX = 1 << 30, GATHER = 1 << 20 };

struct workbook_line *workbook_line(struct workbook *b, uint64_t number) {
    if (number >= LINES_MAX)
        return NULL;
    if (number >= b->cap) {
        uint64_t cap = 2 * number + 64;
        struct workbook_line *lines = reallocarray(b->lines, cap, sizeof *lines);
        if (lines == NULL)
            return NULL;
        memset(lines + b->cap, 0, (cap - b->cap) * sizeof *lines);
        b->lines = lines;
        b->cap = cap;
    }
    if (number >= b->count)
        b->count = number + 1;
    return &b->lines[number];
}

static int note(struct workbook *b, uint64_t number, enum workbook_state state, bool failed,
                struct bytes result) {
    struct workbook_line *l = workbook_line(b, number);
    uint8_t head[HEAD] = {(uint8_t)state, failed};
    if (l == NULL)
        return -ENOMEM;
    l->state = (uint8_t)state;
    l->failed = failed;
    l->place = b->end + HEAD;
    l->len = (uint32_t)result.len;
    store_le32(head + 4, l->len);
    store_le64(head + 8, number);
    store_le64(head + 16, l->hash);
    b->end += HEAD + result.len;
    return wodi_bytes_add(&b->out, bytes_of(head, HEAD)) && wodi_bytes_add(&b->out, result)
               ? 0
               : -ENOMEM;
}

int workbook_sent(struct workbook *b, uint64_t number, const char *command) {
    struct workbook_line *l = workbook_line(b, number);
    uint64_t hash = hash_once(command, strlen(command));
    if (l == NULL)
        return -ENOMEM;
    if (l->state != WORKBOOK_UNKNOWN)
        return l->hash == hash ? 0 : -ESTALE;
    l->hash = hash;
    return note(b, number, WORKBOOK_SENT, false, bytes_of(NULL, 0));
}

int workbook_hold(struct workbook *b, uint64_t number, bool failed, struct bytes result) {
    return note(b, number, WORKBOOK_HELD, failed, result);
}

int workbook_shown(struct workbook *b, uint64_t number, bool failed) {
    return note(b, number, WORKBOOK_SHOWN, failed, bytes_of(NULL, 0));
}

bool workbook_is_written(struct workbook *b, uint64_t number) {
    const struct workbook_line *l = workbook_line(b, number);
    return l != NULL && l->place + l->len <= b->end - wodi_bytes_left(&b->out).len;
}

uint8_t *workbook_held(struct workbook *b, uint64_t number, size_t *ret_len) {
    const struct workbook_line *l = workbook_line(b, number);
    uint8_t *result = l != NULL ? malloc(l->len + 1) : NULL;
    if (result == NULL)
        return NULL;
    *ret_len = l->len;
    if (files_read_all(b->fd, room_of(result, l->len), l->place) == 0)
        return result;
    free(result);
    return NULL;
}

bool workbook_is_full(const struct workbook *b) {
    return wodi_bytes_left(&b->out).len > GATHER;
}

int workbook_flush(struct workbook *b) {
    struct bytes left = wodi_bytes_left(&b->out);
    int r = left.len > 0 ? files_write(b->fd, left, b->end - left.len) : 0;
    if (r == 0)
        wodi_bytes_took(&b->out, left.len);
    return r;
}

/* ---- a former life ---- */

static bool recall(struct workbook *b, const uint8_t head[HEAD], uint64_t place, bool again) {
    struct workbook_line *l = head[0] > WORKBOOK_UNKNOWN && head[0] <= WORKBOOK_SHOWN
                                  ? workbook_line(b, load_le64(head + 8))
                                  : NULL;
    if (l == NULL || head[1] > 1)
        return false;
    l->hash = load_le64(head + 16);
    l->state = head[0];
    l->failed = head[1];
    l->len = load_le32(head + 4);
    l->place = place;
    if (again && l->failed)
        l->state = WORKBOOK_SENT;
    return true;
}

static int recall_all(struct workbook *b, bool again) {
    off_t size = lseek(b->fd, 0, SEEK_END);
    uint8_t head[HEAD];
    if (size < 0)
        return -errno;
    while (b->end + HEAD <= (uint64_t)size &&
           files_read_all(b->fd, room_of(head, HEAD), b->end) == 0) {
        uint64_t next = b->end + HEAD + load_le32(head + 4);
        if (next > (uint64_t)size || !recall(b, head, b->end + HEAD, again))
            break;
        b->end = next;
    }
    return ftruncate(b->fd, (off_t)b->end) < 0 ? -errno : 0;
}

int workbook_open(struct workbook *b, int folder, bool again) {
    *b = (struct workbook){.fd = openat(folder, "book", O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
    if (b->fd < 0 || flock(b->fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? -EBUSY : -errno;
    return recall_all(b, again);
}

void workbook_close(struct workbook *b) {
    for (uint64_t i = 0; i < b->count; i++)
        free(b->lines[i].command);
    free(b->lines);
    free(b->out.at);
    if (b->fd >= 0)
        close(b->fd);
}
