"""Peers on tensors of peers_inputs.Inputs. CALLS has a function for each: it gives what is timed, a call without
arguments that gives O, or dQ, dK and dV. What a peer does not serve is an exception, whose first line is the reason in
its row. What each is given: docs/peers.md."""
import functools
import importlib.metadata
import importlib.util
import math

from peers_inputs import O_FACTOR

WORKSPACE_BYTES = 512 * 2**20
MATH_SCORES = 2**28  # the unfused backend keeps batch*heads*seq*seq scores several times over
torch = None
carried = {}  # of what is called out of another package's wheel: its version


def version_of(peer):
    if peer in carried:
        return carried[peer]
    if peer == "cudnn":
        import cudnn as frontend
        return f"cuDNN {frontend.backend_version()}, frontend {frontend.__version__}"
    if peer in ("fa2", "efficient", "math"):
        return f"PyTorch {torch.__version__}"
    package = {"fa4": "flash-attn-4", "fa3": "flash_attn_3", "flash_mla": "flash_mla"}.get(peer, "flashinfer-python")
    try:
        return f"{peer} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:  # a folder on the path
        return f"{peer}, version unknown"


def attention(inputs, **options):
    """PyTorch's own. Its causal mask is aligned to the top left."""
    options = {"is_causal": inputs.causal, "scale": inputs.scale, "enable_gqa": inputs.group > 1, **options}
    return torch.nn.functional.scaled_dot_product_attention(inputs.q, inputs.k, inputs.v, **options)


def sdpa(inputs, backend):
    """That by one of its backends."""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    sizes = (inputs.batch, inputs.heads, max(inputs.q_lengths), max(inputs.kv_lengths))
    if inputs.causal and sizes[2] != sizes[3]:
        raise RuntimeError("torch aligns a causal mask to the top left")
    if backend == "MATH" and math.prod(sizes) > MATH_SCORES:
        raise RuntimeError("the unfused scores would take too much memory")

    def call():
        with sdpa_kernel([getattr(SDPBackend, backend)]):
            return attention(inputs)
    return call


def window_of(inputs, open_bound):
    """left, right of a window, which both FlashAttentions have inclusive as ours."""
    if inputs.problem["window"] is None:
        return open_bound, open_bound
    bounds = inputs.more["window_left"], inputs.more["window_right"]
    return tuple(bound if bound >= 0 else open_bound for bound in bounds)


def options_of(inputs, causal):
    """Of either FlashAttention; causal: its name there. It closes a window's right, and is off beside a left bound."""
    options = {"softmax_scale": inputs.scale, causal: inputs.causal and inputs.more["window_left"] < 0}
    if inputs.problem["softcap"]:
        options["softcap"] = inputs.problem["softcap"]
    if inputs.problem["lengths"]:
        options.update(cu_seqlens_q=inputs.cu_q, max_seqlen_q=max(inputs.q_lengths))
        if inputs.table is None:
            options.update(cu_seqlens_k=inputs.cu_kv, max_seqlen_k=max(inputs.kv_lengths))
    return options


def tensors_of(inputs):
    """Q, K and V as either FlashAttention takes them."""
    if inputs.dtype_kv != inputs.dtype:
        raise RuntimeError("no FP8 cache under 16-bit queries")
    q, k, v = inputs.tokens(inputs.q), inputs.k.transpose(1, 2), inputs.v.transpose(1, 2)
    return (q, k[0], v[0]) if inputs.problem["lengths"] and inputs.table is None else (q, k, v)


def flash_gradients(function, inputs, open_bound, causal_name, lse_name):
    """Gradients from our O and log-sum-exp, which is natural as theirs."""
    options = options_of(inputs, causal_name)
    options["window_size_left"], options["window_size_right"] = window_of(inputs, open_bound)
    options["deterministic"] = inputs.problem["deterministic"]
    options[lse_name] = inputs.lse[0] if inputs.problem["lengths"] else inputs.lse
    named = {"q": inputs.q, "k": inputs.k, "v": inputs.v, "out": inputs.o, "dout": inputs.dout}
    outputs = inputs.outputs()
    named.update(zip(("dq", "dk", "dv"), outputs))
    options.update({name: inputs.tokens(tensor) for name, tensor in named.items()})

    def call():
        function(**options)
        return outputs
    return call


