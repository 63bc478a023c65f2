"use strict";
// The function table, and tables with darker cells for larger amounts.

const COLUMNS = [["itself", "itself"], ["", ""], ["total", "with callees"], ["", ""], ["blocks", "blocks"], ["", "live over time"], ["name", "function"]];
const CHANGES = [["itself", "change"], ["before", "before"], ["after", "after"], ["total", "change with callees"], ["blocks", "blocks"], ["", "live over time"], ["name", "function"]];

// Fills the table with the sums of the selection; `sides` has the sums of each trace.
function fillTable({ itself, total }, sides, inclusive) {
  const unit = state.unit, none = heap.words.functions.length;
  // For changes, parts are relative to everything that grew and shrank.
  const sum = isChange() ? picture.width[0] : Math.abs(inclusive[unit][0]);
  const size = values => row => Math.abs(values[row]), first = sides[0].itself[unit], last = sides.at(-1).itself[unit];
  const rank = { itself: size(itself[unit]), total: size(total[unit]), blocks: size(itself.blocks), before: size(first), after: size(last) };
  const rows = Array.from(total.bytes, (_, row) => row).filter(row => total[unit][row] !== 0 && (!state.find || matches(row)));
  if (state.sort === "name") rows.sort((a, b) => nameOf(a).localeCompare(nameOf(b)));
  else rows.sort((a, b) => rank[state.sort](b) - rank[state.sort](a) || rank.total(b) - rank.total(a));
  const cell = (text, right) => {
    const cell = document.createElement("td");
    cell.textContent = text;
    if (right) cell.className = "n";
    return cell;
  };
  const body = rows.slice(0, ROWS).map((row, number) => {
    const line = document.createElement("tr"), [name, place, module] = row === none ? [heap.words.others, "", ""] : heap.words.functions[row], own = colourOf(row);
    const texts = two()
      ? [valueText(itself[unit][row]), amountText(first[row]), amountText(last[row]), valueText(total[unit][row])]
      : [valueText(itself[unit][row]), partText(rank.itself(row), sum), valueText(total[unit][row]), partText(rank.total(row), sum)];
    line.append(...texts.map(text => cell(text, true)), cell(countText(itself.blocks[row]), true), document.createElement("td"), document.createElement("td"));
    if (number < CURVES) line.children[5].append(curve(row));
    const button = document.createElement("button"), where = document.createElement("small");
    button.className = "link";
    button.textContent = nameOf(row);
    button.onclick = () => find(state.find === name ? "" : name);
    where.textContent = place || module;
    if (own) line.children[6].append(keyOf(own));
    line.children[6].append(button, where);
    return line;
  });
  $("functions").tBodies[0].replaceChildren(...body);
  $("more").textContent = rows.length > ROWS ? `and ${counted.format(rows.length - ROWS)} more functions` : "";
  for (const button of $("functions").querySelectorAll("th button")) {
    button.parentElement.setAttribute("aria-sort", button.dataset.sort === state.sort ? "descending" : "none");
  }
}

// The curves drawn so far, by function. They do not depend on the selection.
const curves = new Map();

// Draws a small chart of a function's live bytes over time; with two traces, the first is a line.
function curve(fn) {
  if (curves.has(fn)) return curves.get(fn);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), width = 120, height = 20;
  const tops = heap.sides.map((_, number) => live.sides[number].rows[fn].reduce((most, value) => Math.max(most, value), 0)), most = Math.max(1, ...tops);
  heap.sides.map((side, number) => {
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path"), end = axisEnd(side), is_line = number < heap.sides.length - 1;
    let text = `M0 ${height}`, before = 0;
    live.sides[number].rows[fn].forEach((value, moment) => {
      const y = (height - (height - 1) * value / most).toFixed(1);
      text += `L${(width * before / end).toFixed(1)} ${y}L${(width * endOf(side, moment) / end).toFixed(1)} ${y}`;
      before = endOf(side, moment);
    });
    path.setAttribute("d", is_line ? text : `${text}L${(width * before / end).toFixed(1)} ${height}Z`);
    path.setAttribute("fill", is_line ? "none" : "var(--live)");
    if (is_line) path.setAttribute("stroke", "var(--ink)");
    return path;
  }).reverse().forEach(path => svg.append(path));
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `at most ${tops.map(bytesText).join(", then ")}`);
  curves.set(fn, svg);
  return svg;
}

