#!/usr/bin/env bats
# Our kernel beside PyTorch's in one process: the launch of a cubin is the C header's, the blocks are A B B A. No GPU,
# no PyTorch: made-up ones.
load helper

python() { PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=scripts/lib/peers python3 "$@"; }

@test "fa_params, fa_kernel_info and the driver's constants are those of the headers" {
    cat >"$work/fields.py" <<'END'
import ctypes, sys
import peers_cubin as p
letters = {ctypes.c_void_p: "p", ctypes.c_int64: "l", ctypes.c_int32: "i", ctypes.c_float: "f",
    ctypes.c_ubyte * 128: "m", ctypes.c_int64 * 12: "p", ctypes.c_int64 * 3: "p"}
constants = {"FA_ABI": p.ABI, "FA_GRID_PERSISTENT": p.GRID_PERSISTENT,
    "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES": p.MAX_DYNAMIC_SHARED_SIZE_BYTES,
    "FA_DTYPE_FP16": p.DTYPE["fp16"], "FA_DTYPE_BF16": p.DTYPE["bf16"],
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

@test "a module of another ABI, for another problem or in clusters is refused; blocks, tiles and workspace" {
    cat >"$work/refuse.py" <<'END'
import ctypes
from peers_cubin import Info, check_info, launch_of
good, size = dict(abi=3, dim=64, causal=1), ctypes.sizeof(Info)
def refused(words, bytes=size, dtype="fp16", **changed):
    try:
        check_info(Info(**{**good, **changed}), bytes, 64, True, dtype)
    except ValueError as error:
        assert words in str(error), error
        return
    raise AssertionError(words)
check_info(Info(**good), size, 64, True, "fp16")
check_info(Info(**good, cluster=1, serves_bf16=1), size, 64, True, "bf16")
refused("of ABI 1 ", abi=1)
refused("with 64 bytes", bytes=64)
refused("made for dim 128, causal True, not for dim 64", dim=128)
refused("causal False, not for dim 64, causal True", causal=0)
refused("clusters of 2", cluster=2)
refused("for FP16 alone", dtype="bf16")
refused("made for features 0x2, not for 0x0", features=2)
def launch(**fields):
    return launch_of(Info(m=64, workspace_bytes_per_block=16, workspace_bytes_fixed=8, **fields), 2, 3, 1, 65, 10)
assert launch() == (12, 2, 12, 200), launch()
assert launch(pack_heads=1) == (8, 4, 8, 136), launch(pack_heads=1)
assert launch(splits=4) == (48, 2, 12, 776), launch(splits=4)
assert launch(splits=4, grid=1, blocks_per_sm=2) == (20, 2, 12, 776)
assert launch(grid=1) == (10, 2, 12, 200) and launch(grid=1, blocks_per_sm=2) == (12, 2, 12, 200)
END
    python "$work/refuse.py"
}

@test "what the driver is asked: function, shared memory, tensor maps, launch" {
    cat >"$work/driver.c" <<'END'
#include <stdio.h>
#include <string.h>
#include "cuda/api.h"
#include "fa_params.h"
static const fa_kernel_info info = {.abi = FA_ABI,
                                    .m = 64,
                                    .splits = 2,
                                    .dim = 32,
                                    .causal = 1,
                                    .threads = 96,
                                    .smem_dynamic_bytes = 70000,
                                    .grid = FA_GRID_PERSISTENT,
                                    .blocks_per_sm = 3,
                                    .workspace_bytes_per_block = 16,
                                    .tma_q_rows = 64,
                                    .tma_v_rows = 48,
                                    .tma_cols = 32,
                                    .serves_bf16 = 1};
CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    *module = (CUmodule)1;
    return strcmp(image, "an image") == 0 ? 0 : 200;
}
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    *function = (CUfunction)0x123456789;
    return module == (CUmodule)1 && strcmp(name, "fa_kernel") == 0 ? 0 : 500;
}
CUresult cuModuleGetGlobal_v2(CUdeviceptr *at, size_t *bytes, CUmodule module, const char *name)
{
    (void)module;
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
    return fflush(stdout);
}
END
    gcc -std=c17 -D_GNU_SOURCE -shared -fPIC -Iinclude -Isrc -o "$work/libcuda.so.1" "$work/driver.c"
    cat >"$work/launch.py" <<'END'
import sys
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
def make(dim, causal, dtype="fp16"):
    q = Tensor(0x7fff00000100, 2, 4, 100, dim)
    k, v = (Tensor(address, 2, 2, 200, dim) for address in (0x7fff00000200, 0x7fff00000300))
    return peers_cubin.Kernel(sys.argv[1], Fake(q=q, k=k, v=v, scale=0.25, causal=causal, dtype=dtype))
make(32, True)()
make(32, True, "bf16")()
try:
    make(64, True)
except ValueError as error:
    print(error)
END
    printf 'an image' >"$work/k.cubin"
    LD_LIBRARY_PATH=$work python "$work/launch.py" "$work/k.cubin" >"$work/asked"
    diff "$work/asked" - <<'END'
attribute 1 8 70000
map 0 6 4 0x7fff00000100: 32 100 4 2; 64 6400 25600; 32 64 1 1; 1 1 1 1; 0 2 0 0
map 0 6 4 0x7fff00000300: 32 200 2 2; 64 12800 25600; 32 48 1 1; 1 1 1 1; 0 2 0 0
launch 1 6 1 1 96 1 1 70000 0x700000001 (nil)
tensors 0x7fff00000100 0x7fff00000200 0x7fff00000300 0x7fff00000400
strides 12800 3200 32; 12800 6400 32; 12800 6400 32; 12800 3200 32
problem 0 2 4 2 100 200 32 1 0.25; 2 16 2 0; 0x7fff00000500 512; 1010
attribute 1 8 70000
map 0 9 4 0x7fff00000100: 32 100 4 2; 64 6400 25600; 32 64 1 1; 1 1 1 1; 0 2 0 0
map 0 9 4 0x7fff00000300: 32 200 2 2; 64 12800 25600; 32 48 1 1; 1 1 1 1; 0 2 0 0
launch 1 6 1 1 96 1 1 70000 0x700000001 (nil)
tensors 0x7fff00000100 0x7fff00000200 0x7fff00000300 0x7fff00000400
strides 12800 3200 32; 12800 6400 32; 12800 6400 32; 12800 3200 32
problem 1 2 4 2 100 200 32 1 0.25; 2 16 2 0; 0x7fff00000500 512; 1010
the module is made for dim 32, causal True, not for dim 64, causal True
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
    def parity(output, rows_per_head):
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
assert peers_torch.pairing({"batch": 1}, None) is None
def kernel(path, inputs):
    raise ValueError(f"{path} {inputs.q}: made up\nmore of it")
peers_torch.peers_cubin.Kernel = kernel
refused = peers_torch.pairing({"cubin": "k.cubin"}, Fake(q="Q"))
said = refused(None, 1, None)
assert said == {"status": "not_run", "reason": "k.cubin Q: made up"}, said
END
    python "$work/pair.py"
}

