# Tables of the page. A cell is a text; a number as {v, t}: its value, and what is shown; a link as {t, href}; null for
# nothing. A class goes with each of the objects. A heading that starts with "#" is over numbers.
include "numbers";

def pad($width): tostring | "0" * ($width - length) + .;
def fixed($digits): pow(10; $digits) as $p | (. * $p | round) as $i |
    if $digits == 0 then $i | tostring else "\($i / $p | floor).\($i % $p | pad($digits))" end;
def scientific: (log10 | floor) as $e | "\(. / pow(10; $e) | fixed(1))e\($e)";
# Three figures: 1234, 123, 12.3, 1.23, 0.12, 2.4e-4.
def rounded: if . >= 99.95 then fixed(0) elif . >= 9.995 then fixed(1) elif . >= 0.01 or . == 0 then fixed(2)
    else scientific end;
def figure: if . == null then null else {v: ., t: rounded} end;
def whole: if . == null then null else {v: ., t: fixed(0)} end;
def decimals($d): if . == null then null else {v: ., t: fixed($d)} end;
# An interval is narrow: four figures, of a ratio three decimals.
def fine: if . >= 1000 then fixed(0) elif . >= 100 then fixed(1) elif . >= 10 then fixed(2) else fixed(3) end;
def between: if .[0] == null then null else "\(.[0] | fine) to \(.[1] | fine)" end;
def ratio_between: if .[0] == null then null else "\(.[0] | fixed(3)) to \(.[1] | fixed(3))" end;
def link($href): {t: ., href: $href};

def shown: if type == "object" then .t else . end | tostring | @html;
def linked: if type == "object" and .href then "<a href=\"\(.href | @html)\">\(shown)</a>" else shown end;
def html_cell($is_number): (if type == "object" then . else {} end) as $c |
    ([if $is_number then "n" else empty end, ($c.class // empty), if . == null then "none" else empty end]) as $class |
    "<td" + (if $class == [] then "" else " class=\"\($class | join(" "))\"" end) +
    (if $c.v != null then " data-v=\"\($c.v)\"" else "" end) + ">" + (if . == null then "-" else linked end) + "</td>";
def html_heading: startswith("#") as $is_number | ltrimstr("#") |
    "<th scope=\"col\"\(if $is_number then " class=\"n\"" else "" end)><button type=\"button\">\(@html)</button></th>";
def html_table($headings; rows): ($headings | split("|")) as $h | [rows] |
    if . == [] then empty else
        "<div class=\"scroll\(if length > 16 then " table-box" else "" end)\" tabindex=\"0\">" +
            "<table><thead><tr>\($h | map(html_heading) | join(""))</tr></thead><tbody>",
        (.[] | "<tr>" + ([., [range(length)]] | transpose |
            map(.[1] as $i | .[0] | html_cell($h[$i] | startswith("#"))) | join("")) + "</tr>"),
        "</tbody></table></div>"
    end;
