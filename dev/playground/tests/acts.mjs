// Runs actions in the playground: node acts.mjs PAGE METATFC REPOSITORY FOLDER-OF-HEAPS [FOLDER OF PICTURES]
// Every action must have its effect, the console must not show errors, and values must be the same as those of `metatfc
// dump`.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { withPage } from "./browser.mjs";

const [page, metatfc, root, heaps, pictures] = process.argv.slice(2), url = `file://${resolve(page)}`;
const golden = join(root, "tests/golden/1.0");

/// Returns the lines of a file as printed by the command.
const dumped = (file, ...options) => {
  const { stdout, stderr } = spawnSync(metatfc, ["dump", "--format", "jsonl", "--all", "--resets", ...options, file], { maxBuffer: 1 << 28 });
  return { lines: stdout.toString().trimEnd().split("\n"), said: stderr.toString() };
};

/// Opens a file on the page and returns the lines of all rows.
const lines = async ({ evaluate }, name, file) => JSON.parse(await evaluate(`(async () => {
  const bytes = Uint8Array.from(atob("${readFileSync(file).toString("base64")}"), letter => letter.charCodeAt(0));
  await open(${JSON.stringify(name)}, bytes);
  const all = [];
  for (;;) {
    const { answer } = await module.ask({ ask: "rows", from: all.length, count: 500 });
    // Start again from the first lost row.
    if (answer.first_lost < all.length) {
      all.length = 0;
      continue;
    }
    all.push(...answer.rows.map(row => [row.json, row.more_json, row.kind === "lost" ? row.sets : ""]));
    if (answer.end) return JSON.stringify({ all, error: answer.damage ?? "", failed: document.getElementById("failed").textContent });
  }
})()`));

