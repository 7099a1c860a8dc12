# Results of scripts/ncu_profile.sh, a list of {file, of}, as one table: a row per run, a column per gate.
include "report/numbers";
include "report/html";
include "report/rows";
def gate_cell: if . == null or .measured == null or .applies == false then null else
    (.measured | if . == floor then tostring else rounded end) as $t |
    {v: .measured, t: (if .verdict == "FAIL" then "\u2717 " + $t else $t end), class: .verdict} end;
def unit: if (.unit // "") == "" then "" else " (\(.unit))" end;
def gate_rows($names): .[] | .file as $file | .of |
    [(.variant // .kernel | link($file)),
        (.problem | if . then "\(shape)\(if .causal then " causal" else "" end)" else null end),
        (.config | tile)] +
    [$names[] as $name | first(.gates[] | select(.gate == $name)) // null | gate_cell] +
    [{t: .verdict, class: .verdict}];

(map(.of.gates[]) | unique_by(.gate) | map(.gate)) as $known |
(.[0].of.gates | map(.gate)) as $first | ($first + ($known - $first)) as $names |
(map(.of.gates[]) | map({(.gate): unit}) | add) as $units |
html_table("kernel|B,H,S,D|tile|" + ($names | map("#\(.)\($units[.])") | join("|")) + "|verdict"; gate_rows($names))
