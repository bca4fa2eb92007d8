/* SPDX-License-Identifier: MIT */
/* When a job may start: the options --begin and --after, and times in words. */
#pragma once

#include "wire/message.h"

enum { WHEN_WORDS_MAX = 512 };

/* "14:05", "2026-11-17", "2026-11-17T14:05:30", "tomorrow", "noon", "midnight", "+90m", "now", "@SECONDS"; a time of the day
 * that is over is that of tomorrow. In this process's time zone. 0, or -EINVAL. */
int when_parse(const char *text, uint64_t now_ns, uint64_t *ret_ns);

/* The same for the option --begin. 0, or the exit status after a complaint. */
int when_begin(const char *text, uint64_t *ret_ns);
/* And for another option of that kind. */
int when_option(const char *option, const char *text, uint64_t *ret_ns);

/* "12,13": numbers of jobs, added to the end. 0, or the exit status after a complaint. */
int when_after(const char *option, const char *text, enum await_kind kind,
               uint8_t out[AWAITS_MAX * AWAIT_BYTES], size_t *len);

/* "14:05", or "2026-11-17 14:05" if that is not today. */
struct when_text {
    char text[32];
};
struct when_text when_text(uint64_t at_ns, uint64_t now_ns);

/* What a manager says, with each @SECONDS as a time of the day or, if that is not today's, with the date. */
const char *when_words(struct bytes text, uint64_t now_ns, char out[WHEN_WORDS_MAX]);

uint64_t when_now(void);
