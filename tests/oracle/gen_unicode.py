#!/usr/bin/env python3
"""Writes common/text/unicode_tables.c: the character classes and lower case of Hugging Face `tokenizers`, asked one code point at a time."""
import os

from tokenizers import normalizers as n, pre_tokenizers as p

ALL = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "common", "text", "unicode_tables.c")


def ranges(chars):
    out = []
    for c in map(ord, chars):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def gone(normalizer):
    return ranges([c for c in ALL if normalizer.normalize_str(c) == ""])


def bert(**on):
    off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return n.BertNormalizer(**{**off, **on})


def lower():
    """Runs [first, last, step, delta] of code points that change by one number; U+0130, which becomes two, is left out."""
    runs = []
    for c in ALL:
        low = n.Lowercase().normalize_str(c)
        if low == c or len(low) > 1:
            continue
        c, delta = ord(c), ord(low) - ord(c)
        if runs and runs[-1][3] == delta and (c - runs[-1][1] == runs[-1][2] or (runs[-1][0] == runs[-1][1] and c - runs[-1][1] <= 2)):
            runs[-1][1], runs[-1][2] = c, c - runs[-1][1]
        else:
            runs.append([c, c, 1, delta])
    return runs


def write(tables, runs, out):
    out.write("/* Made by tests/oracle/gen_unicode.py: what Hugging Face answers for every code point. Pure functions. */\n"
              '#include "common/text/unicode.h"\n')
    for name, note, pairs in tables:
        out.write(f"\n/* {note} */\nstatic const uint32_t {name}[] = {{" + ",".join(f"{a:#x},{b:#x}" for a, b in pairs) + "};\n")
        out.write(f"bool tg_unicode_is_{name}(uint32_t cp) {{\n    return tg_unicode_in_ranges({name}, sizeof {name} / sizeof {name}[0] / 2, cp);\n}}\n")
    out.write("\n/* first, last, step; delta. */\nstatic const struct { uint32_t first, last, step; int32_t delta; } lower[] = {"
              + ",".join("{%#x,%#x,%d,%d}" % tuple(r) for r in runs) + "};\n")
    out.write("""uint32_t tg_unicode_lower(uint32_t cp) {
    if (cp < 0x80) return cp >= 'A' && cp <= 'Z' ? cp + 32 : cp;
    unsigned lo = 0, hi = sizeof lower / sizeof lower[0];
    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;
        if (cp > lower[mid].last)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == sizeof lower / sizeof lower[0] || cp < lower[lo].first || (cp - lower[lo].first) % lower[lo].step) return cp;
    return (uint32_t)((int32_t)cp + lower[lo].delta);
}
""")


def main():
    punct = p.Punctuation("removed")
    write([("control", "What clean_text drops besides NUL and U+FFFD.", [r for r in gone(bert(clean_text=True)) if r != [0xFFFD, 0xFFFD]]),
           ("nonspacing", "What strip_accents of a BertNormalizer drops.", gone(bert(strip_accents=True))),
           ("combining", "What StripAccents drops.", gone(n.StripAccents())),
           ("punctuation", "Where BertPreTokenizer and Punctuation cut.", ranges([c for c in ALL if not punct.pre_tokenize_str(c)]))],
          lower(), open(OUT, "w"))


main()
