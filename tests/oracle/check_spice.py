"""SPICE's scene graphs and scores against the Java original's classes (in pycocoevalcap), on propositions that our parser reads from random
captions. The original's parser needs models that no package brings, so the propositions themselves are not compared. Needs javac."""
import glob
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

BUILD = os.environ.get("BUILD", "build")
N = int(os.environ.get("N", "300"))
SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(2**32)))
HERE = os.path.dirname(os.path.abspath(__file__))
NOUNS = """man woman boy girl child kid people dog cat puppy horse bird sheep car automobile bus truck motorcycle bike bicycle street road house home building
table chair bench ball frisbee kite pizza sandwich plate bowl phone laptop train plane boat beach field grass tree mountain snow wave surfboard skateboard
couch sofa bed kitchen bathroom mirror window door clock sign glass bottle cup knife fork umbrella hat shirt jacket group couple bunch mice men""".split()
VERBS = "riding eating holding sitting standing walking running jumping flying looking playing wearing carrying driving lying watching throwing catching".split()
ADJECTIVES = "red blue green black white brown yellow big large small little tiny young old wooden empty tall long happy colorful dirty clean".split()
PREPOSITIONS = ["on", "in", "near", "next to", "in front of", "behind", "with", "under", "on top of", "of", "by", "over"]


def phrase(r):
    words = [r.choice(["a", "the", "two", "three", "some", ""])] + r.sample(ADJECTIVES, r.choice([0, 0, 1, 2])) + [r.choice(NOUNS)]
    return " ".join(w for w in words if w) + r.choice(["", "", "s"])


def caption(r):
    text = phrase(r)
    for _ in range(r.randrange(0, 3)):
        text += " " + r.choice([f"{r.choice(['is ', ''])}{r.choice(VERBS)} {phrase(r)}", f"{r.choice(PREPOSITIONS)} {phrase(r)}",
                                f"{r.choice(VERBS)} {r.choice(PREPOSITIONS)} {phrase(r)}", f"and {phrase(r)}", f"is {r.choice(ADJECTIVES)}"])
    return text


def ask(questions):
    lines = "".join(json.dumps(q) + "\n" for q in questions)
    out = subprocess.run([BUILD + "/tests/text-eval"], input=lines, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in out.split("\n")[:-1]]


def main():
    if not shutil.which("javac"):
        print("skipped: no javac\n0 passed, 0 failed")
        return 0
    import pycocoevalcap
    package = list(pycocoevalcap.__path__)[0]
    jars = [package + "/spice/spice-1.0.jar", package + "/spice/lib/*", *glob.glob(package + "/tokenizer/stanford-corenlp-*.jar")]
    r = random.Random(SEED)
    cases = [[caption(r) for _ in range(1 + r.choice([1, 1, 2, 5, 12]))] for _ in range(N)]
    texts = sorted({t for c in cases for t in c})
    tuples = dict(zip(texts, ([p.split("|") for p in ps] for ps in ask([["spice", "", t] for t in texts]))))
    ours = ask([["spice_counts", "", json.dumps(c)] for c in cases])
    with tempfile.TemporaryDirectory() as folder:
        path = ":".join(jars + [folder])
        subprocess.run(["javac", "-cp", path, "-d", folder, HERE + "/SpiceCounts.java"], check=True)
        lines = "".join(json.dumps([tuples[c[0]], [p for t in c[1:] for p in tuples[t]]]) + "\n" for c in cases)
        java = subprocess.run(["java", "-cp", path, "SpiceCounts"], input=lines, capture_output=True, text=True, check=True).stdout.split("\n")
    bad = [i for i, (a, b) in enumerate(zip(ours, java)) if a != b.split()]
    for i in bad[:5]:
        print(f"not ok (seed {SEED}) {cases[i]}: ours {ours[i]}, original {java[i]}")
    print(f"{len(cases) - len(bad)} passed, {len(bad)} failed")
    return 1 if bad else 0


sys.exit(main())
