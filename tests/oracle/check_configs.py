"""Folders whose config.json says things in other ways than save_pretrained of today, or whose weights have other names: log-probs of
`textgen logprob` against what transformers makes of the same folder."""
import json
import os
import subprocess
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

import gen_families
import gen_seq2seq
from model_check import BUILD, run_cases

IDS = gen_families.IDS
GPT2 = dict(IDS, vocab_size=61, n_embd=32, n_layer=2, n_head=4, n_positions=64)
LLAMA = dict(gen_families.LLAMA, vocab_size=61, max_position_embeddings=64)
NEO = dict(gen_families.GOLDENS["gpt_neo"], vocab_size=61, max_position_embeddings=64)
NEOX = dict(gen_families.GOLDENS["gpt_neox"], vocab_size=61, max_position_embeddings=64)
T5 = dict(vocab_size=61, d_model=32, d_kv=8, d_ff=40, num_layers=2, num_heads=4, decoder_start_token_id=0)
BART = dict(vocab_size=61, d_model=24, encoder_layers=2, decoder_layers=2, encoder_attention_heads=3, decoder_attention_heads=4,
            encoder_ffn_dim=30, decoder_ffn_dim=40, max_position_embeddings=64, pad_token_id=1, bos_token_id=0, eos_token_id=2,
            decoder_start_token_id=2)
ALTERNATING = ["full_attention", "sliding_attention"]
YARN = dict(rope_type="yarn", factor=None, original_max_position_embeddings=16)
# what: family, settings, keys of config.json that change (rope_parameters None: gone), and the prefix that names of weights lose
CASES = {
    "gpt2-relu": ("gpt2", dict(GPT2, activation_function="relu"), {}, None),
    "gpt2-gelu": ("gpt2", dict(GPT2, activation_function="gelu"), {}, None),
    "gelu_accurate": ("llama", dict(LLAMA, hidden_act="gelu_accurate"), {}, None),
    "llama-a-part-of-heads": ("llama", LLAMA, dict(partial_rotary_factor=0.5), None),
    "qwen3-a-part-of-heads": ("qwen3", dict(LLAMA, head_dim=8), dict(rope_parameters=None, partial_rotary_factor=0.5), None),
    "yarn-without-factor": ("llama", LLAMA, dict(rope_parameters=None, rope_theta=100.0, rope_scaling=YARN), None),
    "mistral-kinds-of-layers": ("mistral", dict(LLAMA, sliding_window=5), dict(layer_types=ALTERNATING), None),
    "gpt_neo-attention_layers": ("gpt_neo", NEO, dict(attention_layers=["local", "global"]), None),
    "gpt_neox-both-names": ("gpt_neox", NEOX, dict(rope_parameters=None, rotary_pct=0.5, rotary_emb_base=500, rope_theta=900,
                                                    partial_rotary_factor=1.0), None),
    "gpt_neox-others-names": ("gpt_neox", NEOX, dict(rope_parameters=None, rope_theta=900.0, partial_rotary_factor=1.0), None),
    "gpt_neox-a-part-that-is-cut": ("gpt_neox", dict(NEOX, hidden_size=160, num_attention_heads=2), dict(rope_parameters=None, rotary_pct=0.9), None),
    "yarn-finetuned": ("llama", LLAMA, dict(rope_parameters=None, rope_theta=100.0, rope_scaling=dict(YARN, factor=2.0, finetuned=True)), None),
    "yarn-truncate-null": ("llama", dict(LLAMA, hidden_size=96), dict(rope_parameters=None, rope_theta=100.0, rope_scaling=dict(YARN, factor=2.0, truncate=None)), None),
    "t5-dense_act_fn": ("t5", T5, dict(dense_act_fn="gelu", is_gated_act=False), None),
    "bart-bare-names": ("bart", BART, {}, "model."),
    "mbart-bare-names-untied": ("mbart", dict(BART, tie_word_embeddings=False), {}, "model."),
    "gemma-gelu": ("gemma", dict(LLAMA, hidden_act="gelu"), {}, None),
    "gemma-gelu_python": ("gemma", dict(LLAMA, hidden_act="gelu_python"), {}, None),
    "gpt2-two-names": ("gpt2", GPT2, dict(num_attention_heads=2), None),
    "bart-two-names": ("bart", BART, dict(num_attention_heads=2), None),
    "bloom-two-names": ("bloom", dict(IDS, vocab_size=61, hidden_size=24, n_layer=2, n_head=3), dict(n_embed=24, hidden_size=48), None),
    "t5-head_dim": ("t5", T5, dict(d_kv=64, head_dim=8), None),
    "t5-scale-null": ("t5", T5, dict(scale_decoder_outputs=None), None),
    "an-integer-of-31-digits": ("llama", LLAMA, dict(model_max_length=int(1e30)), None),
    "marian-starts-with-what-its-encoder-lacks": ("marian", dict(BART, share_encoder_decoder_embeddings=False, decoder_vocab_size=70,
                                                                 decoder_start_token_id=69), {}, None),
    "opt-wide": ("opt", dict(gen_families.GOLDENS["opt_wide"], vocab_size=61, max_position_embeddings=64), {}, None),
}


