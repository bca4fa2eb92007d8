/* SPDX-License-Identifier: MIT */
/* Which release this is; the build fills it in from the project's own version.
 *
 * A release also has a number, its three parts in one, so that a fixed header can carry it. Which releases understand each other
 * is told by another number: the version of the protocol (wire/header.h). */
#pragma once

#include <stdint.h>

extern const char release_version[]; /* "0.3.1" */
extern const uint32_t release_number;

enum { RELEASE_TEXT_MAX = 16 };

/* "0.3.1", or "?" if the number is 0: nobody has said. */
const char *release_text(uint32_t number, char out[RELEASE_TEXT_MAX]);
