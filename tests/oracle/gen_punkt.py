"""Writes env-server/metric/punkt_data.c from NLTK's English Punkt parameters.

    gen_punkt.py .../tokenizers/punkt_tab/english > env-server/metric/punkt_data.c

The folder is part of NLTK's data package "punkt_tab" (Jan Strunk, declared under the MIT licence by the package's own
metadata). Only what the tokenizer's decisions can depend on is kept: of the orthographic contexts that is

  starts   seen in lower case and never capitalised inside a sentence: capitalised, such a word starts a sentence
  cased    seen in lower case, and also capitalised inside a sentence: no evidence
  begins   lower case at the beginning of a sentence and never capitalised: lower case is no evidence against a start

Words that were never seen in lower case decide as words that were never seen at all.
"""
import os
import sys

BEG_LC, LC, UC, MID_UC = 16, 16 + 32 + 64, 2 + 4 + 8, 4


def front_coded(words):
    """Each word as a capital letter (how many characters it shares with the one before, A = 0) and the rest."""
    out, last = [], ""
    for w in sorted(words):
        assert w == w.lower() and w.isascii() and not any(c.isupper() for c in w), w
        k = 0
        while k < min(len(w), len(last), 25) and w[k] == last[k]:
            k += 1
        out.append(chr(65 + k) + w[k:])
        last = w
    return "".join(out)


def literal(name, text):
    width = 150
    lines = []
    while text:
        piece = text[:width]
        text = text[width:]
        lines.append('    "' + piece.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t").replace("??", "?\"\"?") + '"')
    return f"const char {name}[] =\n" + "\n".join(lines) + ";\n"


def main():
    folder = sys.argv[1]
    read = lambda name: [l.rstrip("\n") for l in open(os.path.join(folder, name), encoding="utf-8") if l.rstrip("\n")]
    starts, cased, begins = set(), set(), set()
    for line in read("ortho_context.tab"):
        word, flags = line.split("\t")
        flags = int(flags)
        if not flags & LC:
            continue
        (cased if flags & MID_UC else starts).add(word)
        if flags & BEG_LC and not flags & UC:
            begins.add(word)
    assert not begins & cased
    join = lambda lines: "".join(l + "\n" for l in sorted(set(lines)))
    print("/* The English parameters of the Punkt sentence splitter: T. Kiss and J. Strunk, \"Unsupervised Multilingual Sentence Boundary")
    print(" * Detection\", Computational Linguistics 32 (2006), trained by them on Wall Street Journal text and published as NLTK's data")
    print(" * package punkt_tab, copyright Jan Strunk, under the MIT licence according to the package's metadata. Written by")
    print(" * tests/oracle/gen_punkt.py, which says what is kept; format: punkt.h. */")
    print("// clang-format off")
    print('#include "env-server/metric/punkt.h"\n')
    print(literal("tg_punkt_abbreviations", join(read("abbrev_types.txt"))))
    print(literal("tg_punkt_collocations", join(read("collocations.tab"))))
    print(literal("tg_punkt_starters", join(read("sent_starters.txt"))))
    print(literal("tg_punkt_begins", join(begins)))
    print(literal("tg_punkt_cased", front_coded(cased)))
    print(literal("tg_punkt_starts", front_coded(starts)), end="")


main()
