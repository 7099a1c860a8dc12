/* The .npy reader: `take` reads the bytes of a file that --load names. */
#include "input/npy.c"

/* `exponent`: its bits are all set in an element that is not finite. */
static void read_as(const uint8_t *data, size_t size, const wanted *want, unsigned exponent)
{
    char *file = fa_alloc(size + 1);
    uint16_t *values = NULL;
    float *descales = NULL;
    fa_reason why = {""};
    memcpy(file, data, size);
    const fa_status status = take("fuzz.npy", file, size, want, &values, &descales, &why);
    FA_ASSERT(status == FA_PASS || why.text[0] != '\0', "a refusal without a reason");
    for (size_t i = 0; status == FA_PASS && i < count_of(want); i++)
        if (want->fp32)
            FA_ASSERT(descales[i] > 0.0f, "descale %zu is not above 0", i);
        else
            FA_ASSERT((values[i] & exponent) != exponent, "element %zu is not finite", i);
    free(descales);
    free(values);
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    wanted want = {.dtype = FA_DTYPE_FP16, .rank = 4, .shape = {1, 2, 3, 8}};
    read_as(data, size, &want, 0x7C00);
    want.dtype = FA_DTYPE_BF16;
    read_as(data, size, &want, 0x7F80);
    want.dtype = FA_DTYPE_E4M3;
    read_as(data, size, &want, FA_POISON_E4M3);
    read_as(data, size, &(wanted){.fp32 = true, .rank = 2, .shape = {2, 3}}, 0);
    return 0;
}
