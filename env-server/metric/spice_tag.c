/* Word classes for the scene graph: closed classes by list, open ones by WordNet's counts and their neighbours. */
#include "env-server/metric/spice.h"

#include <string.h>

typedef struct closed {
    tg_spice_tag tag;
    const char *words; /* between spaces */
} closed;

static const closed lists[] = {
    {TG_SPICE_DET,
     " a an the this these those some any each every no another both all several many few much "},
    {TG_SPICE_OWNER, " his her their its my your our "},
    {TG_SPICE_POSSESSIVE, " 's ’s ' "},
    {TG_SPICE_PRONOUN,
     " he she it they we you i him them me us himself herself itself themselves someone "
     "something one's everyone nobody what "},
    {TG_SPICE_NUMBER,
     " one two three four five six seven eight nine ten eleven twelve dozen hundred thousand "},
    {TG_SPICE_PREP,
     " of in on at by with from to into onto over under near behind beside between through across "
     "along against around about above below beneath inside outside towards toward past during "
     "before after for off without within atop down up like upon among amid via despite per "},
    {TG_SPICE_AND, " and or & but "},
    {TG_SPICE_RELATIVE, " that which who whose where "},
    {TG_SPICE_THERE, " there "},
    {TG_SPICE_BE, " is are was were be been being 're am "},
    {TG_SPICE_AUX,
     " has have had having do does did can could will would shall should may might must "
     "gets getting "},
    {TG_SPICE_ADVERB,
     " not n't very too also just so then here together while as when if because almost only "
     "quite still out away back next close "},
    {TG_SPICE_STOP, " . ; : ! ? "},
};

static bool listed(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at++)
        if (at > list && at[-1] == ' ' && at[n] == ' ') return true;
    return false;
}

static tg_spice_tag closed_tag(const char *word) {
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (listed(lists[i].words, word)) return lists[i].tag;
    if (word[0] >= '0' && word[0] <= '9') return TG_SPICE_NUMBER;
    return TG_SPICE_OTHER;
}

/* What a word can be. */
typedef struct chances {
    bool is[4]; /* by tg_wordnet_pos */
    tg_wordnet_entry as[4];
    bool gerund, past, s; /* endings: -ing, a past form, third person or plural */
} chances;

static bool ends(const char *w, const char *end) {
    size_t n = strlen(w), k = strlen(end);
    return n > k && !strcmp(w + n - k, end);
}

static void look_up(const tg_wordnet *w, const char *word, chances *c) {
    size_t n = strlen(word);
    for (int p = 0; p < 4; p++)
        c->is[p] = tg_wordnet_look_up(w, (tg_wordnet_pos)p, word, n, &c->as[p]);
    bool verb = c->is[TG_WORDNET_VERB] && c->as[TG_WORDNET_VERB].inflected;
    c->gerund = verb && ends(word, "ing");
    c->s =
        ends(word, "s") && (verb || (c->is[TG_WORDNET_NOUN] && c->as[TG_WORDNET_NOUN].inflected));
    c->past = verb && !c->gerund && !c->s;
}

static unsigned weight(const chances *c, tg_wordnet_pos p) {
    return c->is[p] ? c->as[p].frequency + 1 : 0;
}

/* Could the word begin or continue a noun phrase? */
static bool nominal(const tg_wordnet *w, const char *word) {
    tg_spice_tag t = closed_tag(word);
    if (t != TG_SPICE_OTHER) return t == TG_SPICE_NUMBER;
    chances c;
    look_up(w, word, &c);
    if (!c.is[TG_WORDNET_NOUN] && !c.is[TG_WORDNET_ADJ])
        return !c.is[TG_WORDNET_VERB] && !c.is[TG_WORDNET_ADV];
    unsigned best = weight(&c, TG_WORDNET_NOUN);
    if (weight(&c, TG_WORDNET_ADJ) > best) best = weight(&c, TG_WORDNET_ADJ);
    if (c.gerund) return weight(&c, TG_WORDNET_NOUN) > weight(&c, TG_WORDNET_VERB) / 4 + 4;
    return best * 4 >= weight(&c, TG_WORDNET_VERB);
}

