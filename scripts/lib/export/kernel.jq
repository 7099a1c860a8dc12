# What exports of a kernel's source share. $files: contents by name. A row is one of export/rows.

# The name of a row's kernel with its tile.
def solution: [.kernel] + (.knobs // {} | to_entries | map("\(.key)\(.value)")) | join("_");

# Its tile, head dimension, mask and scale.
def macros: (.knobs | {FA_M: .m, FA_N: .n, FA_WARPS: .warps, FA_VEC: .vec, FA_STAGES: .stages, FA_SWIZZLE: .swizzle,
        FA_SPLITS: .splits, FA_MAXREG: .maxreg, FA_ACC_FP16: (if .acc == "fp16" then 1 else 0 end)}) +
    (.problem | {FA_DIM: .dim, FA_CAUSAL: (if .causal then 1 else 0 end), FA_EXPORT_SCALE: "\(.scale)f"}) |
    to_entries | map("#define \(.key) \(.value // 0)\n") | add;

# Right, ours, without tensor maps, which need a host that encodes them, and without CUTLASS's headers.
def exportable($files): ($files["\(.kernel).cu"] // "") as $kernel | .status == "pass" and .knobs != null and
    $kernel != "" and ($kernel | test("\\.tma_|(?m:^#include <cut(e|lass)/)") | not);

# A source with what it includes in its place: {seen, text}.
def inlined($files; $seen): reduce split("\n")[] as $line ({seen: $seen, text: []};
    ($line | capture("^#include \"(?<name>[^\"]+)\"").name // null) as $name |
    if $name == null or $files[$name] == null then .text += [$line]
    elif .seen | index([$name]) then .
    else .seen += [$name] | .seen as $s | ($files[$name] | inlined($files; $s)) as $inner |
        .seen = $inner.seen | .text += [$inner.text | rtrimstr("\n")] end) | .text |= join("\n");

# A kernel, its tile and a launcher as one file.
def one_file($files; $launcher):
    macros + ($files["\(.kernel).cu"] | inlined($files; []).text) + "\n" + $files["launch.cuh"] + "\n" +
    $files[$launcher];
