"""Texts to compare metrics on: random and real-like, from empty to long, with every kind of character.

pairs(rng, n, refs) yields {"prediction", "references"} objects."""
import unicodedata

VOCABULARY = """the a of to and in is was that it for on with as at by from his her they we you not are be this have had
but one all would there their what so up out if about who get which go me when make can like time no just him know take people into
year your good some could them see other than then now look only come its over think also back after use two how our work first well
way even new want because any these give day most us running runs ran runner happily happiness happy relational conditional rational
valenci hesitanci digitizer conformably radically differently vilely analogously vietnamization predication operator feudalism
decisiveness hopefulness callousness formality sensitivity sensibility triplicate formative formalize electricity electrical goodness
revival allowance inference airliner gyroscopic adjustable defensible irritant replacement adjustment dependent adoption communism
activate angularity homologous effective bowdlerize probate rate cease controlling rolling caresses ponies ties cats feed agreed
plastered bled motoring sing conflated troubled sized hopping tanned falling hissing fizzed failing filing sky skies dying lying tying
news innings outing canning howe proceed exceed succeed enjoyment spied flies dies geology geologist archaeology fully hopefully
cannot gonna gotta lemme gimme wanna children mice geese went better worst wolves oxen brought flew accidentally agreement
Mr. U.S. don't it's we're I'm 3.14 1,000 42 2026 -5 50% $9.99 #tag @user e-mail co-op state-of-the-art http://x.org/a?b=c&d
The A He She It In On At Paris London Monday January president minister government economy market company
&quot;quoted&quot; &amp; &lt;tag&gt; <skipped> (hello) [world] {x} "yes" 'no' a/b a+b=c x^2 ~50 `code` semi;colon: what? wow! ... -- 'tis""".split()
CHINESE = list("我们的中国人大不了学生喜欢吃苹果在北京天安门看见很多，。！？「」（）、；：３４５")
JAPANESE = list("私は日本語を勉強しますカタカナひらがな、。・「」ー々")
OTHER = ["Привет", "мир", "ΣΊΣΥΦΟΣ", "ὈΔΥΣΣΕΎΣ", "Straße", "İstanbul", "naïve", "café", "cafe\u0301", "Größe", "ÅNGSTRÖM", "K", "مرحبا", "שלום",
         "हिन्दी", "ไทย", "한국어", "😀", "👩‍👩‍👧", "€5", "£10", "½", "x²", "№7", "…", "—", "–", "“q”", "‘s’", "«a»", "¿qué?", "¡ya!", "®", "©", "→",
         "٣٫١٤", "१२३", "5½.", "3.½", "，", "。", "\u00ad", "\u200b", "\ufeff", "a\u200db", "ǅ", "ﬁ", "ß", "ẞ", "Ⅷ", "ªº"]
SPACES = [" ", "  ", "\n", "\t", "\u00a0", "\u3000", "\r\n", "\u2003", "\x1c", "\x0b", "\u2028", "-\n", "\n-"]
CATEGORIES = ("L", "M", "N", "P", "S", "Z", "C")


def any_char(rng):
    while True:
        c = chr(rng.choice((rng.randrange(1, 128), rng.randrange(1, 0x800), rng.randrange(1, 0x10000), rng.randrange(1, 0x20000))))
        # Characters that all libraries involved know (assigned before Unicode 14).
        if unicodedata.category(c) not in ("Cs", "Cn", "Co"):
            return c


def word(rng, kind):
    if kind == "mixed":
        kind = rng.choice(("plain",) * 6 + ("other", "chinese", "japanese", "chars", "repeat"))
    if kind == "plain":
        w = rng.choice(VOCABULARY)
        if rng.random() < 0.1:
            w += rng.choice(list(".,!?;:'\")-") + ["'s", "...", ".\n", "n't"])
        if rng.random() < 0.05:
            w = rng.choice("\"'([{-#$") + w
        if rng.random() < 0.05:
            w = w.upper() if rng.random() < 0.5 else w.capitalize()
        return w
    if kind == "few":
        return rng.choice("abcd")
    if kind == "chinese":
        return "".join(rng.choice(CHINESE) for _ in range(rng.randrange(1, 8)))
    if kind == "japanese":
        return "".join(rng.choice(JAPANESE) for _ in range(rng.randrange(1, 8)))
    if kind == "other":
        return rng.choice(OTHER)
    if kind == "chars":
        return "".join(any_char(rng) for _ in range(rng.randrange(1, 6)))
    return rng.choice(VOCABULARY) * rng.randrange(2, 4)


def text(rng, kind, n):
    out = []
    for i in range(n):
        if i:
            out.append(" " if rng.random() < 0.9 else rng.choice(SPACES))
        out.append(word(rng, kind))
    if rng.random() < 0.05:
        out.append(rng.choice(SPACES))
    if rng.random() < 0.02:
        out.insert(0, rng.choice(SPACES))
    return "".join(out)


def edited(rng, base, kind):
    """A text that shares much with base: words dropped, added, replaced, blocks moved."""
    words = base.split(" ")
    for _ in range(rng.randrange(0, 2 + len(words) // 5)):
        at = rng.randrange(len(words) + 1)
        act = rng.randrange(4)
        if act == 0 and words:
            del words[min(at, len(words) - 1)]
        elif act == 1:
            words.insert(at, word(rng, kind))
        elif act == 2 and words:
            words[min(at, len(words) - 1)] = word(rng, kind)
        elif words:
            size = rng.randrange(1, 6)
            block = words[at:at + size]
            del words[at:at + size]
            to = rng.randrange(len(words) + 1)
            words[to:to] = block
    return " ".join(words)


def size(rng, longest):
    r = rng.random()
    if r < 0.02:
        return 0
    if r < 0.08:
        return 1
    if r < 0.2:
        return rng.randrange(2, 6)
    if r < 0.9:
        return rng.randrange(5, min(40, longest))
    return rng.randrange(min(20, longest // 2), longest)


def pairs(rng, n, refs=1, longest=120):
    """refs: how many references each has; 0: a random number from 1 to 4."""
    for _ in range(n):
        kind = rng.choice(("plain", "plain", "plain", "mixed", "mixed", "few", "chars", "chinese", "other"))
        prediction = text(rng, kind, size(rng, longest))
        references = []
        for _ in range(refs or rng.randrange(1, 5)):
            r = rng.random()
            if r < 0.04:
                references.append(prediction)
            elif r < 0.65:
                references.append(edited(rng, prediction, kind))
            else:
                references.append(text(rng, kind, size(rng, longest)))
        yield {"prediction": prediction, "references": references}
