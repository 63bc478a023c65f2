"use strict";
// The selection is in `state`; `show` redraws everything that depends on it, using chart.js, icicle.js and tables.js.

const $ = id => document.getElementById(id);
const ROW = 18, TOP = 8, LITTLE = 200, ROWS = 100, CURVES = 20;
// Colors of the largest functions, all light enough for dark text.
const PALETTE = ["#56b4e9", "#e69f00", "#35b98c", "#dd8fbb", "#ea7f4b", "#d3c52c", "#9a9fe0", "#5fc6c9"];
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

// `at` is the selected range of each trace, and `views` are the parts of the axis shown after each zoom. With two traces, all amounts shown are those of the second minus those of the first.
const state = { measure: "live", at: [], views: [], grid: 0, row: null, column: null, mark: null, unit: "bytes", inverted: false, find: "", root: 0, sort: "itself" };
let heap, live, picture, charts = [], boxes = [];

const timeText = (side, time) => side.words.duration ? nanosecondsText(time) : `event ${counted.format(time)}`;

const two = () => heap.sides.length > 1;
// Whether the amounts shown have a sign.
const isChange = () => two() || state.measure === "change";
const amountText = value => state.unit === "bytes" ? bytesText(value) : counted.format(value);
const signed = (value, text) => isChange() && value > 0 ? `+${text}` : text;
const valueText = value => signed(value, amountText(value));
const countText = blocks => signed(blocks, counted.format(blocks));
// Returns the name of a function. Names such as `<module>` occur in many files, so the file is added.
function nameOf(fn) {
  const [name, place] = heap.words.functions[fn] ?? [heap.words.others, ""];
  return place && /^<\w+>$/.test(name) ? `${name} of ${place.split("/").at(-1).replace(/:[\d,]+$/, "")}` : name;
}
// Returns the color of a function, which is the same everywhere, or null if the function only calls others.
const colourOf = fn => live.colours.get(fn < 0 ? heap.words.functions.length : fn) ?? null;
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
  choose({ at: heap.sides.map((side, number) => ({ peak: false, range: false, ...at(side, number) })), ...change });
}

// Returns whether a range is selected in a trace, rather than a point in time or the whole trace.
const isRange = number => state.at[number].range || state.at[number].from > 0;

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

// Sets the range of one trace, or a point in time.
function chooseOf(number, from, to, measure, range = false) {
  chooseAt((_, other) => other === number ? { from, to, range } : state.at[other], { measure });
}

function range(number, from, to) {
  chooseOf(number, Math.min(from, to), Math.max(from, to), ["live", "grid"].includes(state.measure) ? "kept" : state.measure, true);
}

// Enlarges the selected ranges. Traces that share an axis show the same part of it.
function zoom() {
  const ranges = heap.sides.map((side, number) => isRange(number) ? { start: endOf(side, state.at[number].from - 1), end: endOf(side, state.at[number].to) } : null), known = ranges.filter(Boolean);
  const shared = heap.sides.every(side => side.words.duration) ? { start: Math.min(...known.map(({ start }) => start)), end: Math.max(...known.map(({ end }) => end)) } : null;
  const view = ranges.map((range, number) => shared ?? range ?? viewOf(number));
  if (known.length > 0 && view.every(({ start, end }) => end > start)) choose({ views: [...state.views, view] });
}

function show() {
  fillLegend();
  const owns = heap.sides.map((side, number) => ownSums(side, { ...state, ...state.at[number] }));
  const inclusives = owns.map(own => inclusiveSums(heap, own));
  const own = two() ? difference(...owns) : owns[0], inclusive = two() ? difference(...inclusives) : inclusives[0];
  picture = calls(heap, own[state.unit], state.inverted);
  if (!(state.root < picture.parent.length && picture.width[state.root] > 0)) state.root = 0;
  drawCharts();
  drawIcicle();
  const sides = owns.map((own, number) => functionSums(heap, own, inclusives[number]));
  fillTable(two() ? { itself: difference(...sides.map(side => side.itself)), total: difference(...sides.map(side => side.total)) } : sides[0], sides, inclusive);
  fillText(inclusive, inclusives, sides[0]);
}

// Describes the selection in a trace.
function rangeText(number) {
  const side = heap.sides[number], { from, to, peak } = state.at[number];
  const end = pointText(side, to);
  if (peak) return `the peak, at ${side.words.duration ? timeText(side, side.words.peak_time) : end}`;
  return isRange(number) ? `${pointText(side, from - 1)} to ${end}` : to === lastOf(side) ? "the whole trace" : `up to ${end}`;
}

