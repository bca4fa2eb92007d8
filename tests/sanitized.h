/* SPDX-License-Identifier: MIT */
/* Is this built with the address sanitizer, which takes memory of its own and keeps for a while what was freed? */
#pragma once

#if defined __SANITIZE_ADDRESS__ /* gcc */
#define SANITIZED 1
#elif defined __has_feature /* clang */
#define SANITIZED __has_feature(address_sanitizer)
#else
#define SANITIZED 0
#endif
