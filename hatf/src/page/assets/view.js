"use strict";
// Draws what data.js reads. Whatever is chosen stands in `state`; `show` draws all that it changes.

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

// A round distance between the lines of an axis.
function roundStep(most, lines, base) {
  let step = 1;
  while (most / step > lines * base) step *= base;
  return [1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 256, 512].map(part => part * step).find(step => most / step <= lines) ?? step * base;
}

function drawChart() {
  const { context, width, height } = surface($("chart"), $("chart").clientHeight || 240);
  const [left, right, bottom] = [64, width - 8, height - 22], end = axisEnd();
  const most = Math.max(1, heap.words.peak, ...heap.moments.map(moment => moment.highest), ...heap.words.series.flatMap(line => line.points.map(point => point[1])));
  const x = place => left + (right - left) * place / end, y = bytes => bottom - (bottom - 8) * bytes / most;
  const { from, to, mark, peak } = state;
  context.fillStyle = colour("--chosen");
  const first = x(endOf(from - 1));
  if (from > 0) context.fillRect(first, 0, Math.max(2, x(endOf(to)) - first), bottom);

  const line = colour("--line"), ink = colour("--ink"), faint = colour("--faint");
  [context.fillStyle, context.strokeStyle] = [faint, line];
  const step = roundStep(most, 4, 1024);
  context.textAlign = "right";
  for (let bytes = 0; bytes <= most; bytes += step) {
    context.beginPath(), context.moveTo(left, y(bytes) + .5), context.lineTo(right, y(bytes) + .5), context.stroke();
    context.fillText(bytesText(bytes).replace(/\.0+(?= )/, ""), left - 6, y(bytes) + 4);
  }
  context.textAlign = "center";
  const across = roundStep(end, Math.max(2, width / 140), 10);
  for (let place = 0; place <= end; place += across) context.fillText(place ? timeText(place) : "0", Math.min(x(place), right - 20), height - 6);

  drawAreas(context, x, y);
  context.strokeStyle = ink;
  steps(context, heap.moments.map((moment, number) => [endOf(number), moment.highest]), x, y, 1);
  heap.words.series.forEach((series, number) => {
    context.setLineDash([[6, 3], [2, 2]][number % 2]);
    steps(context, series.points.map(([place, value]) => [Math.min(place, end), value]), x, y, 1.5);
    context.setLineDash([]);
  });
  for (const [time, tick] of heap.words.marks) vertical(context, x(heap.words.duration ? time : tick), bottom, faint, [2, 3]);
  if (mark !== null) vertical(context, x(endOf(mark)), bottom, ink, [6, 3]);
  vertical(context, x(peak ? (heap.words.duration ? heap.words.peak_time : endOf(to)) : endOf(to)), bottom, ink, []);
  $("chart").setAttribute("aria-label", `Live bytes over ${timeText(end)}: at most ${bytesText(heap.words.peak)}; chosen: ${$("chosen").textContent}`);
}

function vertical(context, place, bottom, style, dash) {
  context.strokeStyle = style;
  context.setLineDash(dash);
  context.lineWidth = 1;
  context.beginPath(), context.moveTo(Math.round(place) + .5, 0), context.lineTo(Math.round(place) + .5, bottom), context.stroke();
  context.setLineDash([]);
}

function steps(context, points, x, y, lineWidth) {
  context.lineWidth = lineWidth;
  context.beginPath();
  let before = 0;
  for (const [place, value] of points) {
    context.lineTo(x(before), y(value));
    context.lineTo(x(place), y(value));
    before = place;
  }
  context.stroke();
}

// The functions with the most live bytes, on top of each other.
function drawAreas(context, x, y) {
  const base = new Float64Array(heap.moments.length), top = new Float64Array(heap.moments.length);
  const area = style => {
    context.fillStyle = style;
    context.beginPath();
    for (let moment = 0; moment < top.length; moment++) {
      context.lineTo(x(endOf(moment - 1)), y(top[moment]));
      context.lineTo(x(endOf(moment)), y(top[moment]));
    }
    for (let moment = top.length - 1; moment >= 0; moment--) {
      context.lineTo(x(endOf(moment)), y(base[moment]));
      context.lineTo(x(endOf(moment - 1)), y(base[moment]));
    }
    context.fill();
  };
  live.largest.forEach((fn, number) => {
    live.rows[fn].forEach((bytes, moment) => top[moment] = base[moment] + bytes);
    area(PALETTE[number]);
    base.set(top);
  });
  top.set(live.total);
  area(colour("--line"));
}

function fillLegend() {
  const item = (style, text) => {
    const span = document.createElement("span"), box = document.createElement("b");
    box.style.background = style;
    span.append(box, text);
    return span;
  };
  const last = heap.words.functions.length;
  const items = live.largest.map((fn, number) => item(PALETTE[number], nameOf(fn === last ? -1 : fn)));
  items.push(item("var(--line)", "other functions"), item("var(--ink)", "most in each moment (line)"));
  heap.words.series.forEach(series => items.push(item("var(--ink)", `${series.name} (dashed)`)));
  $("legend").replaceChildren(...items);
}

