/* SPDX-License-Identifier: MIT */
/* Tests of files that go down a tree. */
#include "os/parcels.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

static char folder[] = "/tmp/storm-parcels-XXXXXX";

static char *in_folder(const char *name) {
    char *path = NULL;
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

static void write_file(const char *path, size_t bytes, mode_t mode) {
    FILE *f = fopen(path, "we");
    for (size_t i = 0; i < bytes; i++)
        putc((int)(i * 31 >> 3), f);
    fclose(f);
    chmod(path, mode);
}

static bool same(const char *a, const char *b) {
    char command[512];
    snprintf(command, sizeof command, "cmp -s %s %s", a, b);
    return system(command) == 0;
}

struct pair {
    struct parcels from, to;
    struct task task;
    char *source, *target;
};

/* One file, on its way to a hop. */
static void open_pair(struct pair *p, size_t bytes, const char *target) {
    *p = (struct pair){.source = in_folder("source"), .target = in_folder(target)};
    write_file(p->source, bytes, 0640);
    CHECK_EQ(parcels_add(&p->from, p->source, &p->task.put[0]), 0);
    p->task.put[0].path = bytes_from_str(p->target);
    p->task.put_count = 1;
    parcels_expect(&p->to, &p->task);
}

static void close_pair(struct pair *p) {
    parcels_fini(&p->from);
    parcels_fini(&p->to);
    unlink(p->source);
    unlink(p->target);
    free(p->source);
    free(p->target);
}

/* All that `from` has for this mark, to `to`. */
static void pass(struct parcels *from, struct parcels_mark *m, struct parcels *to) {
    uint8_t room[1000];
    struct frame f;
    while (parcels_next(from, m, room_of(room, sizeof room), &f))
        CHECK(parcels_take(to, &f));
}

static void test_from_hop_to_hop(void) {
    static const size_t sizes[] = {0, 1, 999, 1000, 1001, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct pair p;
        struct parcels_mark m = {0};
        struct stat st;
        open_pair(&p, sizes[i], "target");
        CHECK(!parcels_settled(&p.to) && access(p.target, F_OK) < 0);
        pass(&p.from, &m, &p.to);
        CHECK(parcels_settled(&p.to) && p.to.trouble[0] == '\0');
        CHECK(same(p.source, p.target));
        CHECK(stat(p.target, &st) == 0 && (st.st_mode & 0777) == 0640);
        close_pair(&p);
    }
}

/* A third one follows the second while that has not got all, and comes to the same end. */
static void test_on_from_what_has_come(void) {
    struct pair p;
    struct parcels third;
    struct parcels_mark first = {0}, second = {0};
    uint8_t room[1000];
    struct frame f;
    open_pair(&p, 5500, "target");
    char *path = in_folder("third");
    struct task task = p.task;
    task.put[0].path = bytes_from_str(path);
    parcels_expect(&third, &task);
    while (parcels_next(&p.from, &first, room_of(room, sizeof room), &f)) {
        CHECK(parcels_take(&p.to, &f));
        pass(&p.to, &second, &third);
        CHECK(f.flag == FRAME_END || !parcels_settled(&third));
    }
    CHECK(parcels_settled(&third) && same(p.source, path));
    parcels_fini(&third);
    unlink(path);
    free(path);
    close_pair(&p);
}

static void test_spoiled_on_its_way(void) {
    struct pair p;
    struct parcels_mark m = {0};
    uint8_t room[1000];
    struct frame f;
    open_pair(&p, 3000, "target");
    CHECK(parcels_next(&p.from, &m, room_of(room, sizeof room), &f));
    room[500] ^= 1;
    CHECK(parcels_take(&p.to, &f));
    pass(&p.from, &m, &p.to);
    CHECK(parcels_settled(&p.to) && strstr(p.to.trouble, "spoiled") != NULL);
    CHECK(access(p.target, F_OK) < 0);
    close_pair(&p);
}

/* It cannot be here, but whoever is behind us has it. */
static void test_no_place_for_it(void) {
    struct pair p;
    struct parcels third;
    struct parcels_mark first = {0}, second = {0};
    open_pair(&p, 5500, "no/such/folder");
    char *path = in_folder("third");
    struct task task = p.task;
    task.put[0].path = bytes_from_str(path);
    parcels_expect(&third, &task);
    pass(&p.from, &first, &p.to);
    CHECK(parcels_settled(&p.to) && strstr(p.to.trouble, "No such file") != NULL);
    pass(&p.to, &second, &third);
    CHECK(parcels_settled(&third) && third.trouble[0] == '\0' && same(p.source, path));
    parcels_fini(&third);
    unlink(path);
    free(path);
    close_pair(&p);
}

static void test_what_makes_no_sense(void) {
    struct pair p;
    uint8_t bytes[64] = {0};
    open_pair(&p, 40, "target");
    CHECK(!parcels_take(&p.to, &(struct frame){.number = 1, .body = bytes_of(bytes, 1)}));
    CHECK(!parcels_take(&p.to, &(struct frame){.body = bytes_of(bytes, 41)}));
    CHECK(!parcels_take(&p.to, &(struct frame){.flag = FRAME_END, .body = bytes_of(bytes, 32)}));
    CHECK(parcels_take(&p.to, &(struct frame){.body = bytes_of(bytes, 40)}));
    CHECK(!parcels_take(&p.to, &(struct frame){.flag = FRAME_END, .body = bytes_of(bytes, 31)}));
    CHECK(!parcels_take(&p.to, &(struct frame){.body = bytes_of(bytes, 1)}));
    close_pair(&p);
}

/* What did not get its name is taken away. */
static void test_nothing_is_left(void) {
    struct pair p;
    struct parcels_mark m = {0};
    uint8_t room[1000];
    struct frame f;
    open_pair(&p, 3000, "target");
    CHECK(parcels_next(&p.from, &m, room_of(room, sizeof room), &f));
    CHECK(parcels_take(&p.to, &f));
    close_pair(&p);
    CHECK_EQ(rmdir(folder), 0);
    CHECK_EQ(mkdir(folder, 0700), 0);
}

int main(void) {
    if (mkdtemp(folder) == NULL)
        return 1;
    TEST(test_from_hop_to_hop);
    TEST(test_on_from_what_has_come);
    TEST(test_spoiled_on_its_way);
    TEST(test_no_place_for_it);
    TEST(test_what_makes_no_sense);
    TEST(test_nothing_is_left);
    rmdir(folder);
    return tap_finish();
}
