/* SPDX-License-Identifier: MIT */
/* What a survey has found, a depot makes again: the two ends of a transfer, with nothing between them. */
#include "base/units.h"
#include "os/survey.h"
#include "yard.h"

/* What was sent of one survey. */
struct sent {
    uint32_t pieces;
    uint64_t bytes;
};

struct source {
    struct survey *s;
    struct bundle b;
    uint8_t *descriptor;
    size_t descriptor_bytes;
    uint64_t *starts;
};

/* Looks a thing over that is in the yard's folder. */
static struct source source_new(const struct yard *y, const char *name, enum goal goal,
                                const char *to) {
    struct source s = {0};
    struct survey_config c = {.beneath = AT_FDCWD, .digest = DIGEST_XXH3};
    char path[512], why[256] = "";
    struct survey_item item = {.path = yard_path(y, name, path), .name = name};
    if (!CHECK_EQ(survey_new(&c, &item, 1, &s.s, why), 0))
        printf("# %s\n", why);
    s.b = *survey_bundle(s.s);
    s.b.goal = (uint8_t)goal;
    s.b.to = bytes_from_str(to);
    s.descriptor_bytes = s.b.pages.len + 8192;
    s.descriptor = malloc(s.descriptor_bytes);
    s.descriptor_bytes = (size_t)bundle_encode(&s.b, room_of(s.descriptor, s.descriptor_bytes));
    s.starts = calloc(s.b.pieces + 1, sizeof *s.starts);
    for (uint32_t i = 0; i < s.b.pieces; i++) {
        struct piece p;
        CHECK(piece_load(&p, s.b.digest, survey_table(s.s), i));
        s.starts[i + 1] = s.starts[i] + p.bytes;
    }
    return s;
}

static void source_free(struct source *s) {
    survey_free(s->s);
    free(s->descriptor);
    free(s->starts);
}

static struct bytes page_of(const struct source *s, uint32_t page) {
    size_t row = bundle_row_bytes(s->b.digest);
    return bytes_of(survey_table(s->s).at + page * s->b.page_pieces * row,
                    bundle_page_pieces(&s->b, page) * row);
}

static bool has(const uint8_t *bits, uint32_t i) {
    return bits[i / 8] >> i % 8 & 1;
}

/* Pieces of a page that are not there: of the manifest, or all. */
static void give(struct yard *y, struct source *s, struct depot_bundle *b, uint32_t page,
                 bool manifest, struct sent *sent) {
    static uint8_t room[BUNDLE_PIECE_BYTES_MAX];
    uint8_t have[BUNDLE_PAGE_PIECES_MAX / 8];
    CHECK_EQ(depot_page(b, page, page_of(s, page), have, y->why), 0);
    for (uint32_t i = 0; i < bundle_page_pieces(&s->b, page); i++) {
        uint32_t piece = page * s->b.page_pieces + i;
        uint32_t len = (uint32_t)(s->starts[piece + 1] - s->starts[piece]);
        if (has(have, i) || (manifest && s->starts[piece] >= s->b.manifest_bytes))
            continue;
        CHECK_EQ(survey_read(s->s, s->starts[piece], room_of(room, len), y->why), 0);
        CHECK_EQ(depot_store(b, piece, bytes_of(room, len), y->why), 0);
        sent->pieces++;
        sent->bytes += len;
    }
}

static struct sent send(struct yard *y, const char *name, enum goal goal, const char *to) {
    struct source s = source_new(y, name, goal, to);
    struct sent sent = {0};
    struct depot_bundle *b = NULL;
    CHECK_EQ(depot_open(y->d, bytes_of(s.descriptor, s.descriptor_bytes), &b, y->why), 0);
    for (int manifest = 1; manifest >= 0; manifest--)
        for (uint32_t i = 0; i < bundle_page_count(&s.b); i++)
            give(y, &s, b, i, manifest, &sent);
    yard_commit(y, b);
    depot_close(b, true);
    source_free(&s);
    return sent;
}

