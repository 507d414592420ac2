"""Texts longer than a model was trained with, where positions are computed and not looked up: log-probs and greedy, beam and batched generation
of `textgen` beside transformers, for every way to stretch rotary angles, ALiBi and relative positions. Where angles depend on the length of the
text, transformers keeps those of the longest it has seen: every text gets a fresh model.

  check_long_texts.py            SEED=N for other models and texts
"""
import os
import random
import tempfile

import torch
from transformers import (AutoModelForCausalLM, AutoModelForSeq2SeqLM, BloomConfig, Gemma3TextConfig, GPTNeoXConfig, LlamaConfig, MistralConfig,
                          Qwen3Config, T5Config)
from transformers.utils import logging

from cli_lines import finish, note, run

logging.set_verbosity_error()
logging.disable_progress_bar()
torch.set_num_threads(1)
SEED = int(os.environ.get("SEED", random.randrange(10**6)))
R = random.Random(SEED)
TRAINED, SHORT, HALF = 24, 16, 8  # positions; those of longrope before it was stretched; pairs of a head
NEW = 20
ANGLES = {
    "default": {}, "linear": dict(factor=3.0), "dynamic": dict(factor=1.3), "proportional": dict(factor=2.0, partial_rotary_factor=0.5),
    "llama3": dict(factor=8.0, low_freq_factor=0.5, high_freq_factor=4.0, original_max_position_embeddings=SHORT),
    "yarn": dict(factor=1.5, original_max_position_embeddings=SHORT),
    "longrope": dict(original_max_position_embeddings=SHORT, short_factor=[1 + 0.05 * i for i in range(HALF)], long_factor=[1 + 0.4 * i for i in range(HALF)]),
}
COMMON = dict(vocab_size=97, bos_token_id=1, eos_token_id=2, pad_token_id=0)
SIZES = dict(COMMON, hidden_size=48, intermediate_size=64, num_hidden_layers=2, num_attention_heads=3, max_position_embeddings=TRAINED)


def angles(kind):
    return dict(rope_type=kind, rope_theta=R.choice([100.0, 500.0, 10000.0]), **ANGLES[kind])


def configs():
    for kind in ANGLES:
        family = R.choice([LlamaConfig, MistralConfig, Qwen3Config])
        yield kind, family(**SIZES, num_key_value_heads=R.choice([1, 3]), head_dim=2 * HALF, rope_parameters=angles(kind))
    for kind in ("dynamic", "longrope"):
        yield "gemma3 " + kind, Gemma3TextConfig(**SIZES, num_key_value_heads=1, head_dim=2 * HALF, sliding_window=8, query_pre_attn_scalar=16,
                                                 layer_types=["sliding_attention", "full_attention"],
                                                 rope_parameters=dict(full_attention=angles(kind), sliding_attention=angles("default")))
    yield "gpt_neox", GPTNeoXConfig(**SIZES, rope_parameters=dict(angles("dynamic"), partial_rotary_factor=0.5))
    yield "bloom", BloomConfig(**COMMON, hidden_size=48, n_layer=2, n_head=3, seq_length=TRAINED)


def text(n):
    return [R.randrange(3, 97) for _ in range(n)]


def sharpen(model):
    """Random weights of a size that makes attention look at something."""
    for name, p in model.named_parameters():
        if p.dim() > 1:
            torch.nn.init.normal_(p, std=0.2)
    return model.eval()


def fresh(folder, kind=AutoModelForCausalLM):
    return kind.from_pretrained(folder).eval()


@torch.no_grad()
def wanted_logprobs(folder, ids):
    """What reads all but the last token, as nothing is asked of it."""
    logp = fresh(folder)(torch.tensor([ids[:-1]])).logits[0].log_softmax(-1)
    return [logp[t, token].item() for t, token in enumerate(ids[1:])]


def check_logprobs(name, folder):
    texts = [text(n) for n in (5, SHORT + 1, SHORT + 2, TRAINED + 1, TRAINED + 2, 40, 90, 300)]
    for ids, got in zip(texts, run(["logprob", "--model", folder, "--jsonl"], [dict(ids=x) for x in texts])):
        want = wanted_logprobs(folder, ids)
        off = max((abs(a - b) for a, b in zip(want, got.get("logprob", [None])[1:])), default=9)
        note(len(got.get("logprob", [])) == len(ids) and off < 5e-5, f"{name}: log-probs of {len(ids)} tokens are off by {off}: {got.get('error')}")


def check_generation(name, folder):
    prompts = [text(n) for n in (3, SHORT - 2, TRAINED - 2, TRAINED, TRAINED + 1, 60)]
    for beams in (1, 3):
        settings = ["do_sample=false", f"num_beams={beams}", f"max_new_tokens={NEW}"]
        for ids, got in zip(prompts, run(["generate", "--model", folder, "--jsonl"] + settings, [dict(ids=x) for x in prompts])):
            want = fresh(folder).generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), do_sample=False,
                                          num_beams=beams, max_new_tokens=NEW)[0, len(ids):].tolist()
            note(got.get("ids") == want, f"{name}: {beams} beams, a prompt of {len(ids)}: {got} instead of {want}")


def check_relative(scratch):
    """T5 knows no end either."""
    folder = os.path.join(scratch, "t5")
    model = sharpen(AutoModelForSeq2SeqLM.from_config(T5Config(vocab_size=97, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2,
                                                               decoder_start_token_id=0, pad_token_id=0, eos_token_id=1)))
    model.save_pretrained(folder)
    source, answer = text(4200), text(6)
    with torch.no_grad():
        logp = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([[0] + answer[:-1]])).logits[0].log_softmax(-1)
    got = run(["logprob", "--model", folder, "--jsonl"], [dict(input_ids=source, ids=answer)])[0]
    off = max((abs(logp[t, token].item() - x) for t, (token, x) in enumerate(zip(answer, got.get("logprob", [])))), default=9)
    note(off < 5e-5, f"t5: off by {off}: {got.get('error')}")


if __name__ == "__main__":
    print(f"SEED={SEED}")
    torch.manual_seed(SEED)
    with tempfile.TemporaryDirectory() as scratch:
        for name, config in configs():
            folder = os.path.join(scratch, name.replace(" ", "_"))
            sharpen(AutoModelForCausalLM.from_config(config)).save_pretrained(folder)
            check_logprobs(name, folder)
            check_generation(name, folder)
        check_relative(scratch)
    finish()