def fa4(inputs):
    import flash_attn.cute.interface as package
    if inputs.backward:
        return flash_gradients(package._flash_attn_bwd, inputs, None, "causal", "lse")
    tensors, options, function = tensors_of(inputs), options_of(inputs, "causal"), package.flash_attn_func
    if inputs.problem["window"] is not None:
        options["window_size"] = window_of(inputs, None)
    if inputs.sinks is not None:
        options["learnable_sink"] = inputs.sinks.to(inputs.q.dtype)
    if inputs.problem["lengths"] or inputs.table is not None:
        function = package.flash_attn_varlen_func
    if inputs.table is not None:
        options.update(seqused_k=inputs.used_kv, page_table=inputs.table)

    def call():
        output = function(*tensors, **options)
        return inputs.seen(output[0] if isinstance(output, tuple) else output)
    return call


def run_op(op, **given):
    """What has no default, as all of vLLM's, is None, 0 or False."""
    blank, arguments = {"int": 0, "float": 0.0, "bool": False}, op.default._schema.arguments
    return op(**{x.name: blank.get(str(x.type)) for x in arguments if not x.has_default_value()} | given)


def fa3(inputs):
    """The ops of its own package, or of a wheel that peers_env.sh brought: xformers' has no FP8, softcap and sinks,
    vLLM's no gradients, and all its kernels take lengths. The schedule of a cache is made before."""
    problem, table = inputs.problem, inputs.table
    if torch.cuda.get_device_capability() != (9, 0):  # a launch that fails would end the process
        raise RuntimeError("FlashAttention 3 serves sm_90 only")
    special = not inputs.backward and (inputs.dtype == "e4m3" or inputs.sinks is not None or problem["softcap"])
    try:
        import flash_attn_interface  # which makes them known
        ops, special = torch.ops.flash_attn_3, False
    except ModuleNotFoundError:
        if importlib.util.find_spec("fa3_wheels") is None:
            raise
        package = importlib.import_module(f"fa3_wheels.{'vllm' if special else 'xformers'}")
        ops, carried["fa3"] = package.ops, package.VERSION
    if inputs.backward:
        return flash_gradients(ops.bwd, inputs, -1, "is_causal", "softmax_lse")
    (q, k, v), options, (left, right) = tensors_of(inputs), options_of(inputs, "is_causal"), window_of(inputs, -1)
    mask = {"is_causal": options.pop("is_causal"), "window_size_left": left, "window_size_right": right}
    if problem["v_in_k"]:
        rope = problem["dim_v"]  # K's columns from there on have positions
        q, k, options["q_v"] = q[..., rope:], k[..., rope:], q[..., :rope]
    if inputs.sinks is not None:
        options["s_aux"] = inputs.sinks.bfloat16()
    if inputs.dtype == "e4m3":  # a descale of Q for each K/V head
        options.update({f"{name}_descale": torch.full_like(inputs.scales["k"], inputs.descale[name]) for name in "qkv"})
    options.update({"cp_world_size": 1} if special else {})
    if table is not None or (special and not problem["lengths"]):
        options.update(seqused_k=inputs.used_kv, page_table=table, scheduler_metadata=run_op(
            ops.get_scheduler_metadata, batch_size=inputs.batch, max_seqlen_q=max(inputs.q_lengths),
            max_seqlen_k=k.shape[1] * (1 if table is None else table.shape[1]), num_heads=inputs.heads,
            num_heads_k=inputs.kv_heads, headdim=q.shape[-1], headdim_v=v.shape[-1], qkv_dtype=q.dtype,
            seqused_k=inputs.used_kv, cu_seqlens_q=options.get("cu_seqlens_q"),
            page_size=None if table is None else k.shape[1], has_softcap="softcap" in options, **mask))
    splits = int("cu_seqlens_k" in options)  # 0: by its own rule
    return lambda: inputs.seen(run_op(ops.fwd, q=q, k=k, v=v, num_splits=splits, **mask, **options)[0])


