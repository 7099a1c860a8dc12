// A click on a heading sorts its table: numbers by value, the rest by the alphabet; a second click turns it round.
for (const button of document.querySelectorAll("th button")) {
    button.addEventListener("click", () => {
        const heading = button.parentElement, table = heading.closest("table"), column = heading.cellIndex;
        const sign = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
        for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
        heading.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
        const compare = (a, b) => {
            const [x, y] = [a, b].map(row => row.cells[column]);
            if (x.dataset.v && y.dataset.v) return sign * (Number(x.dataset.v) - Number(y.dataset.v));
            if (x.dataset.v || y.dataset.v) return x.dataset.v ? -1 : 1; // what has no number comes last
            return sign * x.textContent.localeCompare(y.textContent, "en", { numeric: true });
        };
        const body = table.tBodies[0];
        body.append(...[...body.rows].sort(compare));
    });
}
