/* SPDX-License-Identifier: MIT */
/* Peers of another version: they are refused, hear what is spoken here, and both sides can tell what was the matter.
 *
 * Node 0 has links; node 1 is a socket in the test's own hands. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "os/links.h"
#include "os/release.h"
#include "turns.h"
#include "wire/message.h"

enum { NODES = 2, BODY_BYTES = 40 };

struct world {
    struct loop loop;
    char folder[PATH_MAX];
    struct address book[NODES];
    int raw; /* node 1 listens there */
    struct links *links;
    struct link_counts counts;
    int ups, downs, warnings;
    char warning[256]; /* the last */
    uint32_t protocol, release;
};

static void on_feed(void *context, enum purpose purpose, const struct input *in) {
    struct world *w = context;
    (void)purpose;
    w->ups += in->kind == INPUT_LINK_UP;
    w->downs += in->kind == INPUT_LINK_DOWN;
}

static void on_warning(void *context, const char *text) {
    struct world *w = context;
    w->warnings++;
    snprintf(w->warning, sizeof w->warning, "%s", text);
}

static void on_other(void *context, uint32_t protocol, uint32_t release) {
    struct world *w = context;
    w->protocol = protocol;
    w->release = release;
}

static struct world *begin(bool tcp) {
    struct world *w = calloc(1, sizeof *w);
    int listeners[NODES];
    folder_make(w->folder);
    CHECK_EQ(loop_init(&w->loop), 0);
    for (int i = 0; i < NODES; i++) {
        char text[PATH_MAX + 32];
        snprintf(text, sizeof text, "unix:%s/n%d", w->folder, i);
        CHECK_EQ(address_parse(&w->book[i], tcp ? "tcp:127.0.0.1:0" : text), 0);
        CHECK((listeners[i] = address_listen(&w->book[i])) >= 0);
    }
    w->raw = listeners[1];
    struct links_config c = {.loop = &w->loop,
                             .life = 10,
                             .book = w->book,
                             .nodes = NODES,
                             .accepts = 1U << PURPOSE_TREE,
                             .listener = listeners[0],
                             .frame_bytes_max = MIB,
                             .counts = &w->counts,
                             .warn = on_warning,
                             .other = on_other,
                             .feed = on_feed,
                             .context = w};
    w->links = links_new(&c);
    CHECK(w->links != NULL);
    return w;
}

static void end(struct world *w) {
    links_free(w->links);
    close(w->raw);
    loop_fini(&w->loop);
    folder_remove(w->folder);
    free(w);
}

#define UNTIL(w, condition) TURN_UNTIL(&(w)->loop, links_settle((w)->links), condition)

/* A greeting of another version: its header is as ever, what follows is anything. */
static void greet(int fd, uint8_t version, uint32_t release, uint16_t type) {
    uint8_t bytes[HEADER_BYTES + BODY_BYTES];
    struct header h = {.magic = HEADER_MAGIC,
                       .version = version,
                       .type = type,
                       .length = BODY_BYTES,
                       .sequence = 1,
                       .epoch = release,
                       .node = 1,
                       .life = 7};
    memset(bytes, 0xa5, sizeof bytes);
    header_encode(&h, bytes);
    CHECK_EQ(send(fd, bytes, sizeof bytes, MSG_NOSIGNAL), (ssize_t)sizeof bytes);
}

static int knock(struct world *w) {
    int done;
    int fd = address_connect(&w->book[0], &done);
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    CHECK(fd >= 0 && poll(&p, 1, 60000) == 1);
    return fd;
}

static bool closed(int fd) {
    uint8_t bytes[256];
    ssize_t got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN);
}

static void check_refused(struct world *w, uint8_t version, uint32_t release, uint16_t type) {
    uint8_t bytes[HEADER_BYTES];
    struct header h;
    uint64_t before = w->counts.refused[REFUSAL_VERSION];
    int fd = knock(w);
    greet(fd, version, release, type);
    CHECK(UNTIL(w, recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) == (ssize_t)sizeof bytes));
    header_decode(&h, bytes);
    CHECK(h.magic == HEADER_MAGIC && h.version == HEADER_VERSION && h.type == MESSAGE_HELLO);
    CHECK(h.length == 0 && h.epoch == release_number && h.node == 0);
    CHECK(UNTIL(w, closed(fd)));
    CHECK_EQ(w->counts.refused[REFUSAL_VERSION], before + 1);
    CHECK_EQ(w->protocol, version);
    CHECK_EQ(w->release, release);
    close(fd);
}

