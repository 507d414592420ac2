/* learner/policy: settings of generation as they are written, defaults of a model's folder, stop strings. */
#include "common/base/check.h"
#include "common/base/file.h"
#include "learner/policy/stop.h"
#include "common/text/stop_strings.h"
#include "tests/support/tg_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static tg_error err;

static tg_status read_text(tg_gen_settings *s, const char *text, tg_arena *arena) {
    tg_node *node = NULL;
    tg_status st = tg_tree_parse(arena, "test.yml", text, strlen(text), &node, &err);
    return st == TG_OK ? tg_gen_settings_read(s, node, "kw", arena, &err) : st;
}

TEST(lists_and_mixed_types) {
    tg_arena arena = {0};
    tg_gen_settings s;
    CHECK_OK(read_text(&s,
                       "{bad_words_ids: [[5, 7], [12]], stop_ids: [[3]], eos_token_id: [1, 2], "
                       "forced_eos_token_id: 9, suppress_tokens: [4, 5], early_stopping: never, "
                       "exponential_decay_length_penalty: [6, 1.5], pad_token_id: 8, "
                       "sequence_bias: [[[3, 4], -2.5]], min_new_tokens: 3, min_length: 50}",
                       &arena));
    CHECK_EQ(s.n_bad_words, 2);
    CHECK_EQ(s.bad_words[0].n, 2);
    CHECK_EQ(s.bad_words[1].ids[0], 12);
    CHECK_EQ(s.n_stops, 1);
    CHECK_EQ(s.n_eos, 2);
    CHECK(tg_gen_is_eos(&s, 2) && !tg_gen_is_eos(&s, 3));
    CHECK_EQ(s.forced_eos.ids[0], 9);
    CHECK_EQ(s.suppress.n, 2);
    CHECK_EQ(s.early, TG_STOP_NEVER);
    CHECK_EQ(s.decay_start, 6);
    CHECK_NEAR(s.decay_factor, 1.5, 0);
    CHECK_EQ(s.pad_id, 8);
    CHECK_NEAR(s.biases[0].bias, -2.5, 0);
    CHECK_EQ(s.n_biases, 1);
    CHECK_EQ(tg_gen_min_new(&s, 4), 3); /* min_length does not count then */
    CHECK_OK(read_text(&s, "{early_stopping: True}", &arena));
    CHECK_EQ(s.early, TG_STOP_EARLY);
    CHECK_EQ(s.n_eos, 0);
    CHECK_EQ(tg_gen_slots(&s, 7), 7);
    s.num_beams = 3;
    CHECK_EQ(tg_gen_slots(&s, 7), 6);
    CHECK_EQ(tg_gen_slots(&s, 1), 3);
    tg_arena_fini(&arena);
}

TEST(of_a_sequence_with_two_biases_the_last_counts) {
    tg_arena arena = {0};
    tg_gen_settings s;
    CHECK_OK(read_text(
        &s, "{sequence_bias: [[[52], -5.0], [[5, 2], 1], [[52], 0.5], [[5], 3], [[5, 2], 2]]}",
        &arena));
    CHECK_EQ(s.n_biases, 3);
    CHECK_NEAR(s.biases[0].bias, 0.5, 0);
    CHECK_NEAR(s.biases[1].bias, 2, 0);
    CHECK_NEAR(s.biases[2].bias, 3, 0);
    CHECK_EQ(s.biases[2].sequence.n, 1);
    tg_arena_fini(&arena);
}

