"""Random English-like texts that visit the corners of word and sentence splitting, for the live comparisons."""
import random

WORDS = """the a of and to in is was for on that with he she it they said cannot can't won't don't isn't I'll we've they're you'd he's dogs'
wanna gonna gotta gimme lemme more'n d'ye 'tis 'twas 'Twas 'em rock'n'roll o'clock O'Neill John's JAMES' Mr. Mrs. Dr. U.S. U.K. U.N. a.m. p.m. e.g. i.e.
Inc. Corp. Co. Ltd. St. Jan. Sept. No. vs. etc. J. B. K. X. Ph.D. M.B.A. Smith Bach Washington New York London However But The In He It They We Although
running quickly jumps beautiful happier children mice geese better best went gone was been studies flies policies universities dogs cats feet
3.14 1,000 2,5 $3.88 10% 5. 12. 1999. 20,000. -3 .5 #1 @home a@b.com http://x.y/z?q=1 AT&T R&D C++ well-known twenty-one state-of-the-art -- --- ... .. .... . . .
naïve café Zürich über Ärger straße İstanbul ΟΔΟΣ Σ привет мир 中文 字 ½ ² Ⅷ é à ñ ok OK Yes no""".split()
OPEN = ['"', "'", "(", "[", "{", "<", "``", "''", "`", "“", "‘", "«", "„", "-", "--", "—", "*"]
CLOSE = ['"', "'", ")", "]", "}", ">", "''", "”", "’", "»", ".", "!", "?", "...", ".", ".", ",", ";", ":", "!!", "?!", ".)", '."', "?'", ".'", ".”", "-", "--", "*", "–"]
SPACES = [" "] * 20 + ["  ", "\n", "\n\n", "\t", " \n ", "\u00a0", "\u2003", "\r\n", ""]
CHARS = list(" .?!,:;'\"`-()[]{}<>*@#$%&…–—‘’“”«»„ab sStTmMdDnrelvIiſıİ\t\n1 2x_é") + ["'s", "n't", "'ll", "...", ". .", " .", "''", "``", "--"]


def sentence(r):
    out = []
    for _ in range(r.choice([0, 1, 2, 3, 5, 8, 13, 20, 30])):
        w = r.choice(WORDS)
        k = r.random()
        if k < 0.1:
            w = w.capitalize()
        elif k < 0.13:
            w = w.upper()
        if r.random() < 0.08:
            w = r.choice(OPEN) + w
        if r.random() < 0.15:
            w += r.choice(CLOSE)
        if r.random() < 0.02:
            w += r.choice(CLOSE)
        out.append(w + r.choice(SPACES))
    return "".join(out)


def text(r):
    k = r.random()
    if k < 0.25:
        return "".join(r.choice(CHARS) for _ in range(r.randrange(0, 40)))
    if k < 0.3:
        return "".join(chr(r.choice([r.randrange(1, 0x250), r.randrange(0x2000, 0x2040), r.randrange(0x370, 0x400)])) for _ in range(r.randrange(0, 30)))
    return "".join(sentence(r) + r.choice(["", ".", "! ", ". ", "? ", ".\n", "... "]) for _ in range(r.choice([1, 1, 1, 2, 3, 5])))


def texts(n, seed):
    r = random.Random(seed)
    return [text(r) for _ in range(n)]
