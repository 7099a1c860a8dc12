#include "check/mistakes.h"

#include "check/mistakes_fp8.h"
#include "check/mistakes_layout.h"

#include <math.h>

/* What a problem has. */
enum { CAUSAL = 1, TREE = 2, BOUNDS = 4, LENGTHS = 8, LEFT = 16, RIGHT = 32, WINDOW = 64, CHUNK = 128, CAP = 256 };
enum { SINK = 512, ALIBI = 1024, BIAS = 2048, DIM_V = 4096, SAME_DIM = 8192, GROUPS = 16384, HIDES = 32768 };
enum { V_IN_K = 65536, NO_BOUNDS = 131072, Q_DESCALE = 262144, KV_DESCALE = 524288 };

int32_t fa_mistakes_possible(const fa_problem *p)
{
    const bool left = p->windowed && p->window_left >= 0, right = p->windowed && p->window_right >= 0;
    const bool bounds = p->causal || p->windowed || p->chunk > 0, same = fa_problem_dim_v(p) == p->dim;
    return (p->causal ? CAUSAL : 0) | (p->tree ? TREE : 0) | (bounds ? BOUNDS : NO_BOUNDS) |
           (p->lengths ? LENGTHS : 0) | (left ? LEFT : 0) | (right && !p->causal ? RIGHT : 0) |
           (p->windowed ? WINDOW : 0) | (p->chunk > 0 ? CHUNK : 0) | (p->softcap > 0.0f ? CAP : 0) |
           (p->sinks ? SINK : 0) | (p->alibi ? ALIBI : 0) | (p->bias ? BIAS : 0) | (same ? SAME_DIM : DIM_V) |
           (fa_problem_dim_v(p) <= p->dim ? V_IN_K : 0) | (p->kv_heads < p->heads ? GROUPS : 0) |
           (bounds || p->tree ? HIDES : 0) | (p->dtype == FA_DTYPE_E4M3 ? Q_DESCALE : 0) |
           (fa_problem_has_descales(p) ? KV_DESCALE : 0);
}

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t fewest(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t up(int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; }

static void clip(fa_recipe *r, int64_t first, int64_t end)
{
    r->keys.first = (int32_t)most(r->keys.first, first);
    r->keys.end = (int32_t)most(r->keys.first, fewest(r->keys.end, end));
}

static void look(fa_recipe *r) { fa_recipe_look(r, r->at.seq_kv); }
static int32_t group_of(const fa_recipe *r) { return r->problem->heads / r->problem->kv_heads; }

/* A tile of keys: the kernel's own, or what it may use inside of one. */
enum { TILES = 6 };
static int32_t tile_of(const fa_recipe *r, int32_t way)
{
    const int32_t sizes[TILES] = {r->tile_n, 1, 8, 16, 32, 64};
    return sizes[way % TILES];
}

/* What the first or the last row of the row's tile sees. */
static fa_keys keys_of_tile(const fa_recipe *r, bool last)
{
    const int32_t first = r->at.row / r->tile_m * r->tile_m, end = (int32_t)fewest(first + r->tile_m, r->at.seq_q);
    return fa_problem_keys_at(&r->see, r->pos + (last ? end - 1 : first) - r->at.row, r->at.seq_kv);
}

/* ---- what a row sees ---- */

enum { ONE_MORE, ONE_LESS, NO_MASK, TOP_LEFT, BY_LARGEST, BY_LARGEST_KEYS };
static void mask(fa_recipe *r, int32_t way)
{
    const fa_problem *p = r->problem;
    const int64_t end = way == ONE_MORE ? r->pos + 2 : way == ONE_LESS ? r->pos : INT32_MAX;
    r->see.causal &= way > NO_MASK;
    r->see.tree &= way > NO_MASK;
    r->tree = way == NO_MASK ? FA_TREE_IGNORED : r->tree;
    if (way == TOP_LEFT)
        r->pos = r->at.row;
    if (way >= BY_LARGEST) {
        r->pos = (int64_t)r->at.row + p->seq_kv - p->seq_q;
        r->alibi_pos = (double)r->pos;
    }
    fa_recipe_look(r, way == BY_LARGEST_KEYS ? p->seq_kv : r->at.seq_kv);
    clip(r, 0, end);
}

enum { LEFT_WIDE, LEFT_NARROW, RIGHT_WIDE, RIGHT_NARROW, NO_LEFT, NO_RIGHT, NO_WINDOW };
enum { SHIFTED = NO_WINDOW + 1, LEFT_SHIFTED, RIGHT_FOR_CAUSAL, BOUNDS_SWAPPED };
static void window(fa_recipe *r, int32_t way)
{
    const int32_t left = r->see.window_left, right = r->see.window_right;
    const bool shifted = way == SHIFTED || way == LEFT_SHIFTED;
    r->see.window_left = way == BOUNDS_SWAPPED ? right : way == NO_LEFT ? -1 : left + (way == LEFT_WIDE);
    r->see.window_right = way == BOUNDS_SWAPPED ? left : way == NO_RIGHT ? -1 : right + (way == RIGHT_WIDE);
    r->see.windowed = way != NO_WINDOW && !shifted;
    r->see.causal &= way != RIGHT_FOR_CAUSAL;
    look(r);
    if (way == LEFT_NARROW)
        clip(r, r->pos - left + 1, INT32_MAX);
    if (way == RIGHT_NARROW)
        clip(r, 0, r->pos + right);
    if (shifted && left >= 0)
        clip(r, (int64_t)r->at.row - left, INT32_MAX);
    if (shifted && right >= 0)
        clip(r, 0, (way == SHIFTED ? r->at.row : r->pos) + (int64_t)right + 1);
}

/* The first tile that the row's tile visits, or the row's own first tile, is seen from its beginning. */
static void left_of_tile(fa_recipe *r, int32_t way)
{
    const int32_t tile = tile_of(r, way), first = keys_of_tile(r, false).first;
    if (way >= TILES)
        r->keys.first -= r->keys.first % tile;
    else if (r->keys.first < first + tile)
        r->keys.first = (int32_t)fewest(first, r->keys.first);
}

enum { NO_CHUNK, CHUNK_TO_ZERO, CHUNK_OF_ROW, CHUNK_OFF, CHUNK_OPEN = CHUNK_OFF + 6 };
static void chunk(fa_recipe *r, int32_t way)
{
    const int64_t size = r->see.chunk, begin = (way == CHUNK_OF_ROW ? r->at.row : r->pos) / size * size;
    r->see.chunk = 0;
    look(r);
    const int32_t off = way - CHUNK_OFF;
    if (way != NO_CHUNK)
        clip(r, begin + (off == 0) - (off == 1) - (off == 4) * size,
             way == CHUNK_OPEN ? INT32_MAX : begin + size + (off == 2) - (off == 3) + (off == 5) * size);
}

/* Bits that are read otherwise may also show keys behind the row's own. */
enum { NO_TREE, NO_TREE_OR_CAUSAL, HIGH_BIT_FIRST, ROWS_AT_BYTES, HIDES_EARLIER, OF_BATCH_0 };
static void tree(fa_recipe *r, int32_t way)
{
    r->tree = (fa_tree_reading)most(way, FA_TREE_IGNORED); /* the ways are in the order of the readings */
    r->see.tree = way == NO_TREE;
    look(r);
}

/* ---- which keys are read ---- */

enum { NO_LAST_KEY, NO_FIRST_KEY, LARGEST, LARGEST_POS, OF_QUERIES, OF_FIRST_ROW };
enum { OF_FIRST_ROW_EXACTLY = OF_FIRST_ROW + 1, OF_FIRST_ROW_ZEROS };
static void range(fa_recipe *r, int32_t way)
{
    const fa_keys keys = r->keys;
    const int64_t end = keys_of_tile(r, false).end;
    const int32_t most_keys = r->problem->seq_kv, all = way == OF_QUERIES ? r->at.seq_q : most_keys;
    if (way == LARGEST_POS || way == OF_QUERIES)
        r->pos = (int64_t)r->at.row + all - r->at.seq_q;
    if (way >= LARGEST && way <= OF_QUERIES)
        fa_recipe_look(r, (int32_t)fewest(all, most_keys));
    if (way == NO_LAST_KEY || way == NO_FIRST_KEY)
        clip(r, (int64_t)keys.first + (way == NO_FIRST_KEY), (int64_t)keys.end - (way == NO_LAST_KEY));
    if (way == OF_FIRST_ROW_ZEROS) /* what its tile of keys has beyond is 0 */
        r->zeros = (int32_t)most(0, fewest(keys.end, up(end, r->tile_n)) - end);
    if (way >= OF_FIRST_ROW)
        clip(r, 0, way == OF_FIRST_ROW ? up(end, r->tile_n) : end);
}

/* Of the keys of the row's tile, or of its own. */
static void no_last_tile(fa_recipe *r, int32_t way)
{
    const int64_t end = way < TILES ? keys_of_tile(r, true).end : r->keys.end, tile = tile_of(r, way);
    clip(r, 0, most(end - 1, 0) / tile * tile);
}

static void no_first_tile(fa_recipe *r, int32_t way)
{
    const int64_t first = keys_of_tile(r, way >= 2 * TILES).first, tile = tile_of(r, way), whole = first / tile * tile;
    clip(r, way < TILES ? whole + tile : way < 2 * TILES ? first + tile : whole, INT32_MAX);
}

/* Behind the last key, or behind each row's own last key. */
static void zeros_past_the_end(fa_recipe *r, int32_t way)
{
    const int32_t end = r->keys.end, zeros = (int32_t)up(end, tile_of(r, way)) - end;
    r->zeros = end == r->at.seq_kv || way >= TILES ? zeros : 0;
}

/* The end of a row's keys is a multiple of something: more, or fewer, than it sees. */
enum { CUTS = 6 };
static void masked_by_tiles(fa_recipe *r, int32_t way)
{
    r->keys.end = (int32_t)fewest(up(r->keys.end, tile_of(r, way)), r->at.seq_kv);
}

static void cut_to_multiples(fa_recipe *r, int32_t way)
{
    const int64_t unit = 2ll << way, count = r->keys.end - r->keys.first;
    clip(r, 0, r->keys.first + count / unit * unit);
}

static void keys_past_the_end(fa_recipe *r, int32_t way)
{
    const int64_t end = way == TILES ? (int64_t)r->at.seq_kv + 1 : up(r->at.seq_kv, tile_of(r, way));
    if (r->keys.end == r->at.seq_kv)
        r->keys.end = (int32_t)fewest(end, r->readable);
}

enum { SWAPPED, K_FOR_V, V_FOR_K };
static void tensors(fa_recipe *r, int32_t way)
{
    const uint16_t *k = r->k, *v = r->v;
    r->k = way == K_FOR_V ? k : v;
    r->v = way == V_FOR_K ? v : k;
}

/* Another head or batch; K/V head `way` - HEAD_0 where that is named. */
enum { MODULO, QUERY_HEAD, NEXT_BATCH, BATCH_BEFORE, FIRST_BATCH, NEXT_HEAD, HEAD_BEFORE, HEAD_0 };
static void place(fa_recipe *r, int32_t way)
{
    const int32_t own = r->at.head / group_of(r), batch = r->at.batch, kv_heads = r->problem->kv_heads,
                  all = r->problem->batch;
    const int32_t heads[] = {r->at.head % kv_heads,          r->at.head, own, own, own, (own + 1) % kv_heads,
                             (own + kv_heads - 1) % kv_heads};
    const int32_t batches[] = {batch, batch, (batch + 1) % all, (batch + all - 1) % all, 0, batch, batch};
    const int32_t head = way < HEAD_0 ? heads[way] : way - HEAD_0;
    if (way == QUERY_HEAD || head < kv_heads)
        fa_recipe_read(r, way < HEAD_0 ? batches[way] : batch, head);
}

/* ---- scores ---- */

enum { NO_SCALE, TWICE, DOUBLED, OF_DIM, OF_64, OF_128, OF_DIM_V, OF_BOTH_DIMS, NO_LOG2_E, LOG2_E };
static void scale(fa_recipe *r, int32_t way)
{
    const double dim = r->problem->dim, dim_v = fa_problem_dim_v(r->problem), own = r->scale;
    const double roots[] = {own * sqrt(dim / dim_v), own * sqrt(dim / (dim + dim_v))};
    const double scales[] = {1.0, own * own, 2.0 * own, 1.0 / sqrt(dim), 0.125, 1.0 / sqrt(128), roots[0], roots[1]};
    if (way < NO_LOG2_E)
        r->scale = scales[way];
    else
        r->exponent = way == NO_LOG2_E ? log(2) : 1.0 / log(2);
}

/* Hidden keys of all keys, or of the tiles that the row's tile visits, have a score of -softcap. */
enum { NO_CAP, BEFORE_SCALE, AFTER_BIAS, AFTER_MASK, AFTER_MASK_OF_TILES, CURVE };
static void softcap(fa_recipe *r, int32_t way)
{
    const int64_t tile = r->tile_n, first = keys_of_tile(r, false).first, end = keys_of_tile(r, true).end;
    r->softcap = way == NO_CAP ? 0.0 : r->softcap;
    r->cap_before_scale = way == BEFORE_SCALE;
    r->cap_after_bias = way == AFTER_BIAS;
    r->curve = way >= CURVE ? way - CURVE + 1 : 0;
    if (way >= AFTER_MASK && way < CURVE)
        r->capped = r->at.seq_kv;
    if (way == AFTER_MASK)
        r->keys = (fa_keys){0, r->at.seq_kv};
    if (way == AFTER_MASK_OF_TILES)
        r->keys = (fa_keys){(int32_t)(first / tile * tile), (int32_t)fewest(up(end, tile), r->at.seq_kv)};
}

/* What is added to a score is in another unit, or has another sign. */
enum { UNITS = 5 };
static double unit_of(const fa_recipe *r, int32_t way)
{
    const double own = r->scale * r->q_times * r->k_times, units[UNITS] = {log(2), 1.0 / log(2), own, 1.0 / own, -1.0};
    return units[way];
}

enum { NO_SINK = UNITS, CLAMPED, SINK_OF_HEAD = CLAMPED + 3, SINK_OF_TILES = SINK_OF_HEAD + FA_OTHER_HEADS };
static void sink(fa_recipe *r, int32_t way)
{
    if (way < UNITS)
        r->sink *= unit_of(r, way);
    else if (way == NO_SINK)
        r->sink = -INFINITY;
    else if (way < SINK_OF_HEAD)
        r->sink = way == CLAMPED                          ? fmax(r->sink, 0.0)
                  : way == CLAMPED + 1 || r->softcap == 0 ? fmin(r->sink, 0.0)
                                                          : r->softcap * tanh(r->sink / r->softcap);
    else if (way < SINK_OF_TILES)
        r->sink = (double)r->tensors->scores.sinks[fa_other_head(r->problem, r->at.head, way - SINK_OF_HEAD)];
    else
        r->sink_times =
            way == SINK_OF_TILES ? (double)(up(r->keys.end, r->tile_n) / r->tile_n) : way - SINK_OF_TILES + 1;
}

enum { NO_ALIBI = UNITS, ALIBI_TOP_LEFT, ALIBI_BEHIND, SLOPE_OF_BATCH_0 = ALIBI_BEHIND + 2, SLOPE_OF_HEAD };
static void alibi(fa_recipe *r, int32_t way)
{
    if (way <= NO_ALIBI)
        r->slope *= way == NO_ALIBI ? 0.0 : unit_of(r, way);
    else if (way >= SLOPE_OF_HEAD)
        r->slope = fa_slope(&r->tensors->scores, r->problem, r->at.batch,
                            fa_other_head(r->problem, r->at.head, way - SLOPE_OF_HEAD));
    else if (way == SLOPE_OF_BATCH_0)
        r->slope = fa_slope(&r->tensors->scores, r->problem, 0, r->at.head);
    else if (way == ALIBI_TOP_LEFT)
        r->alibi_pos = r->at.row;
    else
        r->alibi_behind = ALIBI_BEHIND - way; /* 0, or the other sign */
}

enum { NO_BIAS = UNITS, BATCH_0, HEAD_0_OF_BATCH, FIRST_BIAS, ROW_0, ROWS_OF_SEQUENCE };
static void bias(fa_recipe *r, int32_t way)
{
    const int64_t row = r->at.row, pitch = r->problem->seq_kv;
    if (way < UNITS)
        r->bias_times = unit_of(r, way);
    else
        fa_recipe_bias(r, way == BATCH_0 || way == FIRST_BIAS ? 0 : r->at.batch,
                       way == HEAD_0_OF_BATCH || way == FIRST_BIAS ? 0 : r->at.head);
    if (way == NO_BIAS)
        r->bias_times = 0.0;
    if (way >= ROW_0)
        r->bias -= way == ROW_0 ? row * pitch : row * (pitch - r->at.seq_kv);
}

/* ---- sums ---- */

enum { OUTPUT_KEPT = 0, SUM_KEPT = TILES, BOTH_KEPT = 2 * TILES };
static void rescale(fa_recipe *r, int32_t way)
{
    r->online = tile_of(r, way);
    r->keeps_output = way < SUM_KEPT || way >= BOTH_KEPT;
    r->keeps_sum = way >= SUM_KEPT;
}

static const fa_mistake mistakes[] = {
    {"K and V are swapped", SAME_DIM, tensors, SWAPPED, 1},
    {"K is read for V", V_IN_K, tensors, K_FOR_V, 1},
    {"V is read for K", SAME_DIM, tensors, V_FOR_K, 1},
    {"the scale is missing", 0, scale, NO_SCALE, 1},
    {"the scale is that of dim_v", DIM_V, scale, OF_DIM_V, 2},
    {"the scale is 1/sqrt of some dim, not the launch's", 0, scale, OF_DIM, 3},
    {"the scale is applied twice, or doubled", 0, scale, TWICE, 2},
    {"log2 e is missing: 2^x for e^x", 0, scale, NO_LOG2_E, 1},
    {"log2 e is applied to scores that go to exp", 0, scale, LOG2_E, 1},
    {"the causal mask shows one key too many", CAUSAL, mask, ONE_MORE, 1},
    {"the causal mask hides the last key that a row sees", CAUSAL, mask, ONE_LESS, 1},
    {"the window's right bound replaces the causal mask", CAUSAL | WINDOW, window, RIGHT_FOR_CAUSAL, 1},
    {"the causal mask is missing", CAUSAL, mask, NO_MASK, 1},
    {"the tree's mask is missing", TREE, tree, NO_TREE, 2},
    {"the tree's bits are read in another order, or from whole bytes", TREE, tree, HIGH_BIT_FIRST, 2},
    {"the tree hides the keys before it", TREE, tree, HIDES_EARLIER, 1},
    {"the tree is that of another batch", TREE, tree, OF_BATCH_0, 1},
    {"the mask is aligned top-left, not bottom-right", BOUNDS, mask, TOP_LEFT, 1},
    {"rows are aligned by the largest lengths, not by their sequence's", LENGTHS, mask, BY_LARGEST, 1},
    {"the window shows one key too many on the left", LEFT, window, LEFT_WIDE, 1},
    {"the window shows one key too few on the left", LEFT, window, LEFT_NARROW, 1},
    {"the window shows one key too many on the right", RIGHT, window, RIGHT_WIDE, 1},
    {"the window shows one key too few on the right", RIGHT, window, RIGHT_NARROW, 1},
    {"the window is missing, or one bound", WINDOW, window, NO_LEFT, 3},
    {"the window is not shifted bottom-right", WINDOW, window, SHIFTED, 2},
    {"the window's bounds are swapped", WINDOW, window, BOUNDS_SWAPPED, 1},
    {"chunks are missing", CHUNK, chunk, NO_CHUNK, 1},
    {"chunks are rounded toward 0, or begin at the row's index", CHUNK, chunk, CHUNK_TO_ZERO, 2},
    {"chunks begin or end one key off, or a chunk", CHUNK, chunk, CHUNK_OFF, 6},
    {"chunks have no end", CHUNK, chunk, CHUNK_OPEN, 1},
    {"the first tile of keys is not masked on the left", BOUNDS, left_of_tile, 0, 2 * TILES},
    {"the accumulator is not rescaled when the maximum rises", 0, rescale, OUTPUT_KEPT, TILES},
    {"the row sum is not rescaled when the maximum rises", 0, rescale, SUM_KEPT, TILES},
    {"neither sum nor accumulator is rescaled when the maximum rises", 0, rescale, BOTH_KEPT, TILES},
    {"the K/V head is h % kv_heads, not h / (heads / kv_heads)", GROUPS, place, MODULO, 1},
    {"the K/V head is the query head", GROUPS, place, QUERY_HEAD, 1},
    {"K and V are those of another head", 0, place, NEXT_HEAD, 10},
    {"K and V are those of another batch", 0, place, NEXT_BATCH, 3},
    {"K and V begin where Q does: start_q for start_kv", LENGTHS, fa_mistake_starts_of_queries, 0, 1},
    {"Q is that of another batch, head or row", 0, fa_mistake_other_query, 0, FA_OTHER_QUERIES},
    {"the largest length counts, not the sequence's own", LENGTHS, range, LARGEST, 2},
    {"the largest length counts, not the sequence's own", LENGTHS, mask, BY_LARGEST_KEYS, 1},
    {"keys past the end count, with scores and values of 0", 0, zeros_past_the_end, 0, 2 * TILES},
    {"keys past the end count: the next head's or sequence's", 0, keys_past_the_end, 0, TILES + 1},
    {"the last key is left out", 0, range, NO_LAST_KEY, 1},
    {"the first key is left out", 0, range, NO_FIRST_KEY, 1},
    {"the last tile of keys is left out", NO_BOUNDS, no_last_tile, 0, 2 * TILES},
    {"the last keys of a row tile are left out: does its loop end with its first row?", BOUNDS, range, OF_FIRST_ROW, 3},
    {"the last keys of a row tile are left out: does its loop end with its first row?", BOUNDS, no_last_tile, 0,
     2 * TILES},
    {"the first keys of a row tile are left out: does its loop begin with its last row?", BOUNDS, no_first_tile,
     2 * TILES, TILES},
    {"the number of keys is cut to a multiple of 2, 4, 8, ...", 0, cut_to_multiples, 0, CUTS},
    {"keys are masked by whole tiles", HIDES, masked_by_tiles, 0, TILES},
    {"the first tile of keys is left out", 0, no_first_tile, 0, 2 * TILES},
    {"the number of queries is taken for that of keys", 0, range, OF_QUERIES, 1},
    {"q.k leaves out the last columns", 0, fa_mistake_fewer_dims, 0, 5},
    {"the softcap is missing", CAP, softcap, NO_CAP, 1},
    {"the softcap comes after the mask: hidden keys score -softcap", CAP | HIDES, softcap, AFTER_MASK, 2},
    {"the softcap comes before the scale", CAP, softcap, BEFORE_SCALE, 1},
    {"the softcap comes after the bias", CAP, softcap, AFTER_BIAS, 1},
    {"the softcap is another curve than softcap tanh(score / softcap)", CAP, softcap, CURVE, FA_CURVES - 1},
    {"the sink is missing", SINK, sink, NO_SINK, 1},
    {"the sink is clamped at 0, or capped as scores are", SINK, sink, CLAMPED, 3},
    {"the sink is scaled, or in another unit (log2 e)", SINK, sink, 0, UNITS},
    {"the sink counts more than once (in every split?)", SINK, sink, SINK_OF_TILES, 16},
    {"the sink is that of another head", SINK, sink, SINK_OF_HEAD, FA_OTHER_HEADS},
    {"ALiBi is missing", ALIBI, alibi, NO_ALIBI, 1},
    {"ALiBi is aligned top-left, not bottom-right", ALIBI, alibi, ALIBI_TOP_LEFT, 1},
    {"ALiBi is not of the distance |pos - key|: has it a sign?", ALIBI, alibi, ALIBI_BEHIND, 2},
    {"the slope is that of another batch or head", ALIBI, alibi, SLOPE_OF_BATCH_0, 1 + FA_OTHER_HEADS},
    {"the slope is in another unit or sign (scale, log2 e)", ALIBI, alibi, 0, UNITS},
    {"the bias is missing", BIAS, bias, NO_BIAS, 1},
    {"the bias is that of another batch, head or row", BIAS, bias, BATCH_0, 5},
    {"the bias is in another unit or sign (scale, log2 e)", BIAS, bias, 0, UNITS},
    {"a descale is missing", KV_DESCALE, fa_mistake_no_descale, 0, FA_MISSING_DESCALES},
    {"the descales of K and V are swapped, or one stands for both", KV_DESCALE, fa_mistake_swapped_descales, 0,
     FA_SWAPPED_DESCALES},
    {"a descale is that of another batch or head", KV_DESCALE, fa_mistake_other_descale, 0, FA_OTHER_DESCALES},
    {"a descale is that of another batch or head", Q_DESCALE, fa_mistake_other_descale, FA_OTHER_DESCALES,
     FA_OTHER_DESCALES_OF_Q},
    {"the last columns of V count as 0", 0, fa_mistake_fewer_columns, 0, 4},
    {"V is the last columns of K, not the first", V_IN_K, fa_mistake_last_columns, 0, 1},
    {"columns of Q and K do not pair: is a fragment or swizzle off?", 0, fa_mistake_turned_k, 0, FA_TURNS_AND_BLOCKS},
    {"keys of P and V do not pair: is a fragment or swizzle off?", 0, fa_mistake_turned_keys, 0, FA_TURNS_AND_BLOCKS},
    {"columns of O change places: is a fragment or swizzle off?", 0, fa_mistake_turned_columns, 0, FA_TURNS},
};

const fa_mistake *fa_mistakes(int32_t *count)
{
    *count = sizeof mistakes / sizeof *mistakes;
    return mistakes;
}
