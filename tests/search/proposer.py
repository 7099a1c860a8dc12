#!/usr/bin/env python3
"""A stand-in for a language model: a server that speaks OpenAI's protocol and proposes a list of edits, one a question.

It edits the program that the prompt calls the current one, with SEARCH/REPLACE blocks, as a model would. The list has
tiles, and edits that are wrong, do not compile or cannot be launched. Prints its port, then serves until it is killed.
"""

import http.server
import json
import re
import sys

# (tile, line of the score, line of the maximum): what each answer makes of the program.
SCALE, MAXIMUM = "        s *= p.scale;", "    float m = NO_MAX, l = 0.0f, sum[FA_DIM] = {};"
PROPOSALS = [
    ("--m 32 --warps 1", SCALE, MAXIMUM),
    ("--m 32 --warps 2", "        s *= p.scale * 1.02f;", MAXIMUM),  # wrong
    ("--m 32 --warps 2", SCALE, MAXIMUM),
    ("--m 64 --warps 2", SCALE, MAXIMUM.replace("NO_MAX", "lowest")),  # does not compile
    ("--m 64 --warps 2", SCALE, MAXIMUM),
    ("--m 4096 --warps 2", SCALE, MAXIMUM),  # infeasible
    ("--m 64 --warps 4", SCALE, MAXIMUM),  # the best there is
    ("--m 128 --warps 4", SCALE, MAXIMUM), ("--m 64 --warps 8", SCALE, MAXIMUM),
]
LINES = [r"// fa_bench: .*", r" *s \*= p\.scale.*;", r" *float m = .*, l = 0\.0f.*"]


def answer(prompt, proposal):
    tail = prompt[max(prompt.rfind("# Current program"), prompt.rfind("# Current Program")) :]
    program = re.search(r"```\w*\n(.*?)```", tail, re.S).group(1)
    blocks = []
    for pattern, new in zip(LINES, ("// fa_bench: " + proposal[0], *proposal[1:])):
        old = re.search(f"^{pattern}$", program, re.M).group(0)
        if old != new:
            blocks.append(f"<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n")
    diff = "\n".join(blocks)
    return f"<NAME>\nedit\n</NAME>\n<DESCRIPTION>\nfrom a list\n</DESCRIPTION>\n<DIFF>\n{diff}</DIFF>\n"


class Handler(http.server.BaseHTTPRequestHandler):
    asked = 0

    def do_POST(self):
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = "\n".join(message["content"] for message in question["messages"])
        with open(sys.argv[1], "a") as log:
            log.write(prompt + "\n")
        text = answer(prompt, PROPOSALS[Handler.asked % len(PROPOSALS)])
        Handler.asked += 1
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        body = {"id": "1", "object": "chat.completion", "created": 0, "model": "list", "choices": [choice]}
        body["usage"] = usage
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