static void test_refused(void) {
    for (int tcp = 0; tcp < 2; tcp++) {
        struct world *w = begin(tcp);
        check_refused(w, HEADER_VERSION + 1, 0x000501, MESSAGE_HELLO);
        CHECK(strstr(w->warning, "refused ") == w->warning);
        CHECK(strstr(w->warning, "it is STORM 0.5.1 (protocol ") != NULL);
        check_refused(w, HEADER_VERSION + 7, 0x010203, 9999);
        CHECK(strstr(w->warning, "it is STORM 1.2.3 (protocol ") != NULL);
        check_refused(w, 0, 0, MESSAGE_TICK);
        CHECK(strstr(w->warning, "it is STORM ? (protocol 0), this is ") != NULL);
        CHECK(strstr(w->warning, release_version) != NULL);
        CHECK_EQ(w->warnings, 3);
        CHECK_EQ(w->ups, 0);
        end(w);
    }
}

/* The log does not fill up because somebody tries again and again. */
static void test_again(void) {
    struct world *w = begin(false);
    for (int i = 0; i < 20; i++)
        check_refused(w, HEADER_VERSION + 1, 0x000501, MESSAGE_HELLO);
    CHECK_EQ(w->warnings, 1);
    end(w);
}

/* What has not the magic is not ours at all: it is told nothing. */
static void test_strangers(void) {
    struct world *w = begin(false);
    static const char words[] = "GET / HTTP/1.1\r\nHost: somewhere\r\n\r\n";
    uint8_t bytes[HEADER_BYTES];
    int fd = knock(w);
    CHECK_EQ(send(fd, words, sizeof words, MSG_NOSIGNAL), (ssize_t)sizeof words);
    CHECK(UNTIL(w, w->counts.refused[REFUSAL_MAGIC] == 1));
    CHECK(recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) <= 0);
    CHECK_EQ(w->warnings, 0);
    close(fd);
    end(w);
}

/* We have opened it, and the answer is of another version: a header, and nothing behind it. */
static void test_answer(void) {
    struct world *w = begin(false);
    int fds[LANES], count = 0;
    struct header h = {.magic = HEADER_MAGIC,
                       .version = HEADER_VERSION + 3,
                       .type = MESSAGE_HELLO,
                       .sequence = 1,
                       .epoch = 0x000300,
                       .node = 1};
    uint8_t bytes[HEADER_BYTES], hello[256];
    header_encode(&h, bytes);
    struct effect_open open = {.node = 1, .purpose = PURPOSE_TREE, .cookie = 5};
    links_open(w->links, &open);
    while (count < LANES && CHECK(UNTIL(w, (fds[count] = address_accept(w->raw)) >= 0)))
        count++;
    CHECK(UNTIL(w, recv(fds[0], hello, sizeof hello, MSG_DONTWAIT) > HEADER_BYTES));
    header_decode(&h, hello);
    CHECK_EQ(h.epoch, release_number); /* so the other side knows, too */
    CHECK_EQ(send(fds[0], bytes, sizeof bytes, MSG_NOSIGNAL), (ssize_t)sizeof bytes);
    CHECK(UNTIL(w, w->downs == 1));
    CHECK_EQ(w->counts.refused[REFUSAL_VERSION], 1);
    CHECK_EQ(w->protocol, HEADER_VERSION + 3);
    CHECK_EQ(w->release, 0x000300);
    CHECK(strstr(w->warning, "no link to ") == w->warning);
    CHECK(strstr(w->warning, "it is STORM 0.3.0 ") != NULL);
    while (count > 0)
        close(fds[--count]);
    end(w);
}

int main(void) {
    TEST(test_refused);
    TEST(test_again);
    TEST(test_strangers);
    TEST(test_answer);
    return tap_finish();
}
