/* SPDX-License-Identifier: MIT */
/* A cluster that somebody else looks after, as systemd does: the command that brings it up stays as long as it runs. */
#pragma once

#include <stdbool.h>

/* Before it is brought up: its processes become our descendants, and signals wait until somebody looks. */
void foreground_prepare(void);

/* Whether we were told to end meanwhile, by SIGTERM, SIGINT or SIGHUP; for whoever waits for it to come up. False unless it was
 * prepared. */
bool foreground_asked(void);

/* It is up: says so to whoever asks (NOTIFY_SOCKET), and stays until it has ended. SIGTERM, SIGINT or SIGHUP end it as `storm
 * down` does. The exit status: 0 if it was ended in good order, by whomever. */
int foreground_stay(const char *name, const char *folder);
