/* The kernel beside it as FlashInfer-Bench calls it (tvm-ffi). */
#include "kernel.cuh"
#include "launch.cuh"

#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

static fa_launch_tensor tensor(tvm::ffi::TensorView t)
{
    return {t.data_ptr(), {t.size(0), t.size(1), t.size(2), t.size(3)}, {t.stride(0), t.stride(1), t.stride(2)}};
}

static void run(tvm::ffi::TensorView q, tvm::ffi::TensorView k, tvm::ffi::TensorView v, tvm::ffi::TensorView o)
{
    const auto stream = (cudaStream_t)TVMFFIEnvGetStream(q.device().device_type, q.device().device_id);
    const char *error = fa_launch(tensor(q), tensor(k), tensor(v), tensor(o), q.device().device_id, stream);
    if (error != nullptr)
        TVM_FFI_THROW(RuntimeError) << error;
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run);
