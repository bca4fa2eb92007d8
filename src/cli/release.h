/* SPDX-License-Identifier: MIT */
/* Which release this is; the build fills it in from the project's own version. */
#pragma once

extern const char release_version[];
