namespace at::cuda
{
inline cudaStream_t getCurrentCUDAStream() { return nullptr; }
} // namespace at::cuda
