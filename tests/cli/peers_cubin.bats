#!/usr/bin/env bats
# Our kernel and its peers in one process: the launch of a cubin is the C header's, the blocks are A B B A; what each
# peer is given. No GPU, no PyTorch: made-up ones.
load helper

python() { PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=scripts/lib/peers python3 "$@"; }

@test "fa_params, fa_kernel_info and the driver's constants are those of the headers" {
    cat >"$work/fields.py" <<'END'
import ctypes, sys
import peers_cubin as p
letters = {ctypes.c_void_p: "p", ctypes.c_int64: "l", ctypes.c_int32: "i", ctypes.c_float: "f",
    ctypes.c_ubyte * 128: "m", ctypes.c_int64 * 12: "p", ctypes.c_int64 * 3: "p"}
constants = {"FA_ABI": p.ABI,
    "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES": p.MAX_DYNAMIC_SHARED_SIZE_BYTES,
    "FA_DTYPE_FP16": p.DTYPE["fp16"], "FA_DTYPE_BF16": p.DTYPE["bf16"], "FA_DTYPE_E4M3": p.DTYPE["e4m3"],
    "CU_TENSOR_MAP_DATA_TYPE_UINT8": p.MAP_TYPE["e4m3"], "CUDA_ERROR_NOT_FOUND": p.NOT_FOUND,
    "CU_TENSOR_MAP_DATA_TYPE_FLOAT16": p.MAP_TYPE["fp16"], "CU_TENSOR_MAP_DATA_TYPE_BFLOAT16": p.MAP_TYPE["bf16"],
    "CU_TENSOR_MAP_SWIZZLE_32B": p.SWIZZLE[32], "CU_TENSOR_MAP_SWIZZLE_64B": p.SWIZZLE[64],
    "CU_TENSOR_MAP_SWIZZLE_128B": p.SWIZZLE[128], "CU_TENSOR_MAP_L2_PROMOTION_L2_256B": p.L2_256B}
print('#include <stddef.h>\n#include <stdio.h>\n#include "cuda/api.h"\n#include "fa_params.h"\n'
      '#define LETTER(x) _Generic(x, fa_i32: "i", fa_i64: "l", fa_f32: "f", fa_tensor_map: "m", default: "p")\n'
      'int main(void) {')
for name, made in (("fa_params", p.Params), ("fa_kernel_info", p.Info)):
    print(f'printf("{name} %zu\\n", sizeof({name}));')
    print(name, ctypes.sizeof(made), file=sys.stderr)
    for field, kind in made._fields_:
        print(f'printf("{field} %zu %s\\n", offsetof({name}, {field}), LETTER((({name} *)0)->{field}));')
        print(field, getattr(made, field).offset, letters[kind], file=sys.stderr)
for name, value in constants.items():
    print(f'printf("{name} %d\\n", (int){name});')
    print(name, value, file=sys.stderr)
print("}")
END
    python "$work/fields.py" >"$work/fields.c" 2>"$work/ours"
    gcc -std=c17 -Iinclude -Isrc -o "$work/fields" "$work/fields.c"
    "$work/fields" >"$work/theirs"
    [ "$(wc -l <"$work/ours")" -gt 120 ]
    diff "$work/ours" "$work/theirs"
}

@test "a module of another ABI or for another problem is refused" {
    cat >"$work/refuse.py" <<'END'
import ctypes
from peers_cubin import Info, check_info
good, size = dict(abi=3, dim=64, causal=1), ctypes.sizeof(Info)
def refused(words, bytes=size, dtype="fp16", **changed):
    try:
        check_info(Info(**{**good, **changed}), bytes, 64, True, dtype)
    except ValueError as error:
        assert words in str(error), error
        return
    raise AssertionError(words)
check_info(Info(**good), size, 64, True, "fp16")
check_info(Info(**good, cluster=2, serves_bf16=1), size, 64, True, "bf16")
refused("of ABI 1 ", abi=1)
refused("with 64 bytes", bytes=64)
refused("made for dim 128, causal True, not for dim 64", dim=128)
refused("causal False, not for dim 64, causal True", causal=0)
refused("for FP16 alone", dtype="bf16")
refused("made for features 0x2, not for 0x0", features=2)
END
    python "$work/refuse.py"
}

