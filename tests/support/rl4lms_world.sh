#!/bin/bash
# rl4lms_world.sh FOLDER: everything that RL4LMs's configs name, small: FOLDER/models has random models under the names they use (for TEXTGEN_MODELS),
# FOLDER/data a few samples of each data set in its native layout (for TEXTGEN_DATA). Needs build/tests/make-model.
set -eu
BUILD=${BUILD:-build}
root=$(cd "$(dirname "$0")/../.." && pwd)
make=$root/$BUILD/tests/make-model golden=$root/tests/golden/tokenizer
out=$1
mkdir -p "$out/models" "$out/data"

# ---- models -------------------------------------------------------------------------------------------------------------------------------
cd "$out/models"
model() { "$make" "$@"; } # FOLDER CONFIG TOKENIZER TOKENIZER-CONFIG SCALE SEED
gpt2='{"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 0, "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 1024, "bos_token_id": 0, "eos_token_id": 0}'
seed=1
for name in gpt2 lvwerra/gpt2-imdb rajkumarrrk/gpt2-fine-tuned-on-daily-dialog rajkumarrrk/gpt2-fine-tuned-on-imdb-positive-reviews; do
    model $name "$gpt2" "$golden/gpt2-a" '{"tokenizer_class": "GPT2Tokenizer", "bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>", "unk_token": "<|endoftext|>", "model_max_length": 1024}' 3 $((seed++))
done
t5='{"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "vocab_size": 0, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}'
for name in t5-base rajkumarrrk/t5-common-gen allenai/unifiedqa-t5-base rajkumarrrk/t5-fine-tuned-on-iwslt2017en_de rajkumarrrk/t5-base-fine-tuned-on-cnn-dm \
    rajkumarrrk/t5-base-fine-tuned-on-totto t5-11b~commongen_prefs; do
    model $name "$t5" "$golden/t5" '{"tokenizer_class": "T5Tokenizer", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>", "model_max_length": 512}' 3 $((seed++))
done
bart='"vocab_size": 0, "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2'
roberta='{"tokenizer_class": "RobertaTokenizer", "bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>", "model_max_length": 128}'
model facebook/bart-base "{\"model_type\": \"bart\", \"architectures\": [\"BartForConditionalGeneration\"], $bart, \"decoder_start_token_id\": 2}" "$golden/roberta" "$roberta" 3 $((seed++))
model facebook/blenderbot-400M-distill "{\"model_type\": \"blenderbot\", \"architectures\": [\"BlenderbotForConditionalGeneration\"], $bart, \"decoder_start_token_id\": 1}" "$golden/roberta" "$roberta" 3 $((seed++))
model lvwerra/distilbert-imdb '{"model_type": "distilbert", "architectures": ["DistilBertForSequenceClassification"], "vocab_size": 0, "dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 40, "max_position_embeddings": 128, "num_labels": 2}' \
    "$golden/bert" '{"tokenizer_class": "DistilBertTokenizer", "model_max_length": 128}' 8 $((seed++))
encoder='"vocab_size": 0, "hidden_size": 24, "num_attention_heads": 3, "intermediate_size": 40'
model rajkumarrrk/roberta-daily-dialog-intent-classifier "{\"model_type\": \"roberta\", \"architectures\": [\"RobertaForSequenceClassification\"], $encoder, \"num_hidden_layers\": 2, \"max_position_embeddings\": 130, \"type_vocab_size\": 1, \"pad_token_id\": 1, \"num_labels\": 4}" \
    "$golden/roberta" "$roberta" 8 $((seed++))
model roberta-large "{\"model_type\": \"roberta\", \"architectures\": [\"RobertaForMaskedLM\"], $encoder, \"num_hidden_layers\": 18, \"max_position_embeddings\": 130, \"type_vocab_size\": 1, \"pad_token_id\": 1}" \
    "$golden/roberta" "$roberta" 3 $((seed++))
model bert-base-multilingual-cased "{\"model_type\": \"bert\", \"architectures\": [\"BertForMaskedLM\"], $encoder, \"num_hidden_layers\": 10, \"max_position_embeddings\": 128, \"type_vocab_size\": 2}" \
    "$golden/bert" '{"tokenizer_class": "BertTokenizer", "model_max_length": 128}' 3 $((seed++))

# ---- data ---------------------------------------------------------------------------------------------------------------------------------
cd "$out/data"
things=(dog cat boat river lamp teacher garden letter train window)
thing() { echo "${things[$(($1 % 10))]}"; }
sentence() { echo "The $(thing "$1") near the $(thing $(($1 + 3))) was $2 and the $(thing $(($1 + 7))) was not."; }