@test "what a row sees beside peers is what the bench says; lengths, windows and bits of features" {
    cat >"$work/visible.py" <<'END'
import json, sys, types
sys.modules["torch"] = types.ModuleType("torch")
import peers_features as p
base = dict(chunk=None, page_size=None, alibi=False, bias=False, mask="none", v_in_k=False, window=None, causal=False,
            lengths=None, softcap=None, sinks=False, dim=64, dim_v=64)
assert p.features_of(base) == 0
assert p.features_of({**base, "window": [3, 0], "sinks": True, "dim_v": 32, "lengths": {}, "softcap": 2}) == 0x233
assert p.features_of({**base, "window": [-1, 0], "causal": True}) == 0
for name in ("alibi", "bias", "v_in_k"):
    try:
        p.features_of({**base, name: True})
    except ValueError:
        continue
    raise AssertionError(name)
assert p.bounds_of({**base, "window": [127, 5], "causal": True}) == (127, 0)
assert p.bounds_of(base) == (-1, -1)
assert p.starts_of([3, 0, 5]) == [0, 3, 3, 8]
bits = {"varlen": 0x1, "window": 0x2, "softcap": 0x10, "sink": 0x20, "dim_v": 0x200}
header = open("include/fa_params.h").read().split()
for name, bit in bits.items():
    assert int(header[header.index(f"FA_FEATURE_{name.upper()}") + 1], 0) == bit == p.FEATURES[name], name
END
    python "$work/visible.py"
}
