/* What FlashAttention 2 takes from PyTorch: two macros. fa_forward reads the error of a launch that failed. */
#ifndef FA2_CUDA_EXCEPTION_H
#define FA2_CUDA_EXCEPTION_H
#define C10_CUDA_CHECK(call) ((void)(call))
#define C10_CUDA_KERNEL_LAUNCH_CHECK() ((void)0)
#endif
