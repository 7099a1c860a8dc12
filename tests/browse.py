#!/usr/bin/env python3
"""Opens pages in headless Chromium at three widths, light and dark, and says what is wrong with them.

usage: tests/browse.py [--shots DIR] PAGE...

Wrong are: an error on the console, a request that leaves the machine, a picture that does not load or is cut, a page
wider than its window, a link to a file that is not there, a heading that does not sort its table. Prints a line per
finding, then a line per page. With --shots, DIR gets pictures of each page at each width in each scheme. Talks to
Chromium through its debugging pipe, so the standard library is enough.
Exit: 0, 1 with a finding, 2 usage, 4 NOT-RUN (no chromium).
"""
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

WIDTHS = (390, 800, 1600)
SCHEMES = ("light", "dark")
LOOK = """(() => {
    const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    const broken = [...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.src);
    const cut = [...document.images].filter(i => i.getBoundingClientRect().width >
        document.documentElement.clientWidth).map(i => i.src);
    const links = [...document.links].map(a => a.href).filter(h => h.startsWith("file:"));
    const anchors = [...document.links].map(a => a.getAttribute("href")).filter(h => h.startsWith("#"));
    const lost = anchors.filter(h => !document.getElementById(h.slice(1)));
    const paper = getComputedStyle(document.body).backgroundColor;
    return JSON.stringify({wide, broken, cut, links, lost, paper});
})()"""
# Sorts the first column of numbers of each table twice; says which is not in order.
SORT = """(() => {
    const bad = [];
    for (const table of document.querySelectorAll("table")) {
        const heading = [...table.querySelectorAll("th")].find(h => h.classList.contains("n"));
        if (!heading) continue;
        for (const sign of [1, -1]) {
            heading.querySelector("button").click();
            const values = [...table.tBodies[0].rows].map(r => r.cells[heading.cellIndex].dataset.v)
                .filter(v => v !== undefined).map(Number);
            if (values.some((v, i) => i && sign * (v - values[i - 1]) < 0)) bad.push(heading.textContent);
        }
    }
    return JSON.stringify(bad);
})()"""


class Browser:
    """Chromium behind its debugging pipe: commands by number, events in between."""

    def __init__(self, program, profile):
        ours_in, self.out = os.pipe()
        self.incoming, theirs_out = os.pipe()
        flags = ["--headless", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu", "--no-sandbox",
                 "--disable-dev-shm-usage", f"--user-data-dir={profile}", "about:blank"]

        def descriptors():  # Chromium reads 3 and writes 4
            kept_in, kept_out = os.dup(ours_in), os.dup(theirs_out)
            os.dup2(kept_in, 3)
            os.dup2(kept_out, 4)

        self.process = subprocess.Popen([program, *flags], close_fds=False, preexec_fn=descriptors,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(ours_in)
        os.close(theirs_out)
        self.number, self.pending, self.events, self.session = 0, b"", [], None

    def message(self):
        while b"\0" not in self.pending:
            more = os.read(self.incoming, 1 << 16)
            if not more:
                raise RuntimeError("Chromium ended")
            self.pending += more
        one, self.pending = self.pending.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, **params):
        self.number += 1
        command = {"id": self.number, "method": method, "params": params}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.out, json.dumps(command).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, event):
        while not any(e.get("method") == event for e in self.events):
            self.events.append(self.message())

    def open_tab(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def value(self, script):
        return json.loads(self.call("Runtime.evaluate", expression=script)["result"]["value"])


def errors_of(events):
    for event in events:
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            yield "error: " + params["exceptionDetails"]["text"]
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            yield "console: " + str(params["args"])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            yield "log: " + params["entry"]["text"]
        elif method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if not url.startswith(("file:", "data:", "about:")):
                yield "asks the network for " + url


def shoot(browser, name, width, shots):
    """The page in pieces of 1,800 pixels: NAME_0.png, NAME_1.png, ..."""
    height = int(browser.call("Page.getLayoutMetrics")["cssContentSize"]["height"])
    for i, top in enumerate(range(0, height, 1800)):
        clip = {"x": 0, "y": top, "width": width, "height": min(1800, height - top), "scale": 1}
        data = browser.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        with open(os.path.join(shots, f"{name}_{i}.png"), "wb") as file:
            file.write(base64.b64decode(data))


def look(browser, page, width, scheme, shots):
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.events.clear()
    browser.call("Page.navigate", url="file://" + urllib.parse.quote(os.path.abspath(page)))
    browser.wait_for("Page.loadEventFired")
    seen = browser.value(LOOK)
    if shots:
        shoot(browser, os.path.splitext(os.path.basename(page))[0] + f"_{width}_{scheme}", width, shots)
    found = [] if seen["wide"] <= 0 else [f"{seen['wide']} pixels wider than the window"]
    found += ["picture wider than the window: " + source for source in seen["cut"]]
    found += ["picture does not load: " + source for source in seen["broken"]]
    found += ["no such place on the page: " + place for place in seen["lost"]]
    files = {urllib.parse.unquote(urllib.parse.urlparse(link).path) for link in seen["links"]}
    found += ["no such file: " + file for file in sorted(files) if not os.path.exists(file)]
    found += ["does not sort: " + heading for heading in browser.value(SORT)]
    return found + list(errors_of(browser.events)), seen["paper"]


def main(arguments):
    shots = None
    if arguments[:1] == ["--shots"] and len(arguments) > 1:
        shots, arguments = arguments[1], arguments[2:]
        os.makedirs(shots, exist_ok=True)
    if not arguments or arguments[0].startswith("-"):
        print(__doc__, *arguments)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not program:
        print("NOT-RUN: no chromium: apt install chromium", file=sys.stderr)
        return 4
    wrong = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, profile)
        try:
            browser.open_tab()
            for page in arguments:
                papers = set()
                for width in WIDTHS:
                    for scheme in SCHEMES:
                        found, paper = look(browser, page, width, scheme, shots)
                        papers.add((scheme, paper))
                        wrong += len(found)
                        for line in found:
                            print(f"{page}: {width} {scheme}: {line}")
                if len({paper for _, paper in papers}) < 2:
                    wrong += 1
                    print(f"{page}: the same paper in light and dark")
                print(f"{page}: looked at {len(WIDTHS) * len(SCHEMES)} times")
        finally:
            browser.process.terminate()
            browser.process.wait()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
