/* --page-size: keys and values in pages of equal size that lie anywhere, and a table that says where. */
#pragma once

#include "input/lengths.h"

/* An entry that no kernel may use: a page far beyond those that there are. */
#define FA_PAGE_UNUSED 2147480000

/* Key j of sequence b is row j % size of page table[start[b] + j / size]. */
typedef struct fa_pages {
    int32_t size;    /* rows of a page */
    bool nhd;        /* a page is [size, kv_heads, dim]; else [kv_heads, size, dim] */
    bool compressed; /* the table is one list with starts; else a row of `row_entries` for each sequence */
    int32_t count;   /* pages stored, free ones included */
    int32_t batch, row_entries;
    int32_t *start; /* [batch + 1] */
    int32_t *table; /* [start[batch]] */
    int32_t *owner; /* [count]: the first entry that names the page; -1: free */
} fa_pages;

/* Pages in random order for sequences of these keys, with free ones between: twice as many as are used, where that is
 * not much memory. `count`: pages to store, 0: as many as that takes. share: the second sequence begins with some pages
 * of the first. */
fa_pages *fa_pages_make(int32_t size, bool nhd, int32_t batch, const int32_t *keys, int32_t count, bool share,
                        uint64_t seed);
void fa_pages_free(fa_pages *pages);
/* The sequence that owns an entry of the table. */
int32_t fa_pages_sequence(const fa_pages *pages, int32_t entry);