// A colour by a function's module and the beginning of its name: what belongs together looks alike.
function hue(fn) {
  const text = fn < 0 ? "" : heap.words.functions[fn][2] + heap.words.functions[fn][0].split(/::|\(|</)[0];
  let hash = 7;
  for (const letter of text) hash = (hash * 31 + letter.codePointAt(0)) % 9973;
  return hash % 360;
}

function matches(fn) {
  const find = state.find.toLowerCase();
  return find !== "" && fn >= 0 && heap.words.functions[fn].some(text => text.toLowerCase().includes(find));
}

function boxColour(node, dark) {
  const value = picture.value[node];
  if (state.find && !matches(picture.fn[node])) return dark ? "#2b2e33" : "#ececec";
  if (state.measure === "change") {
    const strength = Math.min(1, .25 + .75 * Math.abs(value) / (picture.width[node] || 1));
    return value < 0 ? `rgba(86,180,233,${strength})` : `rgba(230,159,0,${strength})`;
  }
  return `hsl(${hue(picture.fn[node])} ${dark ? "35% 32%" : "60% 82%"})`;
}

// Draws the rows that are visible, and notes where each box is.
function drawIcicle() {
  const frame = $("frame"), canvas = $("icicle");
  const wide = canvas.clientWidth || 600, all = picture.width[state.root] || 1;
  boxes = [];
  let depth = 0;
  const path = [];
  for (let node = state.root; node > 0; node = picture.parent[node]) path.unshift(node);
  [0, ...path.slice(0, -1)].filter(() => state.root > 0).forEach((node, row) => boxes.push({ node, x: 0, width: wide, row }));
  const place = (node, x, width, row) => {
    boxes.push({ node, x, width, row });
    depth = Math.max(depth, row);
    for (const callee of picture.callees[node]) {
      const size = width * picture.width[callee] / (picture.width[node] || 1);
      if (size < .5) break;
      place(callee, x, size, row + 1);
      x += size;
    }
  };
  place(state.root, 0, wide, path.length);
  const height = (depth + 1) * ROW, visible = Math.min(height, 512);
  $("height").style.height = `${height - visible}px`;
  const { context } = surface(canvas, visible);
  canvas.style.height = `${visible}px`;
  const dark = matchMedia("(prefers-color-scheme:dark)").matches, ink = colour("--ink"), scrolled = frame.scrollTop;
  let found = 0;
  for (const box of boxes) {
    const y = box.row * ROW - scrolled;
    if (y < -ROW || y > visible) continue;
    context.fillStyle = box.node === 0 ? colour("--line") : boxColour(box.node, dark);
    context.fillRect(box.x, y, Math.max(.5, box.width - 1), ROW - 1);
    if (box.width < 24) continue;
    context.fillStyle = ink;
    const text = box.node === 0 ? `all: ${amountText(picture.value[0])}` : nameOf(picture.fn[box.node]);
    context.fillText(fitting(context, text, box.width - 8), box.x + 4, y + 13);
  }
  if (state.find) {
    for (let node = 1; node < picture.parent.length; node++) found += matches(picture.fn[node]) && firstMatch(node) ? picture.width[node] : 0;
    $("found").textContent = `${partText(found, all)} lead through it`;
  } else $("found").textContent = "";
}

function firstMatch(node) {
  for (let above = picture.parent[node]; above > 0; above = picture.parent[above]) if (matches(picture.fn[above])) return false;
  return true;
}

function fitting(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  const letters = Math.floor(text.length * width / context.measureText(text).width) - 1;
  return letters < 2 ? "" : `${text.slice(0, letters)}…`;
}

function boxAt(event) {
  const bounds = $("icicle").getBoundingClientRect();
  const [x, y] = [event.clientX - bounds.left, event.clientY - bounds.top + $("frame").scrollTop];
  return boxes.findLast(box => Math.floor(y / ROW) === box.row && x >= box.x && x < box.x + box.width);
}

function point(event) {
  const box = boxAt(event);
  if (!box) return;
  const [name, place, module] = box.node === 0 ? ["all", "", ""] : heap.words.functions[picture.fn[box.node]] ?? ["stack not known", "", ""];
  const where = [place, module].filter(Boolean).join(", ");
  $("pointed").textContent = `${name}${where ? ` (${where})` : ""}: ${amountText(picture.value[box.node])}, ${partText(picture.width[box.node], picture.width[0])}`;
}

const COLUMNS = [["itself", "itself"], ["", ""], ["total", "with callees"], ["", ""], ["blocks", "blocks"], ["", "live over time"], ["name", "function"]];

function fillTable({ itself, total }, inclusive) {
  const unit = state.unit, sum = Math.abs(inclusive[unit][0]), none = heap.words.functions.length;
  const rank = { itself: row => Math.abs(itself[unit][row]), total: row => Math.abs(total[unit][row]), blocks: row => Math.abs(itself.blocks[row]) };
  const rows = Array.from(total.bytes, (_, row) => row).filter(row => total[unit][row] !== 0 && (!state.find || matches(row)));
  if (state.sort === "name") rows.sort((a, b) => nameOf(a === none ? -1 : a).localeCompare(nameOf(b === none ? -1 : b)));
  else rows.sort((a, b) => rank[state.sort](b) - rank[state.sort](a) || rank.total(b) - rank.total(a));
  const cell = (text, right) => {
    const cell = document.createElement("td");
    cell.textContent = text;
    if (right) cell.className = "n";
    return cell;
  };
  const body = rows.slice(0, ROWS).map((row, number) => {
    const line = document.createElement("tr"), [name, place, module] = row === none ? ["stack not known", "", ""] : heap.words.functions[row];
    line.append(
      cell(amountText(itself[unit][row]), true), cell(partText(Math.abs(itself[unit][row]), sum), true),
      cell(amountText(total[unit][row]), true), cell(partText(Math.abs(total[unit][row]), sum), true),
      cell(counted.format(itself.blocks[row]), true), document.createElement("td"), document.createElement("td"));
    if (number < CURVES) line.children[5].append(curve(live.rows[row]));
    const button = document.createElement("button"), where = document.createElement("small");
    button.className = "link";
    button.textContent = name;
    button.onclick = () => find(state.find === name ? "" : name);
    where.textContent = place || module;
    line.children[6].append(button, where);
    return line;
  });
  $("functions").tBodies[0].replaceChildren(...body);
  $("more").textContent = rows.length > ROWS ? `and ${counted.format(rows.length - ROWS)} more functions` : "";
  for (const button of $("functions").querySelectorAll("th button")) {
    button.parentElement.setAttribute("aria-sort", button.dataset.sort === state.sort ? "descending" : "none");
  }
}

// A small picture of live bytes over time.
function curve(values) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  const most = Math.max(1, ...values), end = axisEnd(), width = 120, height = 20;
  let text = `M0 ${height}`, before = 0;
  values.forEach((value, moment) => {
    const y = (height - (height - 1) * value / most).toFixed(1);
    text += `L${(width * before / end).toFixed(1)} ${y}L${(width * endOf(moment) / end).toFixed(1)} ${y}`;
    before = endOf(moment);
  });
  path.setAttribute("d", `${text}L${(width * before / end).toFixed(1)} ${height}Z`);
  path.setAttribute("fill", "var(--live)");
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `at most ${bytesText(most)}`);
  svg.append(path);
  return svg;
}

