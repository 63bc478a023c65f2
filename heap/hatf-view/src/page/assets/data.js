"use strict";
// The numbers of a heap and their sums. This file does not draw, so that a test can compare the sums with those of the report.

// Blocks that were never freed end after every point in time.
const NEVER = 65535;

const counted = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

// Formats bytes and times like the module `units` in the crate metatf-page, so that the page prints the numbers of the text report.
const bytesText = bytes => scaled(bytes, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
const nanosecondsText = time => scaled(time, 1000, ["ns", "us", "ms", "s", "ks", "Ms", "Gs"]);

function scaled(value, base, units) {
  let unit = 0, size = Math.round(Math.abs(value)) * 100;
  while (size >= base * 100 && unit + 1 < units.length) [size, unit] = [Math.floor((size + base / 2) / base), unit + 1];
  const whole = Math.floor(size / 100), rest = size % 100;
  const digits = unit === 0 || whole >= 100 ? "" : whole < 10 ? `.${String(rest).padStart(2, "0")}` : `.${Math.floor(rest / 10)}`;
  return `${value < 0 ? "-" : ""}${whole}${digits} ${units[unit]}`;
}

const blocksText = blocks => blocks === 1 ? "1 block" : `${counted.format(blocks)} blocks`;

// Formats a share like `units::percent` in the crate metatf-page.
function partText(part, all) {
  if (all === 0) return "-";
  const tenths = Math.floor(Math.abs(part) * 1000 / Math.abs(all));
  return `${part / all < 0 ? "-" : ""}${Math.floor(tenths / 10)}.${tenths % 10}%`;
}

// Reads the data that page/payload.rs writes. A heap has one side per trace: one, or two to compare.
function readHeap(words, bytes) {
  let at = 0;
  const number = () => {
    let value = 0, factor = 1, byte;
    do {
      byte = bytes[at++];
      if (byte === undefined) throw new Error("the page is truncated");
      value += (byte & 127) * factor;
      factor *= 128;
    } while (byte > 127);
    return value;
  };
  const moments = () => {
    let tick = 0, time = 0;
    return Array.from({ length: number() }, () => {
      tick += number();
      time += number();
      const highest = number(), flags = number();
      return { tick, time, highest, kept: (flags & 1) > 0, exact: (flags & 2) > 0 };
    });
  };
  const sides = words.sides.map(words => ({ words, moments: moments() }));
  const count = number();
  const parent = new Int32Array(count), fn = new Int32Array(count);
  for (let node = 0; node < count; node++) parent[node] = node - number();
  for (let node = 0; node < count; node++) fn[node] = number() - 1;

  const amount = (sum, place) => {
    sum.blocks[place] = number();
    if (sum.blocks[place] > 0) sum.bytes[place] = number();
  };
  const place = { node: 0, moment: 0 };
  const step = () => {
    const distance = number();
    if (distance > 0) [place.node, place.moment] = [place.node + distance, 0];
    place.moment += number();
  };
  const rows = read => {
    const total = number();
    const all = { node: new Int32Array(total), from: new Uint16Array(total), to: new Uint16Array(total), ...sums(total) };
    [place.node, place.moment] = [0, 0];
    for (let row = 0; row < total; row++) {
      step();
      [all.node[row], all.from[row]] = [place.node, place.moment];
      read(all, row);
      amount(all, row);
    }
    return all;
  };
  for (const side of sides) {
    side.own = Object.fromEntries(words.measures.map(name => [name, sums(count)]));
    for (const name of words.measures) {
      for (let node = 0; node < count; node++) amount(side.own[name], node);
    }
    side.lived = rows((all, row) => all.to[row] = (span => span === 0 ? NEVER : place.moment + span)(number()));
    side.allocated = rows(() => {});
    side.grids = side.words.grids.map(about => {
      const total = number(), grid = { ...about, node: new Int32Array(total), row: new Uint8Array(total), column: new Uint8Array(total), ...sums(total) };
      let node = 0;
      for (let cell = 0; cell < total; cell++) {
        grid.node[cell] = node += number();
        [grid.row[cell], grid.column[cell]] = [number(), number()];
        amount(grid, cell);
      }
      return grid;
    });
  }
  return { words, sides, parent, fn, outer: outermost(parent, fn) };
}

function sums(count) {
  return { bytes: new Float64Array(count), blocks: new Float64Array(count) };
}

// Returns for each node whether none of its callers is the same function, so that sums by function count recursive calls only once.
function outermost(parent, fn) {
  const outer = new Uint8Array(parent.length);
  for (let node = 1; node < parent.length; node++) {
    let above = parent[node];
    while (above > 0 && fn[above] !== fn[node]) above = parent[above];
    outer[node] = above === 0 ? 1 : 0;
  }
  return outer;
}

// Returns the own amounts of each node in a trace. `choice` is {measure, from, to, peak, mark}, with the first and last point of a range. For the measure
// "grid", it is {measure, grid, row, column}, which selects cells of a table; null selects every row or column.
function ownSums(side, choice) {
  const { measure, from, to } = choice, last = side.moments.length - 1;
  const whole = from === 0 && to === last, named = measure === "live" && choice.peak ? "peak" : measure;
  if (side.own[named] && !["allocated", "leaked"].includes(measure) || (measure === "leaked" && whole)) return side.own[named];
  const sum = sums(side.own.allocated.bytes.length);
  const add = (rows, row, sign) => {
    sum.bytes[rows.node[row]] += sign * rows.bytes[row];
    sum.blocks[rows.node[row]] += sign * rows.blocks[row];
  };
  if (measure === "grid") {
    const cells = side.grids[choice.grid], is = (wanted, value) => wanted === null || wanted === value;
    for (let cell = 0; cell < cells.node.length; cell++) {
      if (is(choice.row, cells.row[cell]) && is(choice.column, cells.column[cell])) add(cells, cell, 1);
    }
    return sum;
  }
  if (measure === "allocated") {
    const rows = side.allocated;
    for (let row = 0; row < rows.node.length; row++) {
      if (rows.from[row] >= from && rows.from[row] <= to) add(rows, row, 1);
    }
    return sum;
  }
  const rows = side.lived, isLive = (row, moment) => rows.from[row] <= moment && rows.to[row] > moment;
  // The baseline is what is live before the range or at the mark.
  const before = choice.mark ?? from - 1;
  for (let row = 0; row < rows.node.length; row++) {
    if (measure === "live" && isLive(row, to)) add(rows, row, 1);
    if (measure === "kept" && rows.from[row] >= from && isLive(row, to)) add(rows, row, 1);
    if (measure === "leaked" && rows.from[row] >= from && rows.from[row] <= to && rows.to[row] === NEVER) add(rows, row, 1);
    if (measure === "change") {
      const change = Number(isLive(row, to)) - Number(before >= 0 && isLive(row, before));
      if (change !== 0) add(rows, row, change);
    }
  }
  return sum;
}

// Returns the amounts of the second minus those of the first.
function difference(before, after) {
  return { bytes: after.bytes.map((bytes, place) => bytes - before.bytes[place]), blocks: after.blocks.map((blocks, place) => blocks - before.blocks[place]) };
}

// Returns the amounts of each node including everything it calls.
function inclusiveSums(heap, own) {
  const sum = { bytes: own.bytes.slice(), blocks: own.blocks.slice() };
  for (let node = heap.parent.length - 1; node > 0; node--) {
    sum.bytes[heap.parent[node]] += sum.bytes[node];
    sum.blocks[heap.parent[node]] += sum.blocks[node];
  }
  return sum;
}

// Returns the same sums by function, both own and including callees. The last row is for smaller and unknown stacks.
function functionSums(heap, own, inclusive) {
  const count = heap.words.functions.length + 1, itself = sums(count), total = sums(count);
  for (let node = 0; node < heap.parent.length; node++) {
    const row = heap.fn[node] < 0 ? count - 1 : heap.fn[node];
    itself.bytes[row] += own.bytes[node];
    itself.blocks[row] += own.blocks[node];
    if (heap.outer[node]) {
      total.bytes[row] += inclusive.bytes[node];
      total.blocks[row] += inclusive.blocks[node];
    }
  }
  total.bytes[count - 1] = itself.bytes[count - 1];
  total.blocks[count - 1] = itself.blocks[count - 1];
  return { itself, total };
}

// Returns the bytes of each function itself that are live at each point in time, one row per function.
function liveByFunction(heap, side) {
  const length = side.moments.length, none = heap.words.functions.length;
  const rows = Array.from({ length: none + 1 }, () => new Float64Array(length));
  const { node, from, to, bytes } = side.lived;
  for (let row = 0; row < node.length; row++) {
    const live = rows[heap.fn[node[row]] < 0 ? none : heap.fn[node[row]]];
    live[from[row]] += bytes[row];
    if (to[row] < length) live[to[row]] -= bytes[row];
  }
  for (const live of rows) {
    for (let moment = 1; moment < length; moment++) live[moment] += live[moment - 1];
  }
  return rows;
}

// Formats a time without rounding it, so that `--at` finds the same event.
function exactText(time) {
  const [unit, digits] = [["s", 9], ["ms", 6], ["us", 3]].find(([, digits]) => time >= 10 ** digits) ?? ["ns", 0];
  const whole = Math.floor(time / 10 ** digits), rest = String(time % 10 ** digits).padStart(digits, "0").replace(/0+$/, "");
  return `${whole}${digits > 0 && rest ? `.${rest}` : ""} ${unit}`;
}

// Returns the end of a point in time as text. If the next event has the same time, the text is the number of the event.
function pointText(side, moment) {
  if (moment < 0) return "the start";
  const { tick, time, exact } = side.moments[moment];
  return side.words.duration && exact ? exactText(time) : `event ${counted.format(tick)}`;
}

// Returns the same point as an argument for `--at` or as a part of `--live-between`.
const pointArgument = (side, moment) => moment < 0 ? "" : pointText(side, moment).replace(/^event |[ ,]/g, "");

// Returns a word for the shell.
const quoted = word => /^[\w./:@%+,=][\w./:@%+,=-]*$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;

// Returns a function with its file and line as in the sentences of the text report.
function longName(heap, fn) {
  const [name, place, module] = heap.words.functions[fn] ?? [heap.words.others, "", ""];
  if (!place) return module && !name.startsWith(module) ? `${name} in ${module}` : name;
  const file = place.split("/").at(-1).split(",")[0];
  return name === place ? file : `${name} at ${file}`;
}

// Describes how live memory changed from the start of a range to its end, and which function grew the most. `rows` are the live bytes by function.
function rangeSentences(heap, side, rows, { from, to }) {
  const { words, moments } = side, at = (row, moment) => moment < 0 ? 0 : row[moment], total = moment => rows.reduce((sum, row) => sum + at(row, moment), 0);
  const start = from > 0 ? moments[from - 1] : { tick: 0, time: 0 }, [before, after] = [total(from - 1), total(to)];
  const [span, unit, per] = words.duration ? [moments[to].time - start.time, 1e9, "/s"] : [moments[to].tick - start.tick, 1000, " per 1,000 events"];
  const by = bytes => `${bytesText(bytes)}${span > 0 ? ` (${bytesText(bytes * unit / span)}${per})` : ""}`;
  const changes = rows.map(row => at(row, to) - at(row, from - 1)), none = heap.words.functions.length;
  // Smaller stacks are several functions.
  const most = changes.reduce((most, change, fn) => change > (changes[most] ?? 0) && (fn < none || none === 0) ? fn : most, -1);
  const change = after - before, range = `From ${pointText(side, from - 1)} to ${pointText(side, to)}`;
  const grew = most < 0 ? "no function grew" : `${longName(heap, most)} grew the most, by ${by(changes[most])}`;
  const kept = ownSums(side, { measure: "kept", from, to }), sum = values => values.reduce((sum, value) => sum + value, 0);
  const texts = [
    change === 0
      ? `${range}, live memory stayed at ${bytesText(after)}`
      : `${range}, live memory ${change > 0 ? "grew" : "shrank"} by ${by(Math.abs(change))}, from ${bytesText(before)} to ${bytesText(after)}`,
    `${bytesText(sum(kept.bytes))} in ${blocksText(sum(kept.blocks))} allocated in this range were live at its end.`,
  ];
  if (none > 0) texts[0] += `; ${grew}`;
  texts[0] += ".";
  if (words.limit > 0 && change > 0 && words.duration && span > 0) texts.push(limitSentence(side, moments[to].time, after, change / span));
  return texts.filter(Boolean);
}

// States when the memory limit would be reached if memory continues to grow by `rate` bytes per nanosecond. Resident memory counts if it was recorded.
function limitSentence({ words }, time, live, rate) {
  const used = words.series[0]?.points.find(([end]) => end >= time)?.[1] ?? words.series[0]?.points.at(-1)?.[1] ?? live, left = words.limit - used;
  return left > 0 ? `At this rate, memory would reach the limit of ${bytesText(words.limit)} after another ${nanosecondsText(left / rate)}.` : "";
}

// Builds the tree for the call chart: nodes with a caller, a function, a width and a value that may be negative.
// Callers are above each allocating function or, if inverted, below it.
function calls(heap, own, inverted) {
  if (!inverted) {
    const width = own.map(Math.abs), value = own.slice();
    for (let node = heap.parent.length - 1; node > 0; node--) {
      width[heap.parent[node]] += width[node];
      value[heap.parent[node]] += value[node];
    }
    return tree(heap.parent, heap.fn, width, value);
  }
  const parent = [0], fn = [-1], width = [0], value = [0], known = new Map();
  for (let node = 0; node < own.length; node++) {
    if (own[node] === 0) continue;
    let place = 0, above = node;
    width[0] += Math.abs(own[node]);
    value[0] += own[node];
    do {
      const key = place * (heap.words.functions.length + 1) + heap.fn[above] + 1;
      if (!known.has(key)) {
        known.set(key, parent.length);
        parent.push(place);
        fn.push(heap.fn[above]);
        width.push(0);
        value.push(0);
      }
      place = known.get(key);
      width[place] += Math.abs(own[node]);
      value[place] += own[node];
      above = heap.parent[above];
    } while (above > 0);
  }
  return tree(parent, fn, width, value);
}

// Adds the callees of each node, widest first.
function tree(parent, fn, width, value) {
  const callees = Array.from(parent, () => []);
  for (let node = 1; node < parent.length; node++) {
    if (width[node] > 0) callees[parent[node]].push(node);
  }
  for (const nodes of callees) nodes.sort((a, b) => width[b] - width[a]);
  return { parent, fn, width, value, callees };
}

if (typeof module === "object") module.exports = { NEVER, readHeap, ownSums, difference, inclusiveSums, functionSums, liveByFunction, calls, bytesText, partText, nanosecondsText, blocksText, pointText, pointArgument, rangeSentences };
