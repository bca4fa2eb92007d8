/* SPDX-License-Identifier: MIT */
/*
 * Assertions that stay on in release builds.
 *
 * A failed assertion is a bug of ours, never a fault of the world or a peer's mistake. Logic only
 * declares what happens then; each executable defines it (print and abort, or tell the simulator).
 */
#pragma once

_Noreturn void assert_failed(const char *expr, const char *file, int line);

#define ASSERT(c) ((c) ? (void)0 : assert_failed(#c, __FILE__, __LINE__))
