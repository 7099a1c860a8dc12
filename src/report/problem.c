#include "report/problem.h"

#include "report/fields.h"

/* A number that is null where it is off. */
static void put_if(cJSON *object, const char *key, double number) { put(object, key, number > 0 ? number : NAN); }

static void put_features(cJSON *problem, const fa_problem *p)
{
    put(problem, "dim_v", fa_problem_dim_v(p));
    cJSON_AddBoolToObject(problem, "v_in_k", p->v_in_k);
    const int window[2] = {p->window_left, p->causal ? 0 : p->window_right};
    if (p->windowed)
        cJSON_AddItemToObject(problem, "window", cJSON_CreateIntArray(window, 2));
    else
        cJSON_AddNullToObject(problem, "window");
    put_if(problem, "chunk", p->chunk);
    put_if(problem, "softcap", (double)p->softcap);
    PUT_FIELDS(problem, p, sinks, alibi, bias);
    put_word(problem, "mask", FA_MASK_WORDS, p->tree ? FA_MASK_TREE : FA_MASK_NONE);
    if (p->lengths == NULL) {
        cJSON_AddNullToObject(problem, "lengths");
    } else {
        cJSON *lengths = object_in(problem, "lengths");
        cJSON_AddItemToObject(lengths, "q", cJSON_CreateIntArray(p->lengths->q, p->lengths->count));
        cJSON_AddItemToObject(lengths, "kv", cJSON_CreateIntArray(p->lengths->kv, p->lengths->count));
    }
    put_if(problem, "page_size", p->pages != NULL ? p->pages->size : 0);
    put_text(problem, "page_layout", p->pages == NULL ? "" : p->pages->nhd ? "nhd" : "hnd");
    put(problem, "pairs", (double)fa_problem_pairs(p));
}

void fa_report_problem(cJSON *record, const fa_problem *p, const fa_options *options)
{
    cJSON *problem = object_in(record, "problem");
    PUT_FIELDS(problem, p, batch, heads, kv_heads, seq_q, seq_kv, dim, causal);
    put_word(problem, "dtype", FA_DTYPE_WORDS, p->dtype);
    put_word(problem, "kv_dtype", FA_DTYPE_WORDS, fa_problem_dtype_kv(p));
    put_word(problem, "op", FA_OP_WORDS, p->backward ? FA_OP_BACKWARD : FA_OP_FORWARD);
    cJSON_AddBoolToObject(problem, "deterministic", p->deterministic);
    put(problem, "scale", (double)p->scale);
    put_word(problem, "strides", FA_STRIDES_WORDS, options->strides);
    put(problem, "misalign", options->misalign);
    put_features(problem, p);
    put(problem, "flop", fa_problem_flop(p));
    put(problem, "bytes", fa_problem_bytes(p));
}

static void put_bits(cJSON *object, const char *key, const char *words, int32_t bits)
{
    cJSON *list = cJSON_AddArrayToObject(object, key);
    char word[32];
    for (int bit = 0; fa_word(words, bit, word)[0] != '\0'; bit++)
        if (bits >> bit & 1)
            cJSON_AddItemToArray(list, cJSON_CreateString(word));
}

void fa_report_contract(cJSON *object, const fa_candidate_record *candidate)
{
    const int32_t serves = candidate->module.info.serves | candidate->library.serves;
    put_bits(object, "serves", FA_FEATURES_WORDS, serves);
    put_bits(object, "needs", FA_NEEDS_WORDS, fa_candidate_needs(candidate));
}