// Builds a table with darker cells for larger amounts. Each cell has a text, a title and a share of the maximum, and may be a button.
function heat(table, corner, columns, rows, value, press) {
  const part = (name, text, row, column) => {
    const part = document.createElement(name);
    if (!press || !text) return Object.assign(part, { textContent: text });
    const button = Object.assign(document.createElement("button"), { textContent: text, onclick: () => press(row, column) });
    button.dataset.cell = `${table.dataset.grid} ${row} ${column}`;
    part.append(button);
    return part;
  };
  const head = document.createElement("tr");
  head.append(part("th", corner, null, null), ...columns.map(column => part("th", column.text, null, column.key)));
  const body = rows.map(row => {
    const line = document.createElement("tr");
    line.append(part("th", row.text, row.key, null));
    for (const column of columns) {
      const { text, title, share } = value(row.key, column.key) ?? { text: "" };
      const cell = part("td", text, row.key, column.key);
      if (text) {
        cell.title = title;
        cell.style.background = `rgba(var(${share < 0 ? "--less" : press && two() ? "--more" : "--much"}),${(.08 + .62 * Math.sqrt(Math.abs(share))).toFixed(2)})`;
      }
      line.append(cell);
    }
    return line;
  });
  table.className = "heat";
  table.replaceChildren(head, ...body);
}

// Returns the keys in ascending order, with their texts. Blocks that are never freed come last.
const keys = (known, text) => known.sort((a, b) => a - b).map(key => ({ key, text: text(key) }));

// As in hatf-lab/src/lifetimes.rs.
const NEVER_FREED = 21;
const withoutZeros = text => text.replace(/\.0+(?= )/, "");
const sumOf = (values, is = () => true) => values.reduce((sum, value, cell) => is(cell) ? sum + value : sum, 0);
const times = (side, power, none) => power === 0 ? none : `< ${withoutZeros(timeText(side, 10 ** power))}`;
// Rows and columns of tables with selectable cells.
const GRIDS = {
  lifetimes: {
    title: () => "Blocks by size and lifetime", corner: "size, lifetime", about: "of this size and lifetime, in the whole trace",
    row: size => `< ${withoutZeros(bytesText(2 ** (2 * size + 1)))}`,
    column: (life, side) => life === NEVER_FREED ? "never freed" : times(side, life, "immediately"),
    conclusion({ blocks, column }) {
      const all = sumOf(blocks), [short, never] = [life => life <= 6, life => life === NEVER_FREED].map(is => sumOf(blocks, cell => is(column[cell])));
      return `${partText(short, all)} of the blocks were freed within 1 ms, and ${partText(never, all)} were never freed`;
    },
  },
  pages: {
    title: name => `Bytes wasted on 4 KiB pages, by fill and age of the page: ${name}`, corner: "live, age", about: "wasted on these 4 KiB pages, by the blocks that keep them",
    row: full => full === 0 ? "pinned" : `up to ${10 * full}%`,
    column: (age, side) => times(side, age, "new"),
    conclusion({ bytes, blocks, row }, number) {
      const isPinned = cell => row[cell] === 0, [wasted, pinned] = [sumOf(bytes), sumOf(bytes, isPinned)];
      if (pinned === 0) return `${bytesText(wasted)} are wasted, but not on pinned pages`;
      const own = ownSums(heap.sides[0], { measure: "grid", grid: number, row: 0, column: null, from: 0, to: 0 }), { itself } = functionSums(heap, own, inclusiveSums(heap, own));
      const most = itself.bytes.reduce((most, bytes, fn) => bytes > itself.bytes[most] ? fn : most, 0);
      const by = heap.words.functions[most] ? `${longName(heap, most)} keeps ${bytesText(itself.bytes[most])} of that with ${blocksText(itself.blocks[most])}` : `${blocksText(sumOf(blocks, isPinned))} keep that`;
      return `${bytesText(pinned)} of the ${bytesText(wasted)} wasted are on pinned pages; ${by}`;
    },
  },
};

// Returns the tables that all traces have.
const commonGrids = () => heap.sides[0].grids.map((grid, number) => [grid, number]).filter(([grid, number]) => heap.sides.every(side => side.grids[number]?.kind === grid.kind));

function addGrids() {
  for (const [grid, number] of commonGrids()) {
    const section = document.createElement("section"), title = document.createElement("h2"), scroll = document.createElement("div"), table = document.createElement("table");
    title.id = `grid-${number}`;
    const about = GRIDS[grid.kind].title(grid.name), conclusion = two() || grid.node.length === 0 ? "" : GRIDS[grid.kind].conclusion(grid, number);
    title.textContent = conclusion || about;
    section.setAttribute("aria-labelledby", title.id);
    scroll.className = "scroll";
    table.dataset.grid = number;
    scroll.append(table);
    section.append(title);
    if (conclusion) section.append(Object.assign(document.createElement("p"), { className: "about", textContent: about }));
    section.append(scroll);
    $("grids").append(section);
  }
  $("about-grids").hidden = commonGrids().length === 0;
  fillGrids();
}

