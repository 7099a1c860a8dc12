"""A module of fa_bench --cubin on PyTorch's tensors: include/fa_params.h, as a host of it in Python. Importing it needs
neither PyTorch nor a GPU.

ValueError: the module is of another ABI, made for another problem, or asks for what is not done here. RuntimeError: the
driver refuses. OSError: no such file, or no libcuda."""
import ctypes
import pathlib

ABI = 3
DTYPE = {"fp16": 0, "bf16": 1, "e4m3": 2}  # FA_DTYPE_*
# Driver API: CUfunction_attribute, CUtensorMapDataType, CUtensorMapSwizzle by the bytes of a row of the box,
# CUtensorMapL2promotion, CUresult, CUlaunchAttributeID.
MAX_DYNAMIC_SHARED_SIZE_BYTES, MAP_TYPE, SWIZZLE = 8, {"fp16": 6, "bf16": 9, "e4m3": 0}, {32: 1, 64: 2, 128: 3}
L2_NONE, L2_256B = 0, 3
NOT_FOUND, CLUSTER_DIMENSION = 500, 4


def fields(ctype, names):
    return [(name, ctype) for name in names]


class Params(ctypes.Structure):
    """fa_params: one launch. Strides in elements."""
    _fields_ = (fields(ctypes.c_void_p, "qkvo") +
                fields(ctypes.c_int64, [f"{tensor}_stride_{axis}" for tensor in "qkvo" for axis in "bhs"]) +
                fields(ctypes.c_int32, ("batch", "heads", "kv_heads", "seq_q", "seq_kv", "dim", "causal")) +
                fields(ctypes.c_float, ["scale"]) +
                fields(ctypes.c_int32, ("tiles_m", "tiles", "sm_count", "reserved")) +
                fields(ctypes.c_void_p, ["workspace"]) + fields(ctypes.c_int64, ["workspace_bytes"]) +
                fields(ctypes.c_ubyte * 128, [f"{tensor}_map" for tensor in "qkvo"]) +
                fields(ctypes.c_void_p, ["lse"]) + fields(ctypes.c_int64, [f"lse_stride_{axis}" for axis in "bhs"]) +
                fields(ctypes.c_int32, ("dtype", "dim_v", "dtype_kv", "dtype_o", "window_left", "window_right", "chunk",
                                        "page_size")) +
                fields(ctypes.c_void_p, ("start_q", "start_kv", "used_q", "used_kv")) +
                fields(ctypes.c_int64, ("total_q", "total_kv")) + fields(ctypes.c_void_p, ("pages", "page_start")) +
                fields(ctypes.c_int64, ["pages_stride"]) + fields(ctypes.c_int32, ["num_pages"]) +
                fields(ctypes.c_float, ["softcap"]) + fields(ctypes.c_void_p, ("sinks", "slopes")) +
                fields(ctypes.c_int64, ["slopes_stride_b"]) + fields(ctypes.c_void_p, ["bias"]) +
                fields(ctypes.c_int64, [f"bias_stride_{axis}" for axis in "bhq"]) +
                fields(ctypes.c_void_p, ("mask", "mask_start")) + fields(ctypes.c_int32, ("mask_keys", "reserved3")) +
                fields(ctypes.c_void_p, [f"{tensor}_descale" for tensor in "qkv"]) +
                fields(ctypes.c_int64, [f"{tensor}_descale_stride_{axis}" for tensor in ("q", "kv") for axis in "bh"]) +
                fields(ctypes.c_void_p, ("q2", "k2")) +
                fields(ctypes.c_int64, [f"{tensor}_stride_{axis}" for tensor in ("q2", "k2") for axis in "bhs"]) +
                fields(ctypes.c_int32, ("dim2", "deterministic")) +
                fields(ctypes.c_void_p, ("dout", "dq", "dk", "dv", "dsinks")) +
                fields(ctypes.c_int64 * 12, ["grad_stride"]) + fields(ctypes.c_int64 * 3, ["reserved4"]))


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: blocks of a cluster by axis."""
    _fields_ = [("id", ctypes.c_int32), ("pad", ctypes.c_int32), ("blocks", ctypes.c_uint32 * 3),
                ("rest", ctypes.c_ubyte * 52)]


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""
    _fields_ = [("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3), ("shared_bytes", ctypes.c_uint32),
                ("stream", ctypes.c_void_p), ("attributes", ctypes.POINTER(LaunchAttribute)),
                ("count", ctypes.c_uint32)]


class Info(ctypes.Structure):
    """fa_kernel_info: what the module says it is."""
    _fields_ = (fields(ctypes.c_int32, ("abi", "m", "n", "warps", "vec", "stages", "swizzle", "acc_fp16", "maxreg",
                                        "splits", "dim", "causal", "features", "dim_v", "threads", "smem_dynamic_bytes",
                                        "grid", "blocks_per_sm", "cluster")) +
                fields(ctypes.c_int64, ("workspace_bytes_per_block", "workspace_bytes_fixed")) +
                fields(ctypes.c_int32, ("tma_q_rows", "tma_k_rows", "tma_v_rows", "tma_o_rows", "tma_cols",
                                        "nondeterministic", "pack_heads", "writes_lse", "serves_bf16", "serves",
                                        "needs", "page_rows", "pre_grid", "post_grid")))


def check_info(info, size, dim, causal, dtype, features=0):
    """Whether this host can launch it on this problem; `size`: bytes of fa_info in the module."""
    if info.abi != ABI or size != ctypes.sizeof(Info):
        raise ValueError(f"the module is of ABI {info.abi} with {size} bytes of fa_info, "
                         f"this host of ABI {ABI} with {ctypes.sizeof(Info)}")
    if (info.dim, bool(info.causal)) != (dim, causal):
        raise ValueError(f"the module is made for dim {info.dim}, causal {bool(info.causal)}, "
                         f"not for dim {dim}, causal {causal}")
    if info.features != features:
        raise ValueError(f"the module is made for features {info.features:#x}, not for {features:#x}")
    if dtype == "bf16" and not info.serves_bf16:
        raise ValueError("the module is for FP16 alone")


class Kernel:
    """Called, it launches fa_before, fa_kernel and fa_after on PyTorch's current stream, so that a graph captures them.
    launched: "launch" of the bench's record of this problem on this GPU: blocks, tiles and workspace.
    inputs: q [batch, heads, seq_q, dim], k [batch, kv_heads, seq_kv, dim], v [.., dim_v] on the GPU, innermost stride
    1; dtype, scale, causal. With lengths a batch of 1 holds all rows; with pages k and v are batches of pages. Of a
    problem with features `features` (the bits), `more`, a dict of fields of fa_params: numbers, or tensors for
    pointers, `outputs()`, which makes O or the gradients, and `dtype_kv`. A module does not say for which type it was
    compiled, so the caller knows. self.output: O, or dQ, dK, dV. The module stays loaded: a graph may hold it."""

    def __init__(self, path, inputs, launched):
        import torch
        self.torch, self.driver = torch, ctypes.CDLL("libcuda.so.1")
        self.features, self.more = getattr(inputs, "features", 0), getattr(inputs, "more", {})
        self.output = inputs.outputs() if hasattr(inputs, "outputs") else torch.empty_like(inputs.q)
        self.blocks = {step["entry"]: step["grid"][0] for step in launched.get("steps", [])}
        self.blocks["fa_kernel"] = launched["grid"]
        self.load(path, inputs)
        self.fill(inputs, launched)

    def call(self, name, *arguments, absent=0):
        code = getattr(self.driver, name)(*arguments)
        if code not in (0, absent):
            raise RuntimeError(f"{name}: CUresult {code}")
        return code == 0

    def load(self, path, inputs):
        module, self.info, self.functions = ctypes.c_void_p(), Info(), {}
        address, size = ctypes.c_uint64(), ctypes.c_size_t()
        self.call("cuModuleLoadData", ctypes.byref(module), pathlib.Path(path).read_bytes())
        for name in ("fa_before", "fa_kernel", "fa_after"):
            function = ctypes.c_void_p()
            if self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode(),
                         absent=0 if name == "fa_kernel" else NOT_FOUND):
                self.functions[name] = function
        self.call("cuModuleGetGlobal_v2", ctypes.byref(address), ctypes.byref(size), module, b"fa_info")
        known = min(size.value, ctypes.sizeof(Info))
        self.call("cuMemcpyDtoH_v2", ctypes.byref(self.info), address, ctypes.c_size_t(known))
        check_info(self.info, size.value, inputs.q.shape[3], inputs.causal, inputs.dtype, self.features)
        if self.info.smem_dynamic_bytes > 0:
            self.call("cuFuncSetAttribute", self.functions["fa_kernel"], MAX_DYNAMIC_SHARED_SIZE_BYTES,
                      self.info.smem_dynamic_bytes)

    def fill(self, inputs, launched):
        """The parameters, at an address of 64 bytes' alignment, as their tensor maps need it."""
        info, backward = self.info, "dout" in self.more
        tensors = (inputs.q, inputs.k, inputs.v, self.more["o"] if backward else self.output)
        (batch, heads, seq_q, dim), (_, kv_heads, seq_kv, _) = tensors[0].shape, tensors[1].shape
        sm_count = self.torch.cuda.get_device_properties(tensors[0].device).multi_processor_count
        workspace_bytes = launched["workspace_bytes"]
        self.workspace = self.torch.zeros(workspace_bytes, dtype=self.torch.uint8, device=tensors[0].device)
        self.memory = ctypes.create_string_buffer(ctypes.sizeof(Params) + 64)
        self.params = Params.from_address(-(-ctypes.addressof(self.memory) // 64) * 64)
        types = dict.fromkeys("qkvo", inputs.dtype)
        types["k"] = types["v"] = getattr(inputs, "dtype_kv", inputs.dtype)
        types["o"] = "bf16" if inputs.dtype == "e4m3" else inputs.dtype
        values = {"batch": batch, "heads": heads, "kv_heads": kv_heads, "seq_q": seq_q, "seq_kv": seq_kv, "dim": dim,
                  "causal": inputs.causal, "scale": inputs.scale, "dtype": DTYPE[types["q"]],
                  "tiles_m": launched["tiles_m"], "tiles": launched["tiles"], "sm_count": sm_count,
                  "workspace": self.workspace.data_ptr(), "workspace_bytes": workspace_bytes,
                  "dim_v": tensors[2].shape[3], "dtype_kv": DTYPE[types["k"]], "dtype_o": DTYPE[types["o"]],
                  "window_left": -1, "window_right": 0 if inputs.causal else -1, "total_q": seq_q, "total_kv": seq_kv}
        for name, tensor in zip("qkvo", tensors):
            values[name] = tensor.data_ptr()
            values.update({f"{name}_stride_{axis}": stride for axis, stride in zip("bhs", tensor.stride())})
        values.update(self.more)
        if backward:
            values.update(zip(("dq", "dk", "dv"), self.output))
            strides = [stride for tensor in (self.more["dout"], *self.output) for stride in tensor.stride()[:3]]
            values["grad_stride"] = (ctypes.c_int64 * 12)(*strides)
        for name, value in values.items():
            setattr(self.params, name, value.data_ptr() if hasattr(value, "data_ptr") else value)
        for name, tensor in zip("qkvo", (*tensors[:3], self.more.get("dout", tensors[3]))):
            if getattr(info, f"tma_{name}_rows") > 0:
                self.encode(name, tensor, types[name])
        self.arguments = (ctypes.c_void_p * 1)(ctypes.addressof(self.params))

    def encode(self, name, tensor, dtype):
        """The tensor map of rank 4, innermost first; as fa_tensor_boxes (src/device/tensor_boxes.c), also with lengths
        and pages, and `encode` of src/cuda/module.c."""
        stride_b, stride_h, stride_s, _ = tensor.stride()
        shape, address, size = list(reversed(tensor.shape)), tensor.data_ptr(), 1 if dtype == "e4m3" else 2
        if "start_q" in self.more and not (name in "kv" and "pages" in self.more):
            longest = max(self.params.seq_q if name in "qo" else self.params.seq_kv, 1)
            shape[1], shape[3], stride_b = longest, shape[1] + 1, stride_s
            address -= longest * size * stride_s
        rows, row_bytes = getattr(self.info, f"tma_{name}_rows"), 2 * self.info.tma_cols
        strides_bytes = (size * stride_s, size * stride_h, size * stride_b)
        if any(value % 16 for value in (address, *strides_bytes)):
            raise ValueError(f"TMA needs rows of {name} on 16-byte boundaries")
        read_once = self.info.pack_heads and self.params.tiles_m == 1
        promote = row_bytes >= 128 and not read_once and all(value % 32 == 0 for value in strides_bytes)
        place = ctypes.addressof(self.params) + getattr(Params, f"{name}_map").offset
        self.call("cuTensorMapEncodeTiled", ctypes.c_void_p(place), MAP_TYPE[dtype], 4, ctypes.c_void_p(address),
                  (ctypes.c_uint64 * 4)(*shape),
                  (ctypes.c_uint64 * 3)(*strides_bytes),
                  (ctypes.c_uint32 * 4)(row_bytes // size, rows, 1, 1), (ctypes.c_uint32 * 4)(1, 1, 1, 1), 0,
                  SWIZZLE.get(row_bytes, 0), L2_256B if promote else L2_NONE, 0)

    def launch(self, function, blocks, shared_bytes, cluster):
        stream = ctypes.c_void_p(self.torch.cuda.current_stream().cuda_stream)
        if cluster <= 1:
            self.call("cuLaunchKernel", function, blocks, 1, 1, self.info.threads, 1, 1, shared_bytes, stream,
                      self.arguments, None)
            return
        attribute = LaunchAttribute(CLUSTER_DIMENSION, 0, (cluster, 1, 1))
        config = LaunchConfig((blocks, 1, 1), (self.info.threads, 1, 1), shared_bytes, stream,
                              ctypes.pointer(attribute), 1)
        self.call("cuLaunchKernelEx", ctypes.byref(config), function, self.arguments, None)

    def __call__(self):
        for name, function in self.functions.items():
            of_kernel = name == "fa_kernel"
            self.launch(function, self.blocks[name], self.info.smem_dynamic_bytes if of_kernel else 0,
                        self.info.cluster if of_kernel else 1)
