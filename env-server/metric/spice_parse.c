/* Tagged words to propositions: noun phrases with their modifiers, then verbs and prepositions between them, from
 * left to right. What the original takes from dependencies is guessed from order: a phrase behind a preposition
 * belongs to the verb unless the preposition is "of" or "with" or the verb has its object already. */
#include "env-server/metric/spice.h"

#include <stdio.h>
#include <string.h>

enum { MAX_SUBJECTS = 8, NO_PHRASE = -1 };

typedef struct phrase {
    const char *head;
    bool being;
    size_t above; /* number of the phrase it hangs on, + 1; 0: none */
} phrase;

typedef struct parser {
    const tg_wordnet *wordnet;
    const tg_spice_word *w;
    size_t n, at;
    tg_spice_tuples *out;
    phrase *phrases;
    size_t n_phrases;
    size_t subjects[MAX_SUBJECTS]; /* phrases */
    size_t n_subjects;
    long last;               /* phrase, or NO_PHRASE */
    const char *verb, *prep; /* waiting for what follows */
    const char *relation;    /* of the last phrase with the subjects: for "and" */
    bool finite, passive, used, object, copula, there, joined;
} parser;

static void add(parser *p, const char *a, const char *b, const char *c) {
    tg_spice_tuples *t = p->out;
    if (t->n == t->cap) {
        size_t cap = t->cap ? 2 * t->cap : 32;
        tg_spice_tuple *v = tg_arena_array(t->arena, cap, sizeof *v);
        if (!v) {
            t->failed = true;
            return;
        }
        if (t->n) memcpy(v, t->v, t->n * sizeof *v);
        t->v = v, t->cap = cap;
    }
    t->v[t->n++] = (tg_spice_tuple){{a, b, c}};
}

static const char *join(parser *p, const char *a, const char *b) {
    tg_buf text = {0};
    tg_buf_printf(&text, "%s %s", a, b);
    const char *out = text.failed ? NULL : tg_arena_strdup(p->out->arena, text.data);
    if (!out) p->out->failed = true;
    tg_buf_fini(&text);
    return out ? out : "";
}

static const tg_spice_word *word(const parser *p, size_t ahead) {
    static const tg_spice_word end = {.text = "", .lemma = "", .tag = TG_SPICE_STOP};
    return p->at + ahead < p->n ? &p->w[p->at + ahead] : &end;
}

/* An intransitive verb of a sentence is an attribute of its subject. */
static void end_verb(parser *p) {
    if (p->verb && p->finite && !p->used)
        for (size_t i = 0; i < p->n_subjects; i++)
            add(p, p->phrases[p->subjects[i]].head, p->verb, NULL);
    p->verb = NULL;
}

static void end_clause(parser *p) {
    end_verb(p);
    p->prep = p->relation = NULL;
    p->n_subjects = 0, p->last = NO_PHRASE;
    p->copula = p->there = p->joined = false;
}

/* ---- noun phrases ------------------------------------------------------------------------------ */

static bool quantity(const char *noun) {
    static const char list[] = " group lot couple bunch pair number crowd variety set row ";
    char key[40];
    snprintf(key, sizeof key, " %.36s ", noun);
    return strstr(list, key) != NULL;
}

/* Does a noun phrase start here? */
static bool starts_phrase(const parser *p) {
    tg_spice_tag t = word(p, 0)->tag;
    return t == TG_SPICE_DET || t == TG_SPICE_OWNER || t == TG_SPICE_NUMBER || t == TG_SPICE_ADJ ||
           t == TG_SPICE_NOUN;
}

/* Reads a phrase and adds it with its modifiers; NO_PHRASE when there is no noun in it. */
static long read_phrase(parser *p) {
    size_t begin = p->at, last_noun = p->n, end;
    bool owned = false;
    for (end = p->at; end < p->n; end++) {
        tg_spice_tag t = p->w[end].tag;
        bool inner_and = t == TG_SPICE_AND && end > begin && p->w[end - 1].tag == TG_SPICE_ADJ &&
                         end + 1 < p->n && p->w[end + 1].tag == TG_SPICE_ADJ;
        bool inner_comma = !strcmp(p->w[end].text, ",") && end > begin &&
                           p->w[end - 1].tag == TG_SPICE_ADJ && end + 1 < p->n &&
                           p->w[end + 1].tag == TG_SPICE_ADJ;
        bool before_noun = t == TG_SPICE_DET || t == TG_SPICE_OWNER || t == TG_SPICE_NUMBER ||
                           t == TG_SPICE_ADJ || t == TG_SPICE_ADVERB || inner_and || inner_comma;
        if (t == TG_SPICE_NOUN)
            last_noun = end;
        else if (last_noun < p->n || !before_noun)
            break;
        owned |= t == TG_SPICE_OWNER;
    }
    p->at = end;
    if (last_noun >= p->n) return NO_PHRASE;
    const tg_spice_word *head = &p->w[last_noun];
    for (size_t i = begin; i < last_noun; i++) {
        const tg_spice_word *w = &p->w[i];
        if (w->tag == TG_SPICE_ADJ || w->tag == TG_SPICE_NOUN)
            add(p, head->lemma, w->lemma, NULL);
        else if (w->tag == TG_SPICE_NUMBER && (head->plural || strcmp(w->text, "one") != 0))
            add(p, head->lemma, w->text, NULL);
    }
    add(p, head->lemma, NULL, NULL);
    long id = (long)p->n_phrases;
    p->phrases[p->n_phrases++] = (phrase){head->lemma, head->being, 0};
    if (owned && p->n_subjects) add(p, p->phrases[p->subjects[0]].head, head->lemma, "have");
    if (word(p, 0)->tag == TG_SPICE_POSSESSIVE) { /* the dog's ball */
        p->at++;
        long thing = read_phrase(p);
        if (thing == NO_PHRASE) return id;
        add(p, head->lemma, p->phrases[thing].head, "have");
        return thing;
    }
    return id;
}