TEST(what_is_wrong_is_said_with_its_key) {
    static const char *const cases[][2] = {
        {"{bad_words_ids: 5}", "bad_words_ids"},
        {"{bad_words_ids: [5]}", "bad_words_ids"},
        {"{bad_words_ids: [[]]}", "bad_words_ids"},
        {"{bad_words_ids: [[x]]}", "bad_words_ids"},
        {"{eos_token_id: x}", "eos_token_id"},
        {"{eos_token_id: [-1]}", "eos_token_id"},
        {"{eos_token_id: [1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}", "eos_token_id"},
        {"{early_stopping: sometimes}", "early_stopping"},
        {"{exponential_decay_length_penalty: [1]}", "exponential_decay_length_penalty"},
        {"{sequence_bias: [[1, 2]]}", "sequence_bias"},
        {"{temperature: -1}", "temperature"},
        {"{num_beam: 3}", "num_beams"},
        {"{top_k: null}", "kw.top_k: null is off"},
        {"{top_k: }", "write 0 for off"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_arena arena = {0};
        tg_gen_settings s;
        CHECK_EQ(read_text(&s, cases[i][0], &arena), TG_CONFIG);
        tg_check(strstr(err.msg, cases[i][1]) && strstr(err.msg, "test.yml"), __FILE__, __LINE__,
                 "%s: %s", cases[i][0], err.msg);
        tg_arena_fini(&arena);
    }
}

/* transformers runs a greedy search whatever the temperature; folders have 0. */
TEST(what_samples_need_is_asked_when_sampling) {
    static const struct {
        const char *text, *key; /* NULL: fine */
    } cases[] = {
        {"{temperature: 0}", NULL},
        {"{temperature: 0, num_beams: 2}", NULL},
        {"{temperature: 0, do_sample: true}", "kw.temperature"},
        {"{temperature: 1e-12, do_sample: true}", NULL},
        {"{typical_p: 0}", NULL},
        {"{typical_p: 0, do_sample: true}", "kw.typical_p"},
    };
    for (size_t i = 0; i < TG_COUNT_OF(cases); i++) {
        tg_arena arena = {0};
        tg_gen_settings s;
        CHECK_OK(read_text(&s, cases[i].text, &arena));
        CHECK_EQ(tg_gen_settings_supported(&s, "kw", &err), cases[i].key ? TG_CONFIG : TG_OK);
        if (cases[i].key) CHECK(strstr(err.msg, cases[i].key) != NULL);
        tg_arena_fini(&arena);
    }
}

/* A folder may have the key, and in it the value that asks for nothing. */
TEST(what_is_not_built_is_refused_unless_it_is_off) {
    static const struct {
        const char *text, *key; /* NULL: fine */
    } cases[] = {
        {"{token_healing: true}", "kw.token_healing"},
        {"{token_healing: false}", NULL},
        {"{penalty_alpha: 0.6, top_k: 4}", "kw.penalty_alpha"},
        {"{penalty_alpha: 0.0}", NULL},
        {"{guidance_scale: 1.5}", "kw.guidance_scale"},
        {"{guidance_scale: 1}", NULL},
        {"{guidance_scale: 0}", "kw.guidance_scale"},
        {"{max_time: 0}", "kw.max_time"},
        {"{dola_layers: null}", NULL},
        {"{dola_layers: low}", "kw.dola_layers"},
    };
    for (size_t i = 0; i < TG_COUNT_OF(cases); i++) {
        tg_arena arena = {0};
        tg_gen_settings s;
        CHECK_OK(read_text(&s, cases[i].text, &arena));
        CHECK_EQ(tg_gen_settings_supported(&s, "kw", &err), cases[i].key ? TG_UNSUPPORTED : TG_OK);
        if (cases[i].key) CHECK(strstr(err.msg, cases[i].key) != NULL);
        tg_arena_fini(&arena);
    }
}

TEST(tokens_that_the_model_does_not_have_are_named) {
    static const char *const cases[][2] = {
        {"{bad_words_ids: [[3], [4, 20, 5]]}", "kw.bad_words_ids"},
        {"{sequence_bias: [[[20], 1.5]]}", "kw.sequence_bias"},
        {"{stop_ids: [[7, 21]]}", "kw.stop_ids"},
        {"{forced_bos_token_id: 20}", "kw.forced_bos_token_id"},
        {"{forced_eos_token_id: [1, 20]}", "kw.forced_eos_token_id"},
    };
    tg_arena arena = {0};
    tg_gen_settings s;
    for (size_t i = 0; i < TG_COUNT_OF(cases); i++) {
        CHECK_OK(read_text(&s, cases[i][0], &arena));
        CHECK_OK(tg_gen_settings_fit(&s, 30, "kw", &err));
        CHECK_EQ(tg_gen_settings_fit(&s, 20, "kw", &err), TG_CONFIG);
        CHECK(strstr(err.msg, cases[i][1]) && strstr(err.msg, "0 to 19, found 2"));
    }
    /* a small model with the tokens of a large one's config */
    CHECK_OK(
        read_text(&s, "{eos_token_id: 50256, pad_token_id: 50256, suppress_tokens: [99]}", &arena));
    CHECK_OK(tg_gen_settings_fit(&s, 20, "kw", &err));
    tg_arena_fini(&arena);
}

static const char *write_file(const char *folder, const char *name, const char *text) {
    static char path[700];
    char dir[600];
    snprintf(dir, sizeof dir, "%s/%s", tg_test_tmpdir(), folder);
    CHECK_OK(tg_dir_create(dir, &err));
    snprintf(path, sizeof path, "%s/%s", dir, name);
    CHECK_OK(tg_file_write_atomic(path, text, strlen(text), &err));
    snprintf(path, sizeof path, "%s", dir);
    return path;
}

static tg_gen_settings with_folder(const char *folder, const char *given, tg_arena *arena) {
    tg_gen_settings s = {0};
    tg_node *parsed = NULL;
    if (given) CHECK_OK(tg_tree_parse(arena, "given", given, strlen(given), &parsed, &err));
    const tg_node *node = parsed;
    CHECK_OK(tg_gen_model_defaults(&node, folder, arena, &err));
    CHECK_OK(tg_gen_settings_read(&s, node, "kw", arena, &err));
    return s;
}

TEST(a_folder_s_defaults_stand_behind_what_is_given) {
    tg_arena arena = {0};
    write_file("old", "config.json",
               "{\"num_beams\": 4, \"top_k\": null, \"eos_token_id\": 3, \"n_embd\": 8}");
    char old[700];
    snprintf(old, sizeof old, "%s/old", tg_test_tmpdir());
    tg_gen_settings s = with_folder(old, NULL, &arena);
    CHECK_EQ(s.num_beams, 4);
    CHECK_EQ(s.top_k, 50);
    CHECK_EQ(s.eos_ids[0], 3);
    s = with_folder(old, "{num_beams: 2, max_length: 7}", &arena);
    CHECK_EQ(s.num_beams, 2);
    CHECK_EQ(s.max_length, 7);
    /* a generation_config.json alone counts */
    const char *both = write_file("old", "generation_config.json",
                                  "{\"do_sample\": true,\t\"transformers_version\": \"4.30\"}");
    s = with_folder(both, "{top_p: 0.5}", &arena);
    CHECK(s.do_sample);
    CHECK_EQ(s.num_beams, 1);
    CHECK_EQ(s.n_eos, 0);
    CHECK_NEAR(s.top_p, 0.5, 0);
    const char *none = write_file("none", "other.json", "{}");
    s = with_folder(none, NULL, &arena);
    CHECK_EQ(s.max_length, 20);
    const char *broken = write_file("broken", "generation_config.json", "{\"top_k\": ");
    const tg_node *node = NULL;
    CHECK_EQ(tg_gen_model_defaults(&node, broken, &arena, &err), TG_DATA);
    CHECK(strstr(err.msg, "generation_config.json"));
    const char *list = write_file("list", "generation_config.json", "[1]");
    CHECK_EQ(tg_gen_model_defaults(&node, list, &arena, &err), TG_DATA);
    const char *wrong = write_file("wrong", "generation_config.json", "{\"top_k\": \"many\"}");
    CHECK_OK(tg_gen_model_defaults(&node, wrong, &arena, &err));
    CHECK_EQ(tg_gen_settings_read(&s, node, "kw", &arena, &err), TG_CONFIG);
    CHECK(strstr(err.msg, "generation_config.json"));
    tg_arena_fini(&arena);
}

static const char *const numbers[] = {"do_sample",
                                      "temperature",
                                      "top_p",
                                      "typical_p",
                                      "min_p",
                                      "epsilon_cutoff",
                                      "eta_cutoff",
                                      "min_length",
                                      "max_length",
                                      "repetition_penalty",
                                      "encoder_repetition_penalty",
                                      "no_repeat_ngram_size",
                                      "encoder_no_repeat_ngram_size",
                                      "num_return_sequences",
                                      "num_beams",
                                      "num_beam_groups",
                                      "diversity_penalty",
                                      "length_penalty",
                                      "remove_invalid_values",
                                      "renormalize_logits"};

/* All settings as one text. */
static const char *shown(const char *text, tg_arena *arena, tg_buf *out) {
    tg_gen_settings s = {0};
    tg_status st = read_text(&s, text, arena);
    tg_check(st == TG_OK, __FILE__, __LINE__, "%s: %s", text, err.msg);
    tg_opts_json(tg_gen_options, &s, out);
    tg_buf_putc(out, '\0');
    return out->data;
}

TEST(a_number_that_is_null_is_not_given) {
    tg_arena arena = {0};
    tg_gen_settings s;
    tg_buf want = {0};
    shown("{}", &arena, &want);
    for (size_t i = 0; i < TG_COUNT_OF(numbers); i++) {
        char text[100];
        snprintf(text, sizeof text, "{%s: null}", numbers[i]);
        tg_buf got = {0};
        CHECK_STR(shown(text, &arena, &got), want.data);
        tg_buf_fini(&got);
    }
    tg_buf_fini(&want);
    /* a file may have every key, top_k too */
    const char *folder = write_file("nulls", "generation_config.json",
                                    "{\"temperature\": null, \"top_k\": null, \"num_beams\": null, "
                                    "\"max_new_tokens\": null, \"do_sample\": null}");
    s = with_folder(folder, "{temperature: null, do_sample: ~}", &arena);
    CHECK_EQ(s.top_k, 50);
    CHECK_NEAR(s.temperature, 1, 0);
    tg_arena_fini(&arena);
}

/* transformers 4 takes the folder's value then, 5 does not. */
TEST(null_against_what_a_folder_says_is_refused) {
    static const struct {
        const char *given;
        bool refused;
    } cases[] = {
        {"{temperature: null}", true},         {"{do_sample: null}", true},
        {"{num_beams: null}", true},           {"{top_p: null}", false},
        {"{renormalize_logits: null}", false}, {"{min_p: null}", false},
    };
    const char *folder = write_file("says", "generation_config.json",
                                    "{\"temperature\": 0.7, \"do_sample\": true, \"num_beams\": 4, "
                                    "\"top_p\": 1, \"renormalize_logits\": false, \"top_k\": 3}");
    for (size_t i = 0; i < TG_COUNT_OF(cases); i++) {
        tg_arena arena = {0};
        tg_node *node = NULL;
        CHECK_OK(
            tg_tree_parse(&arena, "given", cases[i].given, strlen(cases[i].given), &node, &err));
        const tg_node *all = node;
        CHECK_EQ(tg_gen_model_defaults(&all, folder, &arena, &err),
                 cases[i].refused ? TG_CONFIG : TG_OK);
        if (cases[i].refused)
            CHECK(strstr(err.msg, node->items[0]->key) && strstr(err.msg, "given:1") &&
                  strstr(err.msg, "generation_config.json"));
        tg_arena_fini(&arena);
    }
}

TEST(old_folders_say_none_and_bos_in_their_own_way) {
    tg_arena arena = {0};
    const char *folder = write_file("minus", "generation_config.json",
                                    "{\"pad_token_id\": -1, \"eos_token_id\": 2}");
    tg_gen_settings s = with_folder(folder, NULL, &arena);
    CHECK_EQ(s.pad_id, -1);
    CHECK_EQ(s.eos_ids[0], 2);
    const char *bart = "{\"model_type\": \"bart\", \"force_bos_token_to_be_generated\": true";
    char text[200];
    snprintf(text, sizeof text, "%s}", bart);
    s = with_folder(write_file("bart", "config.json", text), NULL, &arena);
    CHECK_EQ(s.forced_bos_token_id, 0);
    snprintf(text, sizeof text, "%s, \"bos_token_id\": 7}", bart);
    folder = write_file("bart", "config.json", text);
    s = with_folder(folder, NULL, &arena);
    CHECK_EQ(s.forced_bos_token_id, 7);
    s = with_folder(folder, "{forced_bos_token_id: 3}", &arena);
    CHECK_EQ(s.forced_bos_token_id, 3);
    snprintf(text, sizeof text, "%s, \"bos_token_id\": 7, \"forced_bos_token_id\": 5}", bart);
    s = with_folder(write_file("bart", "config.json", text), NULL, &arena);
    CHECK_EQ(s.forced_bos_token_id, 5);
    write_file("bart", "config.json", text);
    s = with_folder(write_file("bart", "generation_config.json", "{}"), NULL, &arena);
    CHECK(s.forced_bos_token_id == INT64_MIN);
    tg_arena_fini(&arena);
}

TEST(families_have_defaults_that_old_folders_leave_out) {
    static const struct {
        const char *family;
        int n_eos, eos, ngram;
    } want[] = {{"bart", 1, 2, 0},    {"mbart", 1, 2, 0},      {"marian", 1, 0, 0},
                {"pegasus", 1, 1, 0}, {"blenderbot", 1, 2, 3}, {"blenderbot-small", 1, 2, 0},
                {"t5", 0, 0, 0},      {"gpt2", 0, 0, 0}};
    tg_arena arena = {0};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        char text[200];
        snprintf(text, sizeof text, "{\"model_type\": \"%s\"}", want[i].family);
        tg_gen_settings s = with_folder(write_file("family", "config.json", text), NULL, &arena);
        CHECK_EQ(s.forced_eos.n, want[i].n_eos);
        if (s.forced_eos.n) CHECK_EQ(s.forced_eos.ids[0], want[i].eos);
        CHECK_EQ(s.encoder_no_repeat_ngram_size, want[i].ngram);
        snprintf(text, sizeof text,
                 "{\"model_type\": \"%s\", \"forced_eos_token_id\": null, "
                 "\"encoder_no_repeat_ngram_size\": 0}",
                 want[i].family);
        s = with_folder(write_file("family", "config.json", text), NULL, &arena);
        CHECK_EQ(s.forced_eos.n, 0);
        CHECK_EQ(s.encoder_no_repeat_ngram_size, 0);
    }
    tg_arena_fini(&arena);
}

