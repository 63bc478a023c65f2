"use strict";
// Charts of live bytes over time, with the selection.

// Returns a round distance between the lines of an axis.
function roundStep(most, lines, base) {
  let step = 1;
  while (most / step > lines * base) step *= base;
  return [1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 256, 512].map(part => part * step).find(step => most / step <= lines) ?? step * base;
}

// Returns the part of the axis that a chart shows.
const viewOf = number => state.views.at(-1)?.[number] ?? { start: 0, end: axisEnd(heap.sides[number]) };

// Returns the maximum of live bytes in this part, and the maximum of the other quantities.
function highestIn(side, { start, end }) {
  const most = values => values.reduce((most, value) => Math.max(most, value), 0);
  const moments = side.moments.filter((_, moment) => endOf(side, moment) > start && endOf(side, moment - 1) < end);
  const points = side.words.series.flatMap(line => line.points.filter(([place], point) => place > start && (line.points[point - 1]?.[0] ?? 0) < end));
  return [most(moments.map(moment => moment.highest)), most(points.map(point => point[1]))];
}

function drawCharts() {
  const most = Math.max(1, ...heap.sides.flatMap((side, number) => highestIn(side, viewOf(number))));
  heap.sides.forEach((_, number) => drawChart(number, most));
}

// The parts of each chart that do not depend on the selection, as last drawn.
const layers = [];

function drawChart(number, most) {
  const canvas = charts[number], side = heap.sides[number], { words } = side;
  const { context, width, height } = surface(canvas, canvas.clientHeight || 240);
  const [left, right, bottom] = [64, width - 8, height - 22], view = viewOf(number);
  const x = place => left + (right - left) * (place - view.start) / (view.end - view.start), y = bytes => bottom - (bottom - 8) * bytes / most;
  const { from, to, peak } = state.at[number], ink = colour("--ink");
  const clipped = (context, draw) => {
    context.save();
    context.beginPath(), context.rect(left, 0, right - left + 1, bottom), context.clip();
    draw();
    context.restore();
  };
  clipped(context, () => {
    context.fillStyle = colour("--chosen");
    const first = x(endOf(side, from - 1));
    if (isRange(number)) context.fillRect(first, 0, Math.max(2, x(endOf(side, to)) - first), bottom);
  });
  const key = [canvas.width, canvas.height, ink, most, view.start, view.end, ...live.shown].join(" ");
  if (layers[number]?.key !== key) {
    const layer = document.createElement("canvas");
    [layer.width, layer.height] = [canvas.width, canvas.height];
    const drawn = layer.getContext("2d");
    drawn.setTransform(context.getTransform());
    drawn.font = context.font;
    drawAxes(drawn, side, most, view, { left, right, bottom, width, height, x, y });
    clipped(drawn, () => drawUnchanged(drawn, side, number, { bottom, x, y }));
    layers[number] = { key, layer };
  }
  context.drawImage(layers[number].layer, 0, 0, width, height);
  clipped(context, () => {
    if (state.mark !== null) vertical(context, x(endOf(side, state.mark)), bottom, ink, [6, 3]);
    vertical(context, x(peak && words.duration ? words.peak_time : endOf(side, to)), bottom, ink, []);
  });
  const shown = state.views.length > 0 ? `${timeText(side, view.start)} to ${timeText(side, view.end)}` : timeText(side, view.end);
  canvas.setAttribute("aria-label", `${two() ? `${words.name}: ` : ""}live bytes over ${shown}: at most ${bytesText(highestIn(side, view)[0])}; chosen: ${rangeText(number)}`);
}

// Returns the text of a place on the axis, with the digits that the distance between lines requires.
function axisText(side, place, step) {
  if (!side.words.duration) return counted.format(place);
  if (place === 0) return "0";
  const [unit, size] = [["s", 1e9], ["ms", 1e6], ["us", 1e3]].find(([, size]) => place >= size) ?? ["ns", 1];
  return `${(place / size).toFixed(Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9)))} ${unit}`;
}

