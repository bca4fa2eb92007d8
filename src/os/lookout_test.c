/* SPDX-License-Identifier: MIT */
/* What a node says before a run begins: it sees the program as the submitter does, or has what was sent. */
#include "os/lookout.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/files.h"
#include "os/jobfolders.h"
#include "tap.h"
#include "wire/message.h"
#include "wire/setup.h"
#include "wire/spec.h"

struct scratch {
    char folder[40], program[56];
    struct spec spec;
};

static void write_file(const char *path, const char *text) {
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0755);
    CHECK(fd >= 0 && files_write(fd, bytes_from_str(text), 0) == 0);
    close(fd);
}

static struct scratch scratch_new(void) {
    struct scratch s = {.folder = "/tmp/storm-lookout-XXXXXX"};
    CHECK(mkdtemp(s.folder) != NULL);
    snprintf(s.program, sizeof s.program, "%s/program", s.folder);
    write_file(s.program, "one");
    s.spec = (struct spec){.arguments = bytes_of("program", 8)};
    return s;
}

static void scratch_free(const struct scratch *s) {
    files_remove(AT_FDCWD, s->folder);
}

/* As the submitter sees it now. */
static void see(struct scratch *s) {
    struct stat st;
    CHECK_EQ(stat(s->program, &st), 0);
    s->spec.seen = true;
    s->spec.device = st.st_dev;
    s->spec.inode = st.st_ino;
    s->spec.bytes = (uint64_t)st.st_size;
    s->spec.mtime_ns = files_mtime_ns(&st);
}

static uint32_t found_rank;

/* On a node that has these ranks of eight. */
static int look_with(const struct scratch *s, uint32_t first, uint32_t count,
                     enum spawn_step *ret_step) {
    uint8_t bytes[1024], whole[2048];
    struct spec spec = s->spec;
    spec.program = bytes_from_str(s->program);
    long len = spec_encode(&spec, room_of(bytes, sizeof bytes));
    CHECK(len > 0);
    struct setup setup = {.run = run_of(3, 1),
                          .first = first,
                          .count = count,
                          .size = 8,
                          .spec = bytes_of(bytes, (size_t)len)};
    len = setup_encode(&setup, room_of(whole, sizeof whole));
    CHECK(len > 0);
    struct input_looked seen;
    lookout(s->folder, bytes_of(whole, (size_t)len), &seen);
    *ret_step = seen.step;
    found_rank = seen.rank;
    return seen.error;
}

static int look(const struct scratch *s, enum spawn_step *ret_step) {
    return look_with(s, 0, 1, ret_step);
}

static void test_the_same_file(void) {
    struct scratch s = scratch_new();
    enum spawn_step step;
    CHECK_EQ(look(&s, &step), 0); /* nothing is asked */
    see(&s);
    CHECK_EQ(look(&s, &step), 0);
    scratch_free(&s);
}

static void test_another_file(void) {
    struct scratch s = scratch_new();
    enum spawn_step step;
    see(&s);
    s.spec.device++;
    CHECK_EQ(look(&s, &step), -ESTALE);
    CHECK_EQ(step, SPAWN_HIDDEN);
    see(&s);
    s.spec.inode++;
    CHECK_EQ(look(&s, &step), -ESTALE);
    see(&s);
    s.spec.mtime_ns++;
    CHECK_EQ(look(&s, &step), -ESTALE);
    see(&s);
    write_file(s.program, "longer");
    CHECK_EQ(look(&s, &step), -ESTALE);
    unlink(s.program);
    CHECK_EQ(look(&s, &step), -ENOENT);
    CHECK_EQ(step, SPAWN_HIDDEN);
    scratch_free(&s);
}

