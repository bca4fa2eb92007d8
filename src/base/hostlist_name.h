/* SPDX-License-Identifier: MIT */
/*
 * Which characters a host name may have, shared by expanding and folding host lists.
 *
 * An allow-list: names reach remote shells, so nothing that a shell could take for more than a
 * name.
 */
#pragma once

#include <stdbool.h>

static inline bool hostlist_name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-' || c == ':' || c == '@' || c == '%' || c == '+';
}
