/* SPDX-License-Identifier: MIT */
/* Tests of the drawer: what was put in is there for the next one, whole or not at all. */
#include "os/drawer.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine/machine.h"
#include "tap.h"

struct scratch {
    char folder[32], file[48];
};

static struct scratch scratch_new(void) {
    struct scratch s = {"/tmp/storm-drawer-XXXXXX", ""};
    CHECK(mkdtemp(s.folder) != NULL);
    snprintf(s.file, sizeof s.file, "%s/drawer", s.folder);
    return s;
}

static void scratch_free(const struct scratch *s) {
    unlink(s->file);
    rmdir(s->folder);
}

/* What the next process finds. */
static bool next_finds(const struct scratch *s, struct bytes what) {
    struct drawer d;
    drawer_init(&d, s->folder);
    bool same = bytes_equal(drawer_look(&d), what);
    drawer_fini(&d);
    return same;
}

static const struct bytes nothing = {0};

static void test_put_and_found(void) {
    struct scratch s = scratch_new();
    struct drawer d;
    drawer_init(&d, s.folder);
    CHECK_EQ(drawer_look(&d).len, 0);
    CHECK(access(s.file, F_OK) < 0);
    drawer_make(&d);
    CHECK(access(s.file, F_OK) == 0);
    CHECK(next_finds(&s, nothing));
    drawer_put(&d, bytes_from_str("a launch"));
    CHECK(next_finds(&s, bytes_from_str("a launch")));
    drawer_put(&d, bytes_from_str("another"));
    CHECK(next_finds(&s, bytes_from_str("another")));
    drawer_put(&d, nothing);
    CHECK(next_finds(&s, nothing));
    drawer_fini(&d);
    scratch_free(&s);
}

/* All the room is there from the beginning. */
static void test_as_much_as_there_may_be(void) {
    struct scratch s = scratch_new();
    struct drawer d;
    struct stat before, after;
    static uint8_t much[STOW_BYTES_MAX];
    memset(much, 7, sizeof much);
    drawer_init(&d, s.folder);
    drawer_make(&d);
    CHECK_EQ(stat(s.file, &before), 0);
    drawer_put(&d, bytes_of(much, sizeof much));
    CHECK(next_finds(&s, bytes_of(much, sizeof much)));
    drawer_put(&d, bytes_from_str("little"));
    CHECK(next_finds(&s, bytes_from_str("little")));
    CHECK_EQ(stat(s.file, &after), 0);
    CHECK_EQ(before.st_size, after.st_size);
    CHECK_EQ(before.st_blocks, after.st_blocks);
    drawer_fini(&d);
    scratch_free(&s);
}

/* Whoever puts things in is killed: what is found is one of them, or nothing, never a mixture. */
static void test_killed_at_any_time(void) {
    struct scratch s = scratch_new();
    static uint8_t ones[5000], twos[7000];
    memset(ones, 1, sizeof ones);
    memset(twos, 2, sizeof twos);
    for (int i = 0; i < 50; i++) {
        int begun[2];
        CHECK_EQ(pipe(begun), 0);
        pid_t pid = fork();
        if (pid == 0) {
            struct drawer d;
            drawer_init(&d, s.folder);
            drawer_put(&d, bytes_of(ones, sizeof ones));
            close(begun[1]);
            for (;;) {
                drawer_put(&d, bytes_of(twos, sizeof twos));
                drawer_put(&d, bytes_of(ones, sizeof ones));
            }
        }
        char byte;
        close(begun[1]);
        CHECK_EQ(read(begun[0], &byte, 1), 0);
        close(begun[0]);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        CHECK(next_finds(&s, bytes_of(ones, sizeof ones)) ||
              next_finds(&s, bytes_of(twos, sizeof twos)) || next_finds(&s, nothing));
    }
    scratch_free(&s);
}

static void spoil(const struct scratch *s, off_t at, uint8_t value) {
    int fd = open(s->file, O_WRONLY);
    CHECK_EQ(pwrite(fd, &value, 1, at), 1);
    close(fd);
}

static void test_what_is_damaged_is_not_there(void) {
    struct scratch s = scratch_new();
    struct drawer d;
    drawer_init(&d, s.folder);
    drawer_put(&d, bytes_from_str("a launch"));
    spoil(&s, 14, 1); /* longer than the file */
    CHECK(next_finds(&s, nothing));
    drawer_put(&d, bytes_from_str("a launch"));
    spoil(&s, 0, 0);
    CHECK(next_finds(&s, nothing));
    drawer_fini(&d);
    CHECK_EQ(truncate(s.file, 3), 0);
    CHECK(next_finds(&s, nothing));
    drawer_init(&d, s.folder);
    drawer_put(&d, bytes_from_str("a launch"));
    CHECK(next_finds(&s, bytes_from_str("a launch")));
    drawer_fini(&d);
    scratch_free(&s);
}

static void test_no_folder(void) {
    struct drawer d;
    drawer_init(&d, "/nonexistent");
    drawer_make(&d);
    drawer_put(&d, bytes_from_str("a launch"));
    CHECK_EQ(drawer_look(&d).len, 0);
    drawer_fini(&d);
}

int main(void) {
    TEST(test_put_and_found);
    TEST(test_as_much_as_there_may_be);
    TEST(test_killed_at_any_time);
    TEST(test_what_is_damaged_is_not_there);
    TEST(test_no_folder);
    return tap_finish();
}