/* Whoever starts it does not mind which: any that is there will do. */
static void test_any_file(void) {
    struct scratch s = scratch_new();
    enum spawn_step step;
    char path[64];
    s.spec.seen = true;
    CHECK_EQ(look(&s, &step), 0);
    CHECK_EQ(chmod(s.program, 0644), 0); /* that is told when it is executed */
    CHECK_EQ(look(&s, &step), 0);
    unlink(s.program);
    CHECK_EQ(look(&s, &step), -ENOENT);
    CHECK_EQ(step, SPAWN_HIDDEN);
    int len = snprintf(path, sizeof path, "PATH=/nowhere:%s", s.folder);
    s.spec.environment = bytes_of(path, (size_t)len + 1);
    snprintf(s.program, sizeof s.program, "%s/program", s.folder);
    write_file(s.program, "one");
    snprintf(s.program, sizeof s.program, "program");
    CHECK_EQ(look(&s, &step), 0);
    snprintf(s.program, sizeof s.program, "another");
    CHECK_EQ(look(&s, &step), -ENOENT);
    scratch_free(&s);
}

static void test_what_was_sent(void) {
    struct scratch s = scratch_new();
    enum spawn_step step;
    see(&s);
    s.spec.image = bytes_from_str("ab/ab12/program");
    CHECK_EQ(look(&s, &step), -ENOENT);
    CHECK_EQ(step, SPAWN_IMAGE);
    scratch_free(&s);
}

static void test_inputs(void) {
    struct scratch s = scratch_new();
    enum spawn_step step;
    char root[48], path[PATH_MAX];
    s.spec.own = OWN_FILLED;
    CHECK_EQ(look(&s, &step), -ENOENT);
    CHECK_EQ(step, SPAWN_IMAGE);
    snprintf(root, sizeof root, "%s/root", s.folder);
    CHECK_EQ(jobfolders_open(root, run_of(3, 1), true, path, sizeof path), 0);
    CHECK_EQ(look(&s, &step), 0);
    s.spec.own = OWN_MADE;
    CHECK(jobfolders_remove(root, run_of(3, 1)));
    CHECK_EQ(look(&s, &step), 0);
    scratch_free(&s);
}

/* Programs that have no rank here are not looked for. */
static void test_several(void) {
    struct scratch s = scratch_new();
    enum spawn_step step;
    uint8_t more[512];
    struct spec_program sent = {.ranks = 3,
                                .program = bytes_from_str("/two"),
                                .image = bytes_from_str("ab/ab12/two"),
                                .arguments = bytes_of("two", 4)};
    struct spec_program hidden = {.ranks = 3,
                                  .program = bytes_from_str("/three"),
                                  .arguments = bytes_of("three", 6),
                                  .seen = true};
    see(&s);
    long len = spec_program_store(&sent, room_of(more, sizeof more));
    CHECK(len > 0);
    long rest = spec_program_store(&hidden, room_of(more + len, sizeof more - (size_t)len));
    CHECK(rest > 0);
    s.spec.ranks = 2;
    s.spec.programs = bytes_of(more, (size_t)(len + rest));
    CHECK_EQ(look_with(&s, 0, 2, &step), 0);
    CHECK_EQ(look_with(&s, 1, 2, &step), -ENOENT);
    CHECK_EQ(step, SPAWN_IMAGE);
    CHECK_EQ(found_rank, 2);
    CHECK_EQ(look_with(&s, 4, 1, &step), -ENOENT);
    CHECK_EQ(step, SPAWN_IMAGE);
    CHECK_EQ(look_with(&s, 5, 3, &step), -ENOENT);
    CHECK_EQ(step, SPAWN_HIDDEN);
    s.spec.programs.len = (size_t)len; /* not all of its ranks have one */
    CHECK_EQ(look_with(&s, 5, 3, &step), -EBADMSG);
    scratch_free(&s);
}

static void test_nonsense(void) {
    struct input_looked seen;
    lookout(".", bytes_from_str("no setup"), &seen);
    CHECK_EQ(seen.error, -EBADMSG);
}

int main(void) {
    TEST(test_the_same_file);
    TEST(test_another_file);
    TEST(test_any_file);
    TEST(test_what_was_sent);
    TEST(test_inputs);
    TEST(test_several);
    TEST(test_nonsense);
    return tap_finish();
}