// Returns the command that prints the selection as a table, or nothing if there is none.
function commandText() {
  const side = heap.sides[0], { from, to, peak } = state.at[0], trace = quoted(side.words.name), { measure } = state;
  const by = two() || side.words.name === "-" || (measure === "grid" && !isPinned()) ? ""
    : measure === "grid" ? "--at worst"
    : ["temporary", "short", "copied", "slack"].includes(measure) ? `--by ${measure}`
    : isRange(0) ? `--live-between ${pointArgument(side, from - 1)}..${pointArgument(side, to)}`
    : peak ? "--by peak"
    : to === lastOf(side) ? `--by ${measure === "allocated" ? measure : "leaked"}`
    : measure === "live" ? `--at ${pointArgument(side, to)}` : "";
  return by && `hatf ${measure === "grid" ? "fragmentation" : "sites"} ${trace} ${by}`;
}

function copy() {
  const failed = () => getSelection().selectAllChildren($("command"));
  const copied = navigator.clipboard?.writeText($("command").textContent) ?? Promise.reject();
  copied.then(() => $("copied").textContent = "copied", failed);
}

// Describes the selected ranges, and shows the command for the selection.
function fillRange() {
  const texts = heap.sides.flatMap((side, number) => {
    const sentences = isRange(number) && !side.words.sizes_only ? rangeSentences(heap, side, live.sides[number].rows, state.at[number]) : [];
    return two() && sentences.length > 0 ? [number ? "After:" : "Before:", ...sentences] : sentences;
  });
  $("range").textContent = texts.join(" ");
  $("command").textContent = commandText();
  $("repeat").hidden = $("command").textContent === "";
  $("copied").textContent = "";
  $("zoom").disabled = !heap.sides.some((_, number) => isRange(number));
  $("back").hidden = state.views.length === 0;
}

function fillText(inclusive, inclusives, { itself }) {
  fillRange();
  const texts = heap.sides.map((_, number) => rangeText(number)), same = texts.every(text => text === texts[0]);
  $("chosen").textContent = same ? texts[0] : `before: ${texts[0]}; after: ${texts[1]}`;
  if (state.mark !== null) $("chosen").textContent += `, mark at ${timeText(heap.sides[0], endOf(heap.sides[0], state.mark))}`;
  const of = sum => `${bytesText(sum.bytes[0])} in ${blocksText(sum.blocks[0])}`, { unit } = state;
  const most = live.ranked.reduce((most, fn) => itself[unit][fn] > (itself[unit][most] ?? 0) ? fn : most, -1);
  $("code-title").textContent = isChange() || most < 0 || heap.words.functions.length === 0 ? "Which code" : `Which code: ${nameOf(most)}, ${partText(itself[unit][most], inclusive[unit][0])} of ${amountText(inclusive[unit][0])}${unit === "blocks" ? " blocks" : ""}`;
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
  if (isChange()) $("cut").textContent += " The width of a box is the change in it; lines mark a decrease.";
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
  button.onclick = () => (act() ?? $("code-title")).scrollIntoView({ block: "nearest" });
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
  ["What is freed immediately?", freedAtOnce],
];
const QUESTIONS_OF_CHANGE = [
  ["What changed at the peak?", () => atPeak()],
  ["What is live at the end, more or less?", () => follow({ measure: "leaked", at: "end" })],
  ["What allocates more or less?", () => follow({ measure: "allocated", at: "" })],
  ["What changed in short-lived blocks?", freedAtOnce],
];

// Opens a section at the bottom of the page and returns it.
function open(name) {
  const section = $(`with-${name}`);
  section.open = true;
  section.querySelector("summary").focus();
  return section;
}

