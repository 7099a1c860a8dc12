/* What a process keeps of the problems that it has checked: which are the same, how much, and for how long. */
#include "check/kept.h"
#include "unit.h"

static const fa_problem problem = {
    .batch = 2, .heads = 4, .kv_heads = 2, .seq_q = 8, .seq_kv = 16, .dim = 16, .scale = 0.25f};
static const fa_draw draw = {.seed = 42, .q_seed = 42, .as_asked = true, .factor = 1.0f};

static fa_digest key_of(const fa_problem *p, const fa_draw *d) { return fa_kept_key(p, d, 64, false); }

/* An entry with inputs and a reference, as a check makes them. */
static fa_kept *fill(const fa_problem *p, const fa_draw *d, bool may_change)
{
    const fa_digest key = key_of(p, d);
    fa_kept *kept = fa_kept_open(&key, p, may_change);
    if (kept->has_tensors)
        return kept;
    kept->tensors = fa_draw_tensors(d, p);
    kept->has_tensors = true;
    kept->reference = fa_reference_make(p, &kept->tensors, 64, false, d->seed);
    kept->has_reference = true;
    return kept;
}

static bool is_there(const fa_problem *p, const fa_draw *d)
{
    const fa_digest key = key_of(p, d);
    fa_kept *kept = fa_kept_open(&key, p, false);
    const bool there = kept->has_tensors;
    fa_kept_close(kept, (size_t)1 << 30);
    return there;
}

/* Everything that decides inputs or references decides the key; what a candidate's check adds to a draw does not. */
TEST(the_key_is_all_that_decides)
{
    enum { CASES = 30 };
    fa_digest keys[CASES];
    int count = 0;
#define OTHER(type, base, member, value)         \
    do {                                         \
        type changed = base;                     \
        changed.member = value;                  \
        keys[count++] = key_of_##type(&changed); \
    } while (0)
#define key_of_fa_problem(p) key_of(p, &draw)
#define key_of_fa_draw(d) key_of(&problem, d)
    keys[count++] = key_of(&problem, &draw);
    OTHER(fa_problem, problem, batch, 1);
    OTHER(fa_problem, problem, heads, 2);
    OTHER(fa_problem, problem, kv_heads, 4);
    OTHER(fa_problem, problem, seq_q, 9);
    OTHER(fa_problem, problem, seq_kv, 17);
    OTHER(fa_problem, problem, dim, 24);
    OTHER(fa_problem, problem, dim_v, 24);
    OTHER(fa_problem, problem, v_in_k, true);
    OTHER(fa_problem, problem, causal, true);
    OTHER(fa_problem, problem, scale, 0.5f);
    OTHER(fa_problem, problem, dtype, FA_DTYPE_BF16);
    OTHER(fa_problem, problem, windowed, true);
    OTHER(fa_problem, problem, chunk, 3);
    OTHER(fa_problem, problem, softcap, 3.0f);
    OTHER(fa_problem, problem, sinks, true);
    OTHER(fa_problem, problem, alibi, true);
    OTHER(fa_problem, problem, bias, true);
    OTHER(fa_problem, problem, tree, true);
    OTHER(fa_draw, draw, seed, 43);
    OTHER(fa_draw, draw, q_seed, 43);
    OTHER(fa_draw, draw, dist, FA_DIST_LOW);
    OTHER(fa_draw, draw, strides, FA_STRIDES_BSHD);
    OTHER(fa_draw, draw, factor, 16.0f);
    OTHER(fa_draw, draw, v_power, 10);
    OTHER(fa_draw, draw, flat, true);
    keys[count++] = fa_kept_key(&problem, &draw, 64, true);
    FREED fa_lengths *lengths = fa_alloc(2 * sizeof *lengths);
    lengths[0] = (fa_lengths){.count = 2, .q = {8, 3}, .kv = {8, 9}, .q_start = {0, 8, 11}, .kv_start = {0, 8, 17}};
    OTHER(fa_problem, problem, lengths, &lengths[0]);
    lengths[1] = lengths[0];
    const fa_digest same = keys[count - 1];
    fa_problem of_copy = problem;
    of_copy.lengths = &lengths[1];
    assert_memory_equal(&same, (fa_digest[]){key_of(&of_copy, &draw)}, sizeof same); /* contents, not addresses */
    lengths[1].kv[0] = 7;
    OTHER(fa_problem, problem, lengths, &lengths[1]);
    const int32_t keys_of[] = {16, 16};
    fa_pages *pages = fa_pages_make(4, false, 2, keys_of, 0, false, 1);
    OTHER(fa_problem, problem, pages, pages);
    assert_in_range(count, 1, CASES);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            if (memcmp(&keys[i], &keys[j], sizeof *keys) == 0)
                fail_msg("case %d has the key of case %d", i, j);
    fa_draw judged = draw;
    judged.max_abs_err = 0.5;
    assert_memory_equal(&keys[0], (fa_digest[]){key_of(&problem, &judged)}, sizeof *keys);
    fa_pages_free(pages);
}

