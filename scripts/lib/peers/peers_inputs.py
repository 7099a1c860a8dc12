"""Problems of fa_bench as PyTorch tensors, their attention and gradients in FP64, and whether a result is right.

FP8 tensors have one descale each (DESCALE): FlashInfer and cuDNN take no more. Pages stand in random order among three
times as many; entries that no key needs are 0, and tails are finite, as FlashAttention 4 wants them."""
import math

FEATURES = {"varlen": 1, "window": 2, "paged": 8, "softcap": 0x10, "sink": 0x20, "dim_v": 0x200, "fp8": 0x800,
            "fp8_kv": 0x1000, "backward": 0x2000, "deterministic": 0x4000}
DESCALE = {"q": 0.25, "k": 0.5, "v": 1.0}  # V's is 1, since FlashInfer multiplies O by another in a launch of its own
TOLERANCE = {"fp16": 1e-3, "bf16": 8e-3, "e4m3": 0.128}  # |O - R| <= t + t |R|, as fa_bench has it
GRADIENT = {"fp16": (6e-4, 0.01, 1e-3), "bf16": (5e-3, 0.08, 8e-3)}  # of rms: all errors', one's; of the element
ROUNDOFF = {"fp16": 2**-11, "bf16": 2**-8}
O_FACTOR = 64.0  # of an O in E4M3, as cuDNN has it where Q is
ROWS, HEADS = 48, 4  # compared with FP64, of each of so many heads and of every sequence's ends
SCORES = 2**25  # of one product in FP64
QUERIES, KV = ("q", "o", "dout"), ("k", "v")
torch = None
device = "cuda"


def features_of(problem):
    """The bits of FA_FEATURES that a record's problem asks for. ValueError: one that no peer here is asked for."""
    window, backward = problem["window"], problem["op"] == "backward"
    if problem["chunk"] is not None or problem["alibi"] or problem["bias"] or problem["mask"] != "none":
        raise ValueError("chunk, alibi, bias and mask are not done here")
    if backward and problem["sinks"]:
        raise ValueError("gradients of sinks are not done here")
    asked = {"varlen": problem["lengths"] is not None,
             "window": window is not None and (window[0] >= 0 or (window[1] >= 0 and not problem["causal"])),
             "softcap": problem["softcap"] is not None, "sink": problem["sinks"],
             "dim_v": problem["dim_v"] != problem["dim"], "paged": problem["page_size"] is not None,
             "fp8": problem["dtype"] == "e4m3", "fp8_kv": problem["kv_dtype"] != problem["dtype"],
             "backward": backward, "deterministic": problem["deterministic"]}
    return sum(FEATURES[name] for name, on in asked.items() if on)


def longest(rows):
    """The length of the longest row."""
    return float(rows.norm(dim=1).max()) if len(rows) > 0 else 0.0


def starts_of(lengths):
    starts = [0]
    for length in lengths:
        starts.append(starts[-1] + length)
    return starts


def bounds_of(problem):
    """(left, right) of FlashAttention's window_size: inclusive as ours, -1 open; causal closes the right."""
    left, right = problem["window"] or (-1, -1)
    return left, 0 if problem["causal"] else right


def visible(problem, rows, keys, seq_q, seq_kv):
    """A mask [rows, keys] of what rows of a sequence see, by their numbers."""
    apart = keys[None, :] - (rows[:, None] + seq_kv - seq_q)
    left, right = (bound if bound >= 0 else 2**40 for bound in bounds_of(problem))
    return (apart >= -left) & (apart <= right)


class Gradients(tuple):
    """dQ, dK, dV as one output."""

    def fill_(self, value):
        for tensor in self:
            tensor.fill_(value)


