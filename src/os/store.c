/* SPDX-License-Identifier: MIT */
/* Durable state of a node: see store.h. */
#include "os/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/units.h"

/* A copy: magic, number, boots and epoch, value, digest of what is before it. */
enum { COPY_BYTES = 64, COPIES = 2, DIGEST_AT = 40, FORM_AT = 6 };
#define COPY_MAGIC 0x31455441545353ULL /* "SSTATE1" */

static uint64_t digest(const uint8_t *copy) {
    struct hash h;
    hash_init(&h, COPY_MAGIC);
    hash_bytes(&h, copy, DIGEST_AT);
    return hash_done(&h);
}

static void encode(uint8_t copy[COPY_BYTES], uint64_t number, const struct kept *k) {
    memset(copy, 0, COPY_BYTES);
    store_le64(copy, COPY_MAGIC);
    store_le64(copy + 8, number);
    store_le32(copy + 16, k->boots);
    store_le32(copy + 20, k->epoch);
    store_le64(copy + 24, k->value);
    store_le64(copy + DIGEST_AT, digest(copy));
}

/* Of a later form: the same letters, another number behind them. */
static bool is_newer(const uint8_t copy[COPY_BYTES]) {
    uint8_t ours[8];
    store_le64(ours, COPY_MAGIC);
    return memcmp(copy, ours, FORM_AT) == 0 && copy[FORM_AT] > ours[FORM_AT] &&
           copy[FORM_AT] <= '9';
}

static bool decode(const uint8_t copy[COPY_BYTES], uint64_t *number, struct kept *k) {
    if (load_le64(copy) != COPY_MAGIC || load_le64(copy + DIGEST_AT) != digest(copy))
        return false;
    *number = load_le64(copy + 8);
    *k = (struct kept){.boots = load_le32(copy + 16),
                       .epoch = load_le32(copy + 20),
                       .value = load_le64(copy + 24)};
    return true;
}

/* ---- files ---- */

static int write_copy(int fd, uint64_t number, const struct kept *k) {
    uint8_t copy[COPY_BYTES];
    encode(copy, number, k);
    off_t at = (off_t)(number % COPIES) * COPY_BYTES;
    ssize_t wrote = pwrite(fd, copy, sizeof copy, at);
    if (wrote != (ssize_t)sizeof copy)
        return wrote < 0 ? -errno : -EIO;
    return fdatasync(fd) < 0 ? -errno : 0;
}

static int sync_folder(const char *folder) {
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int r = fsync(fd) < 0 ? -errno : 0;
    close(fd);
    return r;
}

/* For as long as the file is open, or until the process ends. */
static int lock(int fd) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return errno == EWOULDBLOCK ? -EBUSY : -errno;
}

