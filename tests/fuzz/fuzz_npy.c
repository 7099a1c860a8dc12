/* The .npy reader: find_contents and what takes the numbers read the bytes of a file that --load names. */
#include "input/npy.c"

static void read_as(const uint8_t *data, size_t size, fa_dtype dtype, unsigned exponent)
{
    enum { COUNT = 48 };
    const wanted want = {.dtype = dtype, .rank = 4, .shape = {1, 2, 3, 8}};
    char *file = fa_alloc(size + 1);
    const char *contents = NULL;
    uint16_t *values = NULL;
    fa_reason why = {""};
    memcpy(file, data, size);
    if (find_contents("fuzz.npy", file, size, &want, &contents, &why) == FA_PASS &&
        take_elements("fuzz.npy", contents, &want, &values, &why) == FA_PASS)
        for (int i = 0; i < COUNT; i++)
            FA_ASSERT((values[i] & exponent) != exponent, "element %d is not finite", i);
    else
        FA_ASSERT(why.text[0] != '\0', "a refusal without a reason");
    free(values);
    free(file);
}

/* Descales, which are FP32. */
static void read_descales(const uint8_t *data, size_t size)
{
    enum { COUNT = 6 };
    const wanted want = {.fp32 = true, .rank = 2, .shape = {2, 3}};
    char *file = fa_alloc(size + 1);
    const char *contents = NULL;
    float *values = NULL;
    fa_reason why = {""};
    memcpy(file, data, size);
    if (find_contents("fuzz.npy", file, size, &want, &contents, &why) == FA_PASS &&
        take_descales("fuzz.npy", contents, &want, &values, &why) == FA_PASS)
        for (int i = 0; i < COUNT; i++)
            FA_ASSERT(values[i] > 0.0f, "descale %d is not above 0", i);
    else
        FA_ASSERT(why.text[0] != '\0', "a refusal without a reason");
    free(values);
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_as(data, size, FA_DTYPE_FP16, 0x7C00);
    read_as(data, size, FA_DTYPE_BF16, 0x7F80);
    read_as(data, size, FA_DTYPE_E4M3, FA_POISON_E4M3);
    read_descales(data, size);
    return 0;
}