for split in train test; do for label in neg pos; do
    mkdir -p aclImdb/$split/$label
    for i in $(seq 0 9); do { sentence $i $label; sentence $((i + 1)) old; sentence $((i + 2)) long; } | tr '\n' ' ' >aclImdb/$split/$label/${i}_$((i % 5)).txt; done
done; done

mkdir -p commongen
for split in train dev; do for i in $(seq 0 5); do
    echo "{\"concept_set\": \"$(thing $i)#$(thing $((i + 1)))#run\", \"scene\": [\"A $(thing $i) and a $(thing $((i + 1))) run.\", \"$(sentence $i red)\"]}"
done >commongen/commongen.$split.jsonl; done
for i in 1 2 3; do echo "{\"concept_set\": \"$(thing $i)#look\"}"; done >commongen/commongen.test_noref.jsonl

for split in train validation test; do
    mkdir -p ijcnlp_dailydialog/$split
    for i in $(seq 0 3); do
        line='' act='' emotion=''
        for k in $(seq 0 7); do line+="$(sentence $((i + k)) $split) __eou__ " act+="$((1 + (i + k) % 4)) " emotion+="$(((i + k) % 7)) "; done
        echo "$line" >>ijcnlp_dailydialog/$split/dialogues_$split.txt
        echo "$act" >>ijcnlp_dailydialog/$split/dialogues_act_$split.txt
        echo "$emotion" >>ijcnlp_dailydialog/$split/dialogues_emotion_$split.txt
    done
done

mkdir -p iwslt2017
for lang in en de; do
    for i in $(seq 0 5); do echo "$(sentence $i $lang)"; done >iwslt2017/train.tags.en-de.$lang
    for set in dev2010 tst2015; do
        { echo '<mteval><srcset setid="x"><doc docid="1">'; for i in 1 2 3; do echo "<seg id=\"$i\"> $(sentence $i $lang) </seg>"; done; echo '</doc></srcset></mteval>'; } >iwslt2017/IWSLT17.TED.$set.en-de.$lang.xml
    done
done

mkdir -p narrative_qa
for split in train dev test; do for i in 0 1 2 3; do printf 'who saw the %s? \\n %s %s\tthe %s\n' "$(thing $i)" "$(sentence $i red)" "$(sentence $((i + 1)) blue)" "$(thing $((i + 2)))"; done >narrative_qa/$split.tsv; done

for split in train val test; do
    mkdir -p cnn_dailymail/$split
    for i in 0 1 2 3; do printf '%s\n\n%s\n\n@highlight\n\n%s\n\n@highlight\n\n%s\n' "$(sentence $i red)" "$(sentence $((i + 4)) new)" "The $(thing $i) was red" "The $(thing $((i + 4))) was new" >cnn_dailymail/$split/$i.story; done
done

mkdir -p totto_data
table() { # ID ANNOTATIONS
    local cells="[{\"value\": \"Year\", \"is_header\": true, \"column_span\": 1, \"row_span\": 1}, {\"value\": \"Thing\", \"is_header\": true, \"column_span\": 1, \"row_span\": 1}]"
    local row="[{\"value\": \"200$1\", \"is_header\": false, \"column_span\": 1, \"row_span\": 1}, {\"value\": \"$(thing $1)\", \"is_header\": false, \"column_span\": 1, \"row_span\": 1}]"
    echo "{\"table\": [$cells, $row], \"table_webpage_url\": \"u\", \"table_page_title\": \"Things\", \"table_section_title\": \"All\", \"table_section_text\": \"\", \"highlighted_cells\": [[1, 1]], \"example_id\": $1, \"overlap_subset\": $3, \"sentence_annotations\": $2}"
}
for i in 0 1 2 3; do
    text="In 200$i there was a $(thing $i)."
    one="{\"original_sentence\": \"$text\", \"sentence_after_deletion\": \"$text\", \"sentence_after_ambiguity\": \"$text\", \"final_sentence\": \"$text\"}"
    table $i "[$one]" true >>totto_data/totto_train_data.jsonl
    table $i "[$one, $one, $one]" $([ $((i % 2)) = 0 ] && echo true || echo false) >>totto_data/totto_dev_data.jsonl
    table $i "[]" true >>totto_data/unlabeled_totto_test_data.jsonl
done
