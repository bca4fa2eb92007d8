/* SPDX-License-Identifier: MIT */
/* What `storm model` was asked for, and showing it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "cli/options.h"
#include "sim/analytic.h"

enum model_view {
    MODEL_LAUNCH,   /* a launch, part by part */
    MODEL_TABLE,    /* table 3 of the STORM paper */
    MODEL_FIGURE,   /* figure 8 of it: hosts as they are, and ideal ones */
    MODEL_LAUNCHER, /* trees of remote executions */
    MODEL_VIEWS
};

struct model_settings {
    enum model_view view;
    struct analytic_network network; /* with what was asked for in place of its own numbers */
    bool changed;                    /* something was */
    struct number_list nodes;
    uint64_t image_bytes;
    uint32_t arity; /* 0: not said */
    uint64_t lambda_ns;
    const char *svg; /* NULL: no plot */
    bool json;
};

/* Returns the exit status. */
int model_show(const struct model_settings *s);
