/* SPDX-License-Identifier: MIT */
/* The MPIR process acquisition interface: see mpir.h. */
#include "cli/mpir.h"

#define BY_NAME __attribute__((used, visibility("default")))

BY_NAME MPIR_PROCDESC *MPIR_proctable;
BY_NAME int MPIR_proctable_size;
BY_NAME volatile int MPIR_debug_state;
BY_NAME volatile int MPIR_being_debugged;
BY_NAME char *MPIR_debug_abort_string;
BY_NAME int MPIR_i_am_starter;
BY_NAME int MPIR_partial_attach_ok;
BY_NAME int MPIR_acquired_pre_main;
BY_NAME int MPIR_force_to_main;

BY_NAME __attribute__((noinline)) void MPIR_Breakpoint(void) {
    __asm__ volatile("" ::: "memory"); /* so that nobody leaves the call out */
}
