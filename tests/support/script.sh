# What test scripts have in common; sourced at the root of the tree:
#
#     . tests/support/script.sh NAME
#     if …; then ok; else bad "what went wrong" LOG; fi
#     finish
#
# $root is the tree, $bin and $textgen what was built; $work is a folder of the script's own, which goes when the script ends. at_end can be
# written anew where more must be put away.
set -u
root=$PWD BUILD=${BUILD:-build}
bin=$root/$BUILD textgen=$root/$BUILD/textgen
work=$(mktemp -d "/tmp/textgen-$1.XXXXXX") || exit 74
at_end() {
    local left
    left=$(jobs -p)
    # shellcheck disable=SC2086 # several numbers
    [ -z "$left" ] || kill $left
    wait
} 2>/dev/null
trap 'at_end; rm -rf "$work"' EXIT
passed=0 failed=0
ok() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "  $1"; [ -z "${2:-}" ] || tail -n 15 "$2" | sed 's/^/    | /'; } # bad WHAT [LOG]
is() { # is WHAT WANTED FOUND
    if [ "$2" = "$3" ]; then ok; else bad "$1:"; printf '    expected %s\n    found    %s\n' "$2" "$3"; fi
}
finish() { echo "$passed passed, $failed failed"; [ "$failed" -eq 0 ]; exit; }
