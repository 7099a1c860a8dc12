/* The kernel above as a PyTorch extension: forward(q, k, v). */
#include <torch/extension.h>

#include <ATen/cuda/CUDAContext.h>

static fa_launch_tensor tensor(const torch::Tensor &t)
{
    return {t.data_ptr(), {t.size(0), t.size(1), t.size(2), t.size(3)}, {t.stride(0), t.stride(1), t.stride(2)}};
}

static torch::Tensor forward(torch::Tensor q, torch::Tensor k, torch::Tensor v)
{
    for (const torch::Tensor &t : {q, k, v})
        TORCH_CHECK(t.is_cuda() && t.scalar_type() == torch::kHalf && t.dim() == 4, "takes FP16 [B, H, S, D] on a GPU");
    q = q.contiguous(), k = k.contiguous(), v = v.contiguous();
    torch::Tensor o = torch::empty_like(q);
    const char *error =
        fa_launch(tensor(q), tensor(k), tensor(v), tensor(o), q.get_device(), at::cuda::getCurrentCUDAStream());
    TORCH_CHECK(error == nullptr, error);
    return o;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &forward, "softmax(scale * Q K^T + mask) V"); }
