"use strict";
// The call chart.

function matches(fn) {
  const find = state.find.toLowerCase();
  return find !== "" && heap.words.functions[fn]?.some(text => text.toLowerCase().includes(find)) === true;
}

// Returns a pattern of lines, which marks a decrease.
function hatching(context, ink) {
  const tile = document.createElement("canvas");
  [tile.width, tile.height] = [6, 6];
  const drawn = tile.getContext("2d");
  drawn.strokeStyle = ink;
  drawn.beginPath(), drawn.moveTo(-1, 7), drawn.lineTo(7, -1), drawn.stroke();
  return context.createPattern(tile, "repeat");
}

// Draws the visible rows and stores the position of each box.
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
  const scrolled = frame.scrollTop, [ink, line, faint] = ["--ink", "--line", "--faint"].map(colour), lines = hatching(context, faint);
  let found = 0;
  for (const box of boxes) {
    const y = box.row * ROW - scrolled;
    if (y < -ROW || y > visible) continue;
    const isDim = state.find !== "" && box.node > 0 && !matches(picture.fn[box.node]), own = box.node > 0 && !isDim && colourOf(picture.fn[box.node]);
    const fill = style => {
      context.fillStyle = style;
      context.fillRect(box.x, y, Math.max(.5, box.width - 1), ROW - 1);
    };
    context.globalAlpha = isDim ? .5 : 1;
    fill(own || line);
    if (picture.value[box.node] < 0) fill(lines);
    context.globalAlpha = 1;
    if (box.width < 24) continue;
    context.fillStyle = own ? "#111" : isDim ? faint : ink;
    const text = box.node === 0 ? `all: ${valueText(picture.value[0])}` : nameOf(picture.fn[box.node]);
    context.fillText(fitting(context, text, box.width - 8), box.x + 4, y + 13);
  }
  if (state.find) {
    for (let node = 1; node < picture.parent.length; node++) found += matches(picture.fn[node]) && firstMatch(node) ? picture.width[node] : 0;
    $("found").textContent = `${partText(found, all)} pass through it`;
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
  const [, place, module] = heap.words.functions[picture.fn[box.node]] ?? ["", "", ""], name = box.node === 0 ? "all" : nameOf(picture.fn[box.node]);
  const where = [place, module].filter(Boolean).join(", ");
  $("pointed").textContent = `${name}${where ? ` (${where})` : ""}: ${valueText(picture.value[box.node])}, ${partText(picture.width[box.node], picture.width[0])}`;
}
