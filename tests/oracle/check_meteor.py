"""METEOR against NLTK 3.10 (best reference) and, with compat: rl4lms, NLTK 3.7 on the list's text, on random pairs."""
import json
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import nltk_setup
import realtext

BUILD = os.environ.get("BUILD", "build")
N = int(os.environ.get("TEXTGEN_CASES", "1000"))


def values(version, cases):
    nltk = nltk_setup.use(version)
    from nltk.translate import meteor_score as m
    split = nltk.word_tokenize
    if version == "3.7":
        return [m.single_meteor_score(split(str(c["references"])), split(c["prediction"])) for c in cases]
    return [max(m.single_meteor_score(split(r), split(c["prediction"])) for r in c["references"]) for c in cases]


def lemmas():
    with open(nltk_setup.WORDNET + "/index.verb") as f:
        verbs = [l.split()[0] for l in f if not l.startswith(" ")]
    with open(nltk_setup.WORDNET + "/index.noun") as f:
        nouns = [l.split()[0] for l in f if not l.startswith(" ")]
    with open(nltk_setup.WORDNET + "/index.adj") as f:
        adjectives = [l.split()[0] for l in f if not l.startswith(" ")]
    return [w for w in verbs + nouns[::5] + adjectives[::2] if "_" not in w]


def cases(n, seed):
    r = random.Random(seed)
    common = """run jog walk big large huge car automobile buy purchase quick fast happy glad begin start end finish child kid boy girl house home
    dog cat mice men women children geese better best studies flies went gone running runs quickly buses boxes churches wolves cities""".split()
    all_words = lemmas()
    rare = r.sample(all_words, 60)
    out = []
    for i in range(n):
        if i % 500 == 0:
            rare = r.sample(all_words, 60)
        words = common + rare

        def text():
            k = r.random()
            if k < 0.1:
                return realtext.text(r)
            t = [r.choice(words) for _ in range(r.choice([0, 1, 2, 4, 8, 12, 25]))]
            t = [w + r.choice(["", "", "", "s", "es", "ed", "ing", "er", "est", "'s", ",", "ness", "é"]) for w in t]
            if r.random() < 0.3:
                t = [w.capitalize() if r.random() < 0.2 else w for w in t]
            return " ".join(t) + r.choice(["", ".", "!", " ."])
        p = text()
        refs = [text() for _ in range(r.choice([1, 1, 2, 3]))]
        if r.random() < 0.3:
            near = p.split()
            for _ in range(r.randrange(0, 4)):
                near.insert(r.randrange(0, len(near) + 1), r.choice(words))
            if r.random() < 0.5:
                r.shuffle(near)
            refs[0] = " ".join(near)
        out.append({"prediction": p, "references": refs})
    for c in out:  # the command line's JSON has no NUL in references
        c["references"] = [t.replace("\0", "") for t in c["references"]]
    return out


def ours(compat, cs):
    args = [BUILD + "/textgen-env", "score", "--metric", "meteor", "--reward", "meteor", "--json"] + (["compat=rl4lms"] if compat else [])
    got = json.loads(subprocess.run(args, input="".join(json.dumps(c) + "\n" for c in cs), capture_output=True, text=True, check=True).stdout)
    return got["rewards"]["meteor"], got["metrics"]["lexical/meteor"]["corpus"]


def main():
    if len(sys.argv) > 1:
        json.dump(values(sys.argv[1], json.load(sys.stdin)), sys.stdout)
        return 0
    seed = int.from_bytes(os.urandom(4), "little")
    passed = failed = 0
    cs = cases(N, seed)
    for version in ("3.10", "3.7"):
        ref = json.loads(subprocess.run([sys.executable, os.path.abspath(__file__), version], input=json.dumps(cs), capture_output=True, text=True,
                                        check=True).stdout)
        got, mean = ours(version == "3.7", cs)
        ok = abs(mean - sum(ref) / len(ref)) < 1e-12
        passed, failed = passed + ok, failed + (not ok)
        for c, a, b in zip(cs, ref, got):
            if abs(a - b) <= 1e-12:
                passed += 1
            else:
                failed += 1
                if failed <= 8:
                    print(f"not ok {version} seed {seed} {c}: nltk {a} ours {b}")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


sys.exit(main())
