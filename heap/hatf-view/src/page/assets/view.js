"use strict";
// The selection is in `state`; `show` redraws everything that depends on it, using chart.js, icicle.js and tables.js.

const $ = id => document.getElementById(id);
const ROW = 18, TOP = 5, ROWS = 100, CURVES = 20;
const PALETTE = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00"];
const NAMES = {
  live: ["Live", "live at the end of the range"],
  kept: ["Kept", "allocated in the range, and still live at its end"],
  change: ["Change", "live at the end of the range, minus bytes live before it or at the mark"],
  allocated: ["Allocated", "allocated in the range, whether or not it was freed"],
  leaked: ["Live at the end", "allocated in the range, and live at the end of the trace"],
  temporary: ["Temporary", "freed by the event after the allocation, in the whole trace"],
  short: ["Short", "freed within 1 ms and 64 KiB of allocations, in the whole trace; hatf churn suggests replacements"],
  copied: ["Copied", "copied by realloc to a new address, in the whole trace"],
  slack: ["Slack", "bytes beyond the requested size, for all blocks in the trace"],
  pinned: ["Pinned", "wasted on pinned pages, by the blocks that keep them"],
};
// Measures that are not in the payload are known if this one is.
const KNOWN_BY = { live: "peak", kept: "peak", change: "peak" };

// `at` is the selected range of each trace. With two traces, all amounts shown are those of the second minus those of the first.
const state = { measure: "live", at: [], grid: 0, row: null, column: null, mark: null, unit: "bytes", inverted: false, find: "", root: 0, sort: "itself" };
let heap, live, picture, charts = [], boxes = [];

const counted = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

function timeText(side, time) {
  if (!side.words.duration) return `event ${counted.format(time)}`;
  const units = [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]];
  const [unit, size] = units.findLast(([, size]) => time >= size) ?? units[0];
  return `${Number((time / size).toPrecision(4))} ${unit}`;
}

const two = () => heap.sides.length > 1;
// Whether the amounts shown have a sign.
const isChange = () => two() || state.measure === "change";
const amountText = value => state.unit === "bytes" ? bytesText(value) : counted.format(value);
const signed = (value, text) => isChange() && value > 0 ? `+${text}` : text;
const valueText = value => signed(value, amountText(value));
const countText = blocks => signed(blocks, counted.format(blocks));
const nameOf = fn => fn < 0 ? heap.words.others : heap.words.functions[fn][0];
const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Returns the end of a point in time on the axis. Two traces with times share an axis.
const endOf = ({ words, moments }, moment) => moment < 0 ? 0 : words.duration ? moments[moment].time : moments[moment].tick;
const lastOf = side => side.moments.length - 1;
const ownEnd = side => Math.max(1, endOf(side, lastOf(side)), side.words.duration);
const axisEnd = side => heap.sides.every(side => side.words.duration) ? Math.max(...heap.sides.map(ownEnd)) : ownEnd(side);

function momentAt(side, place) {
  const moment = side.moments.findIndex((_, moment) => endOf(side, moment) >= place);
  return moment < 0 ? lastOf(side) : moment;
}

// Sets the selection and draws it.
function choose(change) {
  Object.assign(state, change);
  show();
}

// Sets the range of each trace.
function chooseAt(at, change = {}) {
  choose({ at: heap.sides.map((side, number) => ({ peak: false, ...at(side, number) })), ...change });
}

const whole = side => ({ from: 0, to: lastOf(side) });
const unlessKept = () => ["kept", "grid"].includes(state.measure) ? "live" : state.measure;
// Returns the table of pages at the time with the most wasted bytes.
const pagesGrid = () => two() ? -1 : heap.sides[0].grids.findIndex(grid => grid.kind === "pages" && grid.name.includes("most bytes wasted"));
const isPinned = () => state.measure === "grid" && heap.sides[0].grids[state.grid].kind === "pages" && state.row === 0 && state.column === null;
const showPinned = () => chooseAt(whole, { measure: "grid", grid: pagesGrid(), row: 0, column: null });

