/* SPDX-License-Identifier: MIT */
/* Tests of lists of folders and of the words in them. */
#include "client/libpath.h"

#include <errno.h>

#include "tap.h"

static const struct libpath_words words = {.origin = "/opt/app", .lib = "lib64", .platform = NULL};

static const char *expand(const char *text) {
    static char out[64];
    int r = libpath_expand(text, strlen(text), &words, out, sizeof out);
    return r == 0 ? out : r == -ENOENT ? "(nothing)" : "(too long)";
}

static void test_expand(void) {
    CHECK_STR(expand("/plain"), "/plain");
    CHECK_STR(expand("$ORIGIN"), "/opt/app");
    CHECK_STR(expand("${ORIGIN}/../$LIB/x"), "/opt/app/../lib64/x");
    CHECK_STR(expand("a$LIB$LIB"), "alib64lib64");
    CHECK_STR(expand("$ORIGINAL/$LIB_/$lib"), "$ORIGINAL/$LIB_/$lib");
    CHECK_STR(expand("${ORIGIN/${ORIGIN"), "${ORIGIN/${ORIGIN");
    CHECK_STR(expand("$$LIB$"), "$lib64$");
    CHECK_STR(expand("/x/$PLATFORM"), "(nothing)");
    CHECK_STR(expand("$ORIGIN/$ORIGIN/$ORIGIN/$ORIGIN/$ORIGIN/$ORIGIN/$ORIGIN/$ORIGIN"),
              "(too long)");
}

static void check_list(const char *list, const char *parting, const char *expected) {
    char folder[32], all[128] = "";
    while (libpath_next(&list, parting, &words, folder, sizeof folder)) {
        strncat(all, folder, sizeof all - strlen(all) - 1);
        strncat(all, " ", sizeof all - strlen(all) - 1);
    }
    CHECK_STR(all, expected);
}

static void test_lists(void) {
    check_list("/a:/b/:c", ":", "/a/ /b/ c/ ");
    check_list("/a;/b", ":", "/a;/b/ ");
    check_list("/a;/b:/c", ":;", "/a/ /b/ /c/ ");
    check_list(":/a::", ":", " /a/   "); /* three times the current folder */
    check_list("/:///", ":", "/ / ");
    check_list("$ORIGIN/lib:$PLATFORM:/z", ":", "/opt/app/lib/ /z/ ");
    check_list("/a:/12345678901234567890123456789012:/b", ":", "/a/ /b/ ");
}

int main(void) {
    TEST(test_expand);
    TEST(test_lists);
    return tap_finish();
}
