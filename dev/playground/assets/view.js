// The page: the editors, the open file, and the requests to the module.
"use strict";
/// The open file, or null if the trace is encoded from the lines.
let file = null;
/// The current trace, for saving.
let trace = null;
let changes = 0, wait = 0;

const options = () => ({ big: $("big").checked, version_0: $("version-0").checked, lz4: $("lz4").checked });
const fail = (id, error) => {
  $(id).textContent = error ? error.message : "";
  $(id).hidden = !error;
};
const counted = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;

/// Checks the format after each keystroke.
async function check() {
  const text = $("dtd").value, change = ++changes, begin = performance.now();
  const { answer } = await module.ask({ ask: "check", text });
  if (change !== changes) return answer;
  const { diagnostics, errors, sections, records } = answer;
  $("verdict").textContent = errors ? counted(errors, "mistake") : `${counted(sections, "section")}, ${counted(records, "record")}${diagnostics.length ? `, ${counted(diagnostics.length, "warning")}` : ""}`;
  $("dtd").setAttribute("aria-invalid", errors > 0);
  showMarks(text, diagnostics);
  $("diagnostics").replaceChildren(...diagnostics.map(diagnostic => {
    const link = make("button", { className: "link", textContent: `line ${diagnostic.line}: ${diagnostic.message}` });
    link.onclick = () => {
      $("dtd").focus();
      $("dtd").setSelectionRange(diagnostic.from, diagnostic.to);
    };
    return make("li", { className: diagnostic.error ? "bad" : "" }, link, make("pre", { textContent: diagnostic.shown }));
  }));
  document.body.dataset.checked = (performance.now() - begin).toFixed(2);
  return answer;
}

/// Underlines the places of the diagnostics.
function showMarks(text, diagnostics) {
  const parts = [];
  let at = 0;
  for (const { from, to, error } of [...diagnostics].sort((a, b) => a.from - b.from)) {
    if (from < at) continue;
    // An empty range is extended to one character.
    const end = Math.max(to, Math.min(from + 1, text.length));
    parts.push(text.slice(at, from), make("mark", { className: error ? "" : "warning", textContent: text.slice(from, end) }));
    at = end;
  }
  $("marks").replaceChildren(...parts, `${text.slice(at)}\n`);
  placeMarks();
}

function placeMarks() {
  [$("marks").scrollTop, $("marks").scrollLeft] = [$("dtd").scrollTop, $("dtd").scrollLeft];
}

/// Encodes the trace or reads the file again after the format or the lines have changed.
async function renew() {
  if (file) return file.own ? open(file.name, file.bytes) : undefined;
  const change = changes;
  fail("line-error");
  try {
    const request = { ask: "encode", text: $("dtd").value, options: options() };
    const { answer, bytes } = await module.ask(request, new TextEncoder().encode($("lines").value));
    if (change !== changes || file) return;
    trace = { name: "page.mtf", bytes };
    await show(answer);
  } catch (error) {
    fail("line-error", error.stopped ? null : error);
  }
}

function changed() {
  check().catch(error => fail("failed", error));
  clearTimeout(wait);
  wait = setTimeout(renew, 150);
}

/// Opens a file that was dropped or chosen.
async function open(name, bytes) {
  fail("failed");
  try {
    const { answer, bytes: made } = await module.ask({ ask: "open", name, text: $("dtd").value }, bytes);
    const own = answer.dtd_from === "page";
    file = { name, bytes, own };
    trace = made.length ? { name: `${name}.mtf`, bytes: made } : { name, bytes };
    $("about").textContent = answer.form ? `${name} is a heap trace in the format ${answer.form}, shown as converted by hatf convert.` : own ? `${name} does not embed a DTD: it is read with the one below.` : answer.dtd_from === "embedded" ? `${name} is read with its embedded DTD.` : `${name} is read with the built-in ${answer.dtd_from["built-in"]}.`;
    if (!own) {
      $("dtd").value = answer.dtd;
      $("dtd").scrollTop = 0;
    }
    $("dtd").readOnly = !own;
    showMode();
    check();
    await show(answer);
  } catch (error) {
    if (!error.stopped) fail("failed", error);
  }
}

/// Shows the controls that belong to a file or to lines.
function showMode() {
  $("typed").hidden = !!file;
  $("edit").hidden = $("about").hidden = !file;
  $("layout").disabled = $("dtd").readOnly;
}

/// Fills the editors with a format and lines.
async function write({ dtd, lines, options: { big = false, version_0 = false, lz4 = false } = {} }) {
  file = null;
  fail("failed");
  $("dtd").readOnly = false;
  [$("dtd").value, $("lines").value] = [dtd, lines];
  [$("big").checked, $("version-0").checked, $("lz4").checked] = [big, version_0, lz4];
  showMode();
  await check();
  await renew();
}

/// Shows a trace from the beginning.
async function show(opened) {
  shown.opened = opened;
  $("report").srcdoc = "";
  const { bytes, trace: header, version, bits, order, records } = opened;
  $("what").textContent = `${bytes.toLocaleString("en")} bytes, ${header ? `version ${version}, ${bits} bit, ` : ""}${order} endian${records ? `, ${counted(records.toLocaleString("en"), "record")}` : ""}`;
  $("save").disabled = false;
  showViews();
  await goTo(0);
}

/// Shows the rows starting at an index.
async function goTo(from) {
  try {
    const { answer } = await module.ask({ ask: "rows", from, count: PAGE });
    // Damage was found, and the first lost row is before these rows.
    if (answer.first_lost < from) return goTo(Math.max(0, answer.first_lost - 5));
    Object.assign(shown, { rows: answer.rows, from, end: answer.end, damage: answer.damage });
    fail("trace-error", shown.damage && { message: shown.damage });
  } catch (error) {
    Object.assign(shown, { rows: [], from: 0, end: true });
    fail("trace-error", error);
  }
  showRows();
}

