#!/bin/bash
# S1 to S5: who has no key, floods, other tenants, messages beyond the limits, secrets. With CHAOS_LONG the flood has the size of a release:
# ten thousand connections that never become one, beside a client that works.
. tests/support/servers.sh
security() {
    FLOOD=$(size 300 10000) FLOOD_RATE=2500 "$bin/tests/unit/$1" "${@:2}" >"$work/named.log" 2>&1
    check "$*" $? "$work/named.log"
    grep -h "connections in" "$work/named.log"
}
security test_flood S2_connections_that_never_become_one
if long; then
    security test_flood
    security test_security
fi
finish