function atPeak() {
  chooseAt(side => ({ from: 0, to: momentAt(side, side.words.duration ? side.words.peak_time : peakTick(side)), peak: true }), { measure: "live" });
}

// Returns the event of the peak in a trace without times.
function peakTick({ moments }) {
  const most = moments.reduce((most, moment) => moment.highest > most.highest ? moment : most, moments[0] ?? { highest: 0, tick: 0 });
  return most.tick;
}

// Sets the range of one trace.
function chooseOf(number, from, to, measure) {
  chooseAt((_, other) => other === number ? { from, to } : state.at[other], { measure });
}

function range(number, from, to) {
  chooseOf(number, Math.min(from, to), Math.max(from, to), ["live", "grid"].includes(state.measure) ? "kept" : state.measure);
}

function show() {
  const owns = heap.sides.map((side, number) => ownSums(side, { ...state, ...state.at[number] }));
  const inclusives = owns.map(own => inclusiveSums(heap, own));
  const own = two() ? difference(...owns) : owns[0], inclusive = two() ? difference(...inclusives) : inclusives[0];
  picture = calls(heap, own[state.unit], state.inverted);
  if (!(state.root < picture.parent.length && picture.width[state.root] > 0)) state.root = 0;
  drawCharts();
  drawIcicle();
  const sides = owns.map((own, number) => functionSums(heap, own, inclusives[number]));
  fillTable(two() ? { itself: difference(...sides.map(side => side.itself)), total: difference(...sides.map(side => side.total)) } : sides[0], sides, inclusive);
  fillText(inclusive, inclusives);
}

// Describes the selection in a trace.
function rangeText(number) {
  const side = heap.sides[number], { from, to, peak } = state.at[number];
  const start = timeText(side, endOf(side, from - 1)), end = timeText(side, endOf(side, to));
  if (peak) return `the peak, at ${side.words.duration ? timeText(side, side.words.peak_time) : end}`;
  return from > 0 ? `${start} to ${end}` : to === lastOf(side) ? "the whole trace" : `up to ${end}`;
}

function fillText(inclusive, inclusives) {
  const texts = heap.sides.map((_, number) => rangeText(number)), same = texts.every(text => text === texts[0]);
  $("chosen").textContent = same ? texts[0] : `before: ${texts[0]}; after: ${texts[1]}`;
  if (state.mark !== null) $("chosen").textContent += `, mark at ${timeText(heap.sides[0], endOf(heap.sides[0], state.mark))}`;
  const of = sum => `${bytesText(sum.bytes[0])} in ${counted.format(sum.blocks[0])} blocks`;
  const sum = two() ? `${signed(inclusive.bytes[0], bytesText(inclusive.bytes[0]))}, from ${of(inclusives[0])} to ${of(inclusives[1])}` : of(inclusive);
  const peak = state.measure === "live" && state.at.every(at => at.peak);
  $("about").textContent = `${sum}: ${peak ? "live at the peak" : state.measure === "grid" ? cellText() : NAMES[state.measure][1]}`;
  const shown = isPinned() ? "pinned" : state.measure;
  for (const button of $("measures").children) {
    button.setAttribute("aria-checked", String(button.dataset.measure === shown));
  }
  const pressed = state.measure === "grid" ? `${state.grid} ${state.row} ${state.column}` : "";
  for (const button of $("grids").querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.cell === pressed));
  $("out").hidden = state.root === 0;
  $("inverted").checked = state.inverted;
  const { shares, nodes, all_nodes, stacks } = heap.words;
  $("cut").textContent = nodes < all_nodes ? `${counted.format(nodes)} of ${counted.format(all_nodes)} calls of ${counted.format(stacks)} stacks are shown; a call that always has less than 1/${counted.format(shares)} is merged into its caller.` : "";
  if (two()) $("cut").textContent += " The width of a box is the change in it; orange means more, blue means less.";
}

