#!/bin/sh
# SPDX-License-Identifier: MIT
# Long simulation campaigns: many seeds, each with its own sizes and faults.
#
# usage: tests/soak.sh [SEEDS]      (5000)
set -eu
cd "$(dirname "$0")/.."
exec build/storm campaign --seeds "${1:-5000}" --cover
