#!/bin/bash
# Environment steps/s through the Python clients beside an environment of RL4LMs's shape under SB3's SubprocVecEnv, both in this run.
# Needs the packages of tests/oracle; exit 77 without them.
cd "$(dirname "$0")/../.." || exit 70
python=$(tests/support/venv.sh oracle-py tests/oracle/requirements.txt 9) || exit 77
HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false PYTHONDONTWRITEBYTECODE=1 exec "$python" tests/bench/peer_gym.py "$@"