// Sizes a canvas to the screen's pixels and returns its drawing context.
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
  if (at === "peak") atPeak();
  else chooseAt(whole, { measure });
}

function setUnit(unit) {
  state.unit = $("unit").value = unit;
  fillGrids();
  show();
}

function freedAtOnce() {
  setUnit("blocks");
  follow({ measure: "temporary", at: "" });
}

const QUESTIONS = [
  ["What holds memory at the peak?", () => atPeak()],
  ["What is live at the end?", () => follow({ measure: "leaked", at: "end" })],
  ["What grew in the second half?", () => chooseAt(side => ({ from: Math.floor(side.moments.length / 2), to: lastOf(side) }), { measure: "change", mark: null })],
  ["What allocates most?", () => follow({ measure: "allocated", at: "" })],
  ["What is freed immediately?", freedAtOnce],
  ["What keeps pages from being freed?", showPinned],
];
const QUESTIONS_OF_CHANGE = [
  ["What changed at the peak?", () => atPeak()],
  ["What is live at the end, more or less?", () => follow({ measure: "leaked", at: "end" })],
  ["What allocates more or less?", () => follow({ measure: "allocated", at: "" })],
  ["What changed in short-lived blocks?", freedAtOnce],
];

// Adds the chart of a trace, in which pointer and keys select a range.
function addChart(side, number) {
  const chart = document.createElement("canvas");
  chart.id = `chart-${number}`;
  chart.className = "chart";
  chart.tabIndex = 0;
  chart.setAttribute("role", "img");
  if (two()) {
    const name = document.createElement("h3");
    name.textContent = `${number ? "after" : "before"}: ${side.words.name}`;
    $("charts").append(name);
  }
  $("charts").append(chart);
  charts.push(chart);
  let start = null;
  const moment = event => {
    const bounds = chart.getBoundingClientRect(), [left, right] = [64, bounds.width - 8];
    return momentAt(side, axisEnd(side) * Math.min(1, Math.max(0, (event.clientX - bounds.left - left) / (right - left))));
  };
  chart.onpointerdown = event => {
    chart.setPointerCapture(event.pointerId);
    start = { moment: moment(event), x: event.clientX };
    chooseOf(number, 0, start.moment, unlessKept());
  };
  chart.onpointermove = event => {
    if (start && Math.abs(event.clientX - start.x) > 3) range(number, start.moment, moment(event));
  };
  chart.onpointerup = () => start = null;
  chart.onkeydown = event => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: 20, PageDown: -20 }[event.key], { from, to } = state.at[number];
    if (!step) return;
    event.preventDefault();
    const next = Math.min(lastOf(side), Math.max(0, to + step));
    if (event.shiftKey) range(number, from > 0 ? from : to, next);
    else chooseOf(number, 0, next, unlessKept());
  };
}

// Returns the marks that all traces have, with their event in each trace. If several marks share a name, the second in one trace corresponds to the second in the other.
function commonMarks() {
  const of = ({ words }) => {
    const marks = new Map(), times = new Map();
    for (const [, tick, name] of words.marks.filter(mark => mark[1] > 0)) {
      times.set(name, (times.get(name) ?? 0) + 1);
      marks.set(times.get(name) > 1 ? `${name} (${times.get(name)})` : name, tick);
    }
    return marks;
  };
  const all = heap.sides.map(of);
  return [...all[0].keys()].filter(name => all.every(marks => marks.has(name))).map(name => [name, all.map(marks => marks.get(name))]);
}

function fillMarks() {
  const marks = commonMarks(), select = $("named");
  $("named-label").hidden = marks.length === 0;
  select.append(new Option("", ""), ...marks.map(([name], number) => new Option(name, String(number))));
  select.onchange = () => {
    const ticks = marks[Number(select.value)]?.[1];
    if (select.value === "" || !ticks) return;
    chooseAt((side, number) => ({ from: 0, to: side.moments.findIndex(moment => moment.tick >= ticks[number]) }), { measure: unlessKept() });
  };
}

