"use strict";
// The table of functions, and those whose cells are darker the more they have.

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
