/* A unit test is TEST(name) {...}. The program of a file runs its tests in their order; main is in unit.c. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check/reference.h"
#include "device/device.h"
#include "input/options.h"
#include "input/problem.h"

#define TEST(name) TEST_WITH(name, NULL, NULL)
/* setup runs before the test and teardown after it. */
#define TEST_WITH(name, setup, teardown)                                                       \
    static void name(void **state);                                                            \
    __attribute__((constructor)) static void add_##name(void)                                  \
    {                                                                                          \
        const struct CMUnitTest test = cmocka_unit_test_setup_teardown(name, setup, teardown); \
        unit_add(__LINE__, &test);                                                             \
    }                                                                                          \
    static void name(void **state)
/* A variable that is freed, or ended by a function that takes its address, where its scope ends. */
#define FREED __attribute__((cleanup(unit_free)))
#define CLEANUP(end) __attribute__((cleanup(end)))
static inline void unit_free(void *variable) { free(*(void **)variable); }
void unit_add(int line, const struct CMUnitTest *test);
/* A file may define these: before its first test and after its last. */
int unit_setup(void **state);
int unit_teardown(void **state);

/* The options point into a copy of the words, which the next call overwrites. */
fa_status parse_words(const char *line, fa_options *options, fa_reason *why);
/* The problem of a line that is right. fa_problem_free */
fa_problem problem_of(const char *line);
/* With the scale 1/sqrt(dim). */
fa_problem shape(int32_t batch, int32_t heads, int32_t kv_heads, int32_t seq_q, int32_t seq_kv, int32_t dim,
                 bool causal);
/* The reference of every `step`th row. */
fa_reference reference_of(const fa_problem *problem, const fa_tensors *tensors, int64_t step, bool acc_fp16);
/* Fails when the words are not in the text. */
void holds(const char *text, const char *words);
/* Fails when the status is another, or the words are not in the reason. */
void ends_with(fa_status got, fa_status wanted, const fa_reason *why, const char *words);
/* Writes a file of a folder, which its owner may run. */
void put_file(const char *folder, const char *name, const char *text);
/* Fails when value is further from wanted than the share `relative` of it. */
void near(double value, double wanted, double relative);

/* A device of host memory, which neither loads nor launches; and what was done with its memory. */
fa_device host_device(void);
extern struct host {
    int32_t allocated, allocations;
    size_t bytes_put;
} host;

/* Lines that a test says, compared with those of a committed file: what they say is the contract. */
typedef struct golden {
    char *text;
    size_t used, room;
} golden;

__attribute__((format(printf, 2, 3))) void golden_say(golden *g, const char *format, ...);
/* A digest takes the place of the lines said since g->used was `from`. FA_GOLDEN=say in the environment prints them. */
void golden_fold(golden *g, size_t from);
/* Fails at the first line that differs from tests/golden/NAME. FA_GOLDEN=write in the environment writes the file. */
void golden_compare(golden *g, const char *name);
uint64_t golden_digest(uint64_t digest, const void *bytes, size_t count);
