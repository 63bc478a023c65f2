"use strict";
// The table of functions, and those whose cells are darker the more they have.

const COLUMNS = [["itself", "itself"], ["", ""], ["total", "with callees"], ["", ""], ["blocks", "blocks"], ["", "live over time"], ["name", "function"]];
const CHANGES = [["itself", "change"], ["before", "before"], ["after", "after"], ["total", "change with callees"], ["blocks", "blocks"], ["", "live over time"], ["name", "function"]];

// The first sums are of what is shown; `sides` have those of each trace.
function fillTable({ itself, total }, sides, inclusive) {
  const unit = state.unit, none = heap.words.functions.length;
  // Of changes the parts are those of all that grew and shrank.
  const sum = isChange() ? picture.width[0] : Math.abs(inclusive[unit][0]);
  const size = values => row => Math.abs(values[row]), first = sides[0].itself[unit], last = sides.at(-1).itself[unit];
  const rank = { itself: size(itself[unit]), total: size(total[unit]), blocks: size(itself.blocks), before: size(first), after: size(last) };
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
    const texts = two()
      ? [valueText(itself[unit][row]), amountText(first[row]), amountText(last[row]), valueText(total[unit][row])]
      : [valueText(itself[unit][row]), partText(rank.itself(row), sum), valueText(total[unit][row]), partText(rank.total(row), sum)];
    line.append(...texts.map(text => cell(text, true)), cell(countText(itself.blocks[row]), true), document.createElement("td"), document.createElement("td"));
    if (number < CURVES) line.children[5].append(curve(row));
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

// A small picture of a function's live bytes over time; of two traces, that before as a line.
function curve(fn) {
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
  return svg;
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
  const { lifetimes, threads, thread_names: names, duration } = heap.sides.at(-1).words;
  // Threads of two runs have other numbers; the report below compares them in their order.
  if (two()) return;
  if (lifetimes.length > 0 && duration > 0) {
    const sums = new Map();
    for (const [size, time, blocks, bytes] of lifetimes) {
      // Two powers of two in a row.
      const key = `${size >> 1} ${time}`, sum = sums.get(key) ?? [0, 0];
      sums.set(key, [sum[0] + bytes, sum[1] + blocks]);
    }
    const columns = keys(lifetimes.map(row => row[1]), time => time === 0 ? "at once" : `< ${timeText(heap.sides[0], 10 ** time)}`);
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