const ran = await withPage(url, {}, async tab => {
  const { evaluate, until, key, move, picture, problems } = tab;
  const text = id => evaluate(`document.getElementById("${id}").textContent`);
  const type = (id, value) => evaluate(`{ const box = document.getElementById("${id}"); box.value = ${JSON.stringify(value)}; box.dispatchEvent(new Event("input")); }`);
  await until("document.body.dataset.ready");
  assert.equal(await text("verdict"), "1 section, 2 records");
  assert.equal(await evaluate("shown.rows.length"), 10);
  if (pictures) {
    await evaluate("point({ row: 9, field: 3 })");
    await picture(join(pictures, "playground.png"));
  }

  // An error is shown with its place, and the trace remains.
  const format = await evaluate("document.getElementById('dtd').value");
  await type("dtd", format.replace("job.width", "jib.width"));
  await until("document.querySelectorAll('#diagnostics li').length > 0");
  assert.match(await text("verdict"), /mistake/);
  assert.equal(await evaluate("[...document.querySelectorAll('#marks mark')].some(mark => mark.textContent.startsWith('jib'))"), true);
  await until("!document.getElementById('line-error').hidden");
  assert.equal(await evaluate("shown.rows.length"), 10);
  await evaluate("[...document.querySelectorAll('#diagnostics button')].find(button => button.textContent.includes('jib')).click()");
  assert.equal(await evaluate("document.getElementById('dtd').value.slice(document.getElementById('dtd').selectionStart).startsWith('jib')"), true);
  await type("dtd", format);
  await until("document.getElementById('line-error').hidden && document.querySelectorAll('#diagnostics li').length === 0");

  // Another line adds a record.
  const records = await evaluate("document.getElementById('lines').value");
  await type("lines", `${records.trimEnd()}\n{"@section":"queue","@record":"done","time":8589960001,"job":4,"status":1}`);
  await until("shown.rows.length === 11");
  await type("lines", `${records}nonsense`);
  await until("document.getElementById('line-error').textContent.startsWith('line 9: ')");
  await type("lines", records);
  await until("shown.rows.length === 10 && document.getElementById('line-error').hidden");

  // A field selects its bytes, and a byte selects its field.
  await evaluate("document.getElementById('records').scrollIntoView()");
  const middle = selector => evaluate(`(() => { const { left, top, width, height } = document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect(); return [left + width / 2, top + height / 2]; })()`);
  await move(...(await middle("#records [data-row='9'][data-field='3']")));
  await until("shown.at?.row === 9");
  assert.equal(await evaluate("[...document.querySelectorAll('#bytes .on')].map(byte => byte.textContent).join(' ')"), "2c 01");
  assert.match(await text("details"), /width2, set by metadata record 8/);
  assert.equal(await evaluate("document.querySelectorAll('#records .setter').length > 0"), true);
  await move(...(await middle("#bytes [data-row='0'][data-field='1']")));
  await until("shown.at?.row === 0");
  assert.equal(await text("field-0-1"), "time 1000");
  assert.equal(await evaluate("document.getElementById('field-0-1').classList.contains('on')"), true);
  await evaluate("point({ row: 9, field: 3 }); document.querySelector('#details button').click()");
  await until("shown.at?.row === 8");

  // Keyboard navigation.
  await evaluate("document.getElementById('records').focus()");
  await key("Escape");
  assert.equal(await evaluate("shown.at"), null);
  for (const [pressed, row, field] of [["ArrowRight", 0, 0], ["ArrowRight", 0, 1], ["ArrowDown", 1, 1], ["ArrowLeft", 1, 0], ["ArrowLeft", 0, 4], ["ArrowUp", 0, 4]]) {
    await key(pressed);
    assert.deepEqual(JSON.parse(await evaluate("JSON.stringify(shown.at)")), { row, field }, pressed);
  }

  // A shared address restores the contents.
  await type("lines", records.split("\n").slice(0, 2).join("\n"));
  await until("shown.rows.length === 2");
  await evaluate("share()");
  const fragment = await evaluate("location.hash");
  assert.match(fragment, /^#v1:/);
  await type("lines", records);
  await until("shown.rows.length === 10");
  await evaluate(`location.hash = ""; location.hash = ${JSON.stringify(fragment)};`);
  await until("shown.rows.length === 2");
  await evaluate("location.hash = '#v1:nonsense'");
  await until("document.getElementById('failed').textContent.startsWith('the address is damaged')");

  // Measure the time per keystroke in a long format.
  await evaluate("sample('mps.dtd')");
  await until("document.getElementById('dtd').value.length > 20000 && document.getElementById('verdict').textContent.includes('records')");
  const took = await evaluate("(async () => { const all = []; for (let n = 0; n < 20; n++) { const begin = performance.now(); await check(); all.push(performance.now() - begin); } return all.sort((a, b) => a - b)[10]; })()");
  await evaluate("sample('heap.dtd')");
  await until("document.getElementById('dtd').value.includes('malloc')");
  const short = await evaluate("(async () => { const all = []; for (let n = 0; n < 20; n++) { const begin = performance.now(); await check(); all.push(performance.now() - begin); } return all.sort((a, b) => a - b)[10]; })()");
  console.log(`ready after ${await evaluate("document.body.dataset.ready")} ms; a key in heap.dtd is checked in ${short.toFixed(1)} ms, in mps.dtd in ${took.toFixed(1)} ms`);

  // The values of all golden files are the same as those of the command.
  let compared = 0;
  for (const name of readdirSync(golden).filter(name => !/\.(dtd|jsonl|md)$|^SUMS$/.test(name))) {
    const file = join(golden, name), needs = name.startsWith("every.no-dtd") || name.startsWith("every.version-0");
    if (needs) continue;
    const { all, error, failed } = await lines(tab, name, file), expected = dumped(file).lines;
    assert.equal(error + failed, "", name);
    assert.equal(all.length, expected.length, name);
    all.forEach(([json, more], index) => assert.equal(json, more ? expected[index].slice(0, json.length) : expected[index], `${name}: ${index}`));
    compared += all.length;
  }
  assert.ok(compared > 10000, `${compared}`);
  console.log(`${compared} lines are those of metatfc dump`);

  // After damage, the rows are those that the command salvages, and losses have the same descriptions.
  const folder = mkdtempSync(join(tmpdir(), "damaged-"));
  try {
    const whole = readFileSync(join(golden, "every.groups-64-little.mtf")), torn = Buffer.from(whole);
    torn[whole.length >> 1] ^= 0xff;
    for (const [name, bytes] of [["torn.mtf", torn], ["cut.mtf", whole.subarray(0, whole.length >> 1)]]) {
      const file = join(folder, name);
      writeFileSync(file, bytes);
      const { all, error, failed } = await lines(tab, name, file), expected = dumped(file, "--salvage");
      assert.equal(failed, "", name);
      assert.match(error, new RegExp(`^${name} is corrupt: `));
      assert.deepEqual(all.filter(([, , lost]) => !lost).map(([json]) => json), expected.lines, name);
      const losses = all.map(([, , lost]) => lost).filter(lost => lost);
      assert.ok(losses.length, name);
      for (const lost of losses) assert.ok(expected.said.includes(lost), `${lost} is not in ${expected.said}`);
      await evaluate(`goTo(${Math.max(0, all.findIndex(([, , lost]) => lost) - 5)})`);
      await until("document.querySelectorAll('#records .row.lost').length > 0 && document.getElementById('trace-error').textContent.includes('is corrupt')");
      if (pictures && name === "torn.mtf") await picture(join(pictures, "playground-damaged.png"));
    }
  } finally {
    rmSync(folder, { recursive: true });
  }

  // A heap trace in any format has a page.
  for (const name of readdirSync(heaps)) {
    await evaluate(`(async () => open(${JSON.stringify(name)}, Uint8Array.from(atob("${readFileSync(join(heaps, name)).toString("base64")}"), letter => letter.charCodeAt(0))))()`);
    assert.equal(await text("failed"), "", name);
    await until("document.querySelectorAll('#views button').length === 2");
    await evaluate("view('heap')");
    assert.equal(await evaluate("document.getElementById('report').srcdoc.includes('PEAK')"), true, `${name}: ${await text("trace-error")}`);
    if (pictures && name.endsWith("raw64.zst")) {
      await new Promise(done => setTimeout(done, 1500));
      await picture(join(pictures, "playground-raw64.png"));
    }
  }
  await evaluate("sample('heap.gawk.mtf')");
  await until("document.querySelectorAll('#views button').length === 2");
  await evaluate("document.querySelector('[data-view=heap]').click()");
  await until("document.getElementById('report').srcdoc.includes('PEAK')");
  if (pictures) {
    await new Promise(done => setTimeout(done, 1500));
    await picture(join(pictures, "playground-heap.png"));
  }
  await evaluate("document.querySelector('[data-view=records]').click()");
  await evaluate("document.querySelector('#edit button').click()");
  await until("!document.getElementById('typed').hidden && shown.rows.length > 0 && document.getElementById('line-error').hidden");

  // Files that are not traces are reported; long requests can be stopped, and the page continues to work.
  await evaluate("open('hello.txt', new TextEncoder().encode('hello'))");
  await until("document.getElementById('failed').textContent.startsWith('hello.txt: unknown trace format')");
  await evaluate("module.stop('stopped')");
  await evaluate("sample('jobs')");
  await until("shown.rows.length === 10");
  assert.deepEqual(problems, []);
  return true;
});
if (!ran) console.log("no browser");
