/* SPDX-License-Identifier: MIT */
/* pi: each process adds up its share of 4/(1+x^2) over [0, 1) and prints it; the sum of all is pi.
 *
 *     cc -o pi pi.c
 *     storm run -N 64 ./pi 100000000 | awk '{ s += $1 } END { printf "%.10f\n", s }'
 *
 * It needs nothing but the environment that STORM gives every process. */
#include <stdio.h>
#include <stdlib.h>

static long number(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text == NULL ? otherwise : strtol(text, NULL, 10);
}

int main(int argc, char **argv) {
    long steps = argc > 1 ? strtol(argv[1], NULL, 10) : 1000000;
    long rank = number("STORM_RANK", 0), size = number("STORM_SIZE", 1);
    double sum = 0, width = 1.0 / (double)steps;
    for (long i = rank; i < steps; i += size) {
        double x = ((double)i + 0.5) * width;
        sum += 4 / (1 + x * x);
    }
    printf("%.15f\n", sum * width);
    return 0;
}
