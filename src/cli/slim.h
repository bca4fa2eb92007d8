/* SPDX-License-Identifier: MIT */
/* A copy of a program without what only a debugger wants: it is sent to many machines. */
#pragma once

/* What is loaded when it runs, and nothing else; whatever is no such program is copied as it is. 0 or -errno. */
int slim_copy(const char *from, const char *to);