const VIEWS = { records: "Records and bytes", heap: "The heap" };

/// Shows the buttons for the records and the heap page.
function showViews() {
  const names = shown.opened.heap ? ["records", "heap"] : [];
  $("views").hidden = !names.length;
  $("views").replaceChildren(...names.map(name => {
    const button = make("button", { textContent: VIEWS[name], onclick: () => view(name) });
    button.setAttribute("role", "radio");
    button.dataset.view = name;
    return button;
  }));
  view("records");
}

async function view(name) {
  for (const button of $("views").children) button.setAttribute("aria-checked", button.dataset.view === name);
  const isRecords = name === "records";
  for (const id of ["both", "paging"]) $(id).hidden = !isRecords;
  $("report").hidden = isRecords;
  if (isRecords) return fail("trace-error", shown.damage && { message: shown.damage });
  try {
    // The page is built once per file.
    if (!$("report").srcdoc) {
      const { answer, bytes } = await module.ask({ ask: "heap" });
      shown.heapDamage = answer.damage;
      $("report").srcdoc = new TextDecoder().decode(bytes);
    }
    fail("trace-error", shown.heapDamage && { message: shown.heapDamage });
  } catch (error) {
    fail("trace-error", error);
  }
}

async function openFile(chosen) {
  if (chosen.size > 1 << 29) return fail("failed", new Error(`${chosen.name} is larger than 512 MiB, which is too large for the playground: use metatfc`));
  await open(chosen.name, new Uint8Array(await chosen.arrayBuffer()));
}

async function sample(name) {
  const { answer, bytes } = await module.ask({ ask: "sample", name });
  if (bytes.length) return open(name, bytes);
  return write({ dtd: answer.dtd, lines: answer.lines ?? "" });
}

async function share() {
  const fragment = await toFragment({ dtd: $("dtd").value, lines: file ? "" : $("lines").value, options: options() });
  if (!fragment) return fail("failed", new Error("the format and its records are too long for an address; save the trace and send the file instead"));
  history.replaceState(null, "", fragment);
  const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
  $("status").textContent = `the page's address now contains the format${file ? "" : " and the records"}${copied ? " and has been copied" : ""}`;
}

function save() {
  const url = URL.createObjectURL(new Blob([trace.bytes])), link = make("a", { href: url, download: trace.name });
  link.click();
  URL.revokeObjectURL(url);
}

async function listSamples() {
  const { answer } = await module.ask({ ask: "samples" });
  const groups = { "Formats with records": answer.formats, Files: answer.files, "Built-in DTDs": answer.dtds };
  for (const [label, list] of Object.entries(groups)) {
    $("samples").append(make("optgroup", { label }, ...list.map(([name, about]) => make("option", { value: name, textContent: about ? `${name}: ${about}` : name }))));
  }
}

async function begin() {
  try {
    await module.start();
    await listSamples();
    const shared = await fromFragment(location.hash).catch(error => fail("failed", new Error(`the address is damaged: ${error.message}`)));
    await (shared ? write(shared) : sample("jobs"));
    $("status").textContent = "";
    document.body.dataset.ready = performance.now().toFixed(0);
  } catch (error) {
    fail("failed", new Error(`The playground cannot start: ${error.message}`));
  }
}

module.busy = on => ($("stop").hidden = !on);
// The restarted module has no open file.
module.restarted = () => {
  shown.rows = [];
  shown.end = true;
  showRows();
  $("what").textContent = "";
};
$("stop").onclick = () => {
  module.stop("stopped").catch(error => fail("failed", error));
  fail("trace-error", new Error("stopped; change the text or open the file again"));
};
$("dtd").oninput = changed;
$("dtd").onscroll = placeMarks;
new ResizeObserver(placeMarks).observe($("dtd"));
for (const id of ["lines", "big", "version-0", "lz4"]) {
  $(id).oninput = () => {
    changes++;
    clearTimeout(wait);
    wait = setTimeout(renew, 150);
  };
}
$("layout").onclick = async () => {
  try {
    const { answer } = await module.ask({ ask: "format", text: $("dtd").value });
    $("dtd").value = answer.text;
    changed();
  } catch (error) {
    fail("failed", error);
  }
};
$("samples").onchange = () => {
  const name = $("samples").value;
  if (name) sample(name).catch(error => fail("failed", error));
  $("samples").value = "";
};
$("file").onchange = () => $("file").files[0] && openFile($("file").files[0]);
$("share").onclick = share;
$("save").onclick = save;
$("edit").firstElementChild.onclick = () => write({ dtd: $("dtd").value, lines: shown.rows.map(row => row.json).join("\n"), options: { big: shown.opened.order === "big" } });
$("earlier").onclick = () => goTo(Math.max(0, shown.from - PAGE));
$("later").onclick = () => goTo(shown.from + shown.rows.length);
$("from").onchange = () => goTo(Math.max(0, Math.floor(Number($("from").value)) || 0));
let over = 0;
addEventListener("dragenter", () => ($("drop").hidden = !++over));
addEventListener("dragleave", () => ($("drop").hidden = !--over));
addEventListener("dragover", event => event.preventDefault());
addEventListener("drop", event => {
  event.preventDefault();
  over = 0;
  $("drop").hidden = true;
  const dropped = event.dataTransfer.files[0];
  if (dropped) openFile(dropped);
});
addEventListener("hashchange", async () => {
  const shared = await fromFragment(location.hash).catch(error => fail("failed", new Error(`the address is damaged: ${error.message}`)));
  if (shared) await write(shared);
});
begin();