@test "what the driver is asked: function, shared memory, tensor maps, launch" {
    cat >"$work/driver.c" <<'END'
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cuda/api.h"
#include "fa_params.h"
static fa_kernel_info info = {
    .abi = FA_ABI, .m = 64, .splits = 2, .dim = 32, .causal = 1, .threads = 96, .smem_dynamic_bytes = 70000,
    .tma_q_rows = 64, .tma_v_rows = 48, .tma_cols = 32, .serves_bf16 = 1};
CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    *module = (CUmodule)1;
    return strcmp(image, "an image") == 0 ? 0 : 200;
}
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    const bool before = strcmp(name, "fa_before") == 0;
    *function = (CUfunction)(before ? 0x11 : strcmp(name, "fa_after") == 0 ? 0x22 : 0x123456789);
    const bool around = getenv("AROUND") != NULL || strcmp(name, "fa_kernel") == 0;
    return module == (CUmodule)1 && around ? 0 : CUDA_ERROR_NOT_FOUND;
}
CUresult cuModuleGetGlobal_v2(CUdeviceptr *at, size_t *bytes, CUmodule module, const char *name)
{
    (void)module;
    if (getenv("AROUND") != NULL)
        info.features = atoi(getenv("AROUND"));
    info.cluster = info.features == 8192 ? 2 : 0;
    *at = (CUdeviceptr)&info;
    *bytes = sizeof info;
    return strcmp(name, "fa_info") == 0 ? 0 : 500;
}
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes)
{
    memcpy(to, (void *)from, bytes);
    return 0;
}
CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int value)
{
    printf("attribute %d %d %d\n", f == (CUfunction)0x123456789, a, value);
    return 0;
}
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                const cuuint64_t *d, const cuuint64_t *s, const cuuint32_t *b, const cuuint32_t *e,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)
{
    printf("map %d %d %u %p: %lu %lu %lu %lu; %lu %lu %lu; %u %u %u %u; %u %u %u %u; %d %d %d %d\n",
           (int)((uintptr_t)map % 64), type, rank, address, d[0], d[1], d[2], d[3], s[0], s[1], s[2], b[0], b[1], b[2],
           b[3], e[0], e[1], e[2], e[3], interleave, swizzle, promotion, fill);
    memset(map, 'm', sizeof(fa_tensor_map));
    return 0;
}
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned x, unsigned y, unsigned z,
                        unsigned smem, CUstream stream, void **arguments, void **extra)
{
    const fa_params *p = arguments[0];
    if (f != (CUfunction)0x123456789)
        return printf("%s %u %u %u\n", f == (CUfunction)0x11 ? "before" : "after", gx, x, smem), fflush(stdout);
    printf("launch %d %u %u %u %u %u %u %u %p %p\n", f == (CUfunction)0x123456789, gx, gy, gz, x, y, z, smem,
           (void *)stream, (void *)extra);
    printf("tensors %p %p %p %p\n", p->q, p->k, p->v, p->o);
    printf("strides %lld %lld %lld; %lld %lld %lld; %lld %lld %lld; %lld %lld %lld\n", p->q_stride_b, p->q_stride_h,
           p->q_stride_s, p->k_stride_b, p->k_stride_h, p->k_stride_s, p->v_stride_b, p->v_stride_h, p->v_stride_s,
           p->o_stride_b, p->o_stride_h, p->o_stride_s);
    printf("problem %d %d %d %d %d %d %d %d %g; %d %d %d %d; %p %lld; %d%d%d%d\n", p->dtype, p->batch, p->heads,
           p->kv_heads, p->seq_q, p->seq_kv, p->dim, p->causal, p->scale, p->tiles_m, p->tiles, p->sm_count,
           p->reserved, p->workspace, p->workspace_bytes, p->q_map.bytes[127] == 'm', p->k_map.bytes[0],
           p->v_map.bytes[0] == 'm', p->o_map.bytes[127]);
    if (info.features)
        printf("more %d %d %d; %p %d %d %p; %p %p %p %p %lld %lld %p %d\n", p->dtype, p->dtype_kv, p->dtype_o,
               (const void *)p->pages, p->page_size, p->num_pages, (const void *)p->k_descale, p->dout, p->dq, p->dk,
               p->dv, p->grad_stride[0][1], p->grad_stride[3][0], (void *)p->lse, p->deterministic);
    return fflush(stdout);
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **arguments, void **extra)
{
    const CUlaunchAttribute *a = c->attrs;
    printf("clusters %u %d %u %u %u\n", c->numAttrs, a->id, a->value.clusterDim.x, a->value.clusterDim.y,
           a->value.clusterDim.z);
    return cuLaunchKernel(f, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ,
                          c->sharedMemBytes, c->hStream, arguments, extra);
}
END
    gcc -std=c17 -D_GNU_SOURCE -shared -fPIC -Iinclude -Isrc -o "$work/libcuda.so.1" "$work/driver.c"
    cat >"$work/launch.py" <<'END'
import os, sys
from types import SimpleNamespace as Fake
class Tensor:
    def __init__(self, address, *shape): self.address, self.shape, self.device = address, shape, "gpu"
    def data_ptr(self): return self.address
    def stride(self): _, h, s, d = self.shape; return (h * s * d, s * d, d, 1)
sys.modules["torch"] = Fake(empty_like=lambda q: Tensor(0x7fff00000400, *q.shape), uint8="uint8",
    zeros=lambda count, dtype, device: Tensor(0x7fff00000500, count),
    cuda=Fake(get_device_properties=lambda device: Fake(multi_processor_count=2),
        current_stream=lambda: Fake(cuda_stream=0x700000001)))