def fa2(inputs):
    """FlashAttention 2 as PyTorch has it. Its gradients read the random state of its own forward."""
    lengths, (left, right) = inputs.problem["lengths"], window_of(inputs, -1)
    if inputs.problem["softcap"] or inputs.sinks is not None:
        raise RuntimeError("PyTorch has no softcap and no sinks")
    options = {"scale": inputs.scale, "window_size_left": left, "window_size_right": right}
    q, k, v = map(inputs.tokens, (inputs.q, inputs.k, inputs.v))
    starts, causal = (inputs.cu_q, inputs.cu_kv) if lengths else (None, None), inputs.causal and left < 0
    more = (*starts, max(inputs.q_lengths), max(inputs.kv_lengths), 0.0, causal)
    forward = functools.partial(torch.ops.aten._flash_attention_forward, q, k, v, *more, False, **options)
    if not inputs.backward:
        return lambda: inputs.seen(forward()[0])
    (_, _, seed, offset, _), lse = forward(), inputs.lse[0] if lengths else inputs.lse
    o, dout = map(inputs.tokens, (inputs.o, inputs.dout))
    torch.utils.deterministic.fill_uninitialized_memory = False

    def call():
        before = torch.are_deterministic_algorithms_enabled()
        torch.use_deterministic_algorithms(inputs.problem["deterministic"])
        try:
            gradients = torch.ops.aten._flash_attention_backward(dout, q, k, v, o, lse, *more, seed, offset, **options)
        finally:
            torch.use_deterministic_algorithms(before)
        return [(x[None] if lengths else x).transpose(1, 2) for x in gradients]
    return call


class Graph:
    """A graph of cuDNN's frontend, and the memory of its tensors."""

    def __init__(self, inputs):
        import cudnn as frontend
        self.frontend, self.inputs, self.feed = frontend, inputs, {}
        kinds = frontend.data_type
        self.types = {torch.float16: kinds.HALF, torch.bfloat16: kinds.BFLOAT16, torch.float32: kinds.FLOAT,
                      torch.float8_e4m3fn: kinds.FP8_E4M3, torch.int32: kinds.INT32, torch.int64: kinds.INT64}
        self.handle = frontend.create_handle()
        self.graph = frontend.pygraph(io_data_type=self.types[inputs.q.dtype], intermediate_data_type=kinds.FLOAT,
                                      compute_data_type=kinds.FLOAT, handle=self.handle)

    def tensor(self, name, memory):
        made = self.graph.tensor(name=name, dim=list(memory.shape), stride=list(memory.stride()),
                                 data_type=self.types[memory.dtype])
        self.feed[made] = memory
        return made

    def numbers(self, name, values):
        return self.tensor(name, values.reshape(-1, 1, 1, 1))

    def rows(self, name, memory, starts, longest, made=None):
        """Rows of Q, K, V or O; `made`: an output. With lengths they have offsets in elements."""
        heads, dim = memory.shape[1], memory.shape[3]
        size, stride = list(memory.shape), list(memory.stride())
        if starts is not None:
            size = [self.inputs.batch, heads, longest, dim]
            stride = [longest * heads * dim, dim, heads * dim, 1]
        if made is None:
            made = self.graph.tensor(name=name, dim=size, stride=stride, data_type=self.types[memory.dtype])
        else:
            made.set_output(True).set_dim(size).set_stride(stride).set_data_type(self.types[memory.dtype])
        if starts is not None:
            made.set_ragged_offset(self.numbers(f"{name}_offsets", starts.long() * heads * dim))
        self.feed[made] = memory
        return made

    def plan(self, outputs):
        """What is timed."""
        self.graph.validate()
        self.graph.build_operation_graph()
        self.graph.create_execution_plans([self.frontend.heur_mode.A, self.frontend.heur_mode.FALLBACK])
        self.graph.check_support()
        self.graph.build_plans()
        workspace = torch.empty(max(self.graph.get_workspace_size(), 1), dtype=torch.uint8, device=self.inputs.q.device)

        def call():
            self.frontend.set_stream(handle=self.handle, stream=torch.cuda.current_stream().cuda_stream)
            self.graph.execute(self.feed, workspace, handle=self.handle)
            return outputs
        return call


