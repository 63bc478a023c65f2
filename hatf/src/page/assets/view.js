"use strict";
// What is chosen stands in `state`; `show` draws all that it changes: by chart.js, icicle.js and tables.js.

const $ = id => document.getElementById(id);
const ROW = 18, TOP = 5, ROWS = 100, CURVES = 20;
const PALETTE = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00"];
const NAMES = {
  live: ["Live", "live at the end of the range"],
  kept: ["Kept", "allocated in the range, and still live at its end"],
  change: ["Change", "live at the end of the range, less what was live before it, or at the mark"],
  allocated: ["Allocated", "allocated in the range, whether or not it was freed"],
  leaked: ["Leaked", "allocated in the range, and never freed"],
  temporary: ["Temporary", "freed by the event behind the allocation, in the whole trace"],
  short: ["Short", "freed within 1 ms and 64 KiB of allocations, in the whole trace: hatf churn says what could take their place"],
};

const state = { measure: "live", from: 0, to: 0, peak: true, mark: null, unit: "bytes", inverted: false, find: "", root: 0, sort: "itself" };
let heap, live, picture, boxes = [];

const counted = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

function bytesText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0, size = Math.abs(bytes);
  while (size >= 1024 && unit < units.length - 1) [size, unit] = [size / 1024, unit + 1];
  return `${bytes < 0 ? "-" : ""}${unit === 0 ? size : size.toPrecision(size < 1000 ? 3 : 4)} ${units[unit]}`;
}

function timeText(time) {
  if (!heap.words.duration) return `event ${counted.format(time)}`;
  const units = [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]];
  const [unit, size] = units.findLast(([, size]) => time >= size) ?? units[0];
  return `${Number((time / size).toPrecision(4))} ${unit}`;
}

const amountText = value => state.unit === "bytes" ? bytesText(value) : counted.format(value);
const partText = (part, all) => all === 0 ? "-" : `${(100 * part / all).toFixed(1)}%`;
const nameOf = fn => fn < 0 ? "stack not known" : heap.words.functions[fn][0];
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Where a moment begins and ends on the axis.
const endOf = moment => moment < 0 ? 0 : heap.words.duration ? heap.moments[moment].time : heap.moments[moment].tick;
const axisEnd = () => Math.max(1, endOf(heap.moments.length - 1), heap.words.duration);

function momentAt(place) {
  const moment = heap.moments.findIndex((_, moment) => endOf(moment) >= place);
  return moment < 0 ? heap.moments.length - 1 : moment;
}

// Sets what is chosen, and draws it.
function choose(change) {
  Object.assign(state, change);
  if ("from" in change || "to" in change) state.peak = change.peak ?? false;
  show();
}

function wholeTrace() {
  choose({ from: 0, to: heap.moments.length - 1, measure: state.measure === "kept" ? "live" : state.measure });
}

function atPeak() {
  choose({ from: 0, to: momentAt(heap.words.peak_time), peak: true, measure: "live" });
}

function range(from, to) {
  const measure = state.measure === "live" ? "kept" : state.measure;
  choose({ from: Math.min(from, to), to: Math.max(from, to), measure });
}

function show() {
  const own = ownSums(heap, state), inclusive = inclusiveSums(heap, own);
  picture = calls(heap, own[state.unit], state.inverted);
  if (!(state.root < picture.parent.length && picture.width[state.root] > 0)) state.root = 0;
  drawChart();
  drawIcicle();
  fillTable(functionSums(heap, own, inclusive), inclusive);
  fillText(inclusive);
}

function fillText(inclusive) {
  const { moments } = heap, { from, to, peak, mark } = state;
  const whole = from === 0 && to === moments.length - 1;
  const start = timeText(endOf(from - 1)), end = timeText(endOf(to));
  $("chosen").textContent = peak ? `the peak, at ${timeText(heap.words.peak_time)}` : from > 0 ? `${start} to ${end}` : whole ? "the whole trace" : `up to ${end}`;
  if (mark !== null) $("chosen").textContent += `, mark at ${timeText(endOf(mark))}`;
  $("about").textContent = `${bytesText(inclusive.bytes[0])} in ${counted.format(inclusive.blocks[0])} blocks: ${NAMES[state.measure][1]}`;
  if (peak && state.measure === "live") $("about").textContent = `${bytesText(inclusive.bytes[0])} in ${counted.format(inclusive.blocks[0])} blocks: live at the peak`;
  for (const button of $("measures").children) {
    button.setAttribute("aria-checked", String(button.dataset.measure === state.measure));
  }
  $("out").hidden = state.root === 0;
  $("inverted").checked = state.inverted;
  const { parts, nodes, all_nodes, stacks } = heap.words;
  $("cut").textContent = nodes < all_nodes ? `${counted.format(nodes)} of ${counted.format(all_nodes)} calls of ${counted.format(stacks)} stacks are shown: one that never has a part in ${counted.format(parts)} counts as its caller's.` : "";
}

// Sizes a canvas to the screen's dots, and returns what draws on it.
function surface(canvas, height) {
  const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth || 600;
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.font = "12px system-ui, sans-serif";
  return { context, width, height };
}

function find(text) {
  state.find = $("find").value = text;
  show();
}

function link(text, act) {
  const button = document.createElement("button");
  button.className = "link";
  button.textContent = text;
  button.onclick = () => {
    act();
    $("code-title").scrollIntoView({ block: "nearest" });
  };
  return button;
}

function follow({ measure, at }) {
  const last = heap.moments.length - 1;
  state.measure = measure;
  if (at === "peak") atPeak();
  else choose({ from: 0, to: last, measure });
}

