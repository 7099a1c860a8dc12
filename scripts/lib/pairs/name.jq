# The name of a row's problem: B,H[/Hkv],Sq[:Skv],D, the mask, the element type where it is not FP16.
include "typed";
def name: .problem | "\(.batch),\(.heads)\(if (.kv_heads // .heads) == .heads then "" else "/\(.kv_heads)" end)," +
    "\(.seq_q)\(if (.seq_kv // .seq_q) == .seq_q then "" else ":\(.seq_kv)" end),\(.dim)" +
    "\(if .causal then " causal" else "" end)\(typed)";
