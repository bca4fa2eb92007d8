/* SPDX-License-Identifier: MIT */
/* --auto: a local cluster is brought up if there is none. */
#pragma once

/* 0, or the exit status after a complaint. */
int automatic_up(const char *cluster);
