/* SPDX-License-Identifier: MIT */
/* How fast a depot takes pieces in, beside what a digest and writing the same bytes cost. */
#include <time.h>

#include "base/units.h"
#include "os/depot.h"
#include "yard.h"

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The same bytes, in the same parts, by nothing but the call. */
static double bare(const struct yard *y, const struct parcel *p) {
    char path[512];
    int fd = open(yard_path(y, "bare", path), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    double begin = seconds();
    for (uint32_t i = 1; i < p->pieces; i++)
        CHECK_EQ(files_write(fd, parcel_piece(p, i), p->starts[i]), 0);
    double took = seconds() - begin;
    close(fd);
    unlink(path);
    return took;
}

static double stored(struct yard *y, const struct parcel *p) {
    struct depot_bundle *b = yard_open(y, p);
    bool *have = yard_bools(p);
    yard_pages(y, b, p, have);
    CHECK_EQ(depot_store(b, 0, parcel_piece(p, 0), y->why), 0);
    double begin = seconds();
    uint32_t sent = yard_fill(y, b, p, have, 1, p->pieces);
    double took = seconds() - begin;
    CHECK_EQ(sent, p->pieces - 1);
    depot_close(b, false);
    free(have);
    return took;
}

static void measure(const char *base, const struct parcel *p) {
    struct yard y;
    double best_bare = 1e9, best_stored = 1e9, hashing = 1e9;
    yard_init_at(&y, base, MIB);
    for (int i = 0; i < 5; i++) {
        uint8_t out[DIGEST_BYTES_MAX];
        double t = bare(&y, p);
        best_bare = t < best_bare ? t : best_bare;
        t = stored(&y, p);
        best_stored = t < best_stored ? t : best_stored;
        t = seconds();
        for (uint32_t k = 1; k < p->pieces; k++)
            digest_of(DIGEST_XXH3, parcel_piece(p, k), out);
        t = seconds() - t;
        hashing = t < hashing ? t : hashing;
    }
    double gb = (double)p->contents_bytes / 1e9;
    printf("# %s: depot_store %.2f GB/s, bare pwrite %.2f GB/s, XXH3 %.2f GB/s; "
           "a piece %.1f us, of it pwrite %.1f us, XXH3 %.1f us\n",
           base, gb / best_stored, gb / best_bare, gb / hashing,
           best_stored * 1e6 / (p->pieces - 1), best_bare * 1e6 / (p->pieces - 1),
           hashing * 1e6 / (p->pieces - 1));
    yard_fini(&y);
}

/* Nothing is demanded of the figures: they depend on what else the machine does. */
static void test_speed(void) {
    const size_t bytes = 256 * MIB;
    uint8_t *noise = parcel_noise(bytes, 13);
    struct parcel *p = parcel_new(DIGEST_XXH3, 256 * 1024);
    parcel_file(p, "file", 0600, bytes_of(noise, bytes));
    free(noise);
    parcel_wrap(p, GOAL_PATH, "/", false);
    measure("/tmp", p);
    if (access("/dev/shm", W_OK) == 0)
        measure("/dev/shm", p);
    parcel_free(p);
}

int main(void) {
    TEST(test_speed);
    return tap_finish();
}
