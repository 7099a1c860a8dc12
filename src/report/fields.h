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

/* A tile: knob -> value; acc is the word that --acc takes. */
static inline void put_tile(cJSON *object, const fa_knobs *tile)
{
    put(object, "m", tile->m);
    put(object, "n", tile->n);
    put(object, "warps", tile->warps);
    put(object, "vec", tile->vec);
    put(object, "stages", tile->stages);
    put(object, "swizzle", tile->swizzle);
    cJSON_AddStringToObject(object, "acc", tile->acc ? "fp16" : "fp32");
    put(object, "maxreg", tile->maxreg);
    put(object, "splits", tile->splits);
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
