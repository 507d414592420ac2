"""PPO iterations with TRL's PPOTrainer on a GPT-2-shaped model with random weights: 32 prompts of 64 tokens, 48 new tokens each,
5 epochs, minibatches of 4 sequences, shared trunk, reward = share of even token ids. The figures are those of the second: the first
also has the system find the memory.

  peer_trl.py [--bf16] [LAYERS WIDTH HEADS VOCABULARY]      --bf16: its mixed precision, instead of f32"""
import copy
import json
import os
import resource
import sys
import time
import warnings

warnings.filterwarnings("ignore")
import torch
from tokenizers import Tokenizer, models
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
from trl import AutoModelForCausalLMWithValueHead, PPOConfig, PPOTrainer

QUICK = os.environ.get("TEXTGEN_BENCH_QUICK", "0") not in ("", "0")
PROMPTS, PROMPT, NEW, EPOCHS, MINIBATCH = 32, 64, 48, 1 if QUICK else 5, 4


def main():
    torch.set_num_threads(os.cpu_count())
    torch.manual_seed(1)
    half = "--bf16" in sys.argv
    layers, width, heads, vocab = [int(v) for v in sys.argv[1:] if v != "--bf16"] or ([2, 256, 4, 8000] if QUICK else [12, 768, 12, 50257])
    config = GPT2Config(n_layer=layers, n_embd=width, n_head=heads, vocab_size=vocab, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
                        bos_token_id=None, eos_token_id=None)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"<pad>": 0, "a": 1}, unk_token="a")),
                                        pad_token="<pad>", eos_token="<pad>")
    model = AutoModelForCausalLMWithValueHead(GPT2LMHeadModel(config))
    model.is_peft_model = False
    reference = copy.deepcopy(model)
    trainer = PPOTrainer(PPOConfig(batch_size=PROMPTS, mini_batch_size=MINIBATCH, ppo_epochs=EPOCHS, gradient_accumulation_steps=1,
                                   learning_rate=1e-6, accelerator_kwargs={"mixed_precision": "bf16"} if half else {}), model, reference, tokenizer)
    first = 0
    for _ in range(2):
        queries = list(torch.randint(1, vocab, (PROMPTS, PROMPT)))
        start = time.perf_counter()
        answers = trainer.generate(queries, batch_size=PROMPTS, return_prompt=False, do_sample=True, top_k=0, top_p=1.0,
                                   min_new_tokens=NEW, max_new_tokens=NEW, pad_token_id=0)
        generated = time.perf_counter()
        rewards = [(a % 2 == 0).float().mean() for a in answers]
        stats = trainer.step(queries, answers, rewards)
        end = time.perf_counter()
        first = first or end - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"PPO iteration, TRL 0.11.4, torch {torch.__version__}{', bf16' if half else ''}: generate {generated - start:.1f} s, log-probs "
          f"{stats['time/ppo/forward_pass']:.1f} s, update {stats['time/ppo/optimize_step']:.1f} s, total {end - start:.1f} s (the first iteration {first:.1f} s), "
          f"peak {peak / 1e3:.2f} GB")
    print(json.dumps({"bench": "ppo_iteration" + "_bf16" * half, "who": "trl 0.11.4" + " bf16" * half, "seconds": end - start, "first_s": first, "peak_mb": peak,
                      "generate_s": generated - start, "update_s": float(stats["time/ppo/optimize_step"])}))


main()
