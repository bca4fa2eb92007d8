/* SPDX-License-Identifier: MIT */
/* A program that passes itself on. */
#pragma once

#include "os/shell.h"

/* The program that runs, as a helper for others; it stays as long as we do. 0 or -errno. */
int self_helper(struct shell_helper *ret);
/* The same, of a program in a file. */
int self_helper_from(const char *path, struct shell_helper *ret);

/* This program was used: in a cache that counts from now. */
void self_used(void);

/* If this program has that digest (SHA-256, hexadecimal) its file gets that name, and what is
 * beside it and of the same kind goes if nobody has used it for a month. The exit status, after a complaint. */
int self_install(const char *path, const char *digest);
