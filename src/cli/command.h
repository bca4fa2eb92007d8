/* SPDX-License-Identifier: MIT */
/* The subcommands of storm, in one table. */
#pragma once

struct command {
    const char *name;
    const char *words; /* what it does, in a line */
    int (*run)(int argc, char **argv);
};

/* argv[0] is the subcommand's name; with --help it explains itself. Returns the exit status. */
int add_main(int argc, char **argv);
int alloc_main(int argc, char **argv);
int grow_main(int argc, char **argv);
int attach_main(int argc, char **argv);
int bench_main(int argc, char **argv);
int berth_main(int argc, char **argv);
int campaign_main(int argc, char **argv);
int cp_main(int argc, char **argv);
int demo_main(int argc, char **argv);
int doctor_main(int argc, char **argv);
int down_main(int argc, char **argv);
int drain_main(int argc, char **argv);
int exec_main(int argc, char **argv);
int help_main(int argc, char **argv);
int kill_main(int argc, char **argv);
int login_main(int argc, char **argv);
int model_main(int argc, char **argv);
int nodes_main(int argc, char **argv);
int pingd_main(int argc, char **argv);
int policy_main(int argc, char **argv);
int ps_main(int argc, char **argv);
int reload_main(int argc, char **argv);
int remove_main(int argc, char **argv);
int replay_main(int argc, char **argv);
int reserve_main(int argc, char **argv);
int resume_main(int argc, char **argv);
int run_main(int argc, char **argv);
int show_main(int argc, char **argv);
int sim_main(int argc, char **argv);
int submit_main(int argc, char **argv);
int suspend_main(int argc, char **argv);
int undrain_main(int argc, char **argv);
int up_main(int argc, char **argv);
int version_main(int argc, char **argv);
int wait_main(int argc, char **argv);
int work_main(int argc, char **argv);
int yod_main(int argc, char **argv);

/* The arguments of the storm command itself. */
int command_run(int argc, char **argv);

/* NULL if there is none of that name. */
const struct command *command_find(const char *name);
const struct command *command_at(unsigned index); /* NULL beyond the last */

/* Complains that there is no such command and suggests the nearest. Returns the exit status. */
int command_unknown(const char *typed);