/* ---- what stands between them ------------------------------------------------------------------ */

static void relate_subjects(parser *p, const phrase *object, const char *relation) {
    for (size_t i = 0; i < p->n_subjects; i++)
        add(p, p->phrases[p->subjects[i]].head, object->head, relation);
    p->relation = relation;
}

static void after_preposition(parser *p, long id) {
    phrase *now = &p->phrases[id];
    const char *prep = p->prep;
    bool of = !strcmp(prep, "of") || !strcmp(prep, "with");
    p->prep = NULL;
    if (p->verb && p->passive && !strcmp(prep, "by")) {
        for (size_t i = 0; i < p->n_subjects; i++)
            add(p, now->head, p->phrases[p->subjects[i]].head, p->verb);
        p->used = true;
    } else if (p->verb && p->n_subjects && !(of && p->object) && !(p->used && of)) {
        relate_subjects(p, now, join(p, p->verb, prep));
        p->used = true;
    } else if (p->copula && p->n_subjects && !p->there && !p->used) {
        relate_subjects(p, now, prep);
        p->used = true;
    } else if (p->last != NO_PHRASE) {
        add(p, p->phrases[p->last].head, now->head, prep);
        now->above = (size_t)p->last + 1;
        p->relation = NULL;
    }
    p->last = id;
}

static void new_phrase(parser *p, long id) {
    const phrase *now = &p->phrases[id];
    if (p->prep) {
        after_preposition(p, id);
    } else if (p->joined && p->relation) { /* … and another object of the same relation */
        relate_subjects(p, now, p->relation);
        p->last = id;
    } else if (p->joined && !p->verb && !p->copula && p->n_subjects &&
               p->n_subjects < MAX_SUBJECTS && p->last == (long)p->subjects[p->n_subjects - 1]) {
        p->subjects[p->n_subjects++] = (size_t)id;
        p->last = id;
    } else if (p->verb && !p->object && p->n_subjects) {
        relate_subjects(p, now, p->verb);
        p->used = p->object = true;
        p->last = id;
    } else if (p->copula && p->n_subjects && !p->there) {
        for (size_t i = 0; i < p->n_subjects; i++)
            add(p, p->phrases[p->subjects[i]].head, now->head, NULL);
        p->copula = false;
        p->last = id;
    } else {
        end_verb(p);
        p->subjects[0] = (size_t)id;
        p->n_subjects = 1, p->last = id;
        p->copula = p->there = false, p->relation = NULL;
    }
    p->joined = false;
}

/* The noun that a participle belongs to: the nearest being of those that hang together, else the nearest. */
static size_t owner_of(const parser *p) {
    size_t at = (size_t)p->last;
    while (!p->phrases[at].being && p->phrases[at].above) at = p->phrases[at].above - 1;
    return p->phrases[at].being ? at : (size_t)p->last;
}

/* pick up, but walk down: WordNet knows the verbs with particles. */
static const char *with_particle(parser *p, const char *verb) {
    char key[TG_WORDNET_WORD];
    tg_wordnet_entry e;
    const tg_spice_word *next = word(p, 0);
    if (next->tag != TG_SPICE_PREP && next->tag != TG_SPICE_ADVERB) return verb;
    if (!strstr(" up down out off away back over on in ", next->text)) return verb;
    bool direct = word(p, 1)->tag == TG_SPICE_DET || word(p, 1)->tag == TG_SPICE_NOUN ||
                  word(p, 1)->tag == TG_SPICE_ADJ || word(p, 1)->tag == TG_SPICE_OWNER;
    if (direct && strstr(" down over on in ", next->text)) return verb;
    int n = snprintf(key, sizeof key, "%.100s_%.20s", verb, next->text);
    if (!tg_wordnet_look_up(p->wordnet, TG_WORDNET_VERB, key, (size_t)n, &e)) return verb;
    p->at++;
    return join(p, verb, next->text);
}

