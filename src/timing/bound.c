#include "timing/bound.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timing/linear.h"

#define ROUNDS 120 /* of the search over the pipes' weights, at most */
#define L2_BYTES_PER_CLOCK 64.0

/* The graph with what its blocks cost; `price` is what the search asks for at the moment. */
typedef struct graph {
    const fa_sass *sass;
    fa_cost *cost; /* of each block */
    bool *reached;
    double *price, *distance;
    int32_t *before; /* on the shortest path */
} graph;

/* A path from entry to exit, or a cycle: what it costs and does. */
typedef struct walk {
    double clocks[FA_PIPE_COUNT], flop;
} walk;

static void add_block(walk *to, const fa_cost *cost)
{
    for (int pipe = 0; pipe < FA_PIPE_COUNT; pipe++)
        to->clocks[pipe] += cost->clocks[pipe];
    to->flop += cost->flop;
}

static double weighted(const double clocks[FA_PIPE_COUNT], const double weight[FA_PIPE_COUNT])
{
    double sum = 0;
    for (int pipe = 0; pipe < FA_PIPE_COUNT; pipe++)
        sum += clocks[pipe] * weight[pipe];
    return sum;
}

static void find_reached(graph *g)
{
    const fa_sass *sass = g->sass;
    g->reached[0] = true;
    for (bool more = true; more;) {
        more = false;
        for (int32_t i = 0; i < sass->blocks; i++)
            for (int32_t j = 0; g->reached[i] && j < sass->block[i].successors; j++) {
                const int32_t to = sass->successor[sass->block[i].first_successor + j];
                more |= !g->reached[to];
                g->reached[to] = true;
            }
    }
}

/* Bellman-Ford. Returns a block on a cycle of negative price, or -1 when there is none. all: from every block, to find
 * cycles; otherwise from the entry, to find paths. */
static int32_t shortest(graph *g, bool all)
{
    const fa_sass *sass = g->sass;
    for (int32_t i = 0; i < sass->blocks; i++) {
        g->distance[i] = all ? 0 : INFINITY;
        g->before[i] = -1;
    }
    g->distance[0] = g->price[0];
    int32_t changed = -1;
    for (int32_t round = 0; round <= sass->blocks; round++) {
        changed = -1;
        for (int32_t i = 0; i < sass->blocks; i++) {
            if (!g->reached[i] || !isfinite(g->distance[i]))
                continue;
            for (int32_t j = 0; j < sass->block[i].successors; j++) {
                const int32_t to = sass->successor[sass->block[i].first_successor + j];
                const double far = g->distance[i] + g->price[to];
                if (far < g->distance[to] - 1e-9 * (1 + fabs(far))) {
                    g->distance[to] = far;
                    g->before[to] = i;
                    changed = to;
                }
            }
        }
        if (changed < 0)
            return -1;
    }
    for (int32_t i = 0; i < sass->blocks && g->before[changed] >= 0; i++)
        changed = g->before[changed]; /* onto the cycle */
    return changed;
}

static void set_prices(graph *g, const double weight[FA_PIPE_COUNT], double lambda)
{
    for (int32_t i = 0; i < g->sass->blocks; i++)
        g->price[i] = weighted(g->cost[i].clocks, weight) - lambda * g->cost[i].flop;
}

static walk cycle_through(const graph *g, int32_t block)
{
    walk cycle = {.flop = 0};
    int32_t at = block;
    do {
        add_block(&cycle, &g->cost[at]);
        at = g->before[at];
    } while (at >= 0 && at != block);
    return cycle;
}

/* The least weighted clocks per product of any cycle, and that cycle. INFINITY: no cycle has products. */
static double cheapest_cycle(graph *g, const double weight[FA_PIPE_COUNT], walk *cheapest)
{
    double lambda = 1e9;
    bool found = false;
    for (int i = 0; i < 100; i++) {
        set_prices(g, weight, lambda);
        const int32_t block = shortest(g, true);
        if (block < 0)
            break;
        const walk cycle = cycle_through(g, block);
        const double ratio = cycle.flop > 0 ? weighted(cycle.clocks, weight) / cycle.flop : INFINITY;
        if (!(ratio < lambda))
            break;
        *cheapest = cycle;
        lambda = ratio;
        found = true;
    }
    return found ? lambda : INFINITY;
}

