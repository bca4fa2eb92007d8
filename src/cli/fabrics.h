/* SPDX-License-Identifier: MIT */
/* By which fabric files go: what --fabric says, and what there is. */
#pragma once

#include "client/cluster.h"
#include "wire/message.h"

enum { FABRICS_MAX = 32 };

struct fabrics {
    char names[FABRICS_MAX][FABRIC_NAME_MAX];
    uint32_t count;
};

/* Providers that storm-fab finds here, each once, the fastest first. 0; -ENOENT: there is no storm-fab; other -errno. */
int fabrics_list(struct fabrics *ret);
/* The lines that it prints; for the tests. */
void fabrics_read(struct fabrics *f, const char *text);

/* Does the network itself write into memory? Others are slower than streams: decision 24. */
bool fabrics_real(const char *provider);
/* What `auto` comes to: "" is streams. */
void fabrics_choose(const struct fabrics *f, bool between_hosts, char out[FABRIC_NAME_MAX + 1]);

/* What a word of --fabric asks for: auto, streams, ofi, ofi:PROVIDER. NULL: what the cluster was brought up with, or
 * auto. False if it is none of these. */
bool fabrics_pick(const char *word, const struct cluster *cluster, char out[FABRIC_NAME_MAX + 1]);
/* Could it be? */
bool fabrics_word(const char *word);