def cudnn(inputs):
    """Its left bound counts the row's own key: ours and one more. Without its frontend PyTorch's."""
    if not inputs.features and importlib.util.find_spec("cudnn") is None:
        carried["cudnn"] = f"cuDNN {torch.backends.cudnn.version()}, PyTorch {torch.__version__}"
        return sdpa(inputs, "CUDNN_ATTENTION")
    problem, lengths = inputs.problem, inputs.problem["lengths"]
    if problem["softcap"]:
        raise RuntimeError("no softcap in its fused attention for sm_90")
    if inputs.dtype_kv != inputs.dtype:
        raise RuntimeError("no FP8 cache under 16-bit queries")
    if inputs.backward and lengths:
        raise RuntimeError("gradients with lengths are not asked of it here")
    made, options = Graph(inputs), {"attn_scale": inputs.scale}
    left, right = inputs.more["window_left"], inputs.more["window_right"]
    if right == 0 and left < 0 and max(inputs.q_lengths) == 1:
        right = -1  # it sees all
    fp8, longest_q, longest_kv = inputs.dtype == "e4m3", max(inputs.q_lengths), max(inputs.kv_lengths)
    if (left >= 0 or right >= 0) and not (fp8 and longest_q == longest_kv):  # which it has top left alone on Hopper
        options["diagonal_alignment"] = made.frontend.diagonal_alignment.BOTTOM_RIGHT
    if left >= 0:
        options["left_bound" if fp8 else "diagonal_band_left_bound"] = left + 1
    if right >= 0:
        options["right_bound" if fp8 else "diagonal_band_right_bound"] = right
    starts_q, starts_kv = (inputs.cu_q, inputs.cu_kv) if lengths else (None, None)
    q = made.rows("q", inputs.q, starts_q, longest_q)
    if inputs.table is not None:
        starts_kv, table = None, inputs.table[:, None, :, None]
        options.update({f"paged_attention_{name}_table": made.tensor(f"{name}_table", table) for name in "kv"})
        options["paged_attention_max_seq_len_kv"] = longest_kv
    k, v = (made.rows(name, x, starts_kv, longest_kv) for name, x in (("k", inputs.k), ("v", inputs.v)))
    if lengths or inputs.table is not None:
        options.update(use_padding_mask=True, seq_len_q=made.numbers("seq_len_q", inputs.used_q),
                       seq_len_kv=made.numbers("seq_len_kv", inputs.used_kv))
    if inputs.sinks is not None:
        options["sink_token"] = made.tensor("sink", inputs.sinks.reshape(1, -1, 1, 1))
    if inputs.backward:
        o, dout = (made.rows(name, x, None, 0) for name, x in (("o", inputs.o), ("dO", inputs.dout)))
        outputs = inputs.outputs()
        gradients = made.graph.sdpa_backward(
            name="sdpa", q=q, k=k, v=v, o=o, dO=dout, stats=made.tensor("stats", inputs.lse[..., None]),
            use_deterministic_algorithm=problem["deterministic"], **options)
        for name, memory, tensor in zip(("dQ", "dK", "dV"), outputs, gradients):
            made.rows(name, memory, None, 0, tensor)
    elif fp8:
        one = lambda name, value: made.numbers(name, torch.full((1,), value, device=inputs.q.device))
        scales = {f"descale_{name}": one(f"descale_{name}", inputs.descale[name]) for name in "qkv"}
        o, _, *largest = made.graph.sdpa_fp8(
            name="sdpa", q=q, k=k, v=v, **scales, scale_s=one("scale_s", 256.0), descale_s=one("descale_s", 1 / 256),
            scale_o=one("scale_o", O_FACTOR), generate_stats=False, **options)
        for tensor in largest:  # the largest of S and O, which it wants to write
            made.rows("largest", torch.zeros((1, 1, 1, 1), device=inputs.q.device), None, 0, tensor)
        outputs = torch.empty_like(inputs.empty("o"), dtype=inputs.q.dtype)
    else:
        o, _ = made.graph.sdpa(name="sdpa", q=q, k=k, v=v, generate_stats=False, **options)
        outputs = inputs.empty("o")
    if not inputs.backward:
        made.rows("o", outputs, starts_q, longest_q, o)
    return made.plan(outputs)


