/* SPDX-License-Identifier: MIT */
/* storm-sim: storm sim with a policy from a shared object. A program of its own, as the storm command is static and
 * cannot load anything. */
#include "cli/complain.h"
#include "cli/sim.h"
#include "os/plugin.h"

int main(int argc, char **argv) {
    const struct storm_policy *guest = NULL;
    char path[SIM_PATH_MAX], why[PLUGIN_WHY_MAX];
    if (sim_policy_file(argc, argv, path) && plugin_load(path, &guest, why) < 0)
        return complain("sim", "%s", why);
    return sim_main_with(argc, argv, guest);
}
