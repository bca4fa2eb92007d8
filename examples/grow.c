/* SPDX-License-Identifier: MIT */
/* A program that grows and shrinks: it asks for hosts, runs a command on each, and gives each host back when its command has
 * ended.
 *
 *     cc -o grow grow.c -lstorm
 *     storm run ./grow 4 hostname
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <storm/carmi.h>

enum { DEFINED, GROWN, COMMAND, SHRUNK };

int main(int argc, char **argv) {
    static char *nothing[] = {"hostname", NULL};
    unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 2, here = 0, done = 0;
    int more = 1; /* hosts may come */
    char **command = argc > 2 ? argv + 2 : nothing;
    struct carmi *c;
    struct carmi_message m;
    int r = carmi_init(&c);
    if (r < 0) {
        fprintf(stderr, "grow: %s (it is run by storm run)\n", strerror(-r));
        return 1;
    }
    carmi_define_class(c, &(struct carmi_class){.name = "any"}, DEFINED);
    carmi_addhosts(c, "any", count, 1, GROWN);
    while ((more || here > 0) && carmi_receive(c, &m, -1) == 1) {
        if (!m.success)
            fprintf(stderr, "grow: %s\n", m.text);
        if (m.tag == GROWN) { /* also if others will not come */
            for (size_t i = 0; i < m.host_count; i++, here++)
                carmi_host_spawn(c, command[0], command, m.hosts[i], COMMAND);
            more = !m.last;
        }
        if (m.tag == COMMAND && m.last)
            carmi_delhosts(c, m.host_count, m.hosts, SHRUNK);
        if (m.tag == SHRUNK) {
            here--;
            done++;
        }
    }
    carmi_exit(c);
    return done < count;
}
