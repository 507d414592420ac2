/* The grammar. A rule is a list of alternatives; {rule} in an alternative is replaced by one of that rule's, and a few
 * words in braces have a meaning of their own: {name} takes a person, whom {he} {his} {him} then mean; {2-9} is a number
 * in that range; {iso} a date as 2019-04-07, {run} a few bare numbers. Afterwards "a" becomes "an" where it must and
 * sentences get their capital.
 *
 * Mix of texts: a third are bare numbers in mostly random order, a quarter are sentences with numbers, a quarter
 * mention days (of these, two in five as an ISO date: a tenth of all texts), the rest are simple sentences.
 * The words are few and their combinations many, so that a model of a million parameters learns to write such
 * sentences without learning them by heart. */
#include "common/cli/grammar.h"

#include "common/base/check.h"
#include "common/base/rng.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct rule {
    const char *name, *choices; /* separated by '|'; a choice written twice is twice as likely */
} rule;

static const rule rules[] = {
    {"text",
     "{run}|{run}|{run}|{run}|{counts}|{counts}|{counts}|{days}|{days}|{days}|{plain}|{plain}"},

    /* words */
    {"girl", "Anna|Clara|Emma|Julia|Lena|Maria|Nina|Rosa|Sara|Vera"},
    {"boy", "Ben|David|Felix|Hugo|Jonas|Karl|Leo|Martin|Paul|Tom"},
    {"animal", "bird|cat|cow|dog|duck|fish|fox|goat|horse|mouse|owl|pig|rabbit|sheep"},
    {"animals", "birds|cats|cows|dogs|ducks|goats|horses|mice|pigs|rabbits|hens|geese"},
    {"thing", "bag|ball|bell|book|box|bottle|chair|clock|coat|cup|hat|key|lamp|letter|map|pen|"
              "phone|shoe|table|umbrella"},
    {"things", "bags|balls|bells|books|boxes|bottles|chairs|cups|hats|keys|lamps|letters|maps|pens|"
               "stones|coins"},
    {"food", "apple|cake|carrot|egg|orange|pear|potato|sandwich|tomato|cookie"},
    {"foods", "apples|cakes|carrots|eggs|oranges|pears|potatoes|sandwiches|tomatoes|cookies|plums"},
    {"drink", "coffee|milk|tea|water|juice"},
    {"color", "black|blue|brown|green|orange|red|white|yellow"},
    {"look",
     "big|bright|clean|dark|empty|heavy|light|long|new|old|open|round|small|strange|{color}"},
    {"coat", "big|black|brown|fat|gray|little|old|quick|small|white|young"},
    {"mood", "angry|happy|hungry|quiet|sad|sleepy|tired|proud|busy|late"},
    {"weather", "cold|cloudy|dry|hot|rainy|sunny|warm|windy|wet"},
    {"place", "bridge|church|farm|garden|house|kitchen|library|market|museum|park|river|school|"
              "shop|station|street|village"},
    {"in", "in the {room}|near the {place}|at the {shop}|behind the {place}|in the {place2}"},
    {"room", "garden|kitchen|hall|attic|library|yard"},
    {"shop", "market|station|farm|school|shop"},
    {"place2", "park|village|city|forest|street|field"},
    {"go", "walked|ran|went|drove|came|hurried"},
    {"see", "found|saw|liked|lost|bought|painted|carried|sold|wanted|dropped"},
    {"eat", "ate|bought|cooked|shared|brought|wanted"},
    {"move", "jumped|ran|slept|sat|waited|stood|played|hid"},
    {"when", "in the morning|in the evening|at night|after lunch|before dinner|all "
             "day|again|today|every day"},
    {"why", "because it was {weather}|because {he} was {mood}|but {he} was {mood}|and {he} was "
            "{mood}|so {he} went home"},
    {"someone", "the teacher|the farmer|the driver|the baker|the doctor|the old man|the old "
                "woman|the neighbor|the children"},

    /* simple sentences */
    {"plain",
     "{story}|{story}|{story} {more}|{scene}|{scene} {story}|{story} {more} {more}|{talk}"},
    {"story", "{name} {go} to the {place} {when}.|{name} {see} a {look} {thing} {in}.|{name} was "
              "{mood} {when}.|"
              "{name} {eat} a {food} and drank some {drink}.|{name} has a {look} {thing} and a "
              "{look} {animal}.|"
              "{name} {see} the {thing} {why}.|{name} {go} to the {place} {why}.|{name} and "
              "{someone} {go} to the {place}.|"
              "{name} gave the {look} {thing} to {someone}.|{name} lives near the {place}."},
    {"more", "Then {he} {go} home.|{he} {see} a {look} {thing}.|{he} was {mood} {when}.|{his} "
             "{animal} was {mood}.|"
             "{he} {eat} a {food}.|{someone} saw {him} {in}.|{his} {thing} was {look}.|It was "
             "{weather} {when}."},
    {"scene", "The {animal} {move} {in}.|The {look} {thing} is {in}.|It was {weather} {when}.|The "
              "{place} was {look} and {look}.|"
              "A {coat} {animal} {move} {in}.|{someone} {go} to the {place} {when}.|The {animal} "
              "and the {animal} {move} {in}.|"
              "There is a {look} {thing} {in}."},
    {"talk", "\"Where is the {thing}?\" asked {name}.|\"The {thing} is {in},\" said {name}.|\"I am "
             "{mood},\" said {name}.|"
             "\"It is {weather} today,\" said {someone}."},

    /* sentences with numbers */
    {"counts", "{count}|{count}|{count}|{count} {count}|{count} {scene}"},
    {"count", "The box has {2-9} {color} {things} and {2-20} {color} ones.|{name} has {2-12} "
              "{things} and {2-12} {foods}.|"
              "There are {2-40} {animals} {in}.|{name} bought {2-12} {foods} for {2-60} coins.|"
              "The {place} is {2-90} years old.|{2-12} {animals} and {2-30} {animals} {move} {in}.|"
              "{name} counted {10-99} {things}, then {2-30} more.|The {thing} costs {2-99} coins.|"
              "{name} read {2-99} pages {when}.|The bus number {1-99} goes to the {place}.|"
              "{name} is {3-90} years old.|Room {1-60} is {look}, room {1-60} is {look}.|"
              "{someone} sold {2-60} {foods} and {2-20} {things}."},

    /* days, most of them in words */
    {"days", "{byword}|{byword}|{byword}|{byiso}|{byiso}"},
    {"byword",
     "{on} {name} {go} to the {place}.|{name} {see} a {look} {thing} {on}.|The {event} is "
     "{on}.|The {event} was {on}.|"
     "It was {weather} {on}.|{on} {someone} {eat} a {food}.|The {place} is open {on} and {on}.|"
     "{name} was {mood} {on}, but happy {on}."},
    {"on", "on Monday|on Tuesday|on Wednesday|on Thursday|on Friday|on Saturday|on Sunday|on the "
           "{nth} of {month}|in {month}|"
           "on {weekday} morning|last {weekday}|next {weekday}"},
    {"weekday", "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday"},
    {"nth", "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last day"},
    {"month",
     "January|February|March|April|May|June|July|August|September|October|November|December"},
    {"event", "meeting|party|market|concert|lesson|game|race|wedding|test|trip"},
    {"byiso",
     "The {event} was on {iso}.|{name} was born on {iso}.|On {iso} {name} {go} to the {place}.|"
     "The letter came on {iso}.|The {event} starts on {iso}.|{name} wrote the date: {iso}.|Date: "
     "{iso}. It was {weather}.|"
     "The {place} was {look} on {iso}."},
};

