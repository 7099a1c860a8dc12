/* The asynchronous work of a block, allocated on first use: barrier objects, bulk copies, products, registers. */
#pragma once

#include "emu/core/state.h"
#include "emu/core/tensor_map.h"

enum { FA_EMU_PRODUCTS_MAX = 128, FA_EMU_TILES_MAX = 64, FA_EMU_MBARRIER_BYTES = 8 };

struct fa_race_phase;
struct fa_emu_registers;

/* PTX ISA, "mbarrier": an object of 8 bytes in shared memory; its state is kept here. */
typedef struct fa_emu_mbarrier {
    unsigned char *at; /* address in the block's own window */
    fa_emu_worker *owner;
    bool alive;
    uint32_t expected, pending;
    int64_t tx;     /* bytes still expected; negative: more have arrived than were expected */
    uint64_t phase; /* the current phase */
    const char *file;
    int32_t line; /* line of its init */
    uint32_t waiting[FA_EMU_MAX_WARPS];
    struct fa_race_phase *race;
} fa_emu_mbarrier;

/* A thread's unfinished wait. */
typedef struct fa_emu_patience {
    const fa_emu_mbarrier *barrier;
    uint64_t phase, operand; /* operand: a parity, or a phase */
    bool tried;
} fa_emu_patience;

/* A bulk copy. It moves rows of its box at any time between issue and completion. */
typedef enum { FA_EMU_LOAD, FA_EMU_STORE } fa_emu_copy_kind;
typedef struct fa_emu_bulk {
    fa_emu_copy_kind kind;
    fa_emu_worker *issuer, *owner; /* owner: of the shared memory of a load, and of its barrier */
    fa_emu_map map;
    const unsigned char *map_at; /* NULL: a copy of bytes */
    int32_t at[FA_EMU_MAP_RANK];
    unsigned char *shared;
    bool from_shared;   /* a load from the issuer's shared memory */
    uint16_t operation; /* of a reduction: a PTX word; else FA_PTX_WORDS */
    uint8_t type;       /* of a reduction */
    bool sent;          /* copies `values`, from registers */
    unsigned char values[16];
    uint32_t rows, done;      /* done: rows moved */
    fa_emu_mbarrier *barrier; /* a load's */
    uint32_t thread, group;   /* of a store: its thread, and the group of that thread */
    const char *name, *file;
    int32_t line;
} fa_emu_bulk;

/* The accumulators of a chain of products of one warp, from its first product until they are waited for. */
typedef struct fa_emu_tile {
    bool used, halves;      /* halves: of 16 bits */
    int columns, registers; /* registers: of a lane */
    uint32_t end;           /* number of its last product, plus 1 */
    void **places;          /* [lane][register]: where the kernel keeps them */
    float sum[16][256];
    const char *file;
    int32_t line;
} fa_emu_tile;

/* A (by descriptor or in registers) and B (by descriptor) of one product: PTX ISA, "wgmma.mma_async". */
typedef struct fa_emu_product {
    fa_emu_tile *tile;
    uint64_t a, b; /* descriptors */
    bool a_in_registers, a_transposed, b_transposed, accumulate;
    uint8_t a_type, b_type; /* fa_ptx_type */
    float a_sign, b_sign;
    float a_values[16 * 32]; /* [row][depth] */
    uint64_t trace;          /* equal in all warps of a warpgroup */
    const char *name, *file;
    int32_t line;
} fa_emu_product;

typedef struct fa_emu_products {
    fa_emu_product queue[FA_EMU_PRODUCTS_MAX]; /* a ring: `issued` - `done` of them are pending */
    uint32_t issued, done;
    uint32_t group_ends[FA_EMU_PRODUCTS_MAX]; /* a ring: products issued when each group was committed */
    uint32_t groups;
    fa_emu_tile tiles[FA_EMU_TILES_MAX];
    bool fenced; /* wgmma.fence was executed at least once */
} fa_emu_products;

typedef struct fa_emu_pending {
    fa_emu_mbarrier **barriers;
    uint32_t barrier_count, barrier_capacity;
    uint64_t barrier_low, barrier_high; /* range of their addresses */
    fa_emu_bulk *bulks;                 /* in order of issue */
    uint32_t bulk_count, bulk_capacity;
    fa_emu_patience patience[FA_EMU_MAX_THREADS];
    uint32_t group[FA_EMU_MAX_THREADS]; /* number of the bulk group being filled */
    fa_emu_products *products[FA_EMU_MAX_WARPS];
    uint32_t awaited_warp[FA_EMU_MAX_WARPS]; /* the warp whose product a warp waits for; itself: none */
    bool pool_filled;
    uint32_t pool;                                                    /* registers that no warp holds */
    uint32_t registers[FA_EMU_MAX_WARPS];                             /* per thread of a warp */
    uint32_t changes[FA_EMU_MAX_WARPS];                               /* how often setmaxnreg changed them */
    uint32_t waiting_for_registers[FA_EMU_MAX_WARPS];                 /* lanes */
    struct fa_emu_registers *registers_of_thread[FA_EMU_MAX_THREADS]; /* under the race detector */
    uint32_t busy;                                                    /* pending copies and products */
} fa_emu_pending;

/* The state of a block, and of the running one; allocated on first use. */
fa_emu_pending *fa_emu_pending_of(fa_emu_worker *worker);
fa_emu_pending *fa_emu_pending_now(void);
/* The live barrier object that overlaps these bytes; NULL: none. */
const fa_emu_mbarrier *fa_emu_pending_barrier(const fa_emu_pending *pending, uint64_t address, size_t size);
/* A number below `count`, drawn from the schedule's seed. */
uint32_t fa_emu_draw(fa_emu_worker *worker, uint32_t count);
/* The state of the barriers and of the register pool as text, for the report of a deadlock. Returns the length. */
size_t fa_emu_pending_explain(const fa_emu_worker *worker, char *text, size_t size);