/* The built-in tokenizer: byte-level BPE. */
static tg_stop_strings *stops(const char *text, const tg_tokenizer *t, tg_arena *arena) {
    tg_node *node = NULL;
    tg_stop_strings *s = NULL;
    CHECK_OK(tg_tree_parse(arena, "stop", text, strlen(text), &node, &err));
    CHECK_OK(tg_stop_strings_create(&s, node, "kw", t, 768, &err));
    return s;
}

TEST(a_stop_string_is_complete_within_the_last_token) {
    tg_arena arena = {0};
    tg_tokenizer *t;
    CHECK_OK(tg_tokenizer_open(&t, tg_test_path("../configs/models/tiny"), &err));
    tg_stop_strings *s = stops("[box is, 'é', ' r']", t, &arena);
    static const char *const texts[] = {
        "The box is", "The box", "The box is red", "caf\xc3\xa9", "x r", "is box", ""};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tg_ids ids = {0};
        CHECK_OK(tg_tokenizer_encode(t, texts[i], strlen(texts[i]), 0, &ids, &err));
        int first = -1; /* the shortest beginning whose text has a stop string in it */
        for (int n = 1; n <= (int)ids.n && first < 0; n++) {
            tg_buf text = {0};
            CHECK_OK(tg_tokenizer_decode(t, ids.data, (size_t)n, 0, &text, &err));
            tg_buf_putc(&text, '\0');
            if (strstr(text.data, "box is") || strstr(text.data, "\xc3\xa9") ||
                strstr(text.data, " r"))
                first = n;
            tg_buf_fini(&text);
        }
        int hit = -1;
        for (int n = 1; n <= (int)ids.n && hit < 0; n++)
            if (tg_stop_strings_hit(s, ids.data, n)) hit = n;
        CHECK_EQ(hit, first);
        CHECK(!tg_stop_strings_hit(s, (int32_t[]){-1, 100000}, 2));
        tg_ids_fini(&ids);
    }
    tg_node bad = {.kind = TG_NODE_MAP}, empty = {.kind = TG_NODE_SCALAR, .text = ""};
    tg_stop_strings *none = NULL;
    CHECK_EQ(tg_stop_strings_create(&none, &bad, "kw", t, 768, &err), TG_CONFIG);
    CHECK_EQ(tg_stop_strings_create(&none, &empty, "kw", t, 768, &err), TG_CONFIG);
    CHECK(strstr(err.msg, "kw.stop_strings"));
    tg_stop_strings_destroy(&s);
    tg_tokenizer_destroy(&t);
    tg_arena_fini(&arena);
}

TEST_MAIN
