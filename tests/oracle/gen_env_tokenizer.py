#!/usr/bin/env python3
"""Writes the two small tokenizers of the environment's tests, byte-level BPE of 256 bytes and a few merges:
tests/golden/env/tokenizer (GPT-2's kind: <|endoftext|>, nothing added) and
tests/golden/env/tokenizer-eos (T5's kind: a pad token, </s> added behind every text, a start token)."""
import os

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "env")
merges = [("Ġ", "1"), ("Ġ", "2"), ("Ġ", "3"), ("t", "h"), ("Ġ", "th"), ("Ġth", "e"), ("l", "l"), ("ll", "o")]


def bpe():
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {c: i for i, c in enumerate(alphabet)}
    for a, b in merges:
        vocab[a + b] = len(vocab)
    t = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    return t


end = "<|endoftext|>"
gpt2 = PreTrainedTokenizerFast(tokenizer_object=bpe(), eos_token=end, bos_token=end, unk_token=end, model_max_length=64)
gpt2.save_pretrained(os.path.join(here, "tokenizer"))
t = bpe()
t.add_special_tokens(["<pad>", "</s>", "<s>"])
t.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>"))])
seq2seq = PreTrainedTokenizerFast(tokenizer_object=t, eos_token="</s>", bos_token="<s>", pad_token="<pad>", unk_token="<pad>", model_max_length=64)
seq2seq.save_pretrained(os.path.join(here, "tokenizer-eos"))
for tok in (gpt2, seq2seq):
    print(len(tok), tok("1 2 Hello the").input_ids, tok("").input_ids)
for side in ("left", "right"):
    seq2seq.truncation_side = side
    print(side, seq2seq("abcdefgh", truncation=True, max_length=5).input_ids)