def closed_left(inputs):
    """The left bound of a window, where causal closes its right."""
    left, right = inputs.more["window_left"], inputs.more["window_right"]
    if right > 0 or (left >= 0 and not inputs.causal):
        raise RuntimeError("no window without causal")
    return left


def room(inputs):
    return torch.zeros(WORKSPACE_BYTES, dtype=torch.uint8, device=inputs.q.device)


def flashinfer_mla(inputs):
    from flashinfer import mla
    problem, dim_v = inputs.problem, inputs.problem["dim_v"]
    wrapper = mla.BatchMLAPagedAttentionWrapper(room(inputs), backend="auto")
    wrapper.plan(metadata=mla.MLAPlanMetadata.csr(inputs.cu_q, inputs.page_starts, inputs.page_list, inputs.used_kv),
                 num_heads=inputs.heads, head_dim_ckv=dim_v, head_dim_kpe=problem["dim"] - dim_v,
                 page_size=problem["page_size"], causal=inputs.causal, sm_scale=inputs.scale,
                 q_data_type=inputs.q.dtype, kv_data_type=inputs.k.dtype)
    q, cache = inputs.flat(inputs.q), inputs.k[:, 0]
    return lambda: inputs.seen(wrapper.run(query=q, kv_cache=cache))


def flashinfer(inputs):
    """Its wrappers, planned once: decode where all sequences have as many queries, prefill elsewhere."""
    import flashinfer as package
    problem, left = inputs.problem, closed_left(inputs)
    if problem["v_in_k"]:
        return flashinfer_mla(inputs)
    options = {"sm_scale": inputs.scale, "window_left": left, "logits_soft_cap": problem["softcap"] or 0.0,
               "q_data_type": inputs.q.dtype, "kv_data_type": inputs.k.dtype, "o_data_type": inputs.type_of("o")}
    q, sizes = inputs.flat(inputs.q), (inputs.heads, inputs.kv_heads, problem["dim"])
    if inputs.table is None:
        if inputs.sinks is not None or (inputs.dtype == "e4m3" and problem["dim"] != problem["dim_v"]):
            raise RuntimeError("without pages no sinks here, and its FP8 kernels have V as wide as K")
        wrapper = package.BatchPrefillWithRaggedKVCacheWrapper(room(inputs), "NHD", backend="auto")
        wrapper.plan(inputs.cu_q, inputs.cu_kv, *sizes, head_dim_vo=problem["dim_v"], causal=inputs.causal, **options)
        more = [inputs.scales[name][0].contiguous() for name in "qkv" if inputs.dtype == "e4m3"]
        return lambda: inputs.seen(wrapper.run(q, inputs.flat(inputs.k), inputs.flat(inputs.v), *more))
    layout = problem["page_layout"].upper()
    cache = tuple(x.transpose(1, 2) if layout == "NHD" else x for x in (inputs.k, inputs.v))
    pages, queries = (inputs.page_starts, inputs.page_list, inputs.last_page), inputs.q_lengths[0]
    more, scales, wide = [], {}, inputs.group >= 4 or queries > 1
    if inputs.dtype_kv == "e4m3":
        scales = {"k_scale": inputs.descale["k"], "v_scale": inputs.descale["v"]}
    same = set(inputs.q_lengths) == {queries} and (queries == 1 or inputs.causal)
    if same and inputs.sinks is None and queries <= 16:
        wrapper = package.BatchDecodeWithPagedKVCacheWrapper(room(inputs), layout, use_tensor_cores=wide)
        wrapper.plan(*pages, *sizes, problem["page_size"], **options,
                     **({"q_len_per_req": queries} if queries > 1 else {}))
    else:
        if inputs.sinks is None:
            wrapper = package.BatchPrefillWithPagedKVCacheWrapper(room(inputs), layout)
        else:
            more = [inputs.sinks, inputs.scale]
            wrapper = package.BatchAttentionWithAttentionSinkWrapper(
                room(inputs), layout, backend="auto", q_data_type=inputs.q.dtype, kv_data_type=inputs.k.dtype,
                head_dim_qk=problem["dim"], head_dim_vo=problem["dim_v"], window_left=left)
        wrapper.plan(inputs.cu_q, *pages, *sizes, problem["page_size"], head_dim_vo=problem["dim_v"],
                     causal=inputs.causal, **options)
    return lambda: inputs.seen(wrapper.run(q, cache, *more, **scales))