/* Never over another: -EEXIST. */
static int put_in_place(const char *fresh, const char *path) {
    if (renameat2(AT_FDCWD, fresh, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return 0;
    int r = errno == EINVAL || errno == ENOSYS ? link(fresh, path) : -1; /* some file systems */
    r = r < 0 ? -errno : 0;
    unlink(fresh);
    return r;
}

/* Is this file still the one of that name? Who opened it before another, who held the lock, gave it its final name and
 * let go, has the lock now of what is in use already. */
static bool has_name(int fd, const char *path) {
    struct stat mine, named;
    return fstat(fd, &mine) == 0 && stat(path, &named) == 0 && mine.st_dev == named.st_dev &&
           mine.st_ino == named.st_ino;
}

/* Two that create at once must not both succeed: they lock the same file, or the one that comes
 * later finds the name taken (-EEXIST). */
static int create(struct store *s, const char *folder, const char *path) {
    char fresh[PATH_MAX];
    if (snprintf(fresh, sizeof fresh, "%s.new", path) >= (int)sizeof fresh)
        return -ENAMETOOLONG;
    s->fd = open(fresh, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (s->fd < 0)
        return -errno;
    int r = lock(s->fd);
    if (r == 0 && !has_name(s->fd, fresh))
        r = -EEXIST;
    if (r < 0)
        return r;
    if (ftruncate(s->fd, 0) < 0)
        r = -errno;
    for (s->number = 0; s->number < COPIES && r == 0; s->number++)
        r = write_copy(s->fd, s->number, &s->kept);
    s->number = COPIES - 1;
    if (r == 0)
        r = put_in_place(fresh, path);
    return r < 0 ? r : sync_folder(folder);
}

static int load(struct store *s) {
    uint8_t bytes[COPIES * COPY_BYTES] = {0};
    bool found = false;
    int r = lock(s->fd);
    if (r < 0)
        return r;
    if (pread(s->fd, bytes, sizeof bytes, 0) < 0)
        return -errno;
    for (size_t i = 0; i < COPIES; i++) {
        uint64_t number;
        struct kept kept;
        if (is_newer(bytes + i * COPY_BYTES)) /* then the other, if it is ours, is older */
            return -ENOTSUP;
        if (!decode(bytes + i * COPY_BYTES, &number, &kept) || (found && number < s->number))
            continue;
        found = true;
        s->number = number;
        s->kept = kept;
    }
    return found ? 0 : -EUCLEAN;
}

int store_open(struct store *s, const char *folder) {
    char path[PATH_MAX];
    int r = -EEXIST;
    *s = (struct store){.fd = -1, .done = {.fd = -1}};
    if (snprintf(path, sizeof path, "%s/state", folder) >= (int)sizeof path)
        return -ENAMETOOLONG;
    for (int i = 0; i < 2 && r == -EEXIST; i++) { /* twice if another has just created it */
        s->fd = open(path, O_RDWR | O_CLOEXEC);
        r = s->fd >= 0 ? load(s) : errno == ENOENT ? create(s, folder, path) : -errno;
        if (r < 0)
            store_close(s);
    }
    return r;
}

/* A write that is under way uses what would be closed: it is waited for. */
void store_close(struct store *s) {
    struct pollfd over = {.fd = s->done.fd, .events = POLLIN};
    while (s->busy && (poll(&over, 1, -1) >= 0 || errno == EINTR))
        if (over.revents != 0)
            s->busy = false;
    if (s->fd >= 0)
        close(s->fd);
    if (s->done.fd >= 0)
        close(s->done.fd);
    s->fd = s->done.fd = -1;
}

static int write_next(struct store *s, const struct kept *next) {
    int r = write_copy(s->fd, s->number + 1, next);
    if (r < 0)
        return r;
    s->number++;
    s->kept = *next;
    return 0;
}

int store_begin(struct store *s, bool root) {
    struct kept next = s->kept;
    next.boots++;
    next.epoch += root;
    return write_next(s, &next);
}

int store_raise(struct store *s, uint32_t boots) {
    struct kept next = s->kept;
    if (next.boots >= boots)
        return 0;
    next.boots = boots;
    return write_next(s, &next);
}

/* ---- while the loop runs ---- */

/* The thread reads what the loop does not change before the write is over. */
static void *write_now(void *argument) {
    struct store *s = argument;
    s->status = write_copy(s->fd, s->number, &s->kept);
    uint64_t one = 1;
    ssize_t r = write(s->done.fd, &one, sizeof one);
    ASSERT(r == sizeof one);
    return NULL;
}

static size_t stack_bytes(void) {
    long least = sysconf(_SC_THREAD_STACK_MIN); /* less is not even tried */
    return least > (long)(64 * KIB) ? (size_t)least : 64 * KIB;
}

static void start_write(struct store *s) {
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, old;
    s->busy = true;
    s->number++;
    s->kept.value = s->wanted;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, stack_bytes());
    if (pthread_create(&thread, &attributes, write_now, s) != 0)
        write_now(s); /* better late than never */
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void write_over(struct source *source, uint32_t events) {
    struct store *s = CONTAINER_OF(source, struct store, done);
    uint64_t count;
    (void)events;
    if (read(s->done.fd, &count, sizeof count) != sizeof count)
        return;
    s->busy = false;
    if (s->status < 0) {
        /* A machine waits for this with its own patience; a daemon that cannot keep what it must
         * not forget is better dead. */
        fprintf(stderr, "storm: state: %s; the disk must be writable\n", strerror(-s->status));
        abort();
    }
    uint64_t value = s->kept.value;
    if (s->wanted > value)
        start_write(s);
    s->durable(s, value);
}

int store_attach(struct store *s, struct loop *loop, void (*durable)(struct store *, uint64_t)) {
    s->loop = loop;
    s->durable = durable;
    s->wanted = s->kept.value;
    s->done.ready = write_over;
    s->done.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return s->done.fd < 0 ? -errno : loop_add(loop, &s->done, EPOLLIN);
}

void store_keep(struct store *s, uint64_t value) {
    if (value > s->wanted)
        s->wanted = value;
    if (!s->busy)
        start_write(s);
}
