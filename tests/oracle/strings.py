"""Random and adversarial strings: every plane, combining marks, emoji sequences, control characters, special tokens, long runs."""
import random
import unicodedata

WORDS = """the The a I it's IT'S we'll don't DON'T they're you've I'm he'd naïve café résumé 日本語 中文字符 한국어 русский ελληνικά العربية
עברית हिन्दी ไทย 12 3456 7.5 1e-6 2019-04-07 $9.99 x=y+1; foo_bar http://a.b/c?d=e&f=g user@host.org C++ #tag … — “quoted” 'single' it`s""".split()
SPACES = [" ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", " \n ", "\u00a0", "\u2003", "\u3000", "\u180e", "\u200b", "\u2028", "\x85", "\x0b", "\x1f"]
EMOJI = ["😀", "👩‍👩‍👧‍👦", "👍🏽", "🏳️‍🌈", "🇩🇪🇫🇷", "❤️", "e\u0301\u0323", "1️⃣"]
MARKS = [chr(c) for c in (0x300, 0x301, 0x308, 0x323, 0x327, 0x345, 0x5B0, 0x64B, 0x93C, 0x9BE, 0x1161, 0x11A8, 0x20D0, 0x3099, 0x302A, 0x1D165, 0x1E08F)]
ALL_MARKS = [chr(c) for c in range(0x300, 0x1F000) if unicodedata.combining(chr(c))]
STARTERS = [chr(c) for c in range(0xC0, 0x30000) if unicodedata.decomposition(chr(c)) and "<" not in unicodedata.decomposition(chr(c))]
HANGUL = [chr(c) for c in (0x1100, 0x1112, 0x1161, 0x1175, 0x11A8, 0x11C2, 0xAC00, 0xAC01, 0xD7A3)]
CONTRACTIONS = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'LL", "'ſ", "'", "''", "'r", "'l", " 's", "’s"]
PLANES = [(0, 0x80), (0x80, 0x250), (0x250, 0x600), (0x600, 0x1100), (0x1100, 0x2000), (0x2000, 0x3000), (0x3000, 0xD800), (0xE000, 0x10000),
          (0x10000, 0x11000), (0x11000, 0x12000), (0x12000, 0x17000), (0x16000, 0x1D000), (0x1D000, 0x1F000), (0x1F000, 0x20000),
          (0x20000, 0x2FA20), (0x30000, 0x32000), (0xE0000, 0xE0200), (0xF0000, 0x110000)]


RTL = ["\u200f", "\u200e", "\u202b", "\u202e", "\u202c", "\u2067", "\u2069", "\u061c", "مرحبا", "שָׁלוֹם", "۱۲۳", "١٢٣", "ـ", "\ufefb"]
FORMS = ["NFC", "NFD", "NFKC", "NFKD"]


def code_point(rng):
    low, high = rng.choice(PLANES)
    return chr(rng.randrange(low, high))


def piece(rng, specials):
    kind = rng.randrange(16)
    if kind < 4:
        return rng.choice(WORDS)
    if kind < 6:
        return rng.choice(SPACES)
    if kind == 6:
        return rng.choice(EMOJI)
    if kind == 7:
        return rng.choice("aeoucnAEOÅéü한가कক") + "".join(rng.choice(MARKS) for _ in range(rng.randrange(1, 4)))
    if kind == 8 and rng.random() < 0.5:
        return rng.choice(STARTERS) + "".join(rng.choice(ALL_MARKS) for _ in range(rng.randrange(4)))
    if kind == 8:
        return "".join(rng.choice(HANGUL) for _ in range(rng.randrange(1, 5)))
    if kind == 9:
        return rng.choice(CONTRACTIONS)
    if kind == 10 and specials:
        return rng.choice(specials)
    if kind == 11:
        return "".join(code_point(rng) for _ in range(rng.randrange(1, 6)))
    if kind == 14:  # the same characters in one form or the other
        return unicodedata.normalize(rng.choice(FORMS), rng.choice(WORDS) + rng.choice(STARTERS) + rng.choice("ﬁ½Ⅷ㎏ｶﾞÅÅ각"))
    if kind == 15:
        return "".join(rng.choice(RTL) for _ in range(rng.randrange(1, 4)))
    if kind == 12:
        return "".join(chr(rng.randrange(0x20, 0x7F)) for _ in range(rng.randrange(1, 8)))
    return str(rng.randrange(10 ** rng.randrange(1, 8)))


def random_string(rng, specials):
    kind = rng.randrange(20)
    if kind == 0:
        return "".join(code_point(rng) for _ in range(rng.randrange(40)))
    if kind == 1:
        return rng.choice([" ", "a", "\n", "!", "1", "é", "日", "\u0301", "'"] + [s for s in specials]) * rng.randrange(1, 200)
    if kind == 2:
        return "".join(chr(rng.randrange(0x00, 0x21)) for _ in range(rng.randrange(12)))
    if kind == 3:
        return "".join(rng.choice("ab 'ls1!\n") for _ in range(rng.randrange(30)))
    glue = rng.choice(["", "", " "])
    return glue.join(piece(rng, specials) for _ in range(rng.randrange(1, 14)))


def strings(seed, n, specials=()):
    rng = random.Random(seed)
    fixed = ["", " ", "  ", "\n", "a", "\u0301", "'s", "a" * 3000, " " * 3000 + "x", "\u0301\u0323" * 500, "ab" * 2000, "🙂" * 300]
    return fixed + [random_string(rng, list(specials)) for _ in range(n)]


def broken(seed, n):
    """Bytes that are not UTF-8: cut and over-long sequences, surrogates, stray bytes, between characters that are."""
    rng = random.Random(seed)
    odd = [bytes([b]) for b in (0x80, 0xBF, 0xC0, 0xC1, 0xC3, 0xE0, 0xE2, 0x82, 0xED, 0xA0, 0xF0, 0x9F, 0xF4, 0x90, 0xF5, 0xFF)] + [b"\xed\xa0\x80", b"\xf0\x9f", b"\xe2\x82"]
    good = [x.encode() for x in ("a", " ", "\n", "é", "日本", "😀", "the", "Ab", "12", "<s>", "\u0301")]
    return [b"".join(rng.choice(odd if rng.random() < 0.5 else good) for _ in range(rng.randrange(1, 20))) for _ in range(n)]


def long_strings(size):
    """Texts of `size` bytes with no place to cut: one letter, two, letters of one script, marks, emoji, spaces, digits."""
    return [(unit * (size // len(unit.encode()) + 1)) for unit in ("a", "ab", "日本語", "русский", "\u0301\u0323", "👩\u200d", " ", "7", "'", "العربية")]
