#!/bin/bash
# A Python environment with pinned packages from PyPI, in the user's cache, shared by all clones:
#
#   python=$(tests/support/venv.sh oracle-py tests/oracle/requirements.txt 9) || exit 0
#
# prints the path of its Python. Where the packages cannot be had (no network, no Python, less than that many GB of disk) it says
# why on stderr: exit 77.
set -u
name=$1 requirements=$2 gigabytes=$3
venv=${XDG_CACHE_HOME:-$HOME/.cache}/textgen/$name
[ "$name" = oracle-py ] && venv=${TEXTGEN_ORACLE:-$venv}
want=$(sha256sum "$requirements" | cut -c1-16)
cannot() { echo "$1" >&2; exit 77; }
ready() { [ "$(cat "$venv/textgen-requirements" 2>/dev/null)" = "$want" ]; }

install() {
    local python='' p free
    for p in python3.11 python3.12 python3.10 python3.13 python3; do
        command -v $p >/dev/null && $p -c 'import venv, ensurepip, sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && { python=$p; break; }
    done
    [ -n "$python" ] || cannot "no Python 3.10 or newer with venv (Debian: python3-venv)"
    mkdir -p "$(dirname "$venv")" || cannot "cannot create $(dirname "$venv")"
    free=$(df -Pk "$(dirname "$venv")" | awk 'NR == 2 {print int($4 / 1048576)}')
    [ "$free" -ge "$gigabytes" ] || cannot "needs about $gigabytes GB below $(dirname "$venv"), $free GB are free"
    echo "installing the pinned packages of $requirements (once) into $venv" >&2
    { "$python" -m venv "$venv" && "$venv/bin/pip" install -q --disable-pip-version-check -r "$requirements"; } >&2 ||
        cannot "the packages of $requirements could not be installed"
    echo "$want" >"$venv/textgen-requirements"
}
(
    flock 9
    ready || install
) 9>"${TMPDIR:-/tmp}/textgen-$name.$(id -u).lock" || exit 77
echo "$venv/bin/python"