static walk cheapest_path(graph *g, const double weight[FA_PIPE_COUNT], double lambda, double *price)
{
    const fa_sass *sass = g->sass;
    set_prices(g, weight, lambda);
    shortest(g, false);
    int32_t end = -1;
    for (int32_t i = 0; i < sass->blocks; i++)
        if (sass->block[i].exits && g->reached[i] && isfinite(g->distance[i]) &&
            (end < 0 || g->distance[i] < g->distance[end]))
            end = i;
    walk path = {.flop = 0};
    *price = end < 0 ? 0 : g->distance[end];
    for (int32_t at = end, steps = 0; at >= 0 && steps <= sass->blocks; at = at == 0 ? -1 : g->before[at], steps++)
        add_block(&path, &g->cost[at]);
    return path;
}

/* The dual at these weights: lambda * flop + warps * (shortest path at prices - lambda * products), over lambda up to
 * the cheapest cycle's ratio. Concave in lambda. Each value is a bound in weighted clocks of all multiprocessors. */
static double dual(graph *g, const fa_work_need *need, const double weight[FA_PIPE_COUNT], walk *cycle, walk *path)
{
    *cycle = *path = (walk){.flop = 0};
    double high = cheapest_cycle(g, weight, cycle), low = 0, price = 0, best = 0;
    if (!isfinite(high))
        return 0;
    high *= 1 - 1e-7;              /* rounding must not make a cycle negative */
    for (int i = 0; i < 12; i++) { /* i = 0: at the ratio itself, where the maximum lies unless paths do all the work */
        const double lambda = i == 0 ? high : low + (high - low) / 2;
        *path = cheapest_path(g, weight, lambda, &price);
        const double value = lambda * need->flop + need->warps * price;
        best = value > best ? value : best;
        const bool rising = need->flop >= need->warps * path->flop;
        if (rising && i == 0)
            break;
        if (rising)
            low = lambda;
        else
            high = lambda;
    }
    return best;
}

/* The flow as a mix of walks found so far: whole paths from entry to exit and cycles. In units of the problem: clocks
 * of `scale`, products of need->flop, paths of need->warps. Rows: a pipe each (its clocks are at most the time),
 * products, paths. Columns: the time, a slack per row but the last, then the walks. */
enum { TIME, SLACK, FIRST_WALK = SLACK + FA_PIPE_COUNT + 1, FLOP_ROW = FA_PIPE_COUNT, PATH_ROW };

typedef struct mix {
    fa_linear program;
    walk walks[FA_LINEAR_COLUMNS];
    double scale;
} mix;

static void begin_mix(mix *all, double scale)
{
    fa_linear *program = &all->program;
    *program = (fa_linear){.rows = FA_PIPE_COUNT + 2, .columns = FIRST_WALK};
    all->scale = scale;
    program->cost[TIME] = 1;
    program->right[FLOP_ROW] = program->right[PATH_ROW] = 1;
    for (int pipe = 0; pipe < FA_PIPE_COUNT; pipe++) {
        program->row[pipe][TIME] = 1;
        program->row[pipe][SLACK + pipe] = -1;
    }
    program->row[FLOP_ROW][SLACK + FLOP_ROW] = -1;
}

/* False when there is no room, or the walk is there already. */
static bool add_walk(mix *all, const fa_work_need *need, const walk *one, bool is_path)
{
    fa_linear *program = &all->program;
    /* A cycle counts per problem's worth of products, or it would be a tiny number. */
    const double times = is_path ? need->warps : need->flop / one->flop;
    const int32_t column = program->columns;
    if (column == FA_LINEAR_COLUMNS)
        return false;
    for (int32_t i = FIRST_WALK; i < column; i++)
        if (memcmp(&all->walks[i], one, sizeof *one) == 0)
            return false;
    all->walks[column] = *one;
    for (int pipe = 0; pipe < FA_PIPE_COUNT; pipe++)
        program->row[pipe][column] = -one->clocks[pipe] * times / all->scale;
    program->row[FLOP_ROW][column] = one->flop * times / need->flop;
    program->row[PATH_ROW][column] = is_path;
    program->columns++;
    return true;
}

/* Column generation (Dantzig and Wolfe, 1960): the best mix of the walks found so far sets weights of the pipes; the
 * cheapest walks at these weights join, until none is new. At any weights the dual is a bound; the best one counts. */
