/* One timing sample on the GPU. What it keeps between samples is freed with the kernel or with the device. */
#pragma once

#include "cuda/context.h"

fa_status fa_cuda_sample(fa_device *device, const fa_sample_request *request, fa_sample *sample, fa_reason *why);
void fa_cuda_sampler_forget(fa_cuda *cuda, const fa_kernel *kernel); /* before the kernel is destroyed */
void fa_cuda_sampler_close(fa_cuda *cuda);
