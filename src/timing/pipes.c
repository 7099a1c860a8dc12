#include "timing/pipes.h"

#include <stdio.h>
#include <string.h>

const char *fa_pipe_name(fa_pipe pipe)
{
    static const char *const names[] = {"tensor", "mufu", "fma", "alu", "shared", "issue"};
    return names[pipe];
}

/* Threads per clock and multiprocessor: CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions".
 * FP32 is 64 on 8.0, else 128; integer multiply-add 64, but it shares the FMA pipe, where 128 is the safe figure;
 * integer, logic, shift, compare, minimum 64; special functions 16. Packed FP16 counts two results per thread.
 * studies/pipe_rates.cu measures each on an H200 (9.0): the same, and F2FP, on which the guide is vague, shares the 64
 * of the integer pipe; MUFU, FMA and integer do not share. What the guide does not name is issue slots alone. */
static const struct {
    const char *name;
    fa_pipe pipe;
    int32_t threads, threads_80;
    int32_t flop; /* per thread */
} costs[] = {
    {"MUFU", FA_PIPE_MUFU, 16, 16, 0},   {"FFMA", FA_PIPE_FMA, 128, 64, 2},   {"FADD", FA_PIPE_FMA, 128, 64, 1},
    {"FMUL", FA_PIPE_FMA, 128, 64, 1},   {"HFMA2", FA_PIPE_FMA, 128, 128, 4}, {"HADD2", FA_PIPE_FMA, 128, 128, 2},
    {"HMUL2", FA_PIPE_FMA, 128, 128, 2}, {"DFMA", FA_PIPE_FMA, 128, 64, 2},   {"IMAD", FA_PIPE_FMA, 128, 64, 0},
    {"IADD3", FA_PIPE_ALU, 64, 64, 0},   {"LOP3", FA_PIPE_ALU, 64, 64, 0},    {"SHF", FA_PIPE_ALU, 64, 64, 0},
    {"ISETP", FA_PIPE_ALU, 64, 64, 0},   {"FSETP", FA_PIPE_ALU, 64, 64, 0},   {"FMNMX", FA_PIPE_ALU, 64, 64, 0},
    {"FSEL", FA_PIPE_ALU, 64, 64, 0},    {"SEL", FA_PIPE_ALU, 64, 64, 0},     {"PRMT", FA_PIPE_ALU, 64, 64, 0},
    {"LEA", FA_PIPE_ALU, 64, 64, 0},     {"F2FP", FA_PIPE_ALU, 64, 64, 0},    {"IMNMX", FA_PIPE_ALU, 64, 64, 0},
    {"VIMNMX", FA_PIPE_ALU, 64, 64, 0},  {"HMNMX2", FA_PIPE_ALU, 64, 64, 0},  {"SHFL", FA_PIPE_SHARED, 32, 32, 0},
    {"LDG", FA_PIPE_SHARED, 32, 32, 0},  {"STG", FA_PIPE_SHARED, 32, 32, 0},
};

/* Clocks of shared memory at 128 bytes each. A load may broadcast: one at least; two for 16 bytes a thread on 9.0. A
 * warp stores to 32 places, ldmatrix and stmatrix move 128 bytes per matrix. An H200 takes just these without bank
 * conflicts: studies/shared_wavefronts.txt. */
static double shared_clocks(const char *opcode, int32_t cc)
{
    if (fa_opcode_is(opcode, "LDSM") || fa_opcode_is(opcode, "STSM")) {
        const char *last = strrchr(opcode, '.');
        return last != NULL && strcmp(last, ".4") == 0 ? 4 : last != NULL && strcmp(last, ".2") == 0 ? 2 : 1;
    }
    if (fa_opcode_is(opcode, "STS") || fa_opcode_is(opcode, "LDGSTS"))
        return strstr(opcode, ".128") != NULL ? 4 : strstr(opcode, ".64") != NULL ? 2 : 1;
    if (fa_opcode_is(opcode, "LDS") && cc == 90 && strstr(opcode, ".128") != NULL)
        return 2;
    return fa_opcode_is(opcode, "LDS") || fa_opcode_is(opcode, "ATOMS") ? 1 : 0;
}

/* Operations of a tensor-core instruction as one warp issues it: HMMA.16816 is 16 x 8 x 16 by one warp,
 * HGMMA.64x128x16 is shared by the four warps of a warpgroup; QMMA and QGMMA are of FP8. 0: another instruction. */
static double tensor_operations(const char *opcode)
{
    int m = 0, n = 0, k = 0;
    if (sscanf(opcode, "HGMMA.%dx%dx%d", &m, &n, &k) == 3 || sscanf(opcode, "QGMMA.%dx%dx%d", &m, &n, &k) == 3)
        return 2.0 * m * n * k / 4;
    if (fa_opcode_is(opcode, "HMMA.16816"))
        return 2.0 * 16 * 8 * 16;
    if (fa_opcode_is(opcode, "HMMA.1688"))
        return 2.0 * 16 * 8 * 8;
    if (fa_opcode_is(opcode, "QMMA.16832"))
        return 2.0 * 16 * 8 * 32;
    if (fa_opcode_is(opcode, "QMMA.16816"))
        return 2.0 * 16 * 8 * 16;
    if (fa_opcode_is(opcode, "HMMA.884"))
        return 2.0 * 8 * 8 * 4 * 4;
    return 0;
}

/* Clocks of the tensor cores. On 9.0 only wgmma reaches the peak, n / 2 clocks each (studies/wgmma_issue.txt): mma.sync
 * m16n8k16 takes 1.5 clocks of a multiprocessor and m16n8k8 1, two thirds and half of it (studies/mma_shapes.txt). FP8
 * has twice the rate. */
static double tensor_clocks(const char *opcode, double operations, int32_t cc, int32_t tensor_flop)
{
    if (cc == 90 && fa_opcode_is(opcode, "HMMA.16816"))
        return 1.5;
    if (cc == 90 && fa_opcode_is(opcode, "HMMA.1688"))
        return 1;
    return tensor_flop > 0 ? operations / (tensor_flop * (opcode[0] == 'Q' ? 2.0 : 1.0)) : 0;
}

fa_cost fa_cost_of(const fa_instruction *instruction, int32_t cc, int32_t tensor_flop)
{
    const char *opcode = instruction->opcode;
    fa_cost cost = {.clocks[FA_PIPE_ISSUE] = 0.25};
    const double operations = tensor_operations(opcode), shared = shared_clocks(opcode, cc);
    if (operations > 0) {
        cost.flop = operations;
        cost.clocks[FA_PIPE_TENSOR] = tensor_clocks(opcode, operations, cc, tensor_flop);
    }
    if (shared > 0)
        cost.clocks[FA_PIPE_SHARED] = shared;
    for (size_t i = 0; i < sizeof costs / sizeof *costs; i++) {
        if (!fa_opcode_is(opcode, costs[i].name))
            continue;
        cost.flop = 32.0 * costs[i].flop;
        cost.clocks[costs[i].pipe] = 32.0 / (cc == 80 ? costs[i].threads_80 : costs[i].threads);
    }
    if (instruction->predicated) /* it may do nothing, but it is issued */
        for (int pipe = 0; pipe < FA_PIPE_ISSUE; pipe++)
            cost.clocks[pipe] = 0;
    return cost;
}
