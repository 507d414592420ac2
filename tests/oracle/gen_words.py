"""Writes tests/golden/words/words.jsonl: words and sentences of fixed random texts by NLTK 3.10 and 3.7, and words by spaCy 3.8; spaCy 3.0's are those
of a recording of RL4LMs whose folder may be given as argument."""
import json
import os
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
import realtext

texts = [t for t in realtext.texts(400, 7) if "\0" not in t][:160]
questions = [(op, t) for t in texts for op in ("words", "sentences")]
out = os.path.join(here, "../golden/words/words.jsonl")
os.makedirs(os.path.dirname(out), exist_ok=True)
with open(out, "w") as f:
    for version in ("3.10", "3.7"):
        got = json.loads(subprocess.run([sys.executable, os.path.join(here, "check_words.py"), version], input=json.dumps(questions),
                                        capture_output=True, text=True, check=True).stdout)
        for (op, t), g in zip(questions, got):
            f.write(json.dumps([op, version, t, g], ensure_ascii=False) + "\n")
    import check_words
    texts = check_words.spacy_texts(120, 7)
    for t, g in zip(texts, check_words.spacy_words(texts)):
        f.write(json.dumps(["spacy", "3.8", t, g], ensure_ascii=False) + "\n")
    if len(sys.argv) > 1:
        m = json.load(open(sys.argv[1] + "/metrics.json"))
        for t, words in zip(m["tuples"], m["library"]):
            for text, w in [(t["prediction"], words["spacy_words"]["prediction"]), *zip(t["references"], words["spacy_words"]["references"])]:
                f.write(json.dumps(["spacy", "3.0", text, w.split()], ensure_ascii=False) + "\n")
