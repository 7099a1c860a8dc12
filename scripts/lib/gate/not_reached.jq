# A line KERNEL|TOOL|OPTIONS of a case that the time limit left, as a case.
split("|") | {kernel: .[0], tool: .[1], args: .[2], verdict: "not_run", code: null, seconds: null,
    text: "NOT-RUN: the time limit came first"}
