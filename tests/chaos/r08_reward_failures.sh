#!/bin/bash
# R8: a reward returns an error, NaN, nothing at all, or values for another number of texts: remote worker, subprocess, HTTP, plug-in. The
# status is recorded, no number is made up, the group is marked. The tests of these are programs; here they are asked for by name.
. tests/support/servers.sh
named() { # PROGRAM TEST...
    local program=$1 name
    for name in "${@:2}"; do
        "$bin/tests/unit/$program" "$name" >"$work/named.log" 2>&1 && grep -q '^1 passed, 0 failed' "$work/named.log"
        check "$program $name" $? "$work/named.log"
    done
}
named test_remote r8_remote results_of_other_texts_are_none failed_members_are_not_ranked
named test_external r8_process
named test_plugin r8_plugin
named test_http_reward r8_http
named test_slot_rewards a_failed_reward_ends_the_episode_without_a_number
named test_step_rewards one_failed_part_fails_the_sum_and_is_told_apart
finish