def change(folder, keys, prefix):
    path, weights = os.path.join(folder, "config.json"), os.path.join(folder, "model.safetensors")
    with open(path) as f:
        config = {**json.load(f), **keys}
    if config.get("rope_parameters", 1) is None:
        del config["rope_parameters"]
    with open(path, "w") as f:
        json.dump(config, f)
    if prefix:
        tensors = load_file(weights)
        embed = tensors.get("model.shared.weight")
        if embed is not None:  # as the first files had them: under all of their names
            tensors.update({f"model.{side}.embed_tokens.weight": embed.clone() for side in ("encoder", "decoder")})
        save_file({k.removeprefix(prefix): v for k, v in tensors.items()}, weights, {"format": "pt"})


def log_probs(model, ids, source):
    with torch.no_grad():
        if source is None:
            logits = model(torch.tensor([ids]), use_cache=False).logits[0, :-1]
            return torch.log_softmax(logits, -1).gather(1, torch.tensor(ids[1:])[:, None])[:, 0]
        given = torch.tensor([[model.config.decoder_start_token_id] + ids[:-1]])
        logits = model(input_ids=torch.tensor([source]), decoder_input_ids=given, use_cache=False).logits[0]
        return torch.log_softmax(logits, -1).gather(1, torch.tensor(ids)[:, None])[:, 0]


def run_case(what, seed, scratch):
    family, settings, keys, prefix = CASES[what]
    seq2seq = family in ("t5", "bart", "mbart", "marian")
    model, head = (gen_seq2seq if seq2seq else gen_families).random_model(family, seed, settings)
    folder = os.path.join(scratch, what)
    gen_families.save(model, head, folder)
    change(folder, keys, prefix)
    g = torch.Generator().manual_seed(seed)
    draw = lambda n: torch.randint(3, 61, (n,), generator=g).tolist()
    ids, source = draw(40), draw(20) if seq2seq else None
    kind = AutoModelForSeq2SeqLM if seq2seq else AutoModelForCausalLM
    want = log_probs(kind.from_pretrained(folder, attn_implementation="eager").float().eval(), ids, source)
    line = json.dumps(dict(ids=ids, input_ids=source) if seq2seq else dict(ids=ids))
    done = subprocess.run([os.path.join(BUILD, "textgen"), "logprob", "--model", folder, "--jsonl"], input=line + "\n",
                          capture_output=True, text=True)
    if done.returncode:
        return settings, [f"exit {done.returncode}: {(done.stderr or done.stdout).strip()}"]
    got = torch.tensor([x for x in json.loads(done.stdout)["logprob"] if x is not None])
    worst = (got - want).abs().max().item()
    return settings, [] if worst <= 2e-5 else [f"log-probs differ by {worst:.3g}"]


if __name__ == "__main__":
    sys.exit(run_cases({what: 1 for what in CASES}, run_case))