import peers_cubin
steps = [dict(entry=entry, grid=[blocks, 1, 1]) for entry, blocks in
    (("fa_before", 7), ("fa_kernel", 6), ("fa_after", 16))]
launched = dict(grid=6, tiles_m=2, tiles=16, workspace_bytes=512)
def make(dim, causal, dtype="fp16"):
    q = Tensor(0x7fff00000100, 2, 4, 100, dim)
    k, v = (Tensor(address, 2, 2, 200, dim) for address in (0x7fff00000200, 0x7fff00000300))
    return peers_cubin.Kernel(sys.argv[1], Fake(q=q, k=k, v=v, scale=0.25, causal=causal, dtype=dtype),
        launched)
def around(features, dtype, dtype_kv, k, outputs, **more):
    q, v = Tensor(0x7fff00000100, 2, 4, 100, 32), Tensor(0x7fff00000300, *k.shape)
    peers_cubin.Kernel(sys.argv[1], Fake(q=q, k=k, v=v, scale=0.25, causal=True, dtype=dtype, dtype_kv=dtype_kv,
        features=features, more=more, outputs=lambda: outputs), launched | {"steps": steps})()
if os.environ.get("AROUND") == "4104":  # pages of an FP8 cache
    around(4104, "fp16", "e4m3", Tensor(0x7fff00000200, 9, 2, 16, 32), Tensor(0x7fff00000400, 2, 4, 100, 32),
        page_size=16, num_pages=9, seq_kv=40, pages=Tensor(0x7fff00000600), k_descale=Tensor(0x7fff00000700))
    sys.exit()
if os.environ.get("AROUND") == "8192":  # gradients
    at = lambda address, heads=4, rows=100: Tensor(address, 2, heads, rows, 32)
    around(8192, "bf16", "bf16", at(0x7fff00000200, 2, 200), (at(0x7fff00000a00), at(0x7fff00000b00, 2, 200),
        at(0x7fff00000c00, 2, 200)), o=at(0x7fff00000400), dout=at(0x7fff00000800), lse=Tensor(0x7fff00000900),
        deterministic=True)
    sys.exit()
make(32, True)()
make(32, True, "bf16")()
try:
    make(64, True)
except ValueError as error:
    print(error)
END
    printf 'an image' >"$work/k.cubin"
    LD_LIBRARY_PATH=$work python "$work/launch.py" "$work/k.cubin" >"$work/asked"
    cat >"$work/of_fp16" <<'END'
attribute 1 8 70000
map 0 6 4 0x7fff00000100: 32 100 4 2; 64 6400 25600; 32 64 1 1; 1 1 1 1; 0 2 0 0
map 0 6 4 0x7fff00000300: 32 200 2 2; 64 12800 25600; 32 48 1 1; 1 1 1 1; 0 2 0 0
launch 1 6 1 1 96 1 1 70000 0x700000001 (nil)
tensors 0x7fff00000100 0x7fff00000200 0x7fff00000300 0x7fff00000400
strides 12800 3200 32; 12800 6400 32; 12800 6400 32; 12800 3200 32
problem 0 2 4 2 100 200 32 1 0.25; 2 16 2 0; 0x7fff00000500 512; 1010
END
    echo "the module is made for dim 32, causal True, not for dim 64, causal True" >"$work/refusal"
    sed 's/^map 0 6/map 0 9/; s/^problem 0/problem 1/' "$work/of_fp16" | cat "$work/of_fp16" - "$work/refusal" |
        diff "$work/asked" -
    for bits in 4104 8192; do AROUND=$bits LD_LIBRARY_PATH=$work python "$work/launch.py" "$work/k.cubin"; done |
        grep -vE '^(attribute|strides|problem|tensors)' >"$work/asked"
    diff "$work/asked" - <<'END'
map 0 6 4 0x7fff00000100: 32 100 4 2; 64 6400 25600; 32 64 1 1; 1 1 1 1; 0 2 0 0
map 0 0 4 0x7fff00000300: 32 16 2 9; 32 512 1024; 64 48 1 1; 1 1 1 1; 0 2 0 0
before 7 96 0
launch 1 6 1 1 96 1 1 70000 0x700000001 (nil)
more 0 2 0; 0x7fff00000600 16 9 0x7fff00000700; (nil) (nil) (nil) (nil) 0 0 (nil) 0
after 16 96 0
map 0 9 4 0x7fff00000100: 32 100 4 2; 64 6400 25600; 32 64 1 1; 1 1 1 1; 0 2 0 0
map 0 9 4 0x7fff00000300: 32 200 2 2; 64 12800 25600; 32 48 1 1; 1 1 1 1; 0 2 0 0
before 7 96 0
clusters 1 4 2 1 1
launch 1 6 1 1 96 1 1 70000 0x700000001 (nil)
more 1 1 1; (nil) 0 0 (nil); 0x7fff00000800 0x7fff00000a00 0x7fff00000b00 0x7fff00000c00 3200 12800 0x7fff00000900 1
after 16 96 0
END
    printf 'no image' >"$work/k.cubin"
    LD_LIBRARY_PATH=$work run python "$work/launch.py" "$work/k.cubin"
    [[ ${lines[-1]} == "RuntimeError: cuModuleLoadData: CUresult 200" ]]
}

