/* SPDX-License-Identifier: MIT */
/* Folders of runs: made when they are needed, found again, and gone with all that is in them. */
#include "os/jobfolders.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "os/files.h"
#include "tap.h"
#include "wire/message.h"

struct scratch {
    char folder[40], root[48];
};

static struct scratch scratch_new(void) {
    struct scratch s = {"/tmp/storm-jobfolders-XXXXXX", ""};
    CHECK(mkdtemp(s.folder) != NULL);
    snprintf(s.root, sizeof s.root, "%s/root", s.folder);
    return s;
}

static void scratch_free(const struct scratch *s) {
    files_remove(AT_FDCWD, s->folder);
}

static void make_inside(const char *folder, const char *name, mode_t mode) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK_EQ(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/%s/file", folder, name);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    close(fd);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK_EQ(chmod(path, mode), 0);
}

static void test_made_if_it_may_be(void) {
    struct scratch s = scratch_new();
    char path[PATH_MAX], again[PATH_MAX];
    uint64_t run = run_of(42, 1);
    CHECK_EQ(jobfolders_open(s.root, run, false, path, sizeof path), -ENOENT);
    CHECK_EQ(jobfolders_open(s.root, run, true, path, sizeof path), 0);
    CHECK_EQ(jobfolders_open(s.root, run, true, again, sizeof again), 0);
    CHECK_EQ(jobfolders_open(s.root, run, false, again, sizeof again), 0);
    CHECK(strcmp(path, again) == 0 && strstr(path, "t/jobs/42.1") != NULL);
    CHECK_EQ(jobfolders_open(s.root, run, true, path, 10), -ENAMETOOLONG);
    scratch_free(&s);
}

static void test_removed_with_all(void) {
    struct scratch s = scratch_new();
    char path[PATH_MAX];
    uint64_t run = run_of(42, 2);
    CHECK(jobfolders_remove(s.root, run)); /* there is nothing at all */
    CHECK_EQ(jobfolders_open(s.root, run, true, path, sizeof path), 0);
    make_inside(path, "plain", 0755);
    make_inside(path, "locked", 0);
    CHECK(jobfolders_remove(s.root, run));
    CHECK_EQ(jobfolders_open(s.root, run, false, path, sizeof path), -ENOENT);
    CHECK(jobfolders_remove(s.root, run));
    scratch_free(&s);
}

static void test_links_are_not_followed(void) {
    struct scratch s = scratch_new();
    char path[PATH_MAX], jobs[64], other[64], inside[96];
    uint64_t run = run_of(1, 1);
    snprintf(jobs, sizeof jobs, "%s/jobs", s.root);
    snprintf(other, sizeof other, "%s/other", s.folder);
    snprintf(inside, sizeof inside, "%s/1.1", other);
    CHECK_EQ(mkdir(s.root, 0700) | mkdir(other, 0700) | mkdir(inside, 0700), 0);
    CHECK_EQ(symlink(other, jobs), 0);
    CHECK(!jobfolders_remove(s.root, run));
    CHECK(jobfolders_open(s.root, run, true, path, sizeof path) < 0);
    CHECK_EQ(access(inside, F_OK), 0);
    scratch_free(&s);
}

static void test_listed(void) {
    struct scratch s = scratch_new();
    char path[PATH_MAX], odd[PATH_MAX];
    uint8_t runs[8 * 8];
    CHECK_EQ(jobfolders_list(s.root, runs, sizeof runs), 0);
    uint64_t sum = 0;
    for (uint16_t i = 1; i <= 3; i++)
        CHECK_EQ(jobfolders_open(s.root, run_of(7, i), true, path, sizeof path), 0);
    snprintf(odd, sizeof odd, "%s/jobs/not one", s.root);
    CHECK_EQ(mkdir(odd, 0700), 0);
    CHECK_EQ(jobfolders_list(s.root, runs, sizeof runs), 3 * 8);
    for (int i = 0; i < 3; i++)
        sum += load_le64(runs + (size_t)i * 8);
    CHECK_EQ(sum, run_of(7, 1) + run_of(7, 2) + run_of(7, 3));
    CHECK_EQ(jobfolders_list(s.root, runs, 2 * 8 + 7), 2 * 8); /* as many as there is room for */
    scratch_free(&s);
}

int main(void) {
    TEST(test_made_if_it_may_be);
    TEST(test_removed_with_all);
    TEST(test_links_are_not_followed);
    TEST(test_listed);
    return tap_finish();
}
