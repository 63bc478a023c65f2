"use strict";
// The numbers of a heap, and sums of them. Nothing here draws: a test compares the sums with the report's.

// Blocks that were never freed end behind every moment.
const NEVER = 65535;
const MEASURES = ["peak", "leaked", "allocated", "temporary", "short"];

// Reads what hatf/src/page/payload.rs writes.
function readHeap(bytes) {
  let at = 0;
  const number = () => {
    let value = 0, factor = 1, byte;
    do {
      byte = bytes[at++];
      if (byte === undefined) throw new Error("the page is cut off");
      value += (byte & 127) * factor;
      factor *= 128;
    } while (byte > 127);
    return value;
  };
  const length = number();
  const words = JSON.parse(new TextDecoder().decode(bytes.subarray(at, at + length)));
  at += length;

  const moments = [];
  let tick = 0, time = 0;
  for (let left = number(); left > 0; left--) {
    tick += number();
    time += number();
    moments.push({ tick, time, highest: number(), kept: number() === 1 });
  }

  const count = number();
  const parent = new Int32Array(count), fn = new Int32Array(count);
  const own = Object.fromEntries(MEASURES.map(name => [name, sums(count)]));
  const amount = (sum, place) => {
    sum.blocks[place] = number();
    if (sum.blocks[place] > 0) sum.bytes[place] = number();
  };
  for (let node = 0; node < count; node++) {
    parent[node] = node - number();
    fn[node] = number() - 1;
    for (const name of MEASURES) amount(own[name], node);
  }

  const spans = total => ({ node: new Int32Array(total), from: new Uint16Array(total), to: new Uint16Array(total), ...sums(total) });
  const place = { node: 0, moment: 0 };
  const step = () => {
    const distance = number();
    if (distance > 0) [place.node, place.moment] = [place.node + distance, 0];
    place.moment += number();
  };
  const lived = spans(number());
  for (let row = 0; row < lived.node.length; row++) {
    step();
    [lived.node[row], lived.from[row]] = [place.node, place.moment];
    lived.to[row] = (span => span === 0 ? NEVER : place.moment + span)(number());
    amount(lived, row);
  }
  [place.node, place.moment] = [0, 0];
  const allocated = spans(number());
  for (let row = 0; row < allocated.node.length; row++) {
    step();
    [allocated.node[row], allocated.from[row]] = [place.node, place.moment];
    amount(allocated, row);
  }
  return { words, moments, parent, fn, own, lived, allocated, outer: outermost(parent, fn) };
}

function sums(count) {
  return { bytes: new Float64Array(count), blocks: new Float64Array(count) };
}

// Whether no caller of a node is the same function: sums by function count a function that calls itself once.
function outermost(parent, fn) {
  const outer = new Uint8Array(parent.length);
  for (let node = 1; node < parent.length; node++) {
    let above = parent[node];
    while (above > 0 && fn[above] !== fn[node]) above = parent[above];
    outer[node] = above === 0 ? 1 : 0;
  }
  return outer;
}

// What each node has itself. `choice` is {measure, from, to, peak, mark}: the first and the last moment of a range.
function ownSums(heap, choice) {
  const { measure, from, to } = choice, last = heap.moments.length - 1;
  const whole = from === 0 && to === last;
  if (measure === "temporary" || measure === "short" || (measure === "live" && choice.peak) || (measure === "leaked" && whole)) {
    return heap.own[choice.peak && measure === "live" ? "peak" : measure];
  }
  const sum = sums(heap.parent.length);
  const add = (rows, row, sign) => {
    sum.bytes[rows.node[row]] += sign * rows.bytes[row];
    sum.blocks[rows.node[row]] += sign * rows.blocks[row];
  };
  if (measure === "allocated") {
    const rows = heap.allocated;
    for (let row = 0; row < rows.node.length; row++) {
      if (rows.from[row] >= from && rows.from[row] <= to) add(rows, row, 1);
    }
    return sum;
  }
  const rows = heap.lived, isLive = (row, moment) => rows.from[row] <= moment && rows.to[row] > moment;
  // What is compared with is live before the range, or where the mark stands.
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

// What each node has with all that it calls.
function inclusiveSums(heap, own) {
  const sum = { bytes: own.bytes.slice(), blocks: own.blocks.slice() };
  for (let node = heap.parent.length - 1; node > 0; node--) {
    sum.bytes[heap.parent[node]] += sum.bytes[node];
    sum.blocks[heap.parent[node]] += sum.blocks[node];
  }
  return sum;
}

// The same by function: itself, and with all that it calls. The last row is what is of no known stack.
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

// Bytes of each function's own that are live at the end of each moment: a row of the result is a function.
function liveByFunction(heap) {
  const length = heap.moments.length, none = heap.words.functions.length;
  const rows = Array.from({ length: none + 1 }, () => new Float64Array(length));
  const { node, from, to, bytes } = heap.lived;
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

// A tree for the picture: nodes with a caller, a function, a width and a value that may be negative.
// Its callers stand above, or, inverted, below each function that allocates.
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

if (typeof module === "object") module.exports = { NEVER, readHeap, ownSums, inclusiveSums, functionSums, liveByFunction, calls };