def fmha_v2(inputs):
    """TensorRT-LLM's kernel that FlashInfer has. K and V lie beside each other, as it wants them: not timed."""
    from flashinfer.prefill import trtllm_fmha_v2_prefill
    problem, left = inputs.problem, closed_left(inputs)
    if problem["softcap"] or inputs.sinks is not None or inputs.table is not None or problem["dim"] != problem["dim_v"]:
        raise RuntimeError("asked for dense attention alone")
    beside = torch.stack([inputs.flat(x).view(torch.uint8) for x in (inputs.k, inputs.v)], dim=1).view(inputs.k.dtype)
    q, workspace = inputs.flat(inputs.q).contiguous(), room(inputs)
    of_q, of_k, of_v = (inputs.descale.get(name, 1.0) for name in "qkv")
    options = {"mask_mode": "causal" if inputs.causal else "padding", "window_left": left,
               "out_dtype": inputs.type_of("o")}
    return lambda: inputs.seen(trtllm_fmha_v2_prefill(
        (q, beside), "CONTIGUOUS_Q_KV", workspace, inputs.used_kv, max(inputs.q_lengths), max(inputs.kv_lengths),
        inputs.scale * of_q * of_k, of_v, inputs.batch, inputs.cu_q, inputs.cu_kv, **options))


def flash_mla(inputs):
    """Its schedule is made by the first call and kept."""
    import flash_mla as package
    queries, problem = inputs.q_lengths[0], inputs.problem
    if set(inputs.q_lengths) != {queries} or not problem["v_in_k"] or inputs.table is None:
        raise RuntimeError("takes pages of MLA, and as many queries for every sequence")
    q = inputs.flat(inputs.q).reshape(inputs.batch, queries, inputs.heads, problem["dim"])
    if hasattr(package, "VERSION"):
        carried["flash_mla"] = package.VERSION
    plan = package.get_mla_metadata(inputs.used_kv, queries * inputs.group, inputs.kv_heads)
    return lambda: inputs.seen(package.flash_mla_with_kvcache(
        q, inputs.k.transpose(1, 2), inputs.table, inputs.used_kv, problem["dim_v"], *plan,
        softmax_scale=inputs.scale, causal=inputs.causal)[0])


CALLS = {"fa4": fa4, "cudnn": cudnn, "fa3": fa3, "fa2": fa2, "flashinfer": flashinfer, "fmha_v2": fmha_v2,
         "flash_mla": flash_mla, "efficient": functools.partial(sdpa, backend="EFFICIENT_ATTENTION"),
         "math": functools.partial(sdpa, backend="MATH")}