class Inputs:
    """Tensors of a problem: [batch, rows, heads, dim] in memory, seen as [batch, heads, rows, dim]; with lengths a
    batch of 1 holds all rows, with pages K and V are batches of pages. What peers_torch.Ours asks of its inputs.
    like: other inputs, whose values these have, in another memory or type. loaded: Q, K and V themselves."""

    def __init__(self, problem, seed, like=None, loaded=None):
        self.problem, self.dtype, self.causal = problem, problem["dtype"], problem["causal"]
        self.dtype_kv, self.scale, self.tolerance = problem["kv_dtype"], problem["scale"], TOLERANCE[self.dtype]
        self.features, lengths, self.known = features_of(problem), problem["lengths"], {}
        self.batch, self.heads, self.kv_heads = problem["batch"], problem["heads"], problem["kv_heads"]
        self.group, self.backward = self.heads // self.kv_heads, problem["op"] == "backward"
        self.q_lengths = lengths["q"] if lengths else [problem["seq_q"]] * self.batch
        self.kv_lengths = lengths["kv"] if lengths else [problem["seq_kv"]] * self.batch
        self.q_starts, self.kv_starts = starts_of(self.q_lengths), starts_of(self.kv_lengths)
        self.generator = torch.Generator(device=device).manual_seed(seed)
        self.kinds = {"q": self.dtype, "k": self.dtype_kv, "v": self.dtype_kv, "dout": self.dtype,
                      "o": "bf16" if self.dtype == "e4m3" else self.dtype}
        self.table, self.sinks, self.more = None, None, {"softcap": problem["softcap"] or 0.0}
        self.more["window_left"], self.more["window_right"] = bounds_of(problem)
        self.descale, self.scales = {}, {}  # of FP8: a number, and [batch, heads] as a kernel of ours reads it
        for name, of, heads in (("q", "q", self.heads), ("k", "kv", self.kv_heads), ("v", "kv", self.kv_heads)):
            if self.kinds[name] == "e4m3":
                self.descale[name] = DESCALE[name]
                self.scales[name] = torch.full((self.batch, heads), DESCALE[name], device=device)
                self.more.update({f"{name}_descale": self.scales[name], f"{of}_descale_stride_b": heads,
                                  f"{of}_descale_stride_h": 1})
        self.ints = lambda values: torch.tensor(values, dtype=torch.int32, device=device)
        self.cu_q, self.cu_kv = self.ints(self.q_starts), self.ints(self.kv_starts)
        self.used_q, self.used_kv = self.ints(self.q_lengths), self.ints(self.kv_lengths)
        if problem["page_size"] is not None:
            self.lay_pages(problem["page_size"])
        if lengths:
            self.more.update(batch=self.batch, seq_q=max(self.q_lengths), seq_kv=max(self.kv_lengths),
                             start_q=self.cu_q, used_q=self.used_q, used_kv=self.used_kv)
            if self.table is None:
                self.more["start_kv"] = self.cu_kv
        for name in "qkv":
            if name == "v" and problem["v_in_k"]:
                self.v = self.k[..., :problem["dim_v"]]
            else:
                setattr(self, name, loaded[name] if loaded else self.make(name, like))
        if problem["sinks"]:
            drawn = 4.0 + torch.randn(self.heads, generator=self.generator, device=device)
            self.sinks = like.sinks if like else drawn.bfloat16().float()  # exact in every peer's type
            self.more["sinks"] = self.sinks
        if self.backward:
            self.run_forward()

    def lay_pages(self, size):
        self.pages_of = [-(-length // size) for length in self.kv_lengths]
        entries, self.num_pages = max(self.pages_of + [1]), max(3 * sum(self.pages_of), 1)
        order = torch.randperm(self.num_pages, generator=torch.Generator().manual_seed(1)).to(torch.int32)
        starts, self.table = starts_of(self.pages_of), torch.zeros((self.batch, entries), dtype=torch.int32)
        for sequence, count in enumerate(self.pages_of):
            self.table[sequence, :count] = order[starts[sequence]:starts[sequence] + count]
        self.page_starts, self.page_list = self.ints(starts), order[:starts[-1]].to(device)
        self.last_page = self.ints([(length - 1) % size + 1 if length else 0 for length in self.kv_lengths])
        self.table = self.table.to(device)
        self.more.update(page_size=size, pages=self.table, pages_stride=entries, num_pages=self.num_pages,
                         total_kv=self.num_pages * size, seq_kv=max(self.kv_lengths), used_kv=self.used_kv)

    def type_of(self, name):
        return {"fp16": torch.float16, "bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn}[self.kinds[name]]

    def size_of(self, name):
        """Batches, heads, rows, columns as they are stored."""
        rows = self.q_starts[-1] if name in QUERIES else self.kv_starts[-1]
        stored = 1 if self.problem["lengths"] else self.batch
        dim = self.problem["dim"] if name in ("q", "k") else self.problem["dim_v"]
        if name in KV and self.table is not None:
            stored, rows = self.num_pages, self.num_pages * self.problem["page_size"]
        return stored, self.kv_heads if name in KV else self.heads, rows // stored, dim

    def empty(self, name):
        batch, heads, rows, dim = self.size_of(name)
        turned = self.problem["strides"] == "bshd" and not (name in KV and self.problem["page_layout"] == "hnd")
        size = (batch, rows, heads, dim) if turned else (batch, heads, rows, dim)
        made = torch.empty(size, dtype=self.type_of(name), device=device)
        return made.transpose(1, 2) if turned else made

    def make(self, name, like=None):
        """Part by part: no second copy of a cache."""
        made, same = self.empty(name), like is not None and like.size_of(name) == self.size_of(name)
        step = max(1, SCORES // max(made[0].numel(), 1)) if like is None or same else 1
        for at in range(0, len(made), step):
            part = made[at:at + step]
            if like is None:
                values = torch.randn(part.shape, generator=self.generator, device=device)
            elif same:
                values = getattr(like, name)[at:at + step].float() * like.descale.get(name, 1.0)
            else:
                several = range(self.batch) if self.problem["lengths"] else [at]
                values = torch.cat([like.values(name, sequence) for sequence in several], dim=1)[None]
            part.copy_(values / self.descale.get(name, 1.0))
        return made

    def double(self, name, sequence, head):
        """Rows of a sequence, times the descale: [rows, dim]."""
        tensor = getattr(self, name)
        if name in KV and self.table is not None:
            pages = self.table[sequence, :self.pages_of[sequence]].long()
            rows = tensor[:, head].view(torch.int16 if tensor.itemsize == 2 else torch.uint8)  # FP8 has no index
            rows = rows[pages].view(tensor.dtype).flatten(0, 1)[:self.kv_lengths[sequence]]
        else:
            rows = self.rows_of(tensor, sequence, self.kv_starts if name in KV else self.q_starts)[head]
        return rows.double() * self.descale.get(name, 1.0)

    def values(self, name, sequence):
        """[heads, rows, dim] in FP32."""
        return torch.stack([self.double(name, sequence, head).float() for head in range(self.size_of(name)[1])])

    def outputs(self):
        return Gradients(self.empty(name) for name in "qkv") if self.backward else self.empty("o")

    def rows_of(self, tensor, sequence, starts):
        """A sequence's rows: [heads, rows, dim]."""
        if self.problem["lengths"]:
            return tensor[0, :, starts[sequence]:starts[sequence + 1]]
        return tensor[sequence]

    def scores(self, sequence, head, rows, keys):
        """Of some rows and keys, by their numbers, with what they have from a softcap's slope; -inf: not seen."""
        q, k = self.double("q", sequence, head)[rows], self.double("k", sequence, head // self.group)[keys]
        scores, slope, cap = q @ k.T * self.scale, 1.0, self.problem["softcap"]
        if cap:
            scores = cap * torch.tanh(scores / cap)
            slope = 1 - (scores / cap) ** 2
        seen = visible(self.problem, rows, keys, self.q_lengths[sequence], self.kv_lengths[sequence])
        return scores.masked_fill(~seen, -math.inf), slope

    def every(self, count):
        return torch.arange(count, device=device)

    def exact(self, sequence, head, rows):
        """FP64 attention of some rows and their log-sum-exp; a row that sees nothing is 0. With FP8 also attention with
        P in E4M3, an exponential times 132: what a right kernel has."""
        scores, _ = self.scores(sequence, head, rows, self.every(self.kv_lengths[sequence]))
        if self.sinks is not None:
            scores = torch.cat([scores, self.sinks[head].double().expand(len(rows), 1)], dim=1)
        scores = torch.cat([scores, torch.full_like(scores[:, :1], -math.inf)], dim=1)  # where there is no key at all
        lse, top = torch.logsumexp(scores, dim=1), scores.max(dim=1).values.clamp(min=-1e300)
        v = self.double("v", sequence, head // self.group)
        weights = torch.exp(scores - top[:, None])
        total, weights = weights.sum(dim=1, keepdim=True).clamp(min=1e-300), weights[:, :len(v)]
        rounded = None
        if self.dtype == "e4m3":
            rounded = ((weights * 132).to(torch.float8_e4m3fn).double() / 132 @ v / total).to(torch.bfloat16).double()
        return weights @ v / total, lse, rounded

    def run_forward(self):
        """O and the log-sum-exp, which gradients are made from: FP64, rounded. Their FP64 stays for the reference."""
        self.o, self.dout = self.empty("o"), self.make("o")
        stored, heads, rows, _ = self.o.shape
        self.lse = torch.empty((stored, heads, rows), dtype=torch.float32, device=device)
        self.exact_lse, self.delta, self.delta_square = [], [], []
        for sequence, count in enumerate(self.q_lengths):
            lse = torch.empty((heads, count), dtype=torch.float64, device=device)
            delta, square = torch.empty_like(lse), torch.empty_like(lse)
            step = max(1, SCORES // max(self.kv_lengths[sequence], 1))
            for head in range(heads):
                dout = self.double("dout", sequence, head)
                for part in self.every(count).split(step):
                    o, lse[head, part], _ = self.exact(sequence, head, part)
                    delta[head, part] = (o * dout[part]).sum(dim=1)
                    square[head, part] = (o * dout[part]).square().sum(dim=1)
                    self.rows_of(self.o, sequence, self.q_starts)[head, part] = o.to(self.o.dtype)
            self.rows_of(self.lse[..., None], sequence, self.q_starts)[..., 0] = lse.float()
            self.exact_lse.append(lse)
            self.delta.append(delta)
            self.delta_square.append(square)
        self.more.update(o=self.o, dout=self.dout, lse=self.lse, deterministic=self.problem["deterministic"])
        self.more.update({f"lse_stride_{axis}": stride for axis, stride in zip("bhs", self.lse.stride())})

    def shares(self, sequence, head, rows, keys):
        """P and dS of some rows and keys."""
        scores, slope = self.scores(sequence, head, rows, keys)
        p = torch.exp(scores - self.exact_lse[sequence][head, rows].clamp(min=-1e300)[:, None])
        v = self.double("v", sequence, head // self.group)[keys]
        dp = self.double("dout", sequence, head)[rows] @ v.T
        return p, p * (dp - self.delta[sequence][head, rows][:, None]) * slope

    def exact_gradients(self, sequence, head, rows, keys):
        """FP64: dQ of some rows of a head, dK and dV of some keys of its K/V head, each with the noise of its rows, as
        docs/backward.md has it."""
        k, all_rows = self.double("k", sequence, head // self.group), self.every(self.q_lengths[sequence])
        p, ds = self.shares(sequence, head, rows, self.every(len(k)))
        dq_square = ds.square().sum(dim=1) + p.sum(dim=1).square() * self.delta_square[sequence][head, rows]
        dq, dk, dv, dk_square, dv_square, longest_q, longest_dout = ds @ k * self.scale, *[0.0] * 4, 0.0, 0.0
        first = head // self.group * self.group
        for other in range(first, first + self.group):
            q, dout = self.double("q", sequence, other), self.double("dout", sequence, other)
            longest_q, longest_dout = max(longest_q, longest(q)), max(longest_dout, longest(dout))
            for part in all_rows.split(max(1, SCORES // max(len(keys), 1))):
                p, ds = self.shares(sequence, other, part, keys)
                dk, dv = dk + ds.T @ q[part] * self.scale, dv + p.T @ dout[part]
                dv_square = dv_square + p.square().sum(dim=0)
                of_delta = p.square() * self.delta_square[sequence][other, part][:, None]
                dk_square = dk_square + (ds.square() + of_delta).sum(dim=0)
        noises = (longest(k) * self.scale, dq_square), (longest_q * self.scale, dk_square), (longest_dout, dv_square)
        return [(want, square.sqrt() * size * ROUNDOFF[self.dtype])
                for want, (size, square) in zip((dq, dk, dv), noises)]

    def drawn(self, some):
        """Sequences, heads, rows and keys that are compared: some, or all."""
        generator = torch.Generator().manual_seed(1)
        heads = torch.randperm(self.heads, generator=generator)[:HEADS if some else self.heads].tolist()

        def numbers(count):
            if not some or count == 0:
                return self.every(count)
            drawn = torch.randint(count, (ROWS,), generator=generator).tolist()
            return torch.tensor(sorted({0, count - 1, *drawn}), device=device)
        for sequence, (count, keys) in enumerate(zip(self.q_lengths, self.kv_lengths)):
            if count > 0:
                yield sequence, heads, numbers(count), numbers(keys)

    def once(self, some, make, sequence, head, *numbers):
        """What each parity compares with: some rows are the same every time."""
        if not some:
            return make(sequence, head, *numbers)
        if (sequence, head) not in self.known:
            self.known[sequence, head] = make(sequence, head, *numbers)
        return self.known[sequence, head]

    def parity(self, output, some=True):
        """|O - exact| within the type's tolerance, on some rows of some heads of every sequence; with FP8 the root mean
        square error within what P (and O) in E4M3 cost; gradients by two rules of docs/backward.md. NaN fails."""
        if self.backward:
            return self.gradient_parity(output)
        if tuple(output.shape) != self.size_of("o"):
            return {"passed": False, "reference": "torch_fp64", "rows_checked": 0, "max_abs_err": None}
        output, narrow = output.to(device), output.dtype == torch.float8_e4m3fn
        output = output.float() / O_FACTOR if narrow else output
        worst, ok, checked, squares = 0.0, True, 0, torch.zeros(3, dtype=torch.float64, device=device)
        for sequence, heads, rows, _ in self.drawn(some):
            for head in heads:
                exact, _, rounded = self.once(some, self.exact, sequence, head, rows)
                error = self.rows_of(output, sequence, self.q_starts)[head, rows].double() - exact
                ok = ok and bool((error.abs() <= self.tolerance * (1 + exact.abs())).all())
                worst = max(worst, float(error.abs().nan_to_num(math.inf).max()))
                checked += len(rows)
                if rounded is not None:
                    if narrow:
                        rounded = (rounded * O_FACTOR).to(torch.float8_e4m3fn).double() / O_FACTOR
                    squares += torch.stack([x.square().sum() for x in (error, rounded - exact, exact)])
        verdict = {"reference": "torch_fp64", "rows_checked": checked,
                   "max_abs_err": worst if math.isfinite(worst) else None}
        if self.dtype == "e4m3":
            error, rounding, size = (math.sqrt(float(x) / max(checked * output.shape[3], 1)) for x in squares)
            limit = max((1.35 if checked >= 64 else 2.0) * rounding, size * 2**-8 / 1.44)  # half an ulp of BF16
            verdict.update(rmse=error if math.isfinite(error) else None, rmse_limit=limit)
            ok = ok and error <= limit
        return {"passed": ok, **verdict}

    def gradient_parity(self, gradients):
        pairs = {"dq": [], "dk": [], "dv": []}
        for sequence, heads, rows, keys in self.drawn(True):
            for head in heads:
                exact = self.once(True, self.exact_gradients, sequence, head, rows, keys)
                for name, (want, noise), tensor in zip(pairs, exact, gradients):
                    starts, at, of = ((self.q_starts, head, rows) if name == "dq" else
                                      (self.kv_starts, head // self.group, keys))
                    error = self.rows_of(tensor, sequence, starts)[at, of].double() - want
                    pairs[name].append((want, error, noise[:, None].expand_as(want)))
        verdict, (of_all, of_rms, of_one) = {"passed": True, "reference": "torch_fp64"}, GRADIENT[self.dtype]
        for name, parts in pairs.items():
            want, error, noise = (torch.cat([part[i] for part in parts]) for i in range(3))
            rms, rmse = (float(x.square().mean().sqrt()) for x in (want, error))
            most = torch.maximum(of_rms * rms + of_one * want.abs(), 2 * noise)
            right = rmse <= of_all * rms and bool((error.abs() <= most).all())
            worst = float(error.abs().nan_to_num(math.inf).max())
            verdict[name] = {"passed": right, "rms": rms, "rmse": rmse if math.isfinite(rmse) else None,
                             "max_abs_err": worst if math.isfinite(worst) else None}
            verdict["passed"] &= right
        errors = [verdict[name]["max_abs_err"] for name in pairs]
        verdict["rows_checked"] = sum(len(part[0]) for parts in pairs.values() for part in parts)
        return {**verdict, "max_abs_err": None if None in errors else max(errors)}

    def tokens(self, tensor):
        """[rows, heads, dim] where there are lengths, else [batch, rows, heads, dim]."""
        tensor = tensor.transpose(1, 2)
        return tensor[0] if self.problem["lengths"] else tensor

    def flat(self, tensor):
        """[rows, heads, dim]: all sequences one behind the other."""
        return self.tokens(tensor).reshape(-1, tensor.shape[1], tensor.shape[3])

    def seen(self, output):
        """The way back, for an output."""
        batch, heads, rows, _ = self.size_of("q")
        return output.reshape(batch, rows, heads, output.shape[-1]).transpose(1, 2)
