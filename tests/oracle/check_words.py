"""Words, sentences and lower case against NLTK 3.10 and 3.7, spaCy 3.8 (and Python) on random texts."""
import json
import os
import random
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


SPACY_PIECES = """US$ 100 km 5km² http://a.b.com/x?y foo@bar.com 10.1.2.3 8.8.8.8 … .. ... - -- 's ’s " ( ) A b Über 日本 ß °C. % + 1 2 . , : a-b word
Word don't e.g. U.S. U.S.A. 3-D 1990s $5 £ x=y a/b 1/2 😀 ♥ = #tag @me www.x.co.uk:80/p i.e. Ph.D. — – ~ cannot Gonna 7am 11p.m. C++ and/or :) :-( <3 o_O""".split()


def spacy_words(texts):
    import spacy
    nlp = spacy.blank("en")
    return [[t.text for t in nlp(x) if not t.text.isspace()] for x in texts]


def spacy_texts(n, seed):
    """Half of them pieces glued together, exceptions of spaCy's among them."""
    import spacy
    r = random.Random(seed)
    pieces = SPACY_PIECES + sorted(spacy.blank("en").tokenizer.rules) + ["  ", "\n", "\u00a0"]
    glued = ["".join(r.choice(pieces) + " " * (r.random() < 0.3) for _ in range(r.randint(1, 6))) for _ in range(n - n // 2)]
    return realtext.texts(n // 2, seed) + glued


def ask(questions):
    lines = "".join(json.dumps(q) + "\n" for q in questions)
    out = subprocess.run([BUILD + "/tests/text-eval"], input=lines, capture_output=True, text=True, check=True).stdout.split("\n")[:-1]
    assert len(out) == len(questions), (len(out), len(questions))
    return [json.loads(x) for x in out]


def compare(title, texts, ref, got, seed):
    bad = [i for i, (r, g) in enumerate(zip(ref, got)) if r != g]
    for i in bad[:10]:
        print(f"not ok {title} of {texts[i]!r} (seed {seed}):\n  reference {ref[i]}\n  ours      {got[i]}")
    return len(ref) - len(bad), len(bad)


def main():
    if len(sys.argv) > 1:
        json.dump(answers(sys.argv[1], json.load(sys.stdin)), sys.stdout)
        return 0
    seed = int(os.environ.get("SEED", int.from_bytes(os.urandom(4), "little")))
    totals = []
    for version in ("3.10", "3.7"):
        texts = realtext.texts(N, seed)
        questions = [(op, t) for t in texts for op in ("words", "sentences", "lower")]
        ref = json.loads(subprocess.run([sys.executable, os.path.abspath(__file__), version], input=json.dumps(questions), capture_output=True,
                                        text=True, check=True).stdout)
        totals.append(compare("NLTK " + version, questions, ref, ask([(op, version, t) for op, t in questions]), seed))
    texts = spacy_texts(N, seed)
    totals.append(compare("spaCy", texts, spacy_words(texts), ask([("spacy", "3.8", t) for t in texts]), seed))
    passed, failed = map(sum, zip(*totals))
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
