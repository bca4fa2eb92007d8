/* SPDX-License-Identifier: MIT */
/* Fuzzes what storm work and its workers say to each other: reading is total, and what was read is the same when it is written
 * and read again. A line is taken apart without leaving it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wodi/chore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORDS_MAX = 8 };

static void check_setting(struct bytes in, struct room again) {
    struct chore_setting s;
    if (!chore_setting_read(&s, in))
        return;
    ASSERT(s.folder.at[s.folder.len - 1] == 0);
    size_t len = chore_setting_write(&s, again);
    ASSERT(len == in.len && memcmp(again.at, in.at, len) == 0);
}

static void check_result(struct bytes in, struct room again) {
    struct chore_result r;
    if (!chore_result_read(&r, in))
        return;
    size_t len = chore_result_write(&r, again);
    ASSERT(len == in.len && memcmp(again.at, in.at, len) == 0);
    (void)chore_status(&r);
}

static void check_words(char *line) {
    char *words[WORDS_MAX + 1];
    size_t len = strlen(line);
    int count = chore_words(line, words, WORDS_MAX);
    ASSERT(count >= 0 && count <= WORDS_MAX);
    for (int i = 0; i < count; i++)
        ASSERT(words[i] >= line && words[i] + strlen(words[i]) <= line + len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t *room = malloc(size + 1);
    check_setting(bytes_of(data, size), room_of(room, size));
    check_result(bytes_of(data, size), room_of(room, size));
    memcpy(room, data, size);
    room[size] = 0;
    check_words((char *)room);
    free(room);
    return 0;
}
