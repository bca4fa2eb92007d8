/* SPDX-License-Identifier: MIT */
/* --class NAME:EXPR:MIN:MAX: hosts that come with a job. */
#pragma once

#include "cli/options.h"
#include "wire/classes.h"

/* What one says; views are into the text. 0, or the exit status after a complaint. */
int class_read(const char *text, struct host_class *ret);

/* All of them, as SUBMIT has them, in new memory. 0, or the exit status after a complaint. */
int classes_read(const struct text_list *texts, uint8_t **ret, size_t *ret_len);
