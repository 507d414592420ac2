#!/bin/bash
# torch and transformers on the shapes of our benchmarks (peer_torch.py --list).
#   peer_torch.sh [CASE…]     matrix products in one process; of the others each in one of its own, for its peak memory
cd "$(dirname "$0")/../.." || exit 70
python=$(tests/support/venv.sh oracle-py tests/oracle/requirements.txt 9) || exit 77
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false TORCHINDUCTOR_CACHE_DIR=${TMPDIR:-/tmp}/textgen-inductor.$(id -u)
[ "${1:-}" = --list ] && exec "$python" tests/bench/peer_torch.py --list
if [ $# -gt 0 ]; then cases=("$@"); else mapfile -t cases < <("$python" tests/bench/peer_torch.py --list); fi
[ $# -eq 1 ] || [[ ${1:-} = gemm/* ]] && exec "$python" tests/bench/peer_torch.py "$@"
failed=0
for case in "${cases[@]}"; do "$python" tests/bench/peer_torch.py "$case" || failed=1; done
exit $failed
