"""Words, sentences and lower case against NLTK 3.10 and 3.7 (and Python) on random texts."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import nltk_setup
import realtext

BUILD = os.environ.get("BUILD", "build")
N = int(os.environ.get("TEXTGEN_CASES", "3000"))


def answers(version, questions):
    """In a process of its own, for there is one NLTK in each."""
    nltk = nltk_setup.use(version)
    out = []
    for op, text in questions:
        if op == "words":
            out.append(nltk.word_tokenize(text))
        elif op == "sentences":
            out.append(nltk.sent_tokenize(text))
        else:
            out.append([text.lower()])
    return out


def main():
    if len(sys.argv) > 1:
        json.dump(answers(sys.argv[1], json.load(sys.stdin)), sys.stdout)
        return 0
    seed = int.from_bytes(os.urandom(4), "little")
    passed = failed = 0
    for version in ("3.10", "3.7"):
        texts = realtext.texts(N, seed)
        questions = [(op, t) for i, t in enumerate(texts) for op in ("words", "sentences", "lower")]
        ref = json.loads(subprocess.run([sys.executable, os.path.abspath(__file__), version], input=json.dumps(questions), capture_output=True,
                                        text=True, check=True).stdout)
        lines = "".join(json.dumps([op, version, t]) + "\n" for op, t in questions)
        got = subprocess.run([BUILD + "/tests/text-eval"], input=lines, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
        assert len(got) == len(ref), (len(got), len(ref))
        for (op, t), r, g in zip(questions, ref, got):
            if json.loads(g) == r:
                passed += 1
            else:
                failed += 1
                if failed <= 10:
                    print(f"not ok {version} {op} of {t!r} (seed {seed}):\n  nltk {r}\n  ours {json.loads(g)}")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


sys.exit(main())
