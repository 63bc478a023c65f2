// Opens a page in a headless Chromium and controls it through a pipe, without libraries: evaluates expressions, presses
// keys, takes screenshots.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const OPTIONS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync", "--remote-debugging-pipe",
];

/// Starts the first available browser. Returns null if there is none.
async function started(profile) {
  for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
    const browser = spawn(name, [...OPTIONS, `--user-data-dir=${profile}`], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    const runs = await new Promise(done => {
      browser.once("spawn", () => done(true));
      browser.once("error", () => done(false));
    });
    if (runs) return browser;
  }
  return null;
}

/// Opens a page, calls `act`, and closes the browser. Returns the result of `act`, or undefined if there is no browser.
export async function withPage(url, { width = 1300, height = 1000, dark = false } = {}, act) {
  const profile = mkdtempSync(join(tmpdir(), "playground-")), browser = await started(profile);
  if (!browser) return undefined;
  const [, , , input, output] = browser.stdio, waiting = new Map(), problems = [];
  let next = 1, rest = "";
  const send = (method, params = {}, sessionId) => new Promise((done, failed) => {
    waiting.set(next, { done, failed });
    input.write(`${JSON.stringify({ id: next++, method, params, sessionId })}\0`);
  });
  output.on("data", data => {
    const messages = (rest + data).split("\0");
    rest = messages.pop();
    for (const { id, result, error, method, params } of messages.map(text => JSON.parse(text))) {
      if (id) error ? waiting.get(id)?.failed(new Error(error.message)) : waiting.get(id)?.done(result);
      else if (method === "Runtime.exceptionThrown") problems.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
      else if (method === "Log.entryAdded" && params.entry.level === "error") problems.push(params.entry.text);
      else if (method === "Runtime.consoleAPICalled" && params.type === "error") problems.push(JSON.stringify(params.args));
    }
  });
  try {
    const { targetId } = await send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
    const page = (method, params) => send(method, params, sessionId);
    for (const domain of ["Page", "Runtime", "Log"]) await page(`${domain}.enable`);
    await page("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: width < 600 });
    await page("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }] });
    await page("Page.navigate", { url });
    const evaluate = async expression => {
      const { result, exceptionDetails } = await page("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
      if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
      return result.value;
    };
    /// Waits until an expression is true, for at most half a minute.
    const until = async expression => {
      for (let tries = 0; tries < 600; tries++) {
        if (await evaluate(expression).catch(() => false)) return;
        await new Promise(done => setTimeout(done, 50));
      }
      throw new Error(`never: ${expression}\n${problems.join("\n")}\n${await evaluate("document.body.innerText").catch(String)}`);
    };
    const key = async (key, text) => {
      await page("Input.dispatchKeyEvent", { type: "keyDown", key, code: key, text, windowsVirtualKeyCode: { ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40, Escape: 27 }[key] });
      await page("Input.dispatchKeyEvent", { type: "keyUp", key, code: key });
    };
    const move = (x, y) => page("Input.dispatchMouseEvent", { type: "mouseMoved", x, y });
    const picture = async file => writeFileSync(file, Buffer.from((await page("Page.captureScreenshot", { format: "png" })).data, "base64"));
    return await act({ evaluate, until, key, move, picture, problems });
  } finally {
    const ended = new Promise(done => browser.once("exit", done));
    browser.kill("SIGKILL");
    await ended;
    // Child processes end after the browser and write until then.
    for (let tries = 0; ; tries++) {
      try {
        rmSync(profile, { recursive: true, force: true });
        break;
      } catch (error) {
        if (tries === 50) throw error;
        await new Promise(done => setTimeout(done, 100));
      }
    }
  }
}