function fillGrids() {
  for (const table of $("grids").querySelectorAll("table")) {
    const number = Number(table.dataset.grid), { kind } = heap.sides[0].grids[number], known = { row: new Set(), column: new Set() }, all = new Map();
    heap.sides.forEach((side, place) => {
      const grid = side.grids[number], sign = two() && place === 0 ? -1 : 1;
      for (let cell = 0; cell < grid.node.length; cell++) {
        const [row, column] = [grid.row[cell], grid.column[cell]], key = row * 256 + column, sum = all.get(key) ?? { bytes: 0, blocks: 0 };
        all.set(key, { bytes: sum.bytes + sign * grid.bytes[cell], blocks: sum.blocks + sign * grid.blocks[cell] });
      }
    });
    for (const [key] of [...all].filter(([, sum]) => sum.bytes !== 0 || sum.blocks !== 0)) known.row.add(Math.floor(key / 256)), known.column.add(key % 256);
    const most = [...all.values()].reduce((most, sum) => Math.max(most, Math.abs(sum[state.unit])), 1), { row, column, corner } = GRIDS[kind];
    const value = (row, column) => {
      const sum = all.get(row * 256 + column);
      if (!sum || (sum.bytes === 0 && sum.blocks === 0)) return null;
      const signed = (value, text) => two() && value > 0 ? `+${text}` : text, bytes = signed(sum.bytes, bytesText(sum.bytes)), blocks = signed(sum.blocks, counted.format(sum.blocks));
      return { text: state.unit === "bytes" ? bytes : blocks, title: `${bytes} in ${blocks} blocks`, share: sum[state.unit] / most };
    };
    const ends = axis => [...known[axis]];
    heat(table, corner, keys(ends("column"), key => column(key, heap.sides[0])), keys(ends("row"), row), value, (row, column) => chooseCell(number, row, column));
  }
}

// Selects a cell, a row or a column; selecting it again undoes the selection.
function chooseCell(grid, row, column) {
  const same = state.measure === "grid" && state.grid === grid && state.row === row && state.column === column;
  if (same) chooseAt(whole, { measure: "allocated" });
  else chooseAt(whole, { measure: "grid", grid, row, column });
  $("code-title").scrollIntoView({ block: "nearest" });
}

// Describes the selected cells.
function cellText() {
  const side = heap.sides[0], { kind, name } = side.grids[state.grid], { row, column, corner, about } = GRIDS[kind], [of_row, of_column] = corner.split(", ");
  const parts = [[state.row, row, of_row], [state.column, column, of_column]].filter(([key]) => key !== null).map(([key, text, of]) => `${of} ${text(key, side)}`);
  return `${about}${name ? ` (${name})` : ""}: ${parts.join(", ") || "all"}`;
}

function fillThreads() {
  const { threads, thread_names: names } = heap.sides[0].words;
  const ids = [...new Set(threads.flatMap(row => row.slice(0, 2)))].sort((a, b) => a - b);
  // Threads of two runs have different numbers; the report below compares them by order.
  if (two() || ids.length < 2) return;
  const sums = new Map(threads.map(([by, to, blocks, bytes]) => [`${by} ${to}`, { blocks, bytes }])), most = threads.reduce((most, row) => Math.max(most, row[3]), 1);
  const named = number => ids.filter(id => threads.some(row => row[number] === id)).map(id => ({ key: id, text: id > 2 ** 53 ? "others" : names[id] ? `${id} ${names[id]}` : `thread ${id}` }));
  const freed = sumOf(threads.map(row => row[3])), by_others = sumOf(threads.filter(row => row[0] !== row[1]).map(row => row[3]));
  if (ids.every(id => id < 2 ** 53)) $("threads-title").textContent = `${partText(by_others, freed)} of the freed bytes were freed by another thread than the one that allocated them`;
  heat($("threads").querySelector("table"), "allocated by, freed by", named(1), named(0), (by, to) => {
    const sum = sums.get(`${by} ${to}`);
    return sum && { text: bytesText(sum.bytes), title: `${bytesText(sum.bytes)} in ${counted.format(sum.blocks)} blocks`, share: sum.bytes / most };
  });
  $("threads").hidden = false;
}
