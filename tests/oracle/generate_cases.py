"""What generation is compared by: random settings, and what transformers makes of them."""
import json
import os
import random
import subprocess
import sys

import torch

# Version 5 has no group beam search; the environment of the PPO benchmark has the last series that does.
OLD_PYTHON = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "textgen/bench-trl/bin/python")


def as_list(x):
    return x if isinstance(x, list) else [x]


def vocabulary(model):
    """Of what is generated: Marian's decoder may have its own."""
    return min(model.config.vocab_size, getattr(model.config, "decoder_vocab_size", None) or model.config.vocab_size)


def random_settings(r, vocab, mode, seq2seq=False):
    """Settings of one search: {"num_beams": …}, without what sampling needs."""
    s = {}
    if mode == "beam":
        s["num_beams"] = r.choice([2, 3, 5, 5, 8])
    if mode == "group":
        s["num_beam_groups"] = r.choice([2, 3])
        s["num_beams"] = s["num_beam_groups"] * r.choice([1, 2, 3])
        s["diversity_penalty"] = r.choice([0.3, 1.0, 2.5])
    if mode != "greedy":
        s["num_return_sequences"] = r.randint(1, s["num_beams"])
        if r.random() < 0.6:
            s["length_penalty"] = r.choice([-1.0, 0.0, 0.5, 2.0])
        if r.random() < 0.6:
            s["early_stopping"] = r.choice([True, "never"])
    some = lambda n: [r.randrange(vocab) for _ in range(n)]
    choices = {
        "repetition_penalty": lambda: r.choice([0.7, 1.2, 2.0]),
        "encoder_repetition_penalty": lambda: r.choice([0.8, 1.5]),
        "no_repeat_ngram_size": lambda: r.choice([1, 2, 3]) if vocab > 40 else r.choice([2, 3]),
        "encoder_no_repeat_ngram_size": lambda: r.choice([2, 3]),
        "bad_words_ids": lambda: [some(r.choice([1, 1, 2, 3])) for _ in range(r.randint(1, 6))],
        "sequence_bias": lambda: [[some(r.choice([1, 2])), r.choice([-3.0, 2.5])] for _ in range(r.randint(1, 5))],
        "min_length": lambda: r.randint(1, 20),
        "min_new_tokens": lambda: r.randint(1, 12),
        "forced_bos_token_id": lambda: r.randrange(vocab),
        "forced_eos_token_id": lambda: r.choice([r.randrange(vocab), 1]),
        "exponential_decay_length_penalty": lambda: [r.randint(0, 6), r.choice([1.1, 1.5])],
        "remove_invalid_values": lambda: True,
        "suppress_tokens": lambda: some(3),
        "begin_suppress_tokens": lambda: some(4),
        "eos_token_id": lambda: r.choice([1, [1, 3], some(2)]),
        "renormalize_logits": lambda: True,
    }
    if mode == "group":  # what version 4 does otherwise: penalises the first beam only, takes no list, makes NaN of a forbidden eos
        for key in ("encoder_repetition_penalty", "sequence_bias", "exponential_decay_length_penalty"):
            del choices[key]
    for key in r.sample(sorted(choices), r.choice([0, 1, 1, 2, 3, 5])):
        s[key] = choices[key]()
    if "exponential_decay_length_penalty" in s:  # would make forbidden tokens infinitely good, all of them equally
        s.pop("remove_invalid_values", None)
    if mode != "greedy" and s.get("forced_bos_token_id") in as_list(s.get("eos_token_id", 1)):
        del s["forced_bos_token_id"]  # every beam but one would be a dead one
    if "sequence_bias" in s:  # one bias for each sequence
        s["sequence_bias"] = [[list(k), v] for k, v in {tuple(ids): b for ids, b in s["sequence_bias"]}.items()]
    if mode == "group" and "bad_words_ids" in s:  # version 4 overlooks one of which the text so far is all but the last token
        s["bad_words_ids"] = [w for w in s["bad_words_ids"] if len(w) == 1] or [[5]]
    s["pad_token_id"] = r.randrange(vocab)
    s["max_new_tokens" if r.random() < 0.8 else "max_length"] = r.randint(3, 14)
    if "max_length" in s:
        s["max_length"] += 9 if not seq2seq else 1  # prompts are shorter than that
    return s


def transformers_generate(model, ids, settings):
    """[(new ids, score or None)] of one prompt; what was padded is cut off."""
    torch.manual_seed(0)
    prompt = torch.tensor([ids])
    eos = settings.get("eos_token_id", model.generation_config.eos_token_id)
    eos = [] if eos is None else as_list(eos)
    with torch.no_grad():
        out = model.generate(prompt, attention_mask=torch.ones_like(prompt), return_dict_in_generate=True,
                             output_scores=True, **{"do_sample": False, **settings})
    scores = getattr(out, "sequences_scores", None)
    start = 1 if model.config.is_encoder_decoder else len(ids)
    results = []
    for k, row in enumerate(out.sequences.tolist()):
        new = row[start:]
        for i, t in enumerate(new):
            if t in eos:
                new = new[:i + 1]
                break
        results.append((new, None if scores is None else scores[k].item()))
    return results


def textgen_generate(build, folder, prompts, settings, *args):
    """Lists of results, one for each prompt, as textgen prints them."""
    done = subprocess.run([f"{build}/textgen", "generate", "--model", folder, "--jsonl", "--kwargs", json.dumps(settings), *args],
                          input="".join(json.dumps({"ids": p}) + "\n" for p in prompts), capture_output=True, text=True)
    if done.returncode not in (0, 65):
        raise RuntimeError(f"textgen generate {settings}: {done.stderr}")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [line if isinstance(line, list) else [line] for line in lines]


class Old:
    """transformers 4, in its own process; only if its environment is there."""

    def __init__(self):
        env = {**os.environ, "PYTHONWARNINGS": "ignore"}
        self.process = subprocess.Popen([OLD_PYTHON, os.path.abspath(__file__)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True, env=env)

    def generate(self, folder, ids, settings):
        self.process.stdin.write(json.dumps([folder, ids, settings]) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if isinstance(answer, str):
            raise RuntimeError(answer)
        return [tuple(r) for r in answer]


def has_old():
    return os.path.exists(OLD_PYTHON)


def serve():
    torch.set_num_threads(1)
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM
    models = {}
    for line in sys.stdin:
        folder, ids, settings = json.loads(line)
        try:
            if folder not in models:
                kind = AutoModelForSeq2SeqLM if AutoConfig.from_pretrained(folder).is_encoder_decoder else AutoModelForCausalLM
                models = {folder: kind.from_pretrained(folder, torch_dtype=torch.float32).eval()}
            print(json.dumps(transformers_generate(models[folder], ids, settings)), flush=True)
        except Exception as e:  # what this version refuses, the caller must not ask for
            print(json.dumps(f"{type(e).__name__}: {e}"), flush=True)


if __name__ == "__main__":
    serve()
