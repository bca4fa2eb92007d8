/* SPDX-License-Identifier: MIT */
/* Which fabric is chosen, and what may be asked for. */
#include "cli/fabrics.h"

#include "tap.h"

static void test_lines_of_providers(void) {
    struct fabrics f;
    fabrics_read(&f, "verbs;ofi_rxm mlx5_0\nverbs;ofi_rxm mlx5_1\ntcp;ofi_rxm eth0\n\nshm");
    CHECK_EQ(f.count, 3);
    CHECK_STR(f.names[0], "verbs;ofi_rxm");
    CHECK_STR(f.names[1], "tcp;ofi_rxm");
    CHECK_STR(f.names[2], "shm");
    fabrics_read(&f, "");
    CHECK_EQ(f.count, 0);
    char many[8 * (FABRICS_MAX + 8)] = "";
    for (int i = 0; i < FABRICS_MAX + 8; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), "p%d x\n", i);
    fabrics_read(&f, many);
    CHECK_EQ(f.count, FABRICS_MAX);
}

static void test_automatically_only_what_is_faster(void) {
    char out[FABRIC_NAME_MAX + 1];
    struct fabrics f;
    fabrics_read(&f, "tcp;ofi_rxm eth0\nnet eth0\nshm shm\nsockets lo\nudp;ofi_rxd eth0\n");
    fabrics_choose(&f, true, out);
    CHECK_STR(out, "");
    fabrics_read(&f, "tcp;ofi_rxm eth0\nverbs;ofi_rxm mlx5_0\nefa efa0\n");
    fabrics_choose(&f, true, out);
    CHECK_STR(out, "ofi:verbs;ofi_rxm");
    fabrics_choose(&f, false, out);
    CHECK_STR(out, "");
    CHECK(fabrics_real("cxi") && fabrics_real("psm3") && fabrics_real("opx") &&
          fabrics_real("efa"));
    CHECK(!fabrics_real("verbsy") && !fabrics_real("verb") && !fabrics_real(""));
}

static void test_words(void) {
    char out[FABRIC_NAME_MAX + 1];
    struct cluster here = {.links = TRANSPORT_UNIX};
    CHECK(fabrics_pick(NULL, &here, out));
    CHECK_STR(out, "");
    CHECK(fabrics_pick("ofi:tcp", &here, out));
    CHECK_STR(out, "ofi:tcp");
    CHECK(fabrics_pick("auto", &here, out) && out[0] == '\0');
    snprintf(here.fabric, sizeof here.fabric, "ofi:shm");
    CHECK(fabrics_pick(NULL, &here, out));
    CHECK_STR(out, "ofi:shm");
    CHECK(fabrics_pick("streams", &here, out) && out[0] == '\0');
    static const char *const wrong[] = {"", "ofi:", "of", "ofix", "tcp", "ofi:a b", "ofi tcp"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(!fabrics_word(wrong[i]));
}

int main(void) {
    TEST(test_lines_of_providers);
    TEST(test_automatically_only_what_is_faster);
    TEST(test_words);
    return tap_finish();
}
