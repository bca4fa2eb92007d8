/* SPDX-License-Identifier: MIT */
/* What all daemons of a cluster must agree on, from its size: limits, times, where each listens.
 *
 * The managers of the nodes are forked, the machine manager is a program of its own, tests make a
 * third: they all ask here, so two of them cannot differ. Sockets are named from inside the
 * cluster's folder, which is the working directory of every daemon: a deep folder would not fit into
 * an address. */
#pragma once

#include "os/address.h"
#include "prim/prim.h"

/* The body of a launch carries the job's whole spec, and its node set beside it. */
enum { PLAN_SPEC_BYTES = 256 * 1024, PLAN_BODY_BYTES = PLAN_SPEC_BYTES + 16 * 1024 };

/* A launcher that its manager has forgotten for so long ends everything. */
#define PLAN_LEASE_NS ((uint64_t)10 * 1000 * 1000 * 1000)

enum { PLAN_NODES_MAX = 16384, PLAN_PORT_FIRST = 20000 };

/* `tree.nodes` is set here; `period_ns` is that of the heartbeat. */
struct prim_config plan_prim(uint32_t nodes, struct tree tree, uint64_t period_ns);

/* "k-ary" (or "kary"), "k-ary:8", "binomial", "flat", "chain". */
bool plan_tree(const char *text, struct tree *ret);
void plan_tree_text(const struct tree *t, char out[32]);

/* Where the daemon of a node, or the manager (number `nodes`), listens; the launcher of a node. `host`
 * is used for TCP. */
struct address plan_address(uint32_t node, enum transport links, struct in_addr host);
struct address plan_launcher(uint32_t node);
/* Where commands of its own machine find a manager that listens to others as well. */
struct address plan_near(uint32_t node);
/* Where it hears strobes, a socket for datagrams. */
struct address plan_strobe(uint32_t node);
/* And its file mover. */
struct address plan_mover(uint32_t node, enum transport links, struct in_addr host);

/* Where movers are in a fabric that has IP addresses: that host, or this machine by its usual name. */
void plan_fabric(enum transport links, struct in_addr host, char out[INET_ADDRSTRLEN]);

/* An address of this cluster's own on the loopback network: its ports are never in the way of, nor
 * taken by, connections that others make. */
struct in_addr plan_draw_host(void);
