#!/usr/bin/env python3
"""The synthetic rewards and metrics on random nasty texts, against CPython's own float(), split() and re.

Texts are mixtures of numbers in odd spellings, Unicode digits, spaces and near misses, and random code
points; `textgen-env score` must give the same doubles."""
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import unicodedata

BUILD = os.environ.get("BUILD", "build")
N = int(os.environ.get("N", "20000"))
SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(2**32)))
rng = random.Random(SEED)

# The digits of the Unicode version that both this Python and utf8proc know.
DIGITS = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) == "Nd"]
SPACES = [chr(c) for c in range(0x110000) if chr(c).isspace()]
ODD = list("0123456789+-._eEinfNaAty,:/xX½²Ⅷ٫−‐–\u200b\ufeff\x7f\x1a\x00") + ["inf", "nan", "infinity", "e5", "_"]


def is_number(text):
    try:
        float(text)
        return True
    except ValueError:
        return False


def increasing(text, min_tokens):
    tokens = text.split()
    numbers = [float(t) for t in tokens if is_number(t)]
    if not numbers:
        return 0
    count, previous = 1, numbers[0]
    for n in numbers[1:]:
        if not n > previous:
            break
        count, previous = count + 1, n
    return count / max(len(tokens), min_tokens / 2)


def dates(text):
    return 1 if re.search(r"\d{4}-\d{2}-\d{2}", text) else 0


def digits(n):
    pool = DIGITS if rng.random() < 0.2 else "0123456789"
    return "".join(rng.choice(pool) for _ in range(n))


def word():
    kind = rng.randrange(9)
    if kind == 0:
        return str(rng.randrange(-50, 1000))
    if kind == 1:
        return repr(rng.uniform(-1e3, 1e3) * 10.0 ** rng.randrange(-320, 300))
    if kind == 2:
        return rng.choice(["inf", "-inf", "nan", "+Infinity", "NaN", "iNf", "infinit", "nan1", "1e400", "-1e400", "1e-400"])
    if kind == 3:
        return "".join(rng.choice(ODD) for _ in range(rng.randrange(1, 8)))
    if kind == 4:
        return "_".join(digits(rng.randrange(0, 4)) for _ in range(rng.randrange(1, 4)))
    if kind == 5:
        return digits(rng.randrange(1, 5)) + rng.choice([".", "", "e", "E-", "e+"]) + digits(rng.randrange(0, 4))
    if kind == 6:
        return digits(rng.choice([3, 4, 4, 4, 5])) + rng.choice("---‐−") + digits(rng.choice([1, 2, 2, 3])) + "-" + digits(rng.choice([1, 2, 2, 3]))
    if kind == 7:
        return digits(rng.randrange(100, 400)) + rng.choice(["", ".", ".5", "e-300"])
    return "".join(chr(rng.choice([rng.randrange(32, 127), rng.randrange(0x80, 0xD800), rng.randrange(0xE000, 0x110000)]))
                   for _ in range(rng.randrange(1, 6)))


def text():
    out = []
    for _ in range(rng.randrange(0, 25)):
        out.append(word())
        out.append(rng.choice(SPACES) if rng.random() < 0.4 else rng.choice([" ", " ", "  ", "\n", ""]))
    return "".join(out)


def score(texts, min_tokens):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as f:
        for t in texts:
            f.write(json.dumps({"prediction": t}, ensure_ascii=rng.random() < 0.5) + "\n")
        f.flush()
        done = subprocess.run([f"{BUILD}/textgen-env", "score", "--metric", "increasing_numbers,dates", "--reward",
                               "increasing_numbers,sentences_with_dates", f"increasing_numbers.min_tokens={min_tokens}",
                               "--jsonl", f.name, "--json"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"seed {SEED}: exit {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


passed = failed = 0
for min_tokens in (0, 1, 7, 20, 100):
    texts = [text() for _ in range(N // 5)]
    got = score(texts, min_tokens)
    for key, reward, function in (
            ("synthetic/increasing_numbers_in_text", "increasing_numbers", lambda t: increasing(t, min_tokens)),
            ("synthetic/dates_in_text", "sentences_with_dates", dates)):
        want = [function(t) for t in texts]
        metric = got["metrics"][key]
        for t, w, a, b in zip(texts, want, metric["samples"], got["rewards"][reward]):
            if w == a == b:
                passed += 1
            else:
                failed += 1
                if failed <= 5:
                    print(f"{reward} of {t!r} (min_tokens {min_tokens}): Python {w}, metric {a}, reward {b}")
        if abs(metric["corpus"] - sum(want) / len(want)) > 1e-12:
            failed += 1
            print(f"{key}: corpus {metric['corpus']}, Python {sum(want) / len(want)}")
        else:
            passed += 1
if failed:
    print(f"seed {SEED}")
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
