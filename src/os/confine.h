/* SPDX-License-Identifier: MIT */
/* What keeps the processes of a run together: what was asked for, and what was to be had. */
#pragma once

#include <stdbool.h>

/* The strongest first. */
enum guarantee { GUARANTEE_CGROUP, GUARANTEE_NAMESPACE, GUARANTEE_SUBREAPER };

/* By default the strongest that is to be had. */
enum confine { CONFINE_AUTO, CONFINE_CGROUP, CONFINE_NAMESPACE, CONFINE_NONE };

/* "auto", "cgroup", "namespace", "none" */
const char *confine_name(enum confine c);
bool confine_parse(const char *name, enum confine *ret);

/* Is this what was asked for? */
bool confine_met(enum confine c, enum guarantee g);

/* "cgroup", "namespace", "none" */
const char *guarantee_name(enum guarantee g);
/* What it means, for people. */
const char *guarantee_text(enum guarantee g);