function bind() {
  for (const [measure, [name, about]] of Object.entries(NAMES)) {
    const isKnown = measure === "pinned" ? pagesGrid() >= 0 : heap.words.measures.includes(KNOWN_BY[measure] ?? measure);
    if (!isKnown || (two() && measure === "change")) continue;
    const button = Object.assign(document.createElement("button"), { textContent: name, title: about });
    button.dataset.measure = measure;
    button.setAttribute("role", "radio");
    button.onclick = () => measure === "pinned" ? showPinned() : chooseAt((_, number) => ({ ...state.at[number], peak: false }), { measure });
    $("measures").append(button);
  }
  $("functions").tHead.append(document.createElement("tr"));
  for (const [sort, name] of two() ? CHANGES : COLUMNS) {
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
    end: () => chooseAt(whole, { measure: "live" }),
    all: () => chooseAt(whole, { measure: unlessKept() }),
    mark: () => two() || choose({ mark: state.mark === state.at[0].to ? null : state.at[0].to }),
    out: () => choose({ root: 0 }),
  };
  for (const [id, act] of Object.entries(acts)) $(id).onclick = act;
  $("unit").onchange = () => setUnit($("unit").value);
  $("inverted").onchange = () => choose({ inverted: $("inverted").checked, root: 0 });
  $("find").oninput = () => find($("find").value);
  $("icicle").onclick = event => choose({ root: boxAt(event)?.node ?? 0 });
  $("icicle").onpointermove = point;
  $("frame").onscroll = drawIcicle;
  $("mark").hidden = $("about-mark").hidden = two();
  fillMarks();
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

// Returns the live bytes by function of each trace, and the functions with the most over all points in time.
function liveRows() {
  const weight = new Float64Array(heap.words.functions.length + 1);
  const sides = heap.sides.map(side => {
    const rows = liveByFunction(heap, side), total = new Float64Array(side.moments.length);
    rows.forEach((row, fn) => row.forEach((bytes, moment) => {
      weight[fn] += bytes * (endOf(side, moment) - endOf(side, moment - 1) + 1);
      total[moment] += bytes;
    }));
    return { rows, total };
  });
  const largest = Array.from(weight, (_, fn) => fn).filter(fn => weight[fn] > 0).sort((a, b) => weight[b] - weight[a]).slice(0, TOP);
  return { sides, largest };
}

// Decompresses a part of the page.
function unpacked(id) {
  const letters = atob($(id).textContent.trim()), bytes = Uint8Array.from(letters, letter => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
}

async function start() {
  heap = readHeap(await unpacked("words").json(), new Uint8Array(await unpacked("numbers").arrayBuffer()));
  if (heap.sides.every(side => side.moments.length === 0)) return;
  live = liveRows();
  $("heap").hidden = false;
  $("sentences").append(...heap.words.sentences.map(sentence => {
    const item = document.createElement("li");
    item.append(link(sentence.text, () => follow(sentence)));
    return item;
  }));
  const sizesOnly = !heap.words.measures.includes("peak");
  if (!sizesOnly) $("questions").append(...(two() ? QUESTIONS_OF_CHANGE : QUESTIONS).filter(([, act]) => act !== showPinned || pagesGrid() >= 0).map(([text, act]) => link(text, act)));
  state.at = heap.sides.map(whole);
  heap.sides.forEach(addChart);
  if (two()) $("charts").className = "two";
  bind();
  fillLegend();
  addGrids();
  fillThreads();
  if (sizesOnly) follow({ measure: "allocated", at: "" });
  else atPeak();
}

start().catch(error => {
  $("failed").hidden = false;
  $("failed").textContent = `Cannot draw the charts: ${error.message}`;
});
