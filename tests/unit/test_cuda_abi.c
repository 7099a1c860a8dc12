/* Our declarations of the CUDA driver API against cuda.h, where there is one; otherwise skipped, and said so. */
#include "cuda_abi.h"
#include "cuda/api.h"
#include "cuda/nvml.h"
#include "fa_params.h"

#include "unit.h"

static const abi_value ours[] = {
#define FA_VALUE(what) {#what, (long long)(what)},
#include "cuda_abi.def"
};

TEST(same_numbers_as_cuda_h)
{
    if (cuda_abi_theirs_count == 0)
        skip();
    assert_int_equal(cuda_abi_theirs_count, sizeof ours / sizeof *ours);
    for (size_t i = 0; i < cuda_abi_theirs_count; i++) {
        if (ours[i].value != cuda_abi_theirs[i].value)
            print_error("%s\n", ours[i].what);
        assert_int_equal(ours[i].value, cuda_abi_theirs[i].value);
    }
}

TEST(tensor_map_fits_the_kernel_parameters)
{
    assert_int_equal(sizeof(CUtensorMap), sizeof(fa_tensor_map));
    assert_int_equal(offsetof(fa_params, q_map) % 64, 0);
    assert_int_equal(offsetof(fa_params, o_map) % 64, 0);
    assert_int_equal(offsetof(fa_params, dim_v), 740); /* what ABI 2 had stays where it was */
    assert_int_equal(offsetof(fa_params, start_q), 768);
    assert_int_equal(sizeof(fa_params), 1216); /* no padding: parameters are compared byte by byte */
}

TEST(a_machine_without_a_driver_is_told_so)
{
    fa_cuda_api api;
    fa_reason why = {""};
    const fa_status status = fa_cuda_api_open(&api, &why);
    if (status == FA_PASS)
        skip();
    assert_int_equal(status, FA_NOT_RUN);
    assert_true(why.text[0] != '\0');
    assert_null(api.library);
}

TEST(nvml_that_is_not_there_knows_nothing)
{
    fa_nvml nvml;
    fa_nvml_open(&nvml, "ffff:ff:1f.7");
    uint64_t reasons;
    char driver[32];
    assert_null(nvml.library);
    assert_false(fa_nvml_clock_reasons(&nvml, &reasons));
    assert_int_equal(fa_nvml_max_sm_mhz(&nvml), 0);
    assert_false(fa_nvml_driver(&nvml, driver, sizeof driver));
    fa_nvml_close(&nvml);
}