/* Does the noun phrase go on behind word i, also as in "a red and blue ball"? */
static bool goes_on(const tg_wordnet *w, const chances *c, const tg_spice_word *words, size_t n,
                    size_t i) {
    if (i + 1 >= n) return false;
    if (nominal(w, words[i + 1].text)) return true;
    return i + 2 < n && c->is[TG_WORDNET_ADJ] &&
           weight(c, TG_WORDNET_ADJ) >= weight(c, TG_WORDNET_NOUN) &&
           closed_tag(words[i + 1].text) == TG_SPICE_AND && nominal(w, words[i + 2].text);
}

/* "has a drink": the verb, not the auxiliary. */
static bool has_object(const tg_wordnet *w, const tg_spice_word *words, size_t n, size_t i) {
    if (words[i].tag != TG_SPICE_AUX || strncmp(words[i].text, "ha", 2) != 0 || i + 1 >= n)
        return false;
    tg_spice_tag next = closed_tag(words[i + 1].text);
    return next == TG_SPICE_DET || next == TG_SPICE_OWNER || nominal(w, words[i + 1].text);
}

static bool in_phrase(tg_spice_tag t) {
    return t == TG_SPICE_DET || t == TG_SPICE_OWNER || t == TG_SPICE_POSSESSIVE ||
           t == TG_SPICE_NUMBER || t == TG_SPICE_ADJ;
}

static tg_spice_tag noun_or_adj(const chances *c, bool more) {
    if (more && (c->gerund || c->past) && !c->is[TG_WORDNET_NOUN]) return TG_SPICE_ADJ;
    if (!c->is[TG_WORDNET_ADJ]) return TG_SPICE_NOUN;
    if (!c->is[TG_WORDNET_NOUN]) return TG_SPICE_ADJ;
    if (more)
        return 2 * weight(c, TG_WORDNET_ADJ) >= weight(c, TG_WORDNET_NOUN) ? TG_SPICE_ADJ
                                                                           : TG_SPICE_NOUN;
    return weight(c, TG_WORDNET_ADJ) > 8 * weight(c, TG_WORDNET_NOUN) ? TG_SPICE_ADJ
                                                                      : TG_SPICE_NOUN;
}

/* An open-class word, from what stands before it and whether a noun phrase goes on behind it. */
static tg_spice_tag open_tag(const chances *c, tg_spice_tag before, bool plural_before, bool more) {
    bool verb = c->is[TG_WORDNET_VERB], noun = c->is[TG_WORDNET_NOUN];
    if (!verb && !noun && !c->is[TG_WORDNET_ADJ])
        return c->is[TG_WORDNET_ADV] ? TG_SPICE_ADVERB : TG_SPICE_NOUN;
    if (in_phrase(before)) return noun_or_adj(c, more);
    if (before == TG_SPICE_BE) {
        if (c->gerund) return TG_SPICE_VERB;
        if (c->past && weight(c, TG_WORDNET_VERB) >= weight(c, TG_WORDNET_ADJ))
            return TG_SPICE_VERB;
        if (!more && c->is[TG_WORDNET_ADJ] &&
            4 * weight(c, TG_WORDNET_ADJ) >= weight(c, TG_WORDNET_NOUN))
            return TG_SPICE_ADJ;
        return c->past ? TG_SPICE_VERB : noun_or_adj(c, more);
    }
    if ((before == TG_SPICE_AUX || before == TG_SPICE_PRONOUN || before == TG_SPICE_RELATIVE) &&
        verb)
        return c->gerund && before == TG_SPICE_PRONOUN ? TG_SPICE_GERUND : TG_SPICE_VERB;
    if (c->gerund && weight(c, TG_WORDNET_NOUN) < 20 && !(more && before != TG_SPICE_NOUN))
        return TG_SPICE_GERUND;
    if (before == TG_SPICE_NOUN && verb && !more) {
        bool agrees = c->past || c->gerund || (c->s ? !plural_before : plural_before);
        if (c->past) return TG_SPICE_GERUND; /* finite or not, as there is another verb */
        if (agrees && (!noun || 4 * weight(c, TG_WORDNET_VERB) >= weight(c, TG_WORDNET_NOUN)))
            return c->gerund ? TG_SPICE_GERUND : TG_SPICE_VERB;
    }
    if (before == TG_SPICE_NOUN && verb && !noun && !c->is[TG_WORDNET_ADJ])
        return c->past || c->gerund ? TG_SPICE_GERUND : TG_SPICE_VERB;
    if (!noun && !c->is[TG_WORDNET_ADJ])
        return c->past || c->gerund ? TG_SPICE_GERUND : TG_SPICE_VERB;
    if (c->is[TG_WORDNET_ADV] &&
        weight(c, TG_WORDNET_ADV) > weight(c, TG_WORDNET_NOUN) + weight(c, TG_WORDNET_ADJ))
        return TG_SPICE_ADVERB;
    return noun_or_adj(c, more);
}

