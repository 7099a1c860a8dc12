# A file of tests/emu/conform as a case: the hash of its words on the emulator ($emu) and on the GPU ($cuda).
{kernel: "emulator", tool: "conform", args: $name,
    verdict: (if $emu != "" and $emu == $cuda then "passed" else "failed" end), code: 0,
    text: "emulator: \($emu_text); GPU: \($cuda_text)", words_sha256: {emu: $emu, cuda: $cuda}}
