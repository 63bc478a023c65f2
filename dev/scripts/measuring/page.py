"""Measures the response times of the HTML report in headless Chromium: a table for docs/page.md.

The traces are from a compiler (many stacks) and from perl (few stacks). Each action is repeated. A time is the script's, from the event
until the page has been updated and laid out.
"""
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading

from . import commands
from .common import FOLDER, folder, head, median, row, run

OPTIONS = {**FOLDER, "--times": {"type": int, "default": 20, "help": "how often each act is done (default: 20)"}}

# Actions of a reader, as JavaScript that performs the n-th repetition.
ACTS = {
    "another moment": "chartKey('ArrowRight')",
    "another range": "drag(.2 + .01 * n, .6 + .01 * n)",
    "another measure": "measure(['allocated', 'leaked', 'temporary', 'kept'][n % 4])",
    "callers below": "key('i')",
    "a text is looked for": "find(['a', 'al', 'alloc', ''][n % 4])",
    "zoom into a call, and out": "choose({ root: n % 2 ? 0 : boxes[Math.min(boxes.length - 1, 5 + n)].node })",
    "another column sorts": "document.querySelectorAll('#functions th button')[n % 3].click()",
    "blocks of one size and lifetime": "document.querySelectorAll('#grids td button')[n % 4]?.click()",
}

SCRIPT = """<script>{
const chart = () => charts[0], key = key => document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const chartKey = key => chart().dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const measure = name => document.querySelector(`[data-measure=${name}]`)?.click();
const drag = (from, to) => {
  const bounds = chart().getBoundingClientRect();
  chart().setPointerCapture = () => {};
  const at = part => ({ clientX: bounds.left + 64 + (bounds.width - 72) * part, clientY: bounds.top + 50, pointerId: 1, bubbles: true });
  chart().dispatchEvent(new PointerEvent("pointerdown", at(from)));
  chart().dispatchEvent(new PointerEvent("pointerup", at(to)));
};
const begin = performance.now(), errors = [];
window.addEventListener("error", event => errors.push(event.message));
const wait = setInterval(() => {
  if (document.getElementById("heap").hidden) return;
  clearInterval(wait);
  const took = { "the page opens": [performance.now() - begin] };
  const acts = ACTS;
  for (const [name, act] of Object.entries(acts)) {
    took[name] = [];
    for (let n = 0; n < TIMES; n++) {
      const from = performance.now();
      act(n);
      document.body.offsetHeight;
      took[name].push(performance.now() - from);
    }
  }
  fetch("/took", { method: "POST", body: JSON.stringify({ took, errors, functions: heap.words.functions.length, nodes: heap.nodes?.length ?? 0 }) });
}, 5);
}</script>"""


def acted(page, times):
    """Opens a page in a browser, performs the actions, and returns their times in milliseconds."""
    acts = ", ".join(f"{json.dumps(name)}: n => {act}" for name, act in ACTS.items())
    script = SCRIPT.replace("ACTS", "{" + acts + "}").replace("TIMES", str(times))
    # Remove the page's policy, which forbids it to send anything.
    text = re.sub(r"<meta http-equiv=\"Content-Security-Policy\"[^>]*>", "", open(page).read()) + script
    answers, done = [], threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(text.encode() if self.path == "/" else b"")

        def do_POST(self):
            answers.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()
            done.set()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
            browser = subprocess.Popen(
                ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--no-proxy-server", f"--user-data-dir={profile}",
                 "--window-size=1200,1600", "--remote-debugging-port=0", f"http://127.0.0.1:{server.server_port}/"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            done.wait(120)
            os.killpg(browser.pid, signal.SIGKILL)
            browser.wait()
        server.shutdown()
    if not answers:
        raise SystemExit(f"{page}: the browser did not answer")
    return answers[0]


def main(options):
    if not shutil.which("chromium"):
        print("SKIPPED: chromium is not there")
        return
    with folder(options.folder):
        head("trace", "act", "median, ms:", "most, ms:")
        for name, command in commands.programs():
            trace = f"{name}.mtf"
            if not os.path.exists(trace):
                run(options.hatf, "record", "--stacks", "--no-follow", "-q", "-o", trace, "--", *command)
            run(options.hatf, "report", "--html", f"{name}.html", trace)
            answer = acted(f"{name}.html", options.times)
            if answer["errors"]:
                raise SystemExit(f"{name}: {answer['errors']}")
            row(f"{name}, {answer['functions']:,} functions, {os.path.getsize(f'{name}.html'):,} bytes", "", "", "")
            for act, took in answer["took"].items():
                row("", act, f"{median(took):.1f}", f"{max(took):.1f}")
