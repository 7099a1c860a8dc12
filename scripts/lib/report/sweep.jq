# leaderboard.json as a table of the documents. $sweeps: the lines of sweeps.jsonl; $folder: where they lie.
include "report/numbers";
include "report/canonical";
canonical as $g | ($g.group | split("|")) as [$gpu, $arch, $problem] |
"Best tiles of (\($problem | gsub(",(?=[a-z])"; ") ")) on \($gpu), each found by `scripts/evo_sweep.sh`;",
"log and leaderboard in `\($folder)/`.", "",
"| kernel | tile | p50 us | registers | shared bytes | candidates | a second |", "|---|---|---|---|---|---|---|",
($g.kernels | to_entries | sort_by(-(.value.p50_us // 0)) | .[] | .key as $k | .value as $v |
    ([$sweeps[] | select(.kernel == $k and .group == $g.group and .measured > 0)] | last) as $s |
    [($k | code) + if $g.leader == $k then " (leads)" else "" end, ($v.knobs | gsub(","; " ")),
        ($v.p50_us | hundredths), $v.registers // "-", $v.smem_bytes // "-", $s.candidates // "-",
        $s.per_second // "-"] | map(tostring) | row)
