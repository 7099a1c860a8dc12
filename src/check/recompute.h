/* One row of attention in FP64, as a kernel with a mistake would compute it. fa_recipe_of gives the right row's recipe;
 * a hypothesis changes a field or two. */
#pragma once

#include "input/tensors.h"

/* How the bits of a tree are read. */
typedef enum {
    FA_TREE_RIGHT,
    FA_TREE_IGNORED,
    FA_TREE_HIGH_BIT_FIRST,
    FA_TREE_ROWS_AT_BYTES,
    FA_TREE_HIDES_EARLIER,
    FA_TREE_OF_BATCH_0
} fa_tree_reading;

enum { FA_CURVES = 6 }; /* that are taken for the softcap */

/* Which elements of K or V are taken for others, as by a fragment or swizzle that is off. */
typedef struct fa_turn {
    int32_t swapped;       /* bits of key and column; 8: two 8 x 8 blocks of four, 7: a block is transposed */
    int32_t keys, columns; /* XORed to them after that */
    int32_t first;         /* added to the column */
} fa_turn;

typedef struct fa_recipe {
    const fa_problem *problem;
    const fa_tensors *tensors;
    int32_t tile_m, tile_n; /* of the kernel */
    fa_row at;
    fa_problem see;                 /* causal, window and chunk, as they are taken to be: fa_recipe_look */
    int64_t pos;                    /* of the row, for them */
    double alibi_pos, alibi_behind; /* behind: how often the distance of a key behind it counts */
    fa_tree_reading tree;
    fa_keys keys;              /* that the sum is over */
    const uint16_t *q, *k, *v; /* the row; the tensors */
    int32_t batch, kv_head;    /* of the keys */
    int64_t first;             /* stored row of key 0 */
    int32_t readable;          /* keys from there on, up to the tensors' end */
    int32_t dims, columns;     /* of q.k and of V that count */
    fa_turn k_turn, v_turn;
    /* Scores: scale q.k, softcap, bias and ALiBi, exponent */
    double scale, softcap, slope, bias_times, exponent;
    double q_times, k_times, v_times; /* descales */
    const uint16_t *bias;             /* of the row; NULL: none */
    bool cap_before_scale, cap_after_bias;
    int32_t curve;                /* of the softcap; 0: tanh */
    int32_t capped;               /* hidden keys below this one have a score of -softcap */
    double sink, sink_times;      /* -inf: none; how often it counts */
    int32_t zeros;                /* keys more that have a score of 0, and zeros in V */
    int32_t online;               /* softmax over so many keys at a time; 0: over all */
    bool keeps_sum, keeps_output; /* that is not multiplied when the maximum rises */
} fa_recipe;

fa_recipe fa_recipe_of(const fa_problem *problem, const fa_tensors *tensors, int64_t flat);
/* The keys that `see` shows at `pos`, of `seq_kv`. */
void fa_recipe_look(fa_recipe *recipe, int32_t seq_kv);
/* Keys and their descales are those of another K/V head and batch. False: there is none. */
bool fa_recipe_read(fa_recipe *recipe, int32_t batch, int32_t kv_head);
/* The bias of another batch, head and row. */
void fa_recipe_bias(fa_recipe *recipe, int32_t batch, int32_t head);

/* A head that may be taken for `head`; way 0: itself; from FA_GROUPED_HEADS on: where a group has several. */
enum { FA_GROUPED_HEADS = 5, FA_OTHER_HEADS = 9 };
int32_t fa_other_head(const fa_problem *problem, int32_t head, int32_t way);

/* q.k of the right row, [seq_kv] of its sequence. */
void fa_recipe_products(const fa_recipe *right, double *products);
/* Room for weights: this many. */
int64_t fa_recipe_room(const fa_problem *problem);
/* The weights of keys.first .. into weights[0..]; products: those of `right`, used where the recipe has its Q and K.
 * Returns what the output is divided by. */
double fa_recipe_weigh(const fa_recipe *recipe, const fa_recipe *right, const double *products, double *weights);
/* Columns [from, to) of the output. */
void fa_recipe_output(const fa_recipe *recipe, const double *weights, double sum, int32_t from, int32_t to,
                      double *out);
