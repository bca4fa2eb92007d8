/* SPDX-License-Identifier: MIT */
/* SipHash-2-4 (Aumasson and Bernstein, 2012): a short tag for short messages, which nobody can make who does not have
 * the key. */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t siphash(const uint64_t key[2], const void *at, size_t len);
