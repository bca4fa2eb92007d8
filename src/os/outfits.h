/* SPDX-License-Identifier: MIT */
/* Folders in which a program finds its libraries: links to files in the node's cache, made once for each set of them.
 *
 *   spool/outfits/KEY/libfoo.so.1 -> ../../objects/HH/HEX/libfoo.so.1
 *   spool/outfits/KEY/start/NAME  -> ../ld-linux-aarch64.so.1 */
#pragma once

#include "base/bytes.h"

/* Whether all files of such a list are there, and as they came. 0 or -errno. */
int outfits_check(const char *objects, struct bytes list);

/* `list` has pairs of strings (wire/spec.h): the name in the folder, and where the file is below `objects`; the loader
 * first, then the program. 0 and the folder's path, or -errno: -ENOENT if a file is not there any more. */
int outfits_make(const char *objects, struct bytes list, char *folder, size_t folder_bytes);
