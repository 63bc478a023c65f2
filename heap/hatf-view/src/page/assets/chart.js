"use strict";
// Charts of live bytes over time, with the selection.

// Returns a round distance between the lines of an axis.
function roundStep(most, lines, base) {
  let step = 1;
  while (most / step > lines * base) step *= base;
  return [1, 2, 4, 5, 8, 10, 16, 20, 32, 50, 64, 100, 128, 256, 512].map(part => part * step).find(step => most / step <= lines) ?? step * base;
}

function drawCharts() {
  const tops = heap.sides.flatMap(side => [side.words.peak, ...side.moments.map(moment => moment.highest), ...side.words.series.flatMap(line => line.points.map(point => point[1]))]);
  const most = tops.reduce((most, top) => Math.max(most, top), 1);
  heap.sides.forEach((_, number) => drawChart(number, most));
}

// The parts of each chart that do not depend on the selection, as last drawn.
const layers = [];

function drawChart(number, most) {
  const canvas = charts[number], side = heap.sides[number], { words } = side;
  const { context, width, height } = surface(canvas, canvas.clientHeight || 240);
  const [left, right, bottom] = [64, width - 8, height - 22], end = axisEnd(side);
  const x = place => left + (right - left) * place / end, y = bytes => bottom - (bottom - 8) * bytes / most;
  const { from, to, peak } = state.at[number], ink = colour("--ink");
  context.fillStyle = colour("--chosen");
  const first = x(endOf(side, from - 1));
  if (from > 0) context.fillRect(first, 0, Math.max(2, x(endOf(side, to)) - first), bottom);
  const key = [canvas.width, canvas.height, ink].join(" ");
  if (layers[number]?.key !== key) {
    const layer = document.createElement("canvas");
    [layer.width, layer.height] = [canvas.width, canvas.height];
    const drawn = layer.getContext("2d");
    drawn.setTransform(context.getTransform());
    drawn.font = context.font;
    drawUnchanged(drawn, side, number, most, { left, right, bottom, width, height, x, y });
    layers[number] = { key, layer };
  }
  context.drawImage(layers[number].layer, 0, 0, width, height);
  if (state.mark !== null) vertical(context, x(endOf(side, state.mark)), bottom, ink, [6, 3]);
  vertical(context, x(peak && words.duration ? words.peak_time : endOf(side, to)), bottom, ink, []);
  canvas.setAttribute("aria-label", `${two() ? `${words.name}: ` : ""}live bytes over ${timeText(side, end)}: at most ${bytesText(words.peak)}; chosen: ${rangeText(number)}`);
}

// Draws the axes, the stacked functions and the other quantities over time.
function drawUnchanged(context, side, number, most, { left, right, bottom, width, height, x, y }) {
  const { words, moments } = side, end = axisEnd(side);
  const line = colour("--line"), ink = colour("--ink"), faint = colour("--faint");
  [context.fillStyle, context.strokeStyle] = [faint, line];
  const step = roundStep(most, height > 200 ? 4 : 2, 1024);
  context.textAlign = "right";
  for (let bytes = 0; bytes <= most; bytes += step) {
    context.beginPath(), context.moveTo(left, y(bytes) + .5), context.lineTo(right, y(bytes) + .5), context.stroke();
    context.fillText(bytesText(bytes).replace(/\.0+(?= )/, ""), left - 6, y(bytes) + 4);
  }
  context.textAlign = "center";
  const across = roundStep(end, Math.max(2, width / 140), 10);
  for (let place = 0; place <= end; place += across) context.fillText(place ? timeText(side, place) : "0", Math.min(x(place), right - 20), height - 6);

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

// Draws the functions with the most live bytes, stacked.
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
  live.largest.forEach((fn, number) => {
    rows[fn].forEach((bytes, moment) => top[moment] = base[moment] + bytes);
    area(PALETTE[number]);
    base.set(top);
  });
  top.set(total);
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
  items.push(item("var(--line)", "other functions"), item("var(--ink)", "maximum (line)"));
  heap.sides.at(-1).words.series.forEach(series => items.push(item("var(--ink)", `${series.name} (dashed)`)));
  $("legend").replaceChildren(...items);
}
