/* SPDX-License-Identifier: MIT */
/* What nodes are like, in words. */
#include "cli/features.h"

#include "tap.h"

static const char *words_of(const struct features *f, const char *told) {
    static char out[256];
    out[features_write(f, bytes_from_str(told), out)] = '\0';
    return out;
}

static struct features features_of(const char *const *told) {
    struct features f = {0};
    for (; *told != NULL; told++)
        features_add(&f, bytes_from_str(*told), true);
    features_settle(&f);
    return f;
}

static void test_words(void) {
    struct bytes told = bytes_from_str("CPU=1GHZ OPSYS=\"Some System\" NIC= ROLE=service");
    static const char *const names[] = {"CPU", "OPSYS", "NIC", "ROLE"};
    static const char *const values[] = {"1GHZ", "Some System", "", "service"};
    struct feature one;
    size_t at = 0;
    for (size_t i = 0; i < 4; i++) {
        CHECK(feature_next(told, &at, &one));
        CHECK(bytes_equal(one.name, bytes_from_str(names[i])));
        CHECK(bytes_equal(one.value, bytes_from_str(values[i])));
    }
    CHECK(!feature_next(told, &at, &one));
    at = 0;
    CHECK(!feature_next(bytes_from_str("nonsense"), &at, &one));
    at = 0;
    CHECK(feature_next(bytes_from_str("CUT=\"ab"), &at, &one));
    CHECK(bytes_equal(one.value, bytes_from_str("\"ab")));
    at = 0;
    CHECK(!feature_next(bytes_from_str(""), &at, &one));
}

static void test_apart(void) {
    struct features f = features_of(
        (const char *const[]){"CPU=1GHZ NIC=FAST HOST=a SPEED=7 MEMORY=24GiB PROCESSORS=4",
                              "CPU=2GHZ NIC=FAST HOST=b SPEED=8 MEMORY=96GiB PROCESSORS=8", NULL});
    CHECK(features_any(&f));
    CHECK_STR(words_of(&f, "CPU=2GHZ NIC=FAST HOST=b SPEED=8"), "CPU=2GHZ");
    f = features_of((const char *const[]){"CPU=1GHZ HOST=a", "CPU=1GHZ HOST=b", NULL});
    CHECK(!features_any(&f));
    CHECK_STR(words_of(&f, "CPU=1GHZ HOST=a"), "");
    f = features_of((const char *const[]){"CPU=1GHZ", "CPU=1GHZ LABELS=big+new", NULL});
    CHECK_STR(words_of(&f, "CPU=1GHZ LABELS=big+new"), "LABELS=big+new");
    CHECK_STR(words_of(&f, "CPU=1GHZ"), "");
}

/* One that has not told yet is not different by that; what is known of it counts. */
static void test_down(void) {
    struct features f = {0};
    features_add(&f, bytes_from_str("CPU=1GHZ ARCH=x86_64"), true);
    features_add(&f, bytes_from_str("CPU=1GHZ"), false);
    features_settle(&f);
    CHECK(!features_any(&f));
    features_add(&f, bytes_from_str("CPU=2GHZ"), false);
    features_settle(&f);
    CHECK_STR(words_of(&f, "CPU=1GHZ ARCH=x86_64"), "CPU=1GHZ");
}

int main(void) {
    TEST(test_words);
    TEST(test_apart);
    TEST(test_down);
    return tap_finish();
}
