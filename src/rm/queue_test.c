/* SPDX-License-Identifier: MIT */
#include "rm/queue.h"
#include "tap.h"
int main(void) {
    return tap_finish();
}
