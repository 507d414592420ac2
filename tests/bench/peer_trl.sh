#!/bin/bash
# Two PPO iterations of TRL 0.11.4's PPOTrainer, the same work as bench_ppo. About 6 minutes on two cores.
cd "$(dirname "$0")/../.." || exit 70
python=$(tests/support/venv.sh bench-trl tests/bench/requirements-trl.txt 9) || exit 77
HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false exec "$python" tests/bench/peer_trl.py "$@"
