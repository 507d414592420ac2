#!/bin/bash
# Compares the built binaries with the reference implementations from PyPI, on fresh random inputs: runs every check_*.py here.
# The packages live in a virtual environment in the user's cache, shared by all clones. Where they cannot be had (no network,
# no Python, less than 9 GB of disk) it says so and skips: exit 0.
set -u
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.." || exit 70
export BUILD=${BUILD:-build}
venv=${TEXTGEN_ORACLE:-${XDG_CACHE_HOME:-$HOME/.cache}/textgen/oracle-py}
want=$(sha256sum "$here/requirements.txt" | cut -c1-16)
skip() { echo "skipped: live comparison with the reference implementations: $1"; exit 0; }

install() {
    local python='' p free
    for p in python3.11 python3.12 python3.10 python3.13 python3; do
        command -v $p >/dev/null && $p -c 'import venv, ensurepip, sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && { python=$p; break; }
    done
    [ -n "$python" ] || skip "no Python 3.10 or newer with venv (Debian: python3-venv)"
    mkdir -p "$(dirname "$venv")" || skip "cannot create $(dirname "$venv")"
    free=$(df -Pk "$(dirname "$venv")" | awk 'NR == 2 {print int($4 / 1048576)}')
    [ "$free" -ge 9 ] || skip "needs about 9 GB below $(dirname "$venv"), $free GB are free"
    echo "oracle: installing the pinned packages (about 6 GB, once) into $venv"
    "$python" -m venv "$venv" && "$venv/bin/pip" install -q --disable-pip-version-check -r "$here/requirements.txt" ||
        skip "the packages could not be installed"
    echo "$want" >"$venv/textgen-requirements"
}
ready() { [ "$(cat "$venv/textgen-requirements" 2>/dev/null)" = "$want" ]; }
(
    flock 9
    ready || install
) 9>"${TMPDIR:-/tmp}/textgen-oracle.$(id -u).lock"
ready || exit 0

checks=()
for check in "$here"/check_*.py; do
    [ $# -eq 0 ] || [[ " $* " = *" $(basename "$check" .py | sed 's/^check_//') "* ]] || continue
    checks+=("$venv/bin/python $check")
done
[ ${#checks[@]} -gt 0 ] || { echo "oracle: no such check: $*" >&2; exit 64; }
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false PYTHONDONTWRITEBYTECODE=1
TEXTGEN_TEST_TIMEOUT=${TEXTGEN_TEST_TIMEOUT:-1200} tests/run.sh "${checks[@]}"