function find(text) {
  state.find = $("find").value = text;
  show();
}

// A table whose cells are darker the more they have.
function heat(section, corner, columns, rows, value) {
  const table = section.querySelector("table"), most = Math.max(...rows.flatMap(row => columns.map(column => value(row, column)?.[0] ?? 0)));
  const head = document.createElement("tr");
  head.append(...[corner, ...columns.map(column => column.text)].map(text => Object.assign(document.createElement("th"), { textContent: text })));
  const body = rows.map(row => {
    const line = document.createElement("tr");
    line.append(Object.assign(document.createElement("th"), { textContent: row.text }));
    for (const column of columns) {
      const cell = document.createElement("td"), [amount, blocks] = value(row, column) ?? [0, 0];
      if (blocks > 0) {
        cell.textContent = counted.format(blocks);
        cell.title = `${counted.format(blocks)} blocks, ${bytesText(amount)}`;
        cell.style.background = `rgba(0,114,178,${(.08 + .62 * Math.sqrt(amount / most)).toFixed(2)})`;
      }
      line.append(cell);
    }
    return line;
  });
  table.replaceChildren(head, ...body);
  section.hidden = rows.length === 0;
}

// All keys from the least to the largest, with their texts.
function keys(known, text) {
  const least = Math.min(...known), most = Math.max(...known);
  return Array.from({ length: most - least + 1 }, (_, number) => ({ key: least + number, text: text(least + number) }));
}

function fillHeat() {
  const { lifetimes, threads, thread_names: names, duration } = heap.words;
  if (lifetimes.length > 0 && duration > 0) {
    const sums = new Map();
    for (const [size, time, blocks, bytes] of lifetimes) {
      // Two powers of two in a row.
      const key = `${size >> 1} ${time}`, sum = sums.get(key) ?? [0, 0];
      sums.set(key, [sum[0] + bytes, sum[1] + blocks]);
    }
    const columns = keys(lifetimes.map(row => row[1]), time => time === 0 ? "at once" : `< ${timeText(10 ** time)}`);
    const rows = keys(lifetimes.map(row => row[0] >> 1), size => `< ${bytesText(2 ** (2 * size + 1))}`);
    heat($("lifetimes"), "blocks", columns, rows, (row, column) => sums.get(`${row.key} ${column.key}`));
  }
  const ids = [...new Set(threads.flatMap(row => row.slice(0, 2)))].sort((a, b) => a - b);
  if (ids.length > 1) {
    const sums = new Map(threads.map(([by, to, blocks, bytes]) => [`${by} ${to}`, [bytes, blocks]]));
    const all = ids.map(id => ({ key: id, text: id > 2 ** 53 ? "others" : names[id] ? `${id} ${names[id]}` : `thread ${id}` }));
    heat($("threads"), "allocated by, freed by", all, all, (row, column) => sums.get(`${row.key} ${column.key}`));
  }
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
