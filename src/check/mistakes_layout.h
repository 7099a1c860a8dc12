/* Elements of Q, K and V that are taken for others, as changes of a row's recipe: ways of the functions in the table of
 * mistakes.c. */
#pragma once

#include "check/recompute.h"

enum { FA_TURNS = 6 };                       /* keys or columns by 1, 2, 4, ... 32 */
enum { FA_TURNS_AND_BLOCKS = FA_TURNS + 2 }; /* then the 8 x 8 blocks of K or V */

void fa_mistake_turned_k(fa_recipe *recipe, int32_t way);
void fa_mistake_turned_keys(fa_recipe *recipe, int32_t way);
void fa_mistake_turned_columns(fa_recipe *recipe, int32_t way);
/* Columns of V: the last of K; only so many count. */
void fa_mistake_last_columns(fa_recipe *recipe, int32_t way);
void fa_mistake_fewer_columns(fa_recipe *recipe, int32_t way);
/* Keys of a sequence that begin where its queries do. Columns of q.k: only so many count. Q of another batch, row or
 * head. */
enum { FA_OTHER_QUERIES = 5 + FA_OTHER_HEADS - 1 };
void fa_mistake_starts_of_queries(fa_recipe *recipe, int32_t way);
void fa_mistake_fewer_dims(fa_recipe *recipe, int32_t way);
void fa_mistake_other_query(fa_recipe *recipe, int32_t way);
