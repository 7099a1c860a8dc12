# Is it a file of shapes? kv_heads, seq_kv, strides (--strides) and kind, of a table, may be absent.
.shapes | length > 0 and all(.[]; has("batch") and has("heads") and has("seq") and has("dim") and has("causal"))
