/* SPDX-License-Identifier: MIT */
/* What goes into a job's folder, and what comes back from it: the options --input and --fetch. */
#pragma once

enum { INPUT_NAME_MAX = 4096 };

/* FILE[:NAME]: a file or folder here, and its name in the job's folder. */
struct job_input {
    char path[INPUT_NAME_MAX];
    char name[INPUT_NAME_MAX];
};

/* 0, or the exit status after a complaint. */
int input_read(const char *text, struct job_input *ret);

/* GLOB[:DIR]: what is wanted, in the job's folder, and the folder here that it goes to. */
struct output_wish {
    char pattern[INPUT_NAME_MAX];
    char folder[INPUT_NAME_MAX];
};

int output_wish_read(const char *text, struct output_wish *ret);
