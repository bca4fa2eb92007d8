/* SPDX-License-Identifier: MIT */
/* What is known about a file is believed as long as the file is what it was, and no longer. */
#include "os/ledger.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "survey_rig.h"
#include "tap.h"

enum { OLD_BYTES = 3 << 20 };
static struct timespec old_since;

/* Files that are not fresh any more when their tests come. */
static void make_old_files(void) {
    folder("old");
    put("old/file", OLD_BYTES, 1);
    put("old/other", OLD_BYTES, 2);
    clock_gettime(CLOCK_MONOTONIC, &old_since);
}

static void wait_until_old(void) {
    struct timespec until = {.tv_sec = old_since.tv_sec + 2, .tv_nsec = old_since.tv_nsec};
    until.tv_sec += until.tv_nsec > 800000000;
    until.tv_nsec = (until.tv_nsec + 200000000) % 1000000000;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

/* Bytes that are read of this file with the ledger. */
static uint64_t bytes_read(const struct survey_config *c, const char *path) {
    struct survey *s = look_well(c, path);
    uint64_t bytes = s != NULL ? survey_bytes_read(s) : UINT64_MAX;
    survey_free(s);
    return bytes;
}

static struct survey_config with_ledger(void) {
    struct survey_config c = plain();
    c.ledger = "cache/ledger";
    return c;
}

static bool note(void *context, uint64_t done, uint64_t all) {
    *(uint64_t *)context = done;
    return done <= all;
}

static void test_known_files_are_not_read(void) {
    struct survey_config c = with_ledger(), none = plain();
    wait_until_old();
    CHECK_EQ(bytes_read(&c, "old/file"), OLD_BYTES);
    CHECK_EQ(bytes_read(&c, "old/file"), 0);
    struct survey *with = look_well(&c, "old/file"), *without = look_well(&none, "old/file");
    CHECK(bytes_equal(survey_table(with), survey_table(without)));
    CHECK(bytes_equal(survey_manifest(with), survey_manifest(without)));
    survey_free(with);
    survey_free(without);
    CHECK_EQ(bytes_read(&c, "old"), OLD_BYTES); /* in company: the other one is new */
    CHECK_EQ(bytes_read(&c, "old"), 0);
    uint64_t last = 0;
    c.progress = note;
    c.context = &last;
    CHECK_EQ(bytes_read(&c, "old"), 0);
    CHECK_EQ(last, 2 * OLD_BYTES);
}

static void test_other_wishes_are_read(void) {
    struct survey_config c = with_ledger();
    CHECK_EQ(bytes_read(&c, "old/file"), 0);
    c.piece_bytes = 64 << 10;
    CHECK_EQ(bytes_read(&c, "old/file"), OLD_BYTES);
    CHECK_EQ(bytes_read(&c, "old/file"), 0);
    c.piece_bytes = 0;
    CHECK_EQ(bytes_read(&c, "old/file"), OLD_BYTES);
    c.digest = DIGEST_SHA256;
    CHECK_EQ(bytes_read(&c, "old/file"), OLD_BYTES);
    CHECK_EQ(bytes_read(&c, "old/file"), 0);
    c.digest = DIGEST_XXH3;
    CHECK_EQ(bytes_read(&c, "old/file"), 0); /* both are kept */
}

/* Same size, same modification time, other contents; and what is fresh is not believed for long. */
static void test_changed_files_are_read(void) {
    struct survey_config c = with_ledger();
    CHECK_EQ(bytes_read(&c, "old/other"), 0);
    struct stat s;
    CHECK_EQ(stat("old/other", &s), 0);
    int fd = open("old/other", O_WRONLY | O_CLOEXEC);
    CHECK_EQ(pwrite(fd, "x", 1, 1000000), 1);
    CHECK_EQ(futimens(fd, (struct timespec[]){s.st_atim, s.st_mtim}), 0);
    close(fd);
    CHECK_EQ(bytes_read(&c, "old/other"), OLD_BYTES);
    CHECK_EQ(bytes_read(&c, "old/other"), OLD_BYTES); /* it is too fresh to be kept */
}

static uint32_t names_in(const char *path, char *first, size_t size) {
    uint32_t count = 0;
    DIR *dir = opendir(path);
    for (struct dirent *d; dir != NULL && (d = readdir(dir)) != NULL;) {
        if (d->d_name[0] == '.')
            continue;
        if (count++ == 0 && first != NULL)
            snprintf(first, size, "%s/%.200s", path, d->d_name);
    }
    if (dir != NULL)
        closedir(dir);
    return count;
}

/* Each byte of what is kept counts, also one that is missing or too many. */
static void test_spoilt_ledgers_are_not_believed(void) {
    away("cache");
    struct survey_config c = with_ledger();
    CHECK_EQ(bytes_read(&c, "old/file"), OLD_BYTES);
    char path[300];
    struct stat s;
    CHECK_EQ(names_in(c.ledger, path, sizeof path), 1);
    CHECK_EQ(stat(path, &s), 0);
    CHECK(s.st_size < 2048);
    for (off_t at = 0; at < s.st_size; at += 37) {
        uint8_t byte;
        int fd = open(path, O_RDWR | O_CLOEXEC);
        CHECK_EQ(pread(fd, &byte, 1, at), 1);
        byte ^= 0x10;
        CHECK_EQ(pwrite(fd, &byte, 1, at), 1);
        close(fd);
        CHECK_EQ(bytes_read(&c, "old/file"), OLD_BYTES);
        CHECK_EQ(bytes_read(&c, "old/file"), 0); /* and is right again */
    }
    CHECK_EQ(truncate(path, s.st_size - 1), 0);
    CHECK_EQ(bytes_read(&c, "old/file"), OLD_BYTES);
    CHECK_EQ(truncate(path, 0), 0);
    CHECK_EQ(bytes_read(&c, "old/file"), OLD_BYTES);
    CHECK_EQ(bytes_read(&c, "old/file"), 0);
}

static void test_ledgers_that_cannot_be_used(void) {
    struct survey_config c = with_ledger();
    away("cache");
    put("cache", 10, 1); /* a file in the way */
    CHECK_EQ(bytes_read(&c, "old/file"), OLD_BYTES);
    away("cache");
    folder("cache");
    folder("cache/ledger");
    CHECK_EQ(chmod("cache/ledger", 0777), 0); /* anybody could write there */
    CHECK_EQ(bytes_read(&c, "old/file"), OLD_BYTES);
    CHECK_EQ(names_in(c.ledger, NULL, 0), 0);
    c.ledger = "/proc/none/such";
    CHECK_EQ(bytes_read(&c, "old/file"), OLD_BYTES);
    away("cache");
}

/* What was used last stays; what was not goes, also what a crash left. */
static void test_ledgers_are_bounded(void) {
    struct survey_config c = with_ledger();
    CHECK_EQ(bytes_read(&c, "old/file"), OLD_BYTES);
    char kept[300], path[300];
    CHECK_EQ(names_in(c.ledger, kept, sizeof kept), 1);
    for (int i = 0; i < LEDGER_FILES_MAX + 50; i++) {
        snprintf(path, sizeof path, "%s/%d.123", c.ledger, i);
        put(path, 10, 1);
        struct timespec old[2] = {{.tv_sec = 1000 + i}, {.tv_sec = 1000 + i}};
        CHECK_EQ(utimensat(AT_FDCWD, path, old, 0), 0);
    }
    CHECK_EQ(truncate(kept, 0), 0);
    CHECK_EQ(bytes_read(&c, "old/file"), OLD_BYTES); /* it is written anew */
    CHECK_EQ(names_in(c.ledger, NULL, 0), LEDGER_FILES_MAX);
    CHECK_EQ(bytes_read(&c, "old/file"), 0);
    snprintf(path, sizeof path, "%s/%d.123", c.ledger, LEDGER_FILES_MAX + 49);
    CHECK_EQ(access(path, F_OK), 0); /* the newest of the others */
    snprintf(path, sizeof path, "%s/%d.123", c.ledger, 0);
    CHECK(access(path, F_OK) < 0);
    away("cache");
}

int main(void) {
    if (!rig_enter())
        return 1;
    make_old_files();
    TEST(test_known_files_are_not_read);
    TEST(test_other_wishes_are_read);
    TEST(test_changed_files_are_read);
    TEST(test_spoilt_ledgers_are_not_believed);
    TEST(test_ledgers_that_cannot_be_used);
    TEST(test_ledgers_are_bounded);
    rig_leave();
    return tap_finish();
}
