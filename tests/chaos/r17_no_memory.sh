#!/bin/bash
# R17: allocations fail, one at each place in turn (all places with CHAOS_LONG), then every k-th: codec, slots, sessions, fleet, server, broker.
. tests/support/servers.sh
named() {
    "$bin/tests/unit/$1" ${2:+"$2"} >"$work/named.log" 2>&1
    check "$1 ${2:-}" $? "$work/named.log"
    grep -h "allocations" "$work/named.log" | sed 's/^/  /'
}
long && named test_nomem # otherwise it is one of the programs that every test run has
named test_codec failing_memory_is_reported_and_leaks_nothing
named test_slot_rewards every_allocation_of_a_step_may_fail
named test_slot_rewards every_allocation_of_opening_may_fail
finish