static void read_verb(parser *p) {
    const tg_spice_word *w = word(p, 0);
    bool alone = w->tag == TG_SPICE_GERUND; /* without an auxiliary */
    end_verb(p);
    p->at++;
    if (alone && p->last != NO_PHRASE && !p->joined) {
        p->subjects[0] = owner_of(p);
        p->n_subjects = 1;
    }
    p->verb = with_particle(p, w->lemma);
    /* A past form with nothing else in the sentence is its verb. */
    p->finite = !alone;
    p->passive = w->passive && (alone || p->copula);
    p->used = p->object = p->copula = p->there = p->joined = false;
    p->prep = p->relation = NULL;
}

/* Prepositions of several words count as one. */
static void read_preposition(parser *p) {
    static const char *const several[] = {
        "in front of", "on top of",  "next to",    "close to",   "out of",         "outside of",
        "inside of",   "because of", "along with", "instead of", "on the side of", "away from",
        "such as",     "in between", "up to",      NULL};
    for (const char *const *s = several; *s; s++) {
        size_t k = 0;
        const char *at = *s;
        while (*at) {
            size_t n = strcspn(at, " ");
            if (strlen(word(p, k)->text) != n || strncmp(word(p, k)->text, at, n) != 0) break;
            at += n + (at[n] == ' '), k++;
        }
        if (*at) continue;
        p->prep = *s;
        p->at += k;
        return;
    }
    if (word(p, 0)->tag == TG_SPICE_PREP) p->prep = word(p, 0)->text;
    p->at++;
}

static bool begins_preposition(const parser *p) {
    const tg_spice_word *w = word(p, 0), *next = word(p, 1);
    if (w->tag == TG_SPICE_PREP) return true;
    return (!strcmp(next->text, "to") && (!strcmp(w->text, "next") || !strcmp(w->text, "close"))) ||
           (!strcmp(w->text, "out") && !strcmp(next->text, "of")) ||
           (!strcmp(w->text, "away") && !strcmp(next->text, "from"));
}

/* "a group of people": people, with an attribute. */
static long read_counted(parser *p, long id) {
    size_t of = p->at++, object = p->out->n - 1;
    long more = starts_phrase(p) ? read_phrase(p) : NO_PHRASE;
    if (more == NO_PHRASE) {
        p->at = of;
        return id;
    }
    p->out->v[object] = (tg_spice_tuple){{p->phrases[more].head, p->phrases[id].head, NULL}};
    return more;
}

static void step(parser *p) {
    const tg_spice_word *w = word(p, 0);
    if (begins_preposition(p)) {
        read_preposition(p);
    } else if (w->tag == TG_SPICE_ADJ && p->copula && word(p, 1)->tag != TG_SPICE_NOUN &&
               word(p, 1)->tag != TG_SPICE_ADJ) {
        for (size_t i = 0; i < p->n_subjects; i++)
            add(p, p->phrases[p->subjects[i]].head, w->lemma, NULL);
        p->at++;
    } else if (starts_phrase(p)) {
        size_t begin = p->at;
        long id = read_phrase(p);
        if (p->at == begin) p->at++;
        if (id != NO_PHRASE && p->at <= begin + 2 && quantity(p->phrases[id].head) &&
            !strcmp(word(p, 0)->text, "of"))
            id = read_counted(p, id);
        if (id != NO_PHRASE) new_phrase(p, id);
    } else if (w->tag == TG_SPICE_VERB || w->tag == TG_SPICE_GERUND) {
        read_verb(p);
    } else {
        if (w->tag == TG_SPICE_STOP) end_clause(p);
        if (w->tag == TG_SPICE_THERE) p->there = true;
        if (w->tag == TG_SPICE_BE) end_verb(p), p->copula = true, p->used = false;
        if (w->tag == TG_SPICE_AND) p->joined = true;
        if (w->tag == TG_SPICE_RELATIVE && p->last != NO_PHRASE) {
            end_verb(p);
            p->subjects[0] = (size_t)p->last;
            p->n_subjects = 1;
        }
        if (w->tag == TG_SPICE_PRONOUN && p->verb && !p->prep) p->used = true;
        if (w->tag == TG_SPICE_PRONOUN) p->prep = NULL;
        p->at++;
    }
}

void tg_spice_parse(const tg_wordnet *w, const tg_spice_word *words, size_t n,
                    tg_spice_tuples *out) {
    parser p = {.wordnet = w, .w = words, .n = n, .out = out, .last = NO_PHRASE};
    p.phrases = tg_arena_array(out->arena, n + 1, sizeof *p.phrases);
    if (!p.phrases) out->failed = true;
    while (p.at < n && !out->failed) step(&p);
    end_clause(&p);
}
