# Lines of report/index as the two tables of the page of all GPUs.
include "report/numbers";
include "report/html";
def overview: .[] | [(.folder | link("\(.)/report.html")), .best.kernel, .best.problem, (.best.tflops | figure),
    (if .peak and .best then 100 * .best.tflops / .peak | figure else null end), (.alone | decimals(2)),
    (.paired | decimals(2)), .gate, .sanitize, (.bound | figure), (.per_second | figure)];
. as $all |
html_table("GPU|fastest kernel|B,H,S,D|#TFLOP/s|#% of peak|#over the best library, alone|#in pairs|#right|#clean" +
    "|#median % of the bound|#candidates a second"; overview),
"<h2>The ladder, TFLOP/s</h2>",
html_table("B,H,S,D|kernel|" + (map("#\(.folder)") | join("|"));
    [.[].climbed[] | [.problem, .kernel]] | unique | sort_by(.[0] | work)[] | . as [$problem, $kernel] |
    [$problem, $kernel] +
    [$all[] | first(.climbed[] | select(.problem == $problem and .kernel == $kernel) | .tflops) // null | figure])