function drawAxes(context, side, most, { start, end }, { left, right, bottom, width, height, x, y }) {
  [context.fillStyle, context.strokeStyle] = [colour("--faint"), colour("--line")];
  const step = roundStep(most, height > 200 ? 4 : 2, 1024);
  context.textAlign = "right";
  for (let bytes = 0; bytes <= most; bytes += step) {
    context.beginPath(), context.moveTo(left, y(bytes) + .5), context.lineTo(right, y(bytes) + .5), context.stroke();
    context.fillText(withoutZeros(bytesText(bytes)), left - 6, y(bytes) + 4);
  }
  context.textAlign = "center";
  const across = roundStep(end - start, Math.max(2, width / 140), 10);
  for (let place = Math.ceil(start / across) * across; place <= end; place += across) context.fillText(axisText(side, place, across), Math.min(Math.max(x(place), left), right - 20), height - 6);
}

// Draws the stacked functions and the other quantities over time.
function drawUnchanged(context, side, number, { bottom, x, y }) {
  const { words, moments } = side, end = axisEnd(side), ink = colour("--ink"), faint = colour("--faint");
  drawAreas(context, side, live.sides[number], x, y);
  context.strokeStyle = ink;
  steps(context, moments.map((moment, number) => [endOf(side, number), moment.highest]), x, y, 1);
  words.series.forEach((series, number) => {
    context.setLineDash([[6, 3], [2, 2]][number % 2]);
    steps(context, series.points.map(([place, value]) => [Math.min(place, end), value]), x, y, 1.5);
    context.setLineDash([]);
  });
  for (const [time, tick] of words.marks) vertical(context, x(words.duration ? time : tick), bottom, faint, [2, 3]);
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

// Draws the functions of the legend, stacked.
function drawAreas(context, side, { rows, total }, x, y) {
  const count = side.moments.length, base = new Float64Array(count), top = new Float64Array(count);
  const area = style => {
    context.fillStyle = style;
    context.beginPath();
    for (let moment = 0; moment < count; moment++) {
      context.lineTo(x(endOf(side, moment - 1)), y(top[moment]));
      context.lineTo(x(endOf(side, moment)), y(top[moment]));
    }
    for (let moment = count - 1; moment >= 0; moment--) {
      context.lineTo(x(endOf(side, moment)), y(base[moment]));
      context.lineTo(x(endOf(side, moment - 1)), y(base[moment]));
    }
    context.fill();
  };
  live.shown.forEach(fn => {
    rows[fn].forEach((bytes, moment) => top[moment] = base[moment] + bytes);
    area(colourOf(fn));
    base.set(top);
  });
  top.set(total);
  area(colour("--line"));
}

// Returns a box or a line with the color of a legend entry.
function keyOf(style, kind = "") {
  const box = document.createElement("b");
  box.className = `key ${kind}`;
  box.style[kind ? "borderColor" : "background"] = style;
  return box;
}

function mostIn(row, from, to) {
  let most = 0;
  for (let moment = from; moment <= to; moment++) if (row[moment] > most) most = row[moment];
  return most;
}

// Shows the functions that have the most live bytes at any time in the selection, and those that have the most at its end.
function fillLegend() {
  const largest = value => {
    const sorted = live.ranked.map(fn => [fn, value(fn)]).sort((a, b) => b[1] - a[1]);
    return sorted.filter(([, bytes]) => bytes > 0 && bytes * LITTLE >= sorted[0][1]).map(([fn]) => fn);
  };
  const sides = live.sides.map(({ rows }, number) => ({ rows, ...state.at[number] }));
  const atEnd = largest(fn => Math.max(...sides.map(({ rows, to }) => rows[fn][to])));
  const ever = largest(fn => Math.max(...sides.map(({ rows, from, to }) => mostIn(rows[fn], from, to))));
  const shown = [...new Set([...atEnd.slice(0, TOP / 2), ...ever])].slice(0, TOP);
  live.shown = live.ranked.filter(fn => shown.includes(fn));
  const item = (box, text) => {
    const span = document.createElement("span");
    span.append(box, text);
    return span;
  };
  const items = live.shown.map(fn => item(keyOf(colourOf(fn)), nameOf(fn)));
  if (live.shown.length < live.ranked.length) items.push(item(keyOf("var(--line)"), "other functions"));
  items.push(item(keyOf("var(--ink)", "line"), "maximum"));
  heap.sides.at(-1).words.series.forEach((series, number) => items.push(item(keyOf("var(--ink)", `line ${["dashed", "dotted"][number % 2]}`), series.name)));
  $("legend").replaceChildren(...items);
}