const QUESTIONS = [
  ["Who has the memory at the peak?", () => atPeak()],
  ["What is never freed?", () => follow({ measure: "leaked", at: "end" })],
  ["What grew in the second half?", () => choose({ from: Math.floor(heap.moments.length / 2), to: heap.moments.length - 1, measure: "change", mark: null })],
  ["What allocates most?", () => follow({ measure: "allocated", at: "" })],
  ["What is freed at once?", () => { state.unit = $("unit").value = "blocks"; follow({ measure: "temporary", at: "" }); }],
];

// The chart is chosen in by pointer and by keys.
function bindChart() {
  const chart = $("chart");
  let start = null;
  const moment = event => {
    const bounds = chart.getBoundingClientRect(), [left, right] = [64, bounds.width - 8];
    return momentAt(axisEnd() * Math.min(1, Math.max(0, (event.clientX - bounds.left - left) / (right - left))));
  };
  chart.onpointerdown = event => {
    chart.setPointerCapture(event.pointerId);
    start = { moment: moment(event), x: event.clientX };
    choose({ from: 0, to: start.moment, measure: state.measure === "kept" ? "live" : state.measure });
  };
  chart.onpointermove = event => {
    if (start && Math.abs(event.clientX - start.x) > 3) range(start.moment, moment(event));
  };
  chart.onpointerup = () => start = null;
  chart.onkeydown = event => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: 20, PageDown: -20 }[event.key];
    if (!step) return;
    event.preventDefault();
    const to = Math.min(heap.moments.length - 1, Math.max(0, state.to + step));
    if (event.shiftKey) range(state.from > 0 ? state.from : state.to, to);
    else choose({ from: 0, to, measure: state.measure === "kept" ? "live" : state.measure });
  };
}

function bind() {
  for (const [measure, [name, about]] of Object.entries(NAMES)) {
    if (heap.words.sizes_only && measure !== "allocated") continue;
    if (heap.words.sampling && ["temporary", "short"].includes(measure)) continue;
    const button = Object.assign(document.createElement("button"), { textContent: name, title: about });
    button.dataset.measure = measure;
    button.setAttribute("role", "radio");
    button.onclick = () => choose({ measure, peak: false });
    $("measures").append(button);
  }
  $("functions").tHead.append(document.createElement("tr"));
  for (const [sort, name] of COLUMNS) {
    const head = document.createElement("th"), button = document.createElement("button");
    button.textContent = name;
    button.dataset.sort = sort;
    if (sort) button.onclick = () => choose({ sort });
    if (sort && sort !== "name") head.className = "n";
    head.append(sort ? button : name);
    $("functions").tHead.rows[0].append(head);
  }
  const acts = {
    peak: atPeak,
    end: () => choose({ from: 0, to: heap.moments.length - 1, measure: "live" }),
    all: wholeTrace,
    mark: () => choose({ mark: state.mark === state.to ? null : state.to, peak: state.peak }),
    out: () => choose({ root: 0 }),
  };
  for (const [id, act] of Object.entries(acts)) $(id).onclick = act;
  $("unit").onchange = () => choose({ unit: $("unit").value });
  $("inverted").onchange = () => choose({ inverted: $("inverted").checked, root: 0 });
  $("find").oninput = () => find($("find").value);
  $("icicle").onclick = event => choose({ root: boxAt(event)?.node ?? 0 });
  $("icicle").onpointermove = point;
  $("frame").onscroll = drawIcicle;
  bindChart();
  document.addEventListener("keydown", event => {
    if (event.target.matches?.("input, select") || event.ctrlKey || event.metaKey || event.altKey) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const keys = { p: acts.peak, e: acts.end, a: acts.all, m: acts.mark, i: () => choose({ inverted: !state.inverted, root: 0 }), Escape: acts.out };
    if (event.key === "/") {
      event.preventDefault();
      $("find").focus();
    } else keys[event.key]?.();
  });
  window.addEventListener("resize", show);
  matchMedia("(prefers-color-scheme:dark)").addEventListener("change", show);
}

// Live bytes by function, and the functions that have the most over all moments.
function liveRows() {
  const rows = liveByFunction(heap), total = new Float64Array(heap.moments.length);
  const weight = rows.map(row => row.reduce((sum, bytes, moment) => sum + bytes * (endOf(moment) - endOf(moment - 1) + 1), 0));
  rows.forEach(row => row.forEach((bytes, moment) => total[moment] += bytes));
  const largest = rows.map((_, fn) => fn).filter(fn => weight[fn] > 0).sort((a, b) => weight[b] - weight[a]).slice(0, TOP);
  return { rows, total, largest };
}

async function start() {
  const letters = atob($("payload").textContent.trim()), bytes = Uint8Array.from(letters, letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  heap = readHeap(new Uint8Array(await new Response(stream).arrayBuffer()));
  if (heap.moments.length === 0) return;
  live = liveRows();
  $("heap").hidden = false;
  $("sentences").append(...heap.words.sentences.map(sentence => {
    const item = document.createElement("li");
    item.append(link(sentence.text, () => follow(sentence)));
    return item;
  }));
  if (!heap.words.sizes_only) $("questions").append(...QUESTIONS.map(([text, act]) => link(text, act)));
  bind();
  fillLegend();
  fillHeat();
  if (heap.words.sizes_only) follow({ measure: "allocated", at: "" });
  else atPeak();
}

start().catch(error => {
  $("failed").hidden = false;
  $("failed").textContent = `The pictures cannot be drawn: ${error.message}`;
});
