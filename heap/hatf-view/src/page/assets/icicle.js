"use strict";
// The call chart.

// Returns a color derived from a function's module and the start of its name, so that related functions look alike.
function hue(fn) {
  const text = fn < 0 ? "" : heap.words.functions[fn][2] + heap.words.functions[fn][0].split(/::|\(|</)[0];
  let hash = 7;
  for (const letter of text) hash = (hash * 31 + letter.codePointAt(0)) % 9973;
  return hash % 360;
}

function matches(fn) {
  const find = state.find.toLowerCase();
  return find !== "" && heap.words.functions[fn]?.some(text => text.toLowerCase().includes(find)) === true;
}

function boxColour(node, dark, more, less) {
  const value = picture.value[node];
  if (state.find && !matches(picture.fn[node])) return dark ? "#2b2e33" : "#ececec";
  if (isChange()) {
    const strength = Math.min(1, .25 + .75 * Math.abs(value) / (picture.width[node] || 1));
    return `rgba(${value < 0 ? less : more},${strength})`;
  }
  return `hsl(${hue(picture.fn[node])} ${dark ? "35% 32%" : "60% 82%"})`;
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
  const dark = matchMedia("(prefers-color-scheme:dark)").matches, scrolled = frame.scrollTop;
  const [ink, line, more, less] = ["--ink", "--line", "--more", "--less"].map(colour);
  let found = 0;
  for (const box of boxes) {
    const y = box.row * ROW - scrolled;
    if (y < -ROW || y > visible) continue;
    context.fillStyle = box.node === 0 ? line : boxColour(box.node, dark, more, less);
    context.fillRect(box.x, y, Math.max(.5, box.width - 1), ROW - 1);
    if (box.width < 24) continue;
    context.fillStyle = ink;
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
  const [name, place, module] = box.node === 0 ? ["all", "", ""] : heap.words.functions[picture.fn[box.node]] ?? [heap.words.others, "", ""];
  const where = [place, module].filter(Boolean).join(", ");
  $("pointed").textContent = `${name}${where ? ` (${where})` : ""}: ${valueText(picture.value[box.node])}, ${partText(picture.width[box.node], picture.width[0])}`;
}