# Graphs whose replays take made-up times on a clock of their own that slows down from replay to replay.
@test "blocks A B B A cancel a drifting clock; their ratio, median and interval; a wrong output is not timed" {
    cat >"$work/pair.py" <<'END'
import math
from types import SimpleNamespace as Fake
import peers_torch
now, slow, order = 0.0, 1.0, ""
class Event:
    def __init__(self, enable_timing): pass
    def record(self): self.at = now
    def elapsed_time(self, other): return other.at - self.at
class Graph:
    def __init__(self, name, ms): self.name, self.ms = name, ms
    def replay(self):
        global now, slow, order
        now, slow, order = now + self.ms * slow, slow + 0.001, order + self.name
peers_torch.torch = Fake(cuda=Fake(Event=Event, synchronize=lambda: None))
def ours(*verdicts):
    it = object.__new__(peers_torch.Ours)
    verdicts = list(verdicts)
    def parity(output):
        assert output == ["nan"]
        output.clear()
        return {"passed": verdicts.pop(0), "max_abs_err": 0.5}
    output = []
    it.graph, it.calls, it.kernel = Graph("A", 2.0), 4, Fake(output=Fake(fill_=None))
    fill = lambda self, value: self.append("nan" if math.isnan(value) else value)
    it.kernel.output = type("Output", (list,), {"fill_": fill})()
    it.inputs = Fake(parity=parity)
    return it
arguments = Fake(warmup_ms=300, max_time=0.5)
got = ours(True, True).pair(Graph("B", 6.0), 8, arguments)
assert order.startswith("AA") and order.endswith("A"), order
bursts = order[1:-1]  # a replay before and one after are parity's
assert bursts == "AABBAABBA" * (len(bursts) // 9), bursts
warm = len(bursts) // 9 - got["blocks"] // 2
assert got["status"] == "pass" and got["blocks"] >= 11 and warm >= 3, (got, warm)
assert abs(got["ratio"] - 1.5) < 1e-4 and got["ratio_ci95"][0] <= got["ratio"] <= got["ratio_ci95"][1], got
assert 0.5 < got["kernel_p50_us"] / 1000 < 0.7 and 0.75 < got["p50_us"] / 1000 < 1.0, got
short = ours(True, True).pair(Graph("B", 6.0), 8, Fake(warmup_ms=0, max_time=0.001))
assert short["blocks"] == 12, short
order = ""
wrong = {"status": "wrong", "reason": "our kernel differs from FP64 by 0.5"}
assert ours(False).pair(Graph("B", 6.0), 8, arguments) == wrong and order == "A", order
wrong["reason"] += " after timing"
assert ours(True, False).pair(Graph("B", 6.0), 8, arguments) == wrong
# Ratios 1.01 ... 1.25 in disorder: the 13th, and ranks 12.5 - 4.9 and 12.5 + 4.9.
blocks = [(0.5, 1 + i * 7 % 25 / 100 + 0.01, 1 + i * 7 % 25 / 100 + 0.01, 1.5) for i in range(25)]
got = peers_torch.ratio_of(blocks)
assert {k: round(got[k], 9) if k != "ratio_ci95" else [round(x, 9) for x in got[k]] for k in got} == {
    "kernel_p50_us": 1.5, "p50_us": 1.13, "ratio": 1.13, "ratio_ci95": [1.08, 1.19], "blocks": 25}, got
END
    python "$work/pair.py"
}

@test "lengths, windows and bits of features of a problem" {
    cat >"$work/features.py" <<'END'
import peers_inputs as p, peers_torch
base = dict(peers_torch.DENSE, causal=False, dim=64, dim_v=64, dtype="fp16", kv_dtype="fp16")
assert p.features_of(base) == 0
assert p.features_of({**base, "window": [3, 0], "sinks": True, "dim_v": 32, "lengths": {}, "softcap": 2}) == 0x233
assert p.features_of({**base, "window": [-1, 0], "causal": True}) == 0
assert p.features_of({**base, "page_size": 16, "kv_dtype": "e4m3"}) == 0x1008
assert p.features_of({**base, "dtype": "e4m3", "kv_dtype": "e4m3"}) == 0x800
assert p.features_of({**base, "op": "backward", "deterministic": True}) == 0x6000
for refused in ({"alibi": True}, {"bias": True}, {"mask": "tree"}, {"chunk": 8}, {"op": "backward", "sinks": True}):
    try:
        p.features_of({**base, **refused})
    except ValueError:
        continue
    raise AssertionError(refused)
assert p.bounds_of({**base, "window": [127, 5], "causal": True}) == (127, 0)
assert p.bounds_of(base) == (-1, -1)
assert p.starts_of([3, 0, 5]) == [0, 3, 3, 8]
header = open("include/fa_params.h").read().split()
for name, bit in p.FEATURES.items():
    assert int(header[header.index(f"FA_FEATURE_{name.upper()}") + 1], 0) == bit, name
END
    python "$work/features.py"
}

# Tensors, inputs and packages are made up: each call says what it was given.
@test "what each peer is given: windows, causal, page tables, lengths, descales, gradients" {
    cat >"$work/given.py" <<'END'
import contextlib, sys, types
from types import SimpleNamespace as Fake
import peers_calls, peers_inputs
class T:
    def __init__(self, name, *shape): self.name, self.shape, self.dtype = name, shape or (2, 16, 9, 64), "fp16"
    def __getattr__(self, name): return lambda *a, **k: self
    def __getitem__(self, at): return T(f"{self.name}[{at if isinstance(at, int) else '..'}]", *self.shape)
    def __repr__(self): return self.name
def said(name, result=None):
    def call(*a, **k):
        plain = {"o_data_type": T("type"), "q_data_type": "fp16", "kv_data_type": "fp16", "logits_soft_cap": 0.0,
            "sm_scale": 0.5, "softmax_scale": 0.5, "page_size": 16,
            **{x: T(x) for x in ("q", "k", "v", "dq", "dk", "dv", "dout")}}
        k = {key: k[key] for key in sorted(k) if k[key] is not None and (k[key] != -1 or key == "window_left")}
        assert all(str(k[key]) == str(plain[key]) for key in k if key in plain), k
        print(name, *a, *(f"{key}={k[key]}" for key in k if key not in plain))
        return result if result is not None else T("o")
    return call
wrapper = lambda name: lambda room, *a, **k: (said(name)(*a, **k), Fake(plan=said("plan"), run=said("run")))[1]
fa = {name: said(name) for name in ("flash_attn_func", "flash_attn_varlen_func", "_flash_attn_bwd")}
fi = {f"Batch{x}Wrapper": wrapper(x) for x in ("DecodeWithPagedKVCache", "PrefillWithPagedKVCache",
    "PrefillWithRaggedKVCache", "AttentionWithAttentionSink")}
fi["mla"] = Fake(BatchMLAPagedAttentionWrapper=wrapper("Mla"), MLAPlanMetadata=Fake(csr=lambda *a: a))
for name, has in (("flash_attn", {}), ("flash_attn.cute", {}), ("flash_attn.cute.interface", fa), ("flashinfer", fi),
        ("fa3_wheels", {"__spec__": 1}), ("flash_attn_interface", {}),
        ("flashinfer.prefill", {"trtllm_fmha_v2_prefill": said("fmha_v2")}),
        ("flash_mla", {"VERSION": "of vLLM", "get_mla_metadata": said("metadata", ("plan", None)),
            "flash_mla_with_kvcache": said("flash_mla", [T("o")])})):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__dict__.update(has)
peers_calls.room = lambda inputs: "room"
capability = [9, 0]
given = lambda name, *a, **k: name
peers_calls.Graph = lambda inputs: Fake(rows=given, numbers=given, plan=lambda o: lambda: o, graph=Fake(
    sdpa=said("16 bits", ("o", None)), sdpa_fp8=said("FP8", ("o", None))), frontend=Fake(diagonal_alignment=Fake(
    BOTTOM_RIGHT="bottom right")))
peers_calls.torch = Fake(full_like=lambda of, value: value, stack=lambda of, dim: T("kv"), uint8="uint8", full=given,
    empty_like=given,
    cuda=Fake(get_device_capability=lambda: tuple(capability)), __version__="made up",
    nn=Fake(functional=Fake(scaled_dot_product_attention=said("sdpa"))), backends=Fake(cudnn=Fake(version=lambda: 9)))
sys.modules.update({"torch": Fake(nn=None), "torch.nn": None, "torch.nn.attention": Fake(
    SDPBackend=Fake(CUDNN_ATTENTION="cuDNN", EFFICIENT_ATTENTION="efficient", MATH="math"),
    sdpa_kernel=lambda backends: (print(*backends), contextlib.nullcontext())[1])})
def ask(peers, window=None, lengths=None, paged=False, causal=True, sinks=None, op="forward", dtype="fp16", q=1,
        kv=None, **more):
    problem = dict(page_size=16 if paged else None, page_layout="nhd", window=window, causal=causal, lengths=lengths,
        deterministic=True, **dict(dim=64, dim_v=64, v_in_k=False, kv_dtype=dtype, softcap=None) | more)
    it = object.__new__(peers_inputs.Inputs)
    it.__dict__.update({name: T(name) for name in ("q", "k", "v", "o", "dout", "lse", "cu_q", "cu_kv", "used_q",
        "used_kv", "page_starts", "page_list", "last_page")}, problem=problem, sinks=sinks, scale=0.5, heads=4,
        kv_heads=2, group=2, batch=2, causal=causal, dtype=dtype, dtype_kv=problem["kv_dtype"], q_lengths=[q, q],
        kv_lengths=[9, 8], table=T("table") if paged else None, descale={"q": 0.25, "k": 0.5, "v": 1.0},
        scales={name: T(f"{name}_scale") for name in "qkv"}, seen=lambda output: output, flat=lambda x: T(x.name),
        empty=T, type_of=lambda name: T("type"), outputs=lambda: [T("dq"), T("dk"), T("dv")])
    it.more, it.backward = dict(zip(["window_left", "window_right"], peers_inputs.bounds_of(problem))), op == "backward"
    it.features, it.kv_lengths = bool(window or lengths or paged), kv or it.kv_lengths
    for peer in peers.split():
        try:
            peers_calls.CALLS[peer](it)()
        except RuntimeError as error:
            print(peer, error)
assert peers_calls.version_of("flash_mla") == "flash_mla, version unknown"
ask("fa4", window=[7, 0])
ask("fa4", window=[-1, 3], causal=False)
ask("fa4", lengths={"q": 1})
ask("fa4 flashinfer", paged=True)
ask("flashinfer", paged=True, window=[7, 0], q=4, kv_dtype="e4m3")
ask("flashinfer", paged=True, sinks=T("sinks"), q=4)
ask("flashinfer flash_mla", paged=True, v_in_k=True, dim=576, dim_v=512)
ask("flashinfer fmha_v2", dtype="e4m3")
ask("flashinfer", dtype="e4m3", dim_v=32)
ask("fa4", op="backward", window=[7, 0])
# FlashAttention 3: its own ops and xformers' have defaults, vLLM's have none.
def op(name, *needed):
    call = lambda **k: said(name, [T("o")])(*[k.pop(x) for x in ("q", "k", "v") if x in k], **k)
    arguments = [Fake(name=name, type=kind, has_default_value=lambda: False) for name, kind in needed]
    call.default = Fake(_schema=Fake(arguments=arguments))
    return call
def ops(name, *needed):
    return Fake(bwd=said(f"{name} bwd"), **{x: op(f"{name} {x}", *needed) for x in ("fwd", "get_scheduler_metadata")})
peers_calls.torch.ops = Fake(flash_attn_3=ops("own"), aten=Fake(_flash_attention_forward=said("fa2 fwd", [T("o")])))
ask("fa2", lengths={"q": 1}, causal=False, window=[-1, 3])
ask("fa2", window=[7, 0])
ask("fa2", softcap=5)
sys.modules["cudnn"] = Fake(__spec__=1)
for dtype in ("fp16", "e4m3"):
    ask("cudnn", dtype=dtype, window=[7, 0], q=9, kv=[9, 9])
ask("cudnn", dtype="e4m3", window=[-1, -1], q=4)
for carrier, *needed in (("xformers",), ("vllm", ("pack_gqa", "Optional[bool]"), ("sm_margin", "int"))):
    sys.modules[f"fa3_wheels.{carrier}"] = Fake(VERSION=f"of {carrier}", ops=ops(carrier, *needed))
ask("fa3", window=[7, 0], softcap=5)
capability[:] = 10, 0
ask("fa3")
capability[:] = 9, 0
sys.modules["flash_attn_interface"] = None
ask("fa3", lengths={"q": 1})
ask("fa3", paged=True, v_in_k=True, dim=576, dim_v=512)
ask("fa3", op="backward", window=[7, 0], softcap=5)
assert peers_calls.version_of("fa3") == "of xformers"
ask("fa3", dtype="e4m3", sinks=T("sinks"))
ask("fa3", lengths={"q": 1}, softcap=5)
assert peers_calls.version_of("fa3") == "of vllm"
assert peers_calls.version_of("flash_mla") == "of vLLM"
sys.modules["cudnn"] = None  # PyTorch's own, and cuDNN by it without its frontend
ask("fa2 cudnn efficient math", kv=[1, 1])
assert peers_calls.version_of("cudnn") == "cuDNN 9, PyTorch made up"
ask("math", causal=False, kv=[2**26, 1])
ask("efficient")
sys.modules["fa3_wheels"] = None
try:
    ask("fa3")
except ImportError as error:
    print(error)
END
    diff -b <(python "$work/given.py" | fold -s -w 119) - <<'END'
flash_attn_func q k v causal=False window_size=(7, 0)
flash_attn_func q k v causal=False window_size=(None, 3)
flash_attn_varlen_func q[0] k[0] v[0] causal=True cu_seqlens_k=cu_kv cu_seqlens_q=cu_q max_seqlen_k=9 max_seqlen_q=1
flash_attn_varlen_func q k v causal=True page_table=table seqused_k=used_kv
DecodeWithPagedKVCache NHD use_tensor_cores=False
plan page_starts page_list last_page 4 2 64 16 window_left=-1
run q (k, v)
DecodeWithPagedKVCache NHD use_tensor_cores=True
plan page_starts page_list last_page 4 2 64 16 q_len_per_req=4 window_left=7
run q (k, v) k_scale=0.5 v_scale=1.0
AttentionWithAttentionSink NHD backend=auto head_dim_qk=64 head_dim_vo=64 window_left=-1
plan cu_q page_starts page_list last_page 4 2 64 16 causal=True head_dim_vo=64 window_left=-1
run q (k, v) sinks 0.5
Mla backend=auto
plan causal=True head_dim_ckv=512 head_dim_kpe=64 metadata=(cu_q, page_starts, page_list, used_kv) num_heads=4
run kv_cache=k[..] query=q
metadata used_kv 2 2
flash_mla q k table used_kv 512 plan None causal=True
PrefillWithRaggedKVCache NHD backend=auto
plan cu_q cu_kv 4 2 64 causal=True head_dim_vo=64 window_left=-1
run q k v q_scale[0] k_scale[0] v_scale[0]
fmha_v2 (q, kv) CONTIGUOUS_Q_KV room used_kv 1 9 0.0625 1.0 2 cu_q cu_kv mask_mode=causal out_dtype=type window_left=-1
flashinfer without pages no sinks here, and its FP8 kernels have V as wide as K
_flash_attn_bwd causal=False deterministic=True lse=lse out=o window_size_left=7 window_size_right=0
fa2 fwd q[0] k[0] v[0] cu_q cu_kv 1 9 0.0 False False scale=0.5 window_size_right=3
fa2 fwd q k v None None 1 9 0.0 False False scale=0.5 window_size_left=7 window_size_right=0
fa2 PyTorch has no softcap and no sinks
16 bits attn_scale=0.5 diagonal_alignment=bottom right diagonal_band_left_bound=8 diagonal_band_right_bound=0
generate_stats=False name=sdpa
FP8 attn_scale=0.5 descale_k=descale_k descale_q=descale_q descale_s=descale_s descale_v=descale_v
generate_stats=False left_bound=8 name=sdpa right_bound=0 scale_o=scale_o scale_s=scale_s
FP8 attn_scale=0.5 descale_k=descale_k descale_q=descale_q descale_s=descale_s descale_v=descale_v
diagonal_alignment=bottom right generate_stats=False name=sdpa right_bound=0 scale_o=scale_o scale_s=scale_s
own fwd q k v is_causal=False num_splits=0 softcap=5 window_size_left=7 window_size_right=0
fa3 FlashAttention 3 serves sm_90 only
xformers fwd q[0] k[0] v[0] cu_seqlens_k=cu_kv cu_seqlens_q=cu_q is_causal=True max_seqlen_k=9 max_seqlen_q=1
num_splits=1
xformers get_scheduler_metadata batch_size=2 has_softcap=False headdim=64 headdim_v=64 is_causal=True max_seqlen_k=256
max_seqlen_q=1 num_heads=4 num_heads_k=2 qkv_dtype=fp16 seqused_k=used_kv
xformers fwd q[..] k[..] v is_causal=True num_splits=0 page_table=table q_v=q[..] scheduler_metadata=[o]
seqused_k=used_kv
xformers bwd deterministic=True is_causal=False out=o softcap=5 softmax_lse=lse window_size_left=7 window_size_right=0
vllm get_scheduler_metadata batch_size=2 has_softcap=False headdim=64 headdim_v=64 is_causal=True max_seqlen_k=16
max_seqlen_q=1 num_heads=4 num_heads_k=2 qkv_dtype=fp16 seqused_k=used_kv sm_margin=0
vllm fwd q k v cp_world_size=1 is_causal=True k_descale=0.5 num_splits=0 q_descale=0.25 s_aux=sinks
scheduler_metadata=[o] seqused_k=used_kv sm_margin=0 v_descale=1.0
vllm fwd q[0] k[0] v[0] cp_world_size=1 cu_seqlens_k=cu_kv cu_seqlens_q=cu_q is_causal=True max_seqlen_k=9
max_seqlen_q=1 num_splits=1 sm_margin=0 softcap=5
fa2 fwd q k v None None 1 1 0.0 True False scale=0.5
cuDNN
sdpa q k v enable_gqa=True is_causal=True scale=0.5
efficient
sdpa q k v enable_gqa=True is_causal=True scale=0.5
math
sdpa q k v enable_gqa=True is_causal=True scale=0.5
math the unfused scores would take too much memory
efficient torch aligns a causal mask to the top left
import of flash_attn_interface halted; None in sys.modules
END
}

@test "attention and gradients in FP64 are those of PyTorch's autograd; an output that is off is not right" {
    python3 -c 'import torch' 2>/dev/null || skip "no PyTorch"
    cat >"$work/exact.py" <<'END'
import json, math, sys
import torch
import peers_inputs as p, peers_torch
p.torch, p.device = torch, "cpu"
def attend(q, k, v, scale, left, right, cap, sinks):
    k, v = (x.repeat_interleave(len(q) // len(x), 0) for x in (k, v))
    scores = q @ k.mT * scale
    scores = cap * torch.tanh(scores / cap) if cap else scores
    apart = torch.arange(k.shape[1])[None] - torch.arange(q.shape[1])[:, None] - (k.shape[1] - q.shape[1])
    hidden = (apart < (-left if left >= 0 else -10**9)) | (apart > (right if right >= 0 else 10**9))
    sinks = torch.full((len(q),), -math.inf) if sinks is None else sinks
    last = sinks.double()[:, None, None].expand(-1, q.shape[1], 1)
    scores = torch.cat([scores.masked_fill(hidden, -math.inf), last], 2)
    return torch.softmax(scores, 2).nan_to_num(0.0)[..., :-1] @ v
for problem in (json.loads(line)["problem"] for line in sys.stdin):
    it = p.Inputs(problem, 1)
    output = it.outputs()
    for b in range(it.batch):
        q, k, v = (it.values(name, b).double().requires_grad_() for name in "qkv")
        o = attend(q, k, v, it.scale, *p.bounds_of(problem), problem["softcap"], it.sinks)
        if not it.backward:
            it.rows_of(output, b, it.q_starts).copy_(o.detach())
            continue
        gradients = torch.autograd.grad(o, (q, k, v), it.values("dout", b).double())
        for to, gradient, starts in zip(output, gradients, (it.q_starts, it.kv_starts, it.kv_starts)):
            it.rows_of(to, b, starts).copy_(gradient)
    assert it.parity(output)["passed"], problem
    if it.backward:  # a right kernel may have all of a row's error in one element
        _, (head, *_), rows, keys = next(it.drawn(True))
        _, _, (dv, noise) = it.exact_gradients(0, head, rows, keys)
        most, of_head = noise.argmax(), it.rows_of(output[2], 0, it.kv_starts)[head // it.group]
        for factor in 1.5, 9, 0:
            of_head[keys[most], 0] = (dv[most, 0] + factor * noise[most]).to(of_head)
            assert it.parity(output)["passed"] == (factor < 2), (problem, factor)
    for tensor in output if it.backward else [output]:
        tensor.mul_(1.3)
        assert not it.parity(output)["passed"], problem
        tensor.div_(1.3)
    if it.dtype == "e4m3":  # O in that type is right, too
        assert it.parity((output.float() * p.O_FACTOR).to(it.type_of("q")))["passed"], problem
END
    cat >"$work/runs" <<'END'
--heads 4 --kv-heads 2 --lengths 5:40,0:7,33:9 --dim 64 --causal --window 7,0 --sinks
--heads 4 --kv-heads 2 --lengths 5:40,1:7,3:90 --dim 64 --dim-v 32 --causal --page-size 16 --softcap 5
--batch 3 --heads 4 --kv-heads 1 --seq 2 --seq-kv 50 --dim 576 --dim-v 512 --v-in-k --causal --page-size 64
--batch 3 --heads 4 --kv-heads 1 --seq 2 --seq-kv 50 --dim 64 --page-size 5 --page-layout hnd --kv-dtype e4m3
--batch 2 --heads 4 --kv-heads 2 --seq 70 --dim 64 --causal --dtype e4m3
--op backward --batch 2 --heads 4 --kv-heads 2 --seq 70 --dim 64 --causal
--op backward --heads 4 --kv-heads 2 --lengths 30:41,5:3,22:60 --dim 64 --dim-v 32 --window 9,2 --softcap 4 --dtype bf16
END
    ./fa_bench --kernel light --compile-only --runs "$work/runs" --quiet --json - | python "$work/exact.py"
}

@test "a peer that takes the process along, or hangs, is named, and another process goes on" {
    cat >"$work/child.py" <<'END'
import json, os, signal, sys, time
state, start, lost = (sys.argv[sys.argv.index(name) + 1] for name in ("--state", "--start", "--lost"))
print(start, lost, flush=True)
def ended(peer, reason, end):
    if peer not in lost or sys.argv[1] == peer:
        open(state, "w").write(json.dumps([3, peer, reason]))
        end()
ended("one", None, lambda: os.kill(os.getpid(), signal.SIGSEGV))
ended("two", None, lambda: (signal.alarm(1), time.sleep(60)))
ended("three", "a kernel failed", lambda: os._exit(6))
sys.exit(1)
END
    cat >"$work/watch.py" <<'END'
import sys, types
import peers_rows
peers_rows.arguments = types.SimpleNamespace(limit=9)
sys.argv[0] = sys.argv[0].replace("watch", "child")
print(peers_rows.watch())
END
    diff <(python "$work/watch.py") - <<'END'
0 []
3 [[3, "one", "ended the process: -11"]]
3 [[3, "one", "ended the process: -11"], [3, "two", "took longer than 9 s"]]
3 [[3, "one", "ended the process: -11"], [3, "two", "took longer than 9 s"], [3, "three", "a kernel failed"]]
1
END
    [ "$(python "$work/watch.py" three | tail -n 1)" = 6 ] # the same twice
}
