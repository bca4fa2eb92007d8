/* SPDX-License-Identifier: MIT */
/* The text of a file that holds a key: see keyfile.h. */
#include "wire/keyfile.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "machine/primitive.h"

static const char *const kinds[KEY_KINDS] = {
    [KEY_MASTER] = "master", [KEY_NODE] = "node", [KEY_CLIENT] = "client"};

static const char title[] = "storm-key ";

size_t keyfile_write(const struct keyfile *f, char out[KEYFILE_TEXT_MAX]) {
    struct text t;
    text_init(&t, out, KEYFILE_TEXT_MAX);
    text_str(&t, title);
    text_str(&t, "1\n");
    text_str(&t, kinds[f->kind]);
    text_str(&t, "\ncluster ");
    text_hex(&t, f->cluster, sizeof f->cluster);
    text_str(&t, "\nnumber ");
    text_u64(&t, f->number);
    text_str(&t, "\ngeneration ");
    text_u64(&t, f->generation);
    text_str(&t, "\nkey ");
    text_hex(&t, f->key, sizeof f->key);
    text_char(&t, '\n');
    ASSERT(!t.cut);
    return t.len;
}

/* What is left to read. A piece that is not as it should be leaves it failed. */
struct reader {
    struct bytes left;
    bool failed;
};

static bool take_word(struct reader *r, const char *word) {
    size_t len = strlen(word);
    if (r->failed || r->left.len < len || memcmp(r->left.at, word, len) != 0)
        return false;
    r->left = bytes_of(r->left.at + len, r->left.len - len);
    return true;
}

static void expect(struct reader *r, const char *word) {
    if (!take_word(r, word))
        r->failed = true;
}

/* As text_u64 writes it: no sign, no zeros in front. */
static uint64_t take_number(struct reader *r) {
    uint64_t v = 0;
    size_t used = 0;
    for (; used < r->left.len && text_is_digit((char)r->left.at[used]); used++) {
        uint64_t digit = (uint64_t)(r->left.at[used] - '0');
        if ((used > 0 && v == 0) || v > (UINT64_MAX - digit) / 10) {
            r->failed = true;
            return 0;
        }
        v = v * 10 + digit;
    }
    r->failed |= used == 0;
    r->left = bytes_of(r->left.at + used, r->left.len - used);
    return v;
}

static int digit_of(uint8_t c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static void take_hex(struct reader *r, uint8_t *out, size_t len) {
    if (r->failed || r->left.len < 2 * len) {
        r->failed = true;
        return;
    }
    for (size_t i = 0; i < len; i++) {
        int high = digit_of(r->left.at[2 * i]), low = digit_of(r->left.at[2 * i + 1]);
        if (high < 0 || low < 0) {
            r->failed = true;
            return;
        }
        out[i] = (uint8_t)(high << 4 | low);
    }
    r->left = bytes_of(r->left.at + 2 * len, r->left.len - 2 * len);
}

static enum key_kind take_kind(struct reader *r) {
    for (int kind = 0; kind < KEY_KINDS; kind++)
        if (take_word(r, kinds[kind]))
            return (enum key_kind)kind;
    r->failed = true;
    return KEY_MASTER;
}

static bool makes_sense(const struct keyfile *f) {
    switch (f->kind) {
    case KEY_MASTER:
        return f->number == 0 && f->generation == 0;
    case KEY_NODE:
        return f->number < NO_NODE && f->generation > 0;
    case KEY_CLIENT:
        return f->number > 0 && f->generation == 0;
    case KEY_KINDS:
        break;
    }
    return false;
}

int keyfile_parse(struct bytes text, struct keyfile *ret) {
    struct reader r = {.left = text};
    struct keyfile f = {0};
    expect(&r, title);
    if (!take_word(&r, "1\n"))
        return r.failed ? -EBADMSG : -EPROTONOSUPPORT;
    f.kind = take_kind(&r);
    expect(&r, "\ncluster ");
    take_hex(&r, f.cluster, sizeof f.cluster);
    expect(&r, "\nnumber ");
    f.number = take_number(&r);
    expect(&r, "\ngeneration ");
    f.generation = take_number(&r);
    expect(&r, "\nkey ");
    take_hex(&r, f.key, sizeof f.key);
    expect(&r, "\n");
    if (r.failed || r.left.len > 0 || !makes_sense(&f))
        return -EBADMSG;
    *ret = f;
    return 0;
}
