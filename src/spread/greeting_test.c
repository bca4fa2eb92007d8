/* SPDX-License-Identifier: MIT */
/* Tests of how a helper gets to a host: words of connectors, greetings among noise. */
#include "spread/greeting.h"

#include "tap.h"

/* ---- Connectors -------------------------------------------------------------------------------- */

/* The words of a connector for the host "h1" and the line "go now", with | between them. */
static const char *words(const char *connector, size_t len) {
    static char all[512];
    struct greeting_words w = {.left = bytes_of(connector, len)};
    struct text out;
    text_init(&out, all, sizeof all);
    while (greeting_word(&w, bytes_from_str("h1"), bytes_from_str("go now"), &out))
        text_char(&out, '|');
    return all;
}
#define WORDS(literal) words(literal, sizeof literal)

static void test_connectors(void) {
    CHECK_STR(WORDS("ssh"), "ssh|h1|go now|");
    CHECK_STR(WORDS("ssh\0-x\0-l\0me"), "ssh|-x|-l|me|h1|go now|");
    CHECK_STR(WORDS("ip\0netns\0exec\0%h\0sh\0-c\0%c"), "ip|netns|exec|h1|sh|-c|go now|");
    CHECK_STR(WORDS("rsh\0%h"), "rsh|h1|go now|");
    /* The line may stand before the host. */
    CHECK_STR(WORDS("x\0%c"), "x|go now|h1|");
    CHECK_STR(WORDS("x\0%c\0%h"), "x|go now|h1|");
}

static void test_signs(void) {
    CHECK_STR(WORDS("x\0ns-%h.local:%h\0--run=%c"), "x|ns-h1.local:h1|--run=go now|");
    CHECK_STR(WORDS("x\0all%%\0%%h\0%h\0%c"), "x|all%|%h|h1|go now|");
    /* What stands for nothing stays as it is. */
    CHECK_STR(WORDS("x\0%d%\0%h\0%c"), "x|%d%|h1|go now|");
    /* Empty words count. */
    CHECK_STR(WORDS("x\0\0%h\0%c"), "x||h1|go now|");
}

/* What stands for host and line is not looked through again. */
static void test_values(void) {
    char all[64];
    struct greeting_words w = {.left = bytes_of("x\0%h", 5)};
    struct text out;
    text_init(&out, all, sizeof all);
    while (greeting_word(&w, bytes_from_str("%c"), bytes_from_str("%h%%"), &out))
        text_char(&out, '|');
    CHECK_STR(all, "x|%c|%h%%|");
}

static void test_line(void) {
    char line[1024];
    struct text out;
    text_init(&out, line, sizeof line);
    greeting_line(&out, "0123abcd", 4711);
    CHECK(!out.cut);
    CHECK(strstr(line, "hop-0123abcd") != NULL);
    CHECK(strstr(line, "head -c 4711 ") != NULL);
    /* One word to sh: quotes only around it. */
    const char *first = strchr(line, '\''), *last = strrchr(line, '\'');
    CHECK(first != NULL && last == line + out.len - 1);
    CHECK(first != NULL && strchr(first + 1, '\'') == last);
    /* A terminal may give it back: that is no greeting. */
    size_t used;
    char processor[GREETING_PROCESSOR_MAX];
    text_char(&out, '\n');
    CHECK_EQ(greeting_read(bytes_of(line, out.len), &used, processor), GREETING_MORE);
}

/* ---- Greetings --------------------------------------------------------------------------------- */

static size_t used;
static char processor[GREETING_PROCESSOR_MAX];

static enum greeting read_text(const char *text) {
    used = 0;
    processor[0] = '\0';
    return greeting_read(bytes_from_str(text), &used, processor);
}

static void test_ready(void) {
    CHECK_EQ(read_text("storm-hop here\n"), GREETING_READY);
    CHECK_EQ(used, 15);
    /* Frames follow. */
    CHECK_EQ(read_text("storm-hop here\nstorm-hop need x\n"), GREETING_READY);
    CHECK_EQ(used, 15);
}

static void test_need(void) {
    CHECK_EQ(read_text("storm-hop need x86_64\n"), GREETING_NEED);
    CHECK_EQ(used, 22);
    CHECK_STR(processor, "x86_64");
    CHECK_EQ(read_text("storm-hop need aarch64\nstorm-hop here\n"), GREETING_NEED);
    CHECK_EQ(used, 23);
}

static void test_noise(void) {
    CHECK_EQ(read_text("Welcome!\n\n  storm-hop\nstorm-hop here\n"), GREETING_READY);
    CHECK_EQ(used, 37);
    CHECK_EQ(read_text("motd\r\nstorm-hop need mips\n"), GREETING_NEED);
    CHECK_STR(processor, "mips");
}

/* Such as what gives a window its title. */
static void test_noise_in_the_same_line(void) {
    CHECK_EQ(read_text("\033]0;title\007storm-hop here\n"), GREETING_READY);
    CHECK_EQ(used, 25);
    CHECK_EQ(read_text("storm-hop storm-hop need storm-hop need mips\n"), GREETING_NEED);
    CHECK_STR(processor, "mips");
}

static void test_more(void) {
    const char *const whole[] = {"storm-hop here\n", "noise\nstorm-hop need x86_64\n"};
    for (size_t i = 0; i < 2; i++) {
        for (size_t n = 0; n < strlen(whole[i]); n++)
            CHECK_EQ(greeting_read(bytes_of(whole[i], n), &used, processor), GREETING_MORE);
        CHECK(read_text(whole[i]) != GREETING_MORE);
    }
}

static void test_nearly(void) {
    CHECK_EQ(read_text("storm-hop here \n"), GREETING_MORE);
    CHECK_EQ(read_text("storm-hop hereafter\n"), GREETING_MORE);
    CHECK_EQ(read_text("storm-hop need \n"), GREETING_MORE);
    CHECK_EQ(read_text("storm-hop need $(uname -m)\n"), GREETING_MORE);
    CHECK_EQ(read_text("storm-hop need x86 64\n"), GREETING_MORE);
    CHECK_EQ(read_text("storm-hop need 0123456789abcdef0123456789abcde\n"), GREETING_NEED);
    CHECK_EQ(strlen(processor), GREETING_PROCESSOR_MAX - 1);
    CHECK_EQ(read_text("storm-hop need 0123456789abcdef0123456789abcdef\n"), GREETING_MORE);
}

static void test_nobody(void) {
    static char noise[GREETING_MAX + 16];
    memset(noise, '\n', GREETING_MAX);
    CHECK_EQ(greeting_read(bytes_of(noise, GREETING_MAX - 1), &used, processor), GREETING_MORE);
    CHECK_EQ(greeting_read(bytes_of(noise, GREETING_MAX), &used, processor), GREETING_NONE);
    /* Late, but in what has come. */
    memcpy(noise + GREETING_MAX, GREETING_HERE, strlen(GREETING_HERE));
    CHECK_EQ(greeting_read(bytes_of(noise, GREETING_MAX + 15), &used, processor), GREETING_READY);
    memset(noise, 'x', GREETING_MAX);
    CHECK_EQ(greeting_read(bytes_of(noise, GREETING_MAX), &used, processor), GREETING_NONE);
}

int main(void) {
    TEST(test_connectors);
    TEST(test_signs);
    TEST(test_values);
    TEST(test_line);
    TEST(test_ready);
    TEST(test_need);
    TEST(test_noise);
    TEST(test_noise_in_the_same_line);
    TEST(test_more);
    TEST(test_nearly);
    TEST(test_nobody);
    return tap_finish();
}
