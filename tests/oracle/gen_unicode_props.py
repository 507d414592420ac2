#!/usr/bin/env python3
"""Writes common/text/unicode_props.c and unicode_scripts.c: what Hugging Face's regular expressions and UnicodeScripts answer for every code point,
beyond what Unicode 14 (Debian 12's PCRE2) knows. Needs a Python whose unicodedata is 14.0 (3.11)."""
import os
import unicodedata

from tokenizers import Regex, normalizers, pre_tokenizers

assert unicodedata.unidata_version == "14.0.0"
ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
TEXT = "".join(map(chr, ALL))
OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "common", "text")
NAMES = "L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp Cc Cf Co".split()
CATEGORY = {c: unicodedata.category(chr(c)) for c in ALL}


def matched(pattern):
    rest = set(normalizers.Replace(Regex(pattern), "").normalize_str(TEXT))
    return {c for c in ALL if chr(c) not in rest}


def ranges(points):
    out = []
    for c in sorted(points):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def numbers(pairs):
    return ",".join(f"{a:#x},{b:#x}" for a, b in pairs)


def known(names):
    return {c for c in ALL if any(CATEGORY[c].startswith(n) for n in names)}


def props(out):
    out.write("/* Made by tests/oracle/gen_unicode_props.py: code points that the properties of Hugging Face's regular expressions have and Unicode\n"
              " * 14 does not. Pure functions. */\n#include \"common/text/unicode.h\"\n\n#include <string.h>\n")
    tables = [("word", ranges(matched(r"\w") - known(["L", "M", "Nd", "Nl", "Pc"])))]
    tables += [(n, ranges(matched(r"\p{%s}" % n) - known([n]))) for n in NAMES]
    tables.append(("Han", ranges(matched(r"\p{Han}"))))
    for n, pairs in tables:
        if pairs:
            out.write(f"\nstatic const uint32_t more_{n}[] = {{{numbers(pairs)}}};\n")
    out.write("\nstatic const struct { const char *name; const uint32_t *pairs; unsigned n; } props[] = {\n")
    for n, pairs in tables:
        out.write(f'    {{"{n}", {f"more_{n}" if pairs else "NULL"}, {len(pairs)}}},\n')
    out.write("""};

bool tg_unicode_property(const char *name, size_t len, const uint32_t **pairs, unsigned *n) {
    for (size_t i = 0; i < sizeof props / sizeof props[0]; i++)
        if (strlen(props[i].name) == len && !memcmp(props[i].name, name, len)) {
            *pairs = props[i].pairs, *n = props[i].n;
            return true;
        }
    return false;
}
""")


def scripts(out):
    cut = pre_tokenizers.UnicodeScripts().pre_tokenize_str
    runs, reps = [], []
    for c in ALL:
        if not cut(chr(c)):
            continue
        if runs and runs[-1][1] == c - 1 and len(cut(chr(c - 1) + chr(c))) == 1:
            runs[-1][1] = c
            continue
        k = next((i for i, r in enumerate(reps) if len(cut(r + chr(c))) == 1), None)
        if k is None:
            k = len(reps)
            reps.append(chr(c))
        runs.append([c, c, k + 1])
    out.write("/* Made by tests/oracle/gen_unicode_props.py: the scripts of Hugging Face's UnicodeScripts. Pure functions. */\n"
              '#include "common/text/unicode.h"\n\n#include <stddef.h>\n\n/* first, last, number of the script */\nstatic const uint32_t scripts[][3] = {'
              + ",".join("{%#x,%#x,%d}" % tuple(r) for r in runs) + "};\n")
    out.write("""
unsigned tg_unicode_script(uint32_t cp) {
    size_t lo = 0, hi = sizeof scripts / sizeof scripts[0];
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (cp > scripts[mid][1])
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < sizeof scripts / sizeof scripts[0] && cp >= scripts[lo][0] ? scripts[lo][2] : 0;
}
""")


props(open(OUT + "/unicode_props.c", "w"))
scripts(open(OUT + "/unicode_scripts.c", "w"))