static void search(graph *g, const fa_work_need *need, fa_bound *bound)
{
    double weight[FA_PIPE_COUNT], x[FA_LINEAR_COLUMNS], price[FA_LINEAR_ROWS];
    walk cycle, path;
    mix *all = fa_alloc(sizeof *all);
    begin_mix(all, need->flop / (need->tensor_flop > 0 ? need->tensor_flop : 256));
    for (int round = 0; round < ROUNDS; round++) {
        for (int pipe = 0; pipe < FA_PIPE_COUNT && round < FA_PIPE_COUNT; pipe++)
            weight[pipe] = (0.02 + (pipe == round)) / (1 + 0.02 * FA_PIPE_COUNT); /* first walks that spare one pipe */
        bound->clocks = fmax(bound->clocks, dual(g, need, weight, &cycle, &path) / need->sm_count);
        if (!(cycle.flop > 0))
            break;
        const bool new_cycle = add_walk(all, need, &cycle, false), new_path = add_walk(all, need, &path, true);
        if (round >= FA_PIPE_COUNT && !new_cycle && !new_path)
            break;
        if (!fa_linear_solve(&all->program, x, price))
            break;
        double sum = 0;
        for (int pipe = 0; pipe < FA_PIPE_COUNT; pipe++)
            sum += weight[pipe] = fmax(0, price[pipe]);
        for (int pipe = 0; pipe < FA_PIPE_COUNT; pipe++) {
            weight[pipe] /= sum > 0 ? sum : 1;
            bound->pipe_clocks[pipe] = 0;
            for (int32_t i = FIRST_WALK; i < all->program.columns; i++)
                bound->pipe_clocks[pipe] -= all->program.row[pipe][i] * x[i] * all->scale / need->sm_count;
        }
    }
    free(all);
}

static void name_pipes(fa_bound *bound)
{
    const double *clocks = bound->pipe_clocks;
    bound->binds = FA_PIPE_TENSOR;
    for (int pipe = 0; pipe < FA_PIPE_COUNT; pipe++)
        if (clocks[pipe] > 1.001 * clocks[bound->binds]) /* a tie is the tensor cores' */
            bound->binds = (fa_pipe)pipe;
    bound->second = bound->binds == FA_PIPE_TENSOR ? FA_PIPE_MUFU : FA_PIPE_TENSOR;
    for (int pipe = 0; pipe < FA_PIPE_COUNT; pipe++)
        if (pipe != (int)bound->binds && clocks[pipe] > clocks[bound->second])
            bound->second = (fa_pipe)pipe;
}

static fa_bound unknown(const char *reason)
{
    fa_bound bound = {.known = false};
    snprintf(bound.unknown_reason, sizeof bound.unknown_reason, "%s", reason);
    return bound;
}

fa_bound fa_bound_of(const fa_sass *sass, const fa_work_need *need)
{
    const size_t blocks = (size_t)sass->blocks;
    graph g = {.sass = sass,
               .cost = fa_alloc(blocks * sizeof *g.cost),
               .reached = fa_alloc(blocks * sizeof *g.reached),
               .price = fa_alloc(blocks * sizeof *g.price),
               .distance = fa_alloc(blocks * sizeof *g.distance),
               .before = fa_alloc(blocks * sizeof *g.before)};
    for (int32_t i = 0; i < sass->blocks; i++)
        for (int32_t j = 0; j < sass->block[i].count; j++) {
            const fa_cost one = fa_cost_of(&sass->instruction[sass->block[i].first + j], need->cc, need->tensor_flop);
            for (int pipe = 0; pipe < FA_PIPE_COUNT; pipe++)
                g.cost[i].clocks[pipe] += one.clocks[pipe];
            g.cost[i].flop += one.flop;
        }
    find_reached(&g);
    fa_bound bound = {.known = true};
    search(&g, need, &bound);
    free(g.cost);
    free(g.reached);
    free(g.price);
    free(g.distance);
    free(g.before);
    if (!(bound.clocks > 0))
        return unknown("no loop of the kernel holds products");
    name_pipes(&bound);
    const double waves = fmax(1, need->wave_factor);
    bound.clocks *= waves;
    for (int pipe = 0; pipe < FA_PIPE_COUNT; pipe++)
        bound.pipe_clocks[pipe] *= waves;
    bound.l2_clocks = need->l2_bytes / (L2_BYTES_PER_CLOCK * need->sm_count);
    bound.l2_binds = bound.l2_clocks > bound.clocks;
    bound.clocks = fmax(bound.clocks, bound.l2_clocks);
    return bound;
}
