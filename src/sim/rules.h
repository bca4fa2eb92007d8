/* SPDX-License-Identifier: MIT */
/* The checker's rules, in groups; checker.h names them. */
#pragma once

#include "sim/evidence.h"
#include "sim/verdict.h"

void rules_order(const struct evidence *e, struct verdict *v);
void rules_effect(const struct evidence *e, struct verdict *v);
void rules_memory(const struct evidence *e, struct verdict *v);
void rules_gather(const struct history *h, struct verdict *v);
void rules_compare(const struct evidence *e, struct verdict *v);
