"""Records the angles of rotary positions that transformers computes, for tests/unit/test_positions.c: every rope_type, several sizes of heads;
of those that depend on the length of the text also in texts longer than they were trained with.

  gen_rope.py            writes tests/golden/rope/angles.jsonl

A line has our names of the settings and, at positions far enough to show how the frequencies were rounded, cosines and sines.
"""
import json
import os

import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../golden/rope")
POSITIONS = [0, 1, 100, 1021, 4095]
KINDS = {
    "default": {}, "linear": dict(factor=4.0), "dynamic": dict(factor=2.0), "proportional": dict(factor=2.0, partial_rotary_factor=0.5),
    "llama3": dict(factor=8.0, low_freq_factor=0.5, high_freq_factor=4.0, original_max_position_embeddings=450),
    "yarn": dict(factor=4.0, original_max_position_embeddings=1024, attention_factor=0.9),
    "longrope": dict(attention_factor=1.2),
}


def record(kind, dims, theta, trained=8192):
    rope = dict(rope_type=kind, rope_theta=theta, **KINDS[kind])
    if kind == "longrope":
        rope["short_factor"] = [1 + 0.37 * i for i in range(dims // 2)]
        rope["long_factor"] = [1 + 0.53 * i for i in range(dims // 2)]
        rope["original_max_position_embeddings"] = trained
    config = LlamaConfig(hidden_size=dims, num_attention_heads=1, head_dim=dims, max_position_embeddings=trained, rope_parameters=rope)
    if kind == "dynamic":
        rope["original_max_position_embeddings"] = trained
    cos, sin = LlamaRotaryEmbedding(config)(torch.zeros(1), torch.tensor([POSITIONS]))
    half = dims // 2
    return dict(kind=kind, dims=dims, positions=POSITIONS, theta=theta, **{k: v for k, v in rope.items() if k not in ("rope_type", "rope_theta")},
                cos=[[round(x, 8) for x in row[:half].tolist()] for row in cos[0]], sin=[[round(x, 8) for x in row[:half].tolist()] for row in sin[0]])


if __name__ == "__main__":
    os.makedirs(OUT, exist_ok=True)
    with open(os.path.join(OUT, "angles.jsonl"), "w") as f:
        for kind in KINDS:
            for dims, theta in ((80, 10000.0), (10, 1e6), (80, 100.0)):
                f.write(json.dumps(record(kind, dims, theta)) + "\n")
        for kind in ("dynamic", "longrope"):
            for trained in (4095, 1000, 7):
                f.write(json.dumps(record(kind, 16, 10000.0, trained)) + "\n")
