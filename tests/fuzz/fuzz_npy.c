/* The .npy reader: check_file reads the bytes of a file that --load names. */
#include "input/npy.c"

static void read_as(const uint8_t *data, size_t size, fa_dtype dtype, unsigned exponent)
{
    static const int32_t shape[4] = {1, 2, 3, 8};
    enum { COUNT = 48 };
    char *file = fa_alloc(size + 1);
    uint16_t *values = NULL;
    fa_reason why = {""};
    memcpy(file, data, size);
    if (check_file("fuzz.npy", file, size, dtype, shape, &values, false, &why) == FA_PASS)
        for (int i = 0; i < COUNT; i++)
            FA_ASSERT((values[i] & exponent) != exponent, "element %d is not finite", i);
    else
        FA_ASSERT(why.text[0] != '\0', "a refusal without a reason");
    free(values);
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_as(data, size, FA_DTYPE_FP16, 0x7C00);
    read_as(data, size, FA_DTYPE_BF16, 0x7F80);
    return 0;
}
