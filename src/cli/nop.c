/* SPDX-License-Identifier: MIT */
/* storm-nop: does nothing. Linked statically, it is the cheapest program that can be launched. */
int main(void) {
    return 0;
}