/* A tile decides which rows a sample has: the candidates of a comparison share inputs, and each has its own rows. Where
 * kernels may have written into them they are drawn again. Where there is no sample a tile decides nothing. */
TEST(tiles_have_rows_of_their_own_where_they_are_sampled)
{
    const fa_problem large = {.batch = 1, .heads = 64, .kv_heads = 1, .seq_q = 128, .seq_kv = 32768, .dim = 8};
    const fa_digest of_64 = fa_kept_key(&large, &draw, 64, false), of_32 = fa_kept_key(&large, &draw, 32, false);
    assert_memory_equal(&(fa_digest[]){fa_kept_key(&problem, &draw, 32, false)}, (fa_digest[]){key_of(&problem, &draw)},
                        sizeof of_64);
    for (int suspicious = 0; suspicious < 2; suspicious++) {
        fa_kept_clear();
        fa_kept *kept = fa_kept_open(&of_64, &large, suspicious);
        *kept = (fa_kept){.tensors = fa_draw_tensors(&draw, &large), .has_tensors = true, .has_reference = true};
        const uint16_t *const q = kept->tensors.q;
        fa_kept_close(kept, (size_t)1 << 30);
        kept = fa_kept_open(&of_32, &large, suspicious);
        assert_true(!kept->has_reference && kept->has_tensors == !suspicious);
        fa_kept_close(kept, (size_t)1 << 30);
        kept = fa_kept_open(&of_64, &large, suspicious);
        assert_true(kept->has_reference && kept->tensors.q == q);
        fa_kept_close(kept, (size_t)1 << 30);
    }
    fa_kept_clear();
}

/* The entries that were not used for longest go first, and an entry that is too large is not kept at all. */
TEST(memory_is_bounded)
{
    fa_draw draws[4] = {draw, draw, draw, draw};
    for (int i = 0; i < 4; i++)
        draws[i].seed = draws[i].q_seed = (uint64_t)i;
    fa_kept_clear();
    const size_t q = 2 * 4 * 8 * 16, k = 2 * 2 * 16 * 16, rows = 2 * 4 * 8;
    const size_t one = 2 * (q + 2 * k) + q * (8 + 2) + rows * 4 * 8 + sizeof(fa_kept);
    for (int i = 0; i < 3; i++)
        fa_kept_close(fill(&problem, &draws[i], false), 3 * one);
    for (int i = 2; i >= 0; i--)
        assert_true(is_there(&problem, &draws[i]));
    fa_kept_close(fill(&problem, &draws[3], false), 3 * one); /* 0 was the last that was used, 2 was not for longest */
    assert_false(is_there(&problem, &draws[2]));
    assert_true(is_there(&problem, &draws[0]) && is_there(&problem, &draws[1]) && is_there(&problem, &draws[3]));
    fa_kept_clear();
    fa_kept_close(fill(&problem, &draws[0], false), one - 1);
    assert_false(is_there(&problem, &draws[0]));
    fa_kept_clear();
    fa_kept_close(fill(&problem, &draws[0], false), one);
    assert_true(is_there(&problem, &draws[0]));
    fa_kept_clear();
    assert_false(is_there(&problem, &draws[0]));
    fa_kept_clear();
    assert_true(fa_kept_most(true) < fa_kept_most(false) && fa_kept_most(false) <= (size_t)4 << 30);
}

/* A kernel of the emulator may write anywhere: what has changed since is made again. */
TEST(what_has_changed_is_not_kept)
{
    const fa_digest key = key_of(&problem, &draw);
    for (int part = 0; part < 5; part++) {
        fa_kept_clear();
        fa_kept *kept = fill(&problem, &draw, true);
        kept->plain = fa_alloc((fa_problem_o_count(&problem) + (size_t)fa_problem_rows(&problem)) * sizeof(double));
        double *const plain = kept->plain;
        uint16_t *const q = kept->tensors.q;
        double *const exact = kept->reference.exact;
        int64_t *const rows = kept->reference.rows;
        fa_kept_close(kept, (size_t)1 << 30);
        kept = fa_kept_open(&key, &problem, true);
        assert_true(kept->has_tensors && kept->plain == plain);
        fa_kept_close(kept, (size_t)1 << 30);
        q[3] ^= part == 1;
        exact[5] += part == 2;
        rows[7] += part == 3;
        plain[fa_problem_o_count(&problem) + 2] += part == 4;
        kept = fa_kept_open(&key, &problem, true);
        assert_int_equal(kept->has_tensors && kept->has_reference && kept->plain != NULL, part == 0);
        fa_kept_close(kept, (size_t)1 << 30);
    }
    fa_kept_clear();
}
