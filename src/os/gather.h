/* SPDX-License-Identifier: MIT */
/* Files of a node that somebody wants: found beneath its root, and looked over. */
#pragma once

#include "os/survey.h"
#include "wire/message.h"

/* What an OFFER is about; 0, or -errno with the reason. */
int gather_survey(const struct message_offer *o, const char *root, enum digest_kind digest,
                  struct survey **ret, char why[256]);
