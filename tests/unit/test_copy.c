/* Copies through the pinned halves, on a driver that does nothing before it is waited for: a half that is used too
 * early shows. */
#include "cuda/copy.h"
#include "unit.h"

enum { QUEUE = 4 };

static struct {
    struct {
        void *to;
        const void *from;
        size_t bytes;
    } queue[QUEUE];
    int queued, copies, pinned;
    bool no_pinned, broken;
} driver;

static CUresult put(void *to, const void *from, size_t bytes)
{
    assert_in_range(driver.queued, 0, QUEUE - 1);
    driver.queue[driver.queued].to = to;
    driver.queue[driver.queued].from = from;
    driver.queue[driver.queued++].bytes = bytes;
    driver.copies++;
    return CUDA_SUCCESS;
}

static CUresult fake_in(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return put((void *)(uintptr_t)to, from, bytes);
}

static CUresult fake_out(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return put(to, (const void *)(uintptr_t)from, bytes);
}

static CUresult fake_wait(CUstream stream)
{
    for (int i = 0; i < driver.queued; i++)
        memcpy(driver.queue[i].to, driver.queue[i].from, driver.queue[i].bytes);
    driver.queued = 0;
    return driver.broken ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_SUCCESS;
}

static CUresult fake_pinned(void **pointer, size_t bytes, unsigned int flags)
{
    if (driver.no_pinned)
        return CUDA_ERROR_OUT_OF_MEMORY;
    driver.pinned++;
    *pointer = malloc(bytes);
    return CUDA_SUCCESS;
}

static CUresult fake_unpin(void *pointer)
{
    driver.pinned--;
    free(pointer);
    return CUDA_SUCCESS;
}

static CUresult fake_words(CUresult code, const char **text)
{
    *text = "made up";
    return CUDA_SUCCESS;
}

static fa_cuda cuda_make(void)
{
    memset(&driver, 0, sizeof driver);
    fa_cuda cuda = {.lost = false};
    cuda.api.cuMemcpyHtoDAsync = fake_in;
    cuda.api.cuMemcpyDtoHAsync = fake_out;
    cuda.api.cuStreamSynchronize = fake_wait;
    cuda.api.cuMemHostAlloc = fake_pinned;
    cuda.api.cuMemFreeHost = fake_unpin;
    cuda.api.cuGetErrorName = fake_words;
    cuda.api.cuGetErrorString = fake_words;
    return cuda;
}

static uint8_t byte_at(size_t i) { return (uint8_t)(i * 2654435761u >> 13); }

/* There and back, with a byte on either side that must stay. */
static void there_and_back(fa_cuda *cuda, size_t bytes)
{
    fa_device device = {.self = cuda};
    fa_reason why = {""};
    FREED uint8_t *from = malloc(bytes), *gpu = malloc(bytes + 2), *back = malloc(bytes + 2);
    for (size_t i = 0; i < bytes; i++)
        from[i] = byte_at(i);
    gpu[0] = gpu[bytes + 1] = back[0] = back[bytes + 1] = 0x5A;
    assert_int_equal(fa_cuda_copy_in(&device, (fa_ptr)(uintptr_t)(gpu + 1), from, bytes, &why), FA_PASS);
    assert_int_equal(driver.queued, 0); /* it has waited */
    assert_memory_equal(gpu + 1, from, bytes);
    assert_int_equal(fa_cuda_copy_out(&device, back + 1, (fa_ptr)(uintptr_t)(gpu + 1), bytes, &why), FA_PASS);
    assert_int_equal(driver.queued, 0);
    assert_memory_equal(back + 1, from, bytes);
    assert_true(gpu[0] == 0x5A && gpu[bytes + 1] == 0x5A && back[0] == 0x5A && back[bytes + 1] == 0x5A);
}

TEST(every_byte_arrives)
{
    const size_t half = FA_CUDA_STAGING_BYTES / 2;
    const size_t sizes[] = {1, 1000, FA_CUDA_STAGING_BYTES / 8, 5 * half + 12345};
    fa_cuda cuda = cuda_make();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        there_and_back(&cuda, sizes[i]);
    for (size_t halves = 1; halves <= 3; halves++)
        for (size_t more = 0; more < 3; more++)
            there_and_back(&cuda, halves * half - 1 + more);
    assert_int_equal(driver.pinned, 1);
    fa_cuda_copy_close(&cuda);
    assert_int_equal(driver.pinned, 0);
}

TEST(small_copies_pin_nothing)
{
    CLEANUP(fa_cuda_copy_close) fa_cuda cuda = cuda_make();
    there_and_back(&cuda, 4096);
    assert_int_equal(driver.pinned, 0);
    assert_int_equal(driver.copies, 2);
}

TEST(without_pinned_memory_the_driver_does_it)
{
    CLEANUP(fa_cuda_copy_close) fa_cuda cuda = cuda_make();
    driver.no_pinned = true;
    there_and_back(&cuda, 3 * FA_CUDA_STAGING_BYTES);
    assert_int_equal(driver.copies, 2);
}

TEST(a_fault_is_said)
{
    CLEANUP(fa_cuda_copy_close) fa_cuda cuda = cuda_make();
    fa_device device = {.self = &cuda};
    fa_reason why = {""};
    const size_t bytes = 2 * FA_CUDA_STAGING_BYTES;
    FREED uint8_t *a = calloc(1, bytes), *b = calloc(1, bytes);
    driver.broken = true;
    ends_with(fa_cuda_copy_out(&device, a, (fa_ptr)(uintptr_t)b, bytes, &why), FA_ERROR, &why, "the context is lost");
    assert_int_equal(fa_cuda_copy_in(&device, (fa_ptr)(uintptr_t)b, a, bytes, &why), FA_ERROR);
}
