/* How a value becomes a field of the record: null where there is none. Private to report/. */
#pragma once

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>

#include "input/options.h"

static inline cJSON *object_in(cJSON *parent, const char *key) { return cJSON_AddObjectToObject(parent, key); }

/* NULL where it is not known: the field is null then. */
static inline cJSON *object_if(bool known, cJSON *parent, const char *key)
{
    return known ? object_in(parent, key) : (cJSON_AddNullToObject(parent, key), NULL);
}

static inline void put(cJSON *object, const char *key, double number)
{
    if (isfinite(number))
        cJSON_AddNumberToObject(object, key, number);
    else
        cJSON_AddNullToObject(object, key);
}

/* The text of an array, which it frees, with a line end; malloc'd. */
static inline char *print_array(cJSON *all)
{
    char *text = cJSON_Print(all);
    FA_ASSERT(text != NULL);
    char *line = fa_format("%s\n", text);
    free(text);
    cJSON_Delete(all);
    return line;
}

/* Null when the text is empty. */
static inline void put_text(cJSON *object, const char *key, const char *text)
{
    if (text[0] != '\0')
        cJSON_AddStringToObject(object, key, text);
    else
        cJSON_AddNullToObject(object, key);
}

static inline void put_bool(cJSON *object, const char *key, bool value) { cJSON_AddBoolToObject(object, key, value); }
static inline void put_count(cJSON *object, const char *key, int64_t count) { put(object, key, (double)count); }

/* Fields of a struct, at most nine, under their own names. */
#define PUT_OF_TYPE(value) \
    _Generic(value, bool : put_bool, char * : put_text, const char * : put_text, int64_t : put_count, default : put)
#define PUT_1(object, from, field) PUT_OF_TYPE((from)->field)(object, #field, (from)->field)
#define PUT_2(object, from, field, ...) PUT_1(object, from, field), PUT_1(object, from, __VA_ARGS__)
#define PUT_3(object, from, field, ...) PUT_1(object, from, field), PUT_2(object, from, __VA_ARGS__)
#define PUT_4(object, from, field, ...) PUT_1(object, from, field), PUT_3(object, from, __VA_ARGS__)
#define PUT_5(object, from, field, ...) PUT_1(object, from, field), PUT_4(object, from, __VA_ARGS__)
#define PUT_6(object, from, field, ...) PUT_1(object, from, field), PUT_5(object, from, __VA_ARGS__)
#define PUT_7(object, from, field, ...) PUT_1(object, from, field), PUT_6(object, from, __VA_ARGS__)
#define PUT_8(object, from, field, ...) PUT_1(object, from, field), PUT_7(object, from, __VA_ARGS__)
#define PUT_9(object, from, field, ...) PUT_1(object, from, field), PUT_8(object, from, __VA_ARGS__)
#define PUT_OF(a, b, c, d, e, f, g, h, i, name, ...) name
#define PUT_FIELDS(object, from, ...) \
    PUT_OF(__VA_ARGS__, PUT_9, PUT_8, PUT_7, PUT_6, PUT_5, PUT_4, PUT_3, PUT_2, PUT_1)(object, from, __VA_ARGS__)

/* A tile: knob -> value; acc is the word that --acc takes. */
static inline void put_tile(cJSON *object, const fa_knobs *tile)
{
    PUT_FIELDS(object, tile, m, n, warps, vec, stages, swizzle);
    cJSON_AddStringToObject(object, "acc", tile->acc ? "fp16" : "fp32");
    PUT_FIELDS(object, tile, maxreg, splits);
}

/* Word number `index` of a '|'-separated list. */
static inline void put_word(cJSON *object, const char *key, const char *words, int index)
{
    char word[32];
    cJSON_AddStringToObject(object, key, fa_word(words, index, word));
}

static inline void put_pair(cJSON *object, const char *key, const double pair[2])
{
    cJSON_AddItemToObject(object, key, cJSON_CreateDoubleArray(pair, 2));
}