// Adds links to the answers on the page. Questions that need another command or recording are listed with the command.
function fillQuestions(sizesOnly) {
  const { analyses, sections, measures, functions } = heap.words, trace = quoted(heap.sides[0].words.name), page = trace.replace(/(\.\w+)?('?)$/, ".html$2");
  const answers = { sites: () => follow({ measure: "allocated", at: "" }) }, others = [];
  for (const name of sections.filter(name => name !== "report")) answers[name] = () => open(name);
  if (pagesGrid() >= 0) answers.fragmentation = showPinned;
  const links = two() ? QUESTIONS_OF_CHANGE : [...sizesOnly ? [] : QUESTIONS, ...analyses.filter(([name]) => answers[name]).map(([name, question]) => [question, answers[name]])];
  $("questions").append(...links.map(([text, act]) => link(text, act)));
  const needs = sizesOnly ? "record without --sizes-only" : functions.length > 0 ? "" : "record with --stacks to see functions";
  for (const [name, question] of analyses.filter(([name]) => !answers[name])) others.push([question, `hatf report ${trace} --html ${page} --with ${name}`, needs]);
  if (!measures.includes("slack")) others.push(["How much larger are blocks than requested?", "hatf record --stacks --usable PROGRAM", "another recording"]);
  others.push(["What does the heap look like right now?", "hatf watch PROGRAM", "another recording"], ["What did a change do to memory use?", `hatf diff ${trace} AFTER.mtf --html change.html`, "another recording, after the change"]);
  others.push(["How much time and memory do real allocators take?", `hatf replay ${trace}`, sizesOnly ? needs : ""]);
  $("other-questions").hidden = two();
  $("other-questions").querySelector("ul").append(...others.map(([question, command, needs]) => {
    const item = document.createElement("li");
    item.append(`${question} `, Object.assign(document.createElement("code"), { textContent: command }), needs ? ` (${needs})` : "");
    return item;
  }));
}

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
    const bounds = chart.getBoundingClientRect(), [left, right] = [64, bounds.width - 8], { start, end } = viewOf(number);
    return momentAt(side, start + (end - start) * Math.min(1, Math.max(0, (event.clientX - bounds.left - left) / (right - left))));
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
    if (event.shiftKey) range(number, isRange(number) ? from : to, next);
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
    zoom,
    back: () => choose({ views: state.views.slice(0, -1) }),
    copy,
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
    const keys = { p: acts.peak, e: acts.end, a: acts.all, m: acts.mark, z: zoom, x: acts.back, i: () => choose({ inverted: !state.inverted, root: 0 }), Escape: acts.out };
    if (event.key === "/") {
      event.preventDefault();
      $("find").focus();
    } else keys[event.key]?.();
  });
  window.addEventListener("resize", show);
  for (const media of ["(prefers-color-scheme:dark)", "print"]) matchMedia(media).addEventListener("change", show);
}

// Returns the live bytes by function of each trace, and the functions that allocate, ranked by their maximum, with their colors. Smaller stacks are several functions, so
// they are not ranked unless no function is known.
function liveRows() {
  const none = heap.words.functions.length, most = new Float64Array(none + 1), allocated = new Float64Array(none + 1);
  const sides = heap.sides.map(side => {
    const rows = liveByFunction(heap, side), total = new Float64Array(side.moments.length), own = side.own.allocated;
    rows.forEach((row, fn) => row.forEach((bytes, moment) => {
      most[fn] = Math.max(most[fn], bytes);
      total[moment] += bytes;
    }));
    functionSums(heap, own, own).itself.bytes.forEach((bytes, fn) => allocated[fn] += bytes);
    return { rows, total };
  });
  const ranked = Array.from(most, (_, fn) => fn).filter(fn => most[fn] + allocated[fn] > 0 && (fn < none || none === 0)).sort((a, b) => most[b] - most[a] || allocated[b] - allocated[a]);
  // The golden angle keeps the hues of consecutive functions apart.
  const colours = new Map(ranked.map((fn, rank) => [fn, PALETTE[rank] ?? `hsl(${Math.round(rank * 137.508) % 360} 42% ${66 + rank % 3 * 6}%)`]));
  return { sides, ranked, colours, shown: [] };
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
  // The header states how the program ended.
  $("sentences").append(...heap.words.sentences.filter(({ text }) => !heap.sides.some(side => side.words.ending === text)).map(sentence => {
    const item = document.createElement("li");
    item.append(link(sentence.text, () => follow(sentence)));
    return item;
  }));
  const sizesOnly = !heap.words.measures.includes("peak");
  fillQuestions(sizesOnly);
  if (!two()) $("time-title").textContent += `: at most ${bytesText(heap.sides[0].words.peak)}`;
  state.at = heap.sides.map(whole);
  heap.sides.forEach(addChart);
  if (two()) $("charts").className = "two";
  bind();
  addGrids();
  fillThreads();
  if (sizesOnly) follow({ measure: "allocated", at: "" });
  else atPeak();
}

start().catch(error => {
  $("failed").hidden = false;
  $("failed").textContent = `Cannot draw the charts: ${error.message}`;
});
