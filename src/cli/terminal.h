/* SPDX-License-Identifier: MIT */
/* Colour and progress: only on a terminal, and no colour if NO_COLOR is set. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

enum tint { TINT_NONE, TINT_GOOD, TINT_BAD, TINT_HEAD, TINT_FAINT };

/* Begins a tint, or ends it with TINT_NONE; nothing if this stream shows no colours. */
const char *terminal_tint(FILE *stream, enum tint tint);

bool terminal_is(FILE *stream);

/* Shows what is going on, in place of what was shown before; NULL takes it away. */
void terminal_progress(const char *words);
