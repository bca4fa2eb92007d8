/* SPDX-License-Identifier: MIT */
/*
 * Included ahead of each file of a floor that is built with all planted bugs (meson.build): there
 * STORM_PLANTED_BUG is this variable, which a test sets before it begins.
 */
#pragma once

extern int planted_bug;