typedef struct writer {
    tg_rng rng;
    tg_buf *out;
    bool female; /* the last person named */
} writer;

static int64_t between(writer *w, int64_t low, int64_t high) {
    return low + (int64_t)tg_rng_below(&w->rng, (uint64_t)(high - low + 1));
}

/* A real day between 1950 and 2029. */
static void write_iso(writer *w) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = (int)between(w, 1950, 2029), month = (int)between(w, 1, 12);
    tg_buf_printf(w->out, "%04d-%02d-%02d", year, month, (int)between(w, 1, days[month - 1]));
}

/* Three to ten bare numbers. One run in eight rises and one in sixteen falls; the others are in random order. */
static void write_run(writer *w) {
    static const int limits[] = {10, 20, 30, 50, 100, 100};
    int64_t n = between(w, 3, 10), limit = limits[tg_rng_below(&w->rng, 6)],
            kind = between(w, 0, 15);
    int64_t value = kind < 2 ? between(w, 0, limit / 3) : between(w, 0, limit);
    for (int64_t i = 0; i < n; i++) {
        tg_buf_printf(w->out, "%s%lld", i ? " " : "", (long long)value);
        if (kind < 2)
            value += between(w, 1, limit / 10 + 1);
        else if (kind == 2)
            value = value > limit / 10 ? value - between(w, 1, limit / 10) : 0;
        else
            value = between(w, 0, limit);
    }
}

