/* SPDX-License-Identifier: MIT */
/* The MPIR process acquisition interface: how parallel debuggers find the processes of a job.
 *
 * A debugger starts `storm run`, or attaches to one that waits for a job, and reads these variables by their names, which
 * are not ours to choose; they are the only ones of this program that anybody may change. If MPIR_being_debugged is
 * set before the job is submitted its processes are stopped before their first instruction. When all of them are known
 * they are in the table, and MPIR_Breakpoint is called; when it returns they are set free. See
 * https://www.mpi-forum.org/docs/mpir-specification-03-01-2018.pdf */
#pragma once

typedef struct {
    char *host_name;
    char *executable_name;
    int pid;
} MPIR_PROCDESC;

enum { MPIR_NULL = 0, MPIR_DEBUG_SPAWNED = 1, MPIR_DEBUG_ABORTING = 2 };

extern MPIR_PROCDESC *MPIR_proctable; /* by rank */
extern int MPIR_proctable_size;
extern volatile int MPIR_debug_state;
extern volatile int MPIR_being_debugged; /* set by the debugger */
extern char *MPIR_debug_abort_string;

/* That they are there is what these say: we start processes and are none of them; they need not all be attached to;
 * they have not begun; show main first. */
extern int MPIR_i_am_starter, MPIR_partial_attach_ok, MPIR_acquired_pre_main, MPIR_force_to_main;

/* Nothing happens there: debuggers stop us in it. */
void MPIR_Breakpoint(void);
