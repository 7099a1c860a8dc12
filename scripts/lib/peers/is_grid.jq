# Is it a file of shapes?
.shapes | length > 0 and all(.[]; has("batch") and has("heads") and has("seq") and has("dim") and has("causal"))