static const char *base_form(const tg_spice_word *w, const chances *c) {
    switch (w->tag) {
    case TG_SPICE_NOUN: return c->is[TG_WORDNET_NOUN] ? c->as[TG_WORDNET_NOUN].lemma : w->text;
    case TG_SPICE_VERB:
    case TG_SPICE_GERUND: return c->is[TG_WORDNET_VERB] ? c->as[TG_WORDNET_VERB].lemma : w->text;
    default: return w->text;
    }
}

tg_status tg_spice_tag_words(const tg_wordnet *wordnet, tg_spice_word *words, size_t n,
                             tg_arena *arena, tg_error *err) {
    tg_spice_tag before = TG_SPICE_STOP; /* adverbs are looked through */
    bool plural_before = false;
    for (size_t i = 0; i < n; i++) {
        tg_spice_word *w = &words[i];
        w->lemma = w->text;
        w->tag = closed_tag(w->text);
        if (has_object(wordnet, words, n, i)) {
            w->tag = ends(w->text, "ing") ? TG_SPICE_GERUND : TG_SPICE_VERB;
            w->lemma = "have";
        }
        if (w->tag == TG_SPICE_OTHER && (unsigned char)w->text[0] < 0x80 &&
            !strpbrk(w->text, "abcdefghijklmnopqrstuvwxyz")) {
            w->tag = !strcmp(w->text, ",") ? TG_SPICE_OTHER : TG_SPICE_STOP;
            before = w->tag;
            continue;
        }
        if (w->tag == TG_SPICE_OTHER) {
            chances c;
            look_up(wordnet, w->text, &c);
            bool more = goes_on(wordnet, &c, words, n, i);
            w->tag = open_tag(&c, before, plural_before, more);
            w->plural = w->tag == TG_SPICE_NOUN &&
                        ((c.is[TG_WORDNET_NOUN] && c.as[TG_WORDNET_NOUN].inflected) ||
                         !strcmp(w->text, "people") || (!c.is[TG_WORDNET_NOUN] && c.s));
            w->being = w->tag == TG_SPICE_NOUN && c.is[TG_WORDNET_NOUN] &&
                       (c.as[TG_WORDNET_NOUN].field == 5 || c.as[TG_WORDNET_NOUN].field == 18 ||
                        !strcmp(w->text, "people"));
            w->passive = w->tag != TG_SPICE_NOUN && c.past;
            w->lemma = tg_arena_strdup(arena, base_form(w, &c));
            if (!w->lemma) return tg_fail_nomem(err, strlen(w->text));
        }
        if (w->tag == TG_SPICE_ADVERB) continue;
        before = w->tag, plural_before = w->plural;
    }
    return TG_OK;
}
