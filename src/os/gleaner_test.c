/* SPDX-License-Identifier: MIT */
/* Files of a host: all of them, under names of their own, and nobody waits long for the next. */
#include "os/gleaner.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/files.h"
#include "tap.h"

enum { MANY = 300, NAMES_MAX = 400, NAME_BYTES = 64 };

static char folder[] = "/tmp/storm-gleaner-XXXXXX";

static struct {
    char names[NAMES_MAX][NAME_BYTES];
    int count, failures, pauses;
} got;

static void put(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    for (char *at = path + strlen(folder) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        mkdir(path, 0700);
        *at = '/';
    }
    FILE *f = fopen(path, "we");
    CHECK(f != NULL && fputs(name, f) >= 0 && fclose(f) == 0);
}

static int by_name(const void *a, const void *b) {
    return strcmp(a, b);
}

static void take(const struct frame *f) {
    CHECK_EQ(f->kind, FRAME_FETCHED);
    got.failures += f->flag == FETCHED_FAILED;
    if (f->flag != FETCHED_FILE || !CHECK(got.count < NAMES_MAX))
        return;
    snprintf(got.names[got.count++], NAME_BYTES, "%.*s", (int)f->body.len - 2,
             (const char *)f->body.at + 2);
}

/* What comes of this pattern beneath the folder. */
static void glean(const char *pattern) {
    char path[256];
    uint8_t room[8192];
    struct frame f;
    snprintf(path, sizeof path, "%s/%s", folder, pattern);
    struct task t = {.get_count = 1, .get = {bytes_from_str(path)}};
    struct gleaner *g = gleaner_new(&t);
    memset(&got, 0, sizeof got);
    CHECK(g != NULL);
    for (enum gleaned r; (r = gleaner_next(g, room_of(room, sizeof room), &f)) != GLEANED_ALL;) {
        if (r == GLEANED_FRAME)
            take(&f);
        else
            got.pauses++;
    }
    gleaner_free(g);
    qsort(got.names, (size_t)got.count, NAME_BYTES, by_name);
}

static bool came(int at, const char *name) {
    return at < got.count && strcmp(got.names[at], name) == 0;
}

/* With a pattern amid the path each file is one of its own. */
static void test_names(void) {
    put("one/out/result");
    put("two/out/result");
    glean("one/out/result");
    CHECK(got.count == 1 && came(0, "result"));
    glean("one/out/");
    CHECK(got.count == 1 && came(0, "out/result"));
    glean("one/out/res*");
    CHECK(got.count == 1 && came(0, "result"));
    glean("*/out/result");
    CHECK(got.count == 2 && came(0, "one/out/result") && came(1, "two/out/result"));
    glean("*");
    CHECK(got.count == 2 && came(0, "one/out/result") && came(1, "two/out/result"));
    glean("t?o/*");
    CHECK(got.count == 1 && came(0, "two/out/result"));
    CHECK_EQ(got.failures, 0);
    glean("three/*");
    CHECK(got.count == 0 && got.failures == 1);
}

/* Whoever has thousands of files must do other things meanwhile: say that he lives, pass on what others say. */
static void test_much_to_look_at(void) {
    char name[NAME_BYTES];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "many/%d/%03d/file", i % 7, i);
        put(name);
        snprintf(name, sizeof name, "%s/many/%d/%03d/link", folder, i % 7, i);
        CHECK_EQ(symlink("file", name), 0);
    }
    glean("many");
    CHECK_EQ(got.count, MANY);
    CHECK_EQ(got.failures, 0);
    char path[256];
    snprintf(path, sizeof path, "%s/empty", folder);
    CHECK_EQ(mkdir(path, 0700), 0);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "%s/empty/%d", folder, i);
        CHECK_EQ(mkdir(name, 0700), 0);
    }
    glean("empty");
    CHECK_EQ(got.count, 0);
    CHECK(got.pauses >= 2 * MANY / 64);
}

int main(void) {
    CHECK(mkdtemp(folder) != NULL);
    TEST(test_names);
    TEST(test_much_to_look_at);
    files_remove(AT_FDCWD, folder);
    return tap_finish();
}