/* Whether two trees of the yard's folder are the same, as other programs see it. A folder that was there has a time
 * of its own. */
static bool same_trees(const struct yard *y, const char *a, const char *b) {
    static const char list[] =
        "find . -type d -printf '%p %m\\n' -o -printf '%p %m %s %T@ %l\\n' | sort";
    char command[1024];
    snprintf(command, sizeof command,
             "cd %s && diff -r --no-dereference %s %s && "
             "test \"$(cd %s && %s)\" = \"$(cd %s && %s)\"",
             y->folder, a, b, a, list, b, list);
    return system(command) == 0;
}

static void make_tree(const struct yard *y, const uint8_t *noise) {
    char path[512], name[512];
    static const char *const folders[] = {"src", "src/deep", "src/deep/er", "src/empty"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        CHECK_EQ(mkdir(yard_path(y, folders[i], path), i == 1 ? 0550 | 0200 : 0755), 0);
    for (uint32_t i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "src/deep/small%u", i);
        yard_put(y, name, bytes_of(noise + i * 100, i * 37));
    }
    yard_put(y, "src/deep/er/big", bytes_of(noise, 5000000));
    yard_put(y, "src/sparse", bytes_of(noise, 300000));
    CHECK_EQ(truncate(yard_path(y, "src/sparse", path), 40 << 20), 0);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK_EQ(files_write(fd, bytes_of(noise, 100000), 20 << 20), 0);
    close(fd);
    CHECK_EQ(symlink("deep/er/big", yard_path(y, "src/link", path)), 0);
}

static void test_there_and_again(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(5000000, 50), *more = malloc(5000100);
    struct stat s;
    char path[512];
    yard_init(&y, 100 * MIB);
    make_tree(&y, noise);
    struct sent all = send(&y, "src", GOAL_PATH, "/to");
    CHECK(same_trees(&y, "src", "root/to/src"));
    CHECK(all.bytes > 5000000 && all.bytes < 7000000); /* a hole is not sent */
    CHECK_EQ(stat(yard_path(&y, "root/to/src/sparse", path), &s), 0);
    CHECK(s.st_blocks * 512 < 2000000);
    CHECK_EQ(send(&y, "src", GOAL_PATH, "/to").pieces, 1); /* the manifest */
    memcpy(more, noise, 1000000);
    memset(more + 1000000, 1, 100);
    memcpy(more + 1000100, noise + 1000000, 4000000);
    yard_put(&y, "src/deep/er/big", bytes_of(more, 5000100));
    yard_put(&y, "src/deep/small50", bytes_from_str("changed"));
    struct sent some = send(&y, "src", GOAL_PATH, "/to");
    CHECK(same_trees(&y, "src", "root/to/src"));
    printf("# all: %u pieces, %llu bytes; after a change: %u pieces, %llu bytes\n", all.pieces,
           (unsigned long long)all.bytes, some.pieces, (unsigned long long)some.bytes);
    CHECK(some.bytes < 1000000);
    CHECK(yard_nothing_partial(&y));
    free(noise);
    free(more);
    yard_fini(&y);
}

static void test_to_the_cache(void) {
    struct yard y;
    uint8_t *noise = parcel_noise(5000000, 51);
    char path[PATH_MAX];
    yard_init(&y, 100 * MIB);
    make_tree(&y, noise);
    send(&y, "src", GOAL_SPOOL, "");
    CHECK_EQ(yard_object(&y, bytes_of(noise, 5000000), "big", path), 0);
    CHECK_EQ(yard_object(&y, bytes_of(noise + 7700, 77 * 37), "small77", path), 0);
    CHECK_EQ(send(&y, "src", GOAL_SPOOL, "").pieces, 1);
    CHECK_EQ(send(&y, "src", GOAL_PATH, "/copy").pieces, 1); /* made of what is there */
    CHECK(same_trees(&y, "src", "root/copy/src"));
    free(noise);
    yard_fini(&y);
}

int main(void) {
    TEST(test_there_and_again);
    TEST(test_to_the_cache);
    return tap_finish();
}
