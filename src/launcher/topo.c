/* SPDX-License-Identifier: MIT */
/* storm-topo: what this machine is made of, for a launcher that binds processes.
 *
 *     storm-topo
 *
 * One line for each core, socket and NUMA node, in the hardware's order, with its processors: "core 0,4". hwloc lives
 * here and nowhere else (docs/decisions/0041). */
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>

static void tell(hwloc_topology_t t, hwloc_obj_type_t type, const char *name) {
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(t, type, o)) != NULL;) {
        char *list = NULL;
        if (o->cpuset == NULL || hwloc_bitmap_iszero(o->cpuset) ||
            hwloc_bitmap_list_asprintf(&list, o->cpuset) < 0)
            continue;
        printf("%s %s\n", name, list);
        free(list);
    }
}

/* Some virtual machines do not tell of cores: then each processor is one. */
int main(void) {
    hwloc_topology_t t;
    if (hwloc_topology_init(&t) < 0 || hwloc_topology_load(t) < 0)
        return 1;
    tell(t, hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU,
         "core");
    tell(t, HWLOC_OBJ_PACKAGE, "socket");
    tell(t, HWLOC_OBJ_NUMANODE, "numa");
    hwloc_topology_destroy(t);
    return fflush(stdout) == 0 ? 0 : 1;
}
