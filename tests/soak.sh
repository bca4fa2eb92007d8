#!/bin/sh
# SPDX-License-Identifier: MIT
# What takes long: many seeds of the simulation, each with its own sizes and faults; then real
# processes, killed hundreds of times, fed a million messages, and pelted with garbage.
#
# usage: tests/soak.sh [SEEDS]      (5000)
set -eu
cd "$(dirname "$0")/.."
: "${STORM_KILLS:=500}" "${STORM_QUEUE_MESSAGES:=1000000}" "${STORM_GARBAGE_SECONDS:=120}"
: "${STORM_HAVOC:=2000}" "${STORM_STANDSTILL:=10}" "${STORM_FILE_FAULTS:=200}"
export STORM_KILLS STORM_QUEUE_MESSAGES STORM_GARBAGE_SECONDS STORM_HAVOC STORM_STANDSTILL STORM_FILE_FAULTS

echo "== campaign"
build/storm campaign --seeds "${1:-5000}" --cover
echo "== campaign of jobs"
build/storm campaign --jobs --seeds "${STORM_JOBS_SEEDS:-2000}"
echo "== campaign of jobs whose slots take turns, and under other policies"
build/storm campaign --jobs --policy gang --seeds "${STORM_GANG_SEEDS:-1000}"
build/storm campaign --jobs --policy any --seeds "${STORM_GANG_SEEDS:-1000}"
for policy in gang-backfill local easy easy-sjbf conservative; do
    build/storm campaign --jobs --policy $policy --seeds 300
done
echo "== campaign of files"
build/storm campaign --files --seeds "${STORM_FILES_SEEDS:-20000}"
echo "== 12 MB to 16,384 nodes and 1 GB to 1,024, simulated"
STORM_DELIVERY=full build/delivery_test
echo "== $STORM_KILLS kills"
build/kill_test
echo "== $STORM_FILE_FAULTS transfers, something happens to a node in each; again with a thread that writes"
for writer in "" --writer; do
    STORM=build/storm tests/e2e/files_faults.py $writer >build/files_faults.log || {
        grep -A 9 "^not ok" build/files_faults.log
        exit 1
    }
done
echo "== $STORM_HAVOC launches, somebody killed in each"
build/havoc_test build/storm
echo "== $STORM_STANDSTILL s of standing still"
build/standstill_test build/storm
echo "== ${STORM_WODI_SEEDS:=20000} seeds of a work distributor, then ${STORM_WODI_ROUNDS:=200} rounds of a real one under fire"
export STORM_WODI_SEEDS STORM_WODI_ROUNDS
build/wodi_campaign_test
build/wodi_fire_test build/storm-wodi
echo "== ${STORM_WODI_FIRE:=200} rounds of one that hires on a cluster, whose daemons are killed too"
export STORM_WODI_FIRE
STORM=build/storm tests/e2e/wodi_fire.py >build/wodi_fire.log || {
    grep -A 70 "^not ok" build/wodi_fire.log
    exit 1
}
echo "== $STORM_QUEUE_MESSAGES messages"
build/queue_real_test
echo "== garbage, with sanitizers, half of $STORM_GARBAGE_SECONDS s for each kind of socket"
test -e build-asan/build.ninja ||
    CC=clang meson setup build-asan -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 -Dc_link_args=-fuse-ld=lld
ninja -C build-asan garbage_test
build-asan/garbage_test
echo "== soak: all passed"