static void expand_rule(writer *w, const char *name, size_t len, int depth);

static const char *pick(writer *w, const char *choices, size_t *len) {
    size_t n = 1;
    for (const char *p = choices; *p; p++) n += *p == '|';
    for (size_t skip = (size_t)tg_rng_below(&w->rng, n); skip; skip--)
        choices = strchr(choices, '|') + 1;
    *len = strcspn(choices, "|");
    return choices;
}

static void expand(writer *w, const char *text, size_t len, int depth) {
    for (size_t i = 0; i < len;) {
        if (text[i] != '{') {
            tg_buf_putc(w->out, text[i++]);
            continue;
        }
        size_t n = strcspn(text + i + 1, "}");
        expand_rule(w, text + i + 1, n, depth);
        i += n + 2;
    }
}

static bool is(const char *name, size_t len, const char *word) {
    return strlen(word) == len && !memcmp(name, word, len);
}

static void expand_rule(writer *w, const char *name, size_t len, int depth) {
    TG_ASSERT(depth < 16);
    if (isdigit((unsigned char)name[0])) {
        char *dash;
        int64_t low = strtoll(name, &dash, 10);
        tg_buf_printf(w->out, "%lld", (long long)between(w, low, strtoll(dash + 1, NULL, 10)));
    } else if (is(name, len, "run")) {
        write_run(w);
    } else if (is(name, len, "iso")) {
        write_iso(w);
    } else if (is(name, len, "name")) {
        w->female = tg_rng_below(&w->rng, 2);
        expand_rule(w, w->female ? "girl" : "boy", w->female ? 4 : 3, depth + 1);
    } else if (is(name, len, "he")) {
        tg_buf_puts(w->out, w->female ? "she" : "he");
    } else if (is(name, len, "his")) {
        tg_buf_puts(w->out, w->female ? "her" : "his");
    } else if (is(name, len, "him")) {
        tg_buf_puts(w->out, w->female ? "her" : "him");
    } else {
        const rule *r = rules;
        while (r < rules + sizeof rules / sizeof rules[0] && !is(name, len, r->name)) r++;
        TG_ASSERT(r < rules + sizeof rules / sizeof rules[0]);
        size_t n;
        const char *choice = pick(w, r->choices, &n);
        expand(w, choice, n, depth + 1);
    }
}

static bool ends_sentence(const char *s, size_t i) {
    return i >= 2 && s[i - 1] == ' ' && (s[i - 2] == '.' || s[i - 2] == '?');
}

/* Copies raw to out with "a apple" as "an apple" and a capital where a sentence begins. */
static void polish(const tg_buf *raw, tg_buf *out) {
    const char *s = raw->data;
    for (size_t i = 0; i < raw->len; i++) {
        bool first = i == 0 || ends_sentence(s, i);
        tg_buf_putc(out, first ? (char)toupper((unsigned char)s[i]) : s[i]);
        bool article = (s[i] == 'a' || s[i] == 'A') && (i == 0 || s[i - 1] == ' ') &&
                       i + 2 < raw->len && s[i + 1] == ' ';
        if (article && strchr("aeiou", s[i + 2])) tg_buf_putc(out, 'n');
    }
}

void tg_grammar_text(uint64_t seed, uint64_t line, tg_buf *out) {
    tg_buf raw = {0};
    writer w = {tg_rng_at(seed, TG_RNG_DATA, line, 0), &raw, false};
    expand_rule(&w, "text", 4, 0);
    polish(&raw, out);
    out->failed |= raw.failed;
    tg_buf_fini(&raw);
}
