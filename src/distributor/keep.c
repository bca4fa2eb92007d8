/* SPDX-License-Identifier: MIT */
/* The journal's file. */
#include "distributor/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/thread.h"

static const char first_line[] = "storm-wodi journal 1\n";
enum { FIRST_LINE = sizeof first_line - 1, COMPACT_FACTOR = 4 };

/* ---- the thread that syncs ---- */

static void *sync_loop(void *context) {
    struct keep *k = context;
    uint64_t n;
    while (read(k->ask, &n, sizeof n) == sizeof n &&
           !__atomic_load_n(&k->ending, __ATOMIC_ACQUIRE)) {
        k->sync_status = fdatasync(k->fd) == 0 ? 0 : -errno;
        n = 1;
        if (write(k->answer, &n, sizeof n) != sizeof n)
            break;
    }
    return NULL;
}

static void sync_begin(struct keep *k) {
    uint64_t one = 1;
    if (!k->sync || k->busy || k->written == k->durable)
        return;
    k->busy = true;
    k->wanted = k->written;
    k->syncs++;
    if (write(k->ask, &one, sizeof one) != sizeof one)
        k->status = -EIO;
}

void keep_answered(struct keep *k) {
    uint64_t n;
    if (read(k->answer, &n, sizeof n) != sizeof n)
        return;
    k->busy = false;
    if (k->sync_status < 0) {
        k->status = k->sync_status;
        return;
    }
    k->durable = k->wanted;
    sync_begin(k);
}

/* ---- writing ---- */

static int write_all(int fd, struct bytes b) {
    while (b.len > 0) {
        ssize_t n = write(fd, b.at, b.len);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0)
            b = bytes_of(b.at + n, b.len - (size_t)n);
    }
    return 0;
}

void keep_add(struct keep *k, struct bytes record) {
    if (!wodi_bytes_add(&k->gathered, record))
        k->status = -ENOMEM;
    k->records++;
}

int keep_flush(struct keep *k) {
    struct bytes b = wodi_bytes_left(&k->gathered);
    if (b.len == 0 || k->status < 0)
        return k->status;
    int status = write_all(k->fd, b);
    if (status < 0)
        return status;
    k->bytes += b.len;
    k->writes++;
    wodi_bytes_took(&k->gathered, b.len);
    k->written = k->records;
    if (!k->sync)
        k->durable = k->written;
    sync_begin(k);
    return 0;
}

/* ---- a new file in place of the old one ---- */

bool keep_should_compact(const struct keep *k) {
    return !k->busy && k->bytes > k->compact_bytes && k->bytes > COMPACT_FACTOR * k->snapshot_bytes;
}

static int write_snapshot(int fd, const struct desk *desk, uint64_t *ret_bytes) {
    size_t size = 2 * (size_t)(RECORD_PREFIX + WORD_BYTES_MAX);
    uint8_t *room = malloc(size);
    struct desk_cursor c = {0};
    struct wodi_bytes batch = {0};
    int status = room ? write_all(fd, bytes_of(first_line, FIRST_LINE)) : -ENOMEM;
    *ret_bytes = FIRST_LINE;
    for (size_t len; status == 0 && (len = desk_snapshot(desk, &c, room_of(room, size)));) {
        *ret_bytes += len;
        if (!wodi_bytes_add(&batch, bytes_of(room, len)))
            status = -ENOMEM;
        if (batch.len > size) {
            status = write_all(fd, wodi_bytes_left(&batch));
            batch.len = 0;
        }
    }
    if (status == 0)
        status = write_all(fd, wodi_bytes_left(&batch));
    free(batch.at);
    free(room);
    return status;
}

int keep_compact(struct keep *k, const struct desk *desk) {
    int fd =
        openat(k->folder, "journal.new", O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    uint64_t bytes = 0;
    int status = flock(fd, LOCK_EX | LOCK_NB) == 0 ? write_snapshot(fd, desk, &bytes) : -errno;
    if (status == 0 && k->sync && fdatasync(fd) != 0)
        status = -errno;
    if (status == 0 && renameat(k->folder, "journal.new", k->folder, "journal") != 0)
        status = -errno;
    if (status == 0 && k->sync && fsync(k->folder) != 0)
        status = -errno;
    if (status < 0) {
        close(fd);
        return status;
    }
    close(k->fd);
    k->fd = fd;
    k->bytes = k->snapshot_bytes = bytes;
    k->gathered.from = k->gathered.len = 0; /* the snapshot has it */
    k->written = k->durable = k->records;
    return 0;
}

/* ---- opening ---- */

/* How much of it is good; -errno. */
static long replay(struct bytes file, struct desk *desk) {
    size_t at = FIRST_LINE;
    struct word w;
    if (file.len < FIRST_LINE || memcmp(file.at, first_line, FIRST_LINE) != 0)
        return -EUCLEAN;
    for (long len; (len = record_next(bytes_of(file.at + at, file.len - at), &w)) > 0;
         at += (size_t)len)
        if (!desk_replay(desk, &w))
            return -EUCLEAN;
    return (long)at;
}

static int load(struct keep *k, size_t size, struct desk *desk) {
    if (size < FIRST_LINE) {
        /* It was killed before it had written the first line. */
        k->bytes = FIRST_LINE;
        return ftruncate(k->fd, 0) != 0 ? -errno
                                        : write_all(k->fd, bytes_of(first_line, FIRST_LINE));
    }
    void *at = mmap(NULL, size, PROT_READ, MAP_PRIVATE, k->fd, 0);
    if (at == MAP_FAILED)
        return -errno;
    long good = replay(bytes_of(at, size), desk);
    munmap(at, size);
    if (good < 0)
        return (int)good;
    k->bytes = (uint64_t)good;
    return ftruncate(k->fd, good) == 0 ? 0 : -errno;
}

int keep_open(struct keep *k, int folder, bool sync, uint64_t compact_bytes, struct desk *desk) {
    *k = (struct keep){.folder = folder, .sync = sync, .compact_bytes = compact_bytes};
    struct stat st;
    k->ask = eventfd(0, EFD_CLOEXEC);
    k->answer = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    k->fd = openat(folder, "journal", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (k->fd < 0 || k->ask < 0 || k->answer < 0 || fstat(k->fd, &st) != 0)
        return -errno;
    if (flock(k->fd, LOCK_EX | LOCK_NB) != 0)
        return -EBUSY;
    int status = load(k, (size_t)st.st_size, desk);
    return status < 0 ? status : thread_start(&k->thread, sync_loop, k);
}

void keep_close(struct keep *k) {
    uint64_t one = 1;
    __atomic_store_n(&k->ending, true, __ATOMIC_RELEASE);
    if (k->thread && write(k->ask, &one, sizeof one) == sizeof one)
        pthread_join(k->thread, NULL);
    if (k->sync)
        fdatasync(k->fd);
    close(k->fd);
    close(k->ask);
    close(k->answer);
    free(k->gathered.at);
}
