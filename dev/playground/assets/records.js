// Shows records with their fields and bytes, and the details of the selected field.
"use strict";
/// Rows on one page of records.
const PAGE = 200;
/// Bytes per line: fewer on narrow pages.
const BYTES = innerWidth < 600 ? 8 : 16;

/// Creates an element.
function make(name, properties, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

/// The current view: rows, kinds of records, and the selected field.
const shown = { opened: null, rows: [], from: 0, end: true, at: null, fixed: null };

const fieldName = (row, field) => field.name ?? shown.opened.kinds[row.record]?.leaves[field.leaf]?.name ?? "?";
const same = (a, b) => a && b && a.row === b.row && a.field === b.field;
const elements = at => document.querySelectorAll(`[data-row="${at.row}"][data-field="${at.field}"]`);

/// Shows the rows.
function showRows() {
  shown.at = shown.fixed = null;
  $("records").replaceChildren(...shown.rows.map(rowElement));
  $("records").scrollTop = 0;
  $("bytes").replaceChildren(...byteElements());
  $("bytes").scrollTop = 0;
  showDetails();
  const last = shown.from + shown.rows.length;
  $("range").textContent = shown.rows.length ? `${shown.from} to ${last - 1}${shown.end ? " (end)" : ""}` : "";
  $("earlier").disabled = shown.from === 0;
  $("later").disabled = shown.end;
  $("from").value = shown.from;
}

function rowElement(row, index) {
  const fields = row.fields.map((field, number) => {
    const name = fieldName(row, field);
    const element = make("span", { className: "field", id: `field-${index}-${number}` }, make("i", { textContent: `${name} ` }), field.value);
    element.setAttribute("role", "option");
    element.setAttribute("aria-selected", "false");
    if (field.from === field.to) element.classList.add("none");
    element.dataset.row = index;
    element.dataset.field = number;
    return element;
  });
  if (row.sets) fields.unshift(make("b", { textContent: `${row.sets} ` }));
  if (row.more_fields) fields.push(make("small", { textContent: `and ${row.more_fields} more fields` }));
  const element = make("div", { className: `row ${row.kind}` }, make("span", { textContent: row.number }), make("span", { textContent: row.title }), make("span", {}, ...fields));
  element.setAttribute("role", "group");
  element.setAttribute("aria-label", `${row.number}: ${row.title}`);
  element.title = row.more_json ? `${row.json} … ${row.more_json} more` : row.json;
  return element;
}

/// Returns the bytes of all rows, 16 per line, with a heading where another chunk begins or bytes are omitted.
function byteElements() {
  const out = [];
  let line = null, text = "", chunk, next = null;
  const end = () => {
    if (line) line.append(make("small", { textContent: `${" ".repeat(3 * (BYTES - text.length))} ${text}\n` }));
    line = null;
    text = "";
  };
  const head = words => {
    end();
    out.push(make("small", { textContent: `${words}\n` }));
  };
  shown.rows.forEach((row, index) => {
    const length = row.bytes.length / 2;
    if (!length) return;
    const of = row.chunk ?? null;
    if (chunk !== of || next === null) head(of === null ? "bytes of the file" : `content of the chunk at ${of}, unpacked`);
    else if (next !== row.offset) end();
    chunk = of;
    let field = 0;
    for (let at = 0; at < length; at++) {
      const place = row.offset + at;
      while (field < row.fields.length && row.fields[field].to <= at) field++;
      const inside = row.fields[field] && row.fields[field].from <= at;
      const byte = parseInt(row.bytes.slice(2 * at, 2 * at + 2), 16);
      if (!line || text.length === BYTES) {
        end();
        out.push((line = make("span", {}, make("i", { textContent: `${String(place).padStart(7)}  ` }))));
      }
      const element = make("b", { textContent: row.bytes.slice(2 * at, 2 * at + 2) });
      element.className = row.kind === "metadata" ? "m" : field % 2 ? "b" : "a";
      if (at === 0) element.classList.add("first");
      element.dataset.row = index;
      element.dataset.field = inside ? field : -1;
      line.append(element);
      text += byte > 32 && byte < 127 ? String.fromCharCode(byte) : "·";
    }
    next = row.offset + length;
    if (row.more_bytes) {
      head(`${row.more_bytes} more bytes of this record are not shown`);
      next += row.more_bytes;
    }
  });
  end();
  return out;
}

/// Selects a field: highlights the field and its bytes and shows its details. `scroll` names the part that must not
/// scroll.
function point(at, scroll) {
  if (same(at, shown.at)) return;
  for (const element of document.querySelectorAll(".on, .setter")) {
    element.classList.remove("on", "setter");
    element.removeAttribute("aria-selected");
  }
  shown.at = at;
  if (at) {
    for (const element of elements(at)) element.classList.add("on");
    const field = $(`field-${at.row}-${at.field}`);
    field?.setAttribute("aria-selected", "true");
    $("records").setAttribute("aria-activedescendant", field?.id ?? "");
    for (const row of setters(shown.rows[at.row].fields[at.field])) {
      const index = row - shown.from;
      for (const element of document.querySelectorAll(`#records [data-row="${index}"]`)) element.classList.add("setter");
    }
    const sight = (box, element) => {
      if (!element) return;
      const outer = box.getBoundingClientRect(), inner = element.getBoundingClientRect();
      if (inner.top < outer.top || inner.bottom > outer.bottom) box.scrollTop += inner.top - outer.top - outer.height / 3;
    };
    if (scroll !== "bytes") sight($("bytes"), document.querySelector("#bytes .on"));
    if (scroll !== "records") sight($("records"), field);
  }
  showDetails();
}

const setters = field => [...new Set([field?.width_set, field?.interpretation_set])].filter(row => row !== undefined);

/// Shows the details of the selected field.
function showDetails() {
  const list = [], { at, opened } = shown;
  const put = (name, ...value) => list.push(make("dt", { textContent: name }), make("dd", {}, ...value));
  if (!at) {
    $("details").replaceChildren(make("p", { className: "hint", textContent: shown.rows.length ? "Point at a field or a byte, or use the arrow keys; click to keep the selection." : "" }));
    return;
  }
  const row = shown.rows[at.row], field = row.fields[at.field], kind = opened.kinds[row.record], leaf = field.name ? null : kind?.leaves[field.leaf];
  const width = field.to - field.from, bytes = row.bytes.slice(2 * field.from, 2 * Math.min(field.to, field.from + 24)).replace(/../g, "$& ");
  put(`${row.title} ${row.number}`, make("b", { textContent: fieldName(row, field) }), leaf?.doc ? `: ${leaf.doc}` : "");
  put("value", field.value);
  const where = row.chunk === undefined ? `at offset ${row.offset + field.from} of the file` : `at offset ${row.offset + field.from} in the content of the chunk at ${row.chunk}`;
  put("bytes", make("span", { className: "mono", textContent: width ? `${bytes}${width > 24 ? "… " : ""}` : "no bytes are stored " }), width ? where : "");
  if (leaf) {
    const set = number => (number === undefined ? [] : [", set by ", metadataLink(number)]);
    put("width", `${width}`, ...set(field.width_set), leaf.width_from || leaf.width !== String(width) ? `; the DTD says ${leaf.width}${leaf.width_from ? `, in ${leaf.width_from}` : ""}` : "");
    if (field.interpretation) put("interpretation", field.interpretation, ...set(field.interpretation_set), `; the DTD says ${leaf.interpretation}, in ${leaf.interpretation_from}`);
    if (field.code) put("code", field.code);
  } else if (row.sets) put("sets", `${row.sets}, starting here`);
  $("details").replaceChildren(make("dl", {}, ...list));
}

/// Returns a link to a metadata record that set a property.
function metadataLink(number) {
  const link = make("button", { className: "link", textContent: `metadata record ${number}` });
  link.onclick = async () => {
    if (number < shown.from || number >= shown.from + shown.rows.length) await goTo(Math.max(0, number - 5));
    point({ row: number - shown.from, field: 0 }, "both");
    shown.fixed = shown.at;
  };
  return link;
}

/// Returns the field or byte of an event.
function pointed(event) {
  const { row, field } = event.target.closest?.("[data-row]")?.dataset ?? {};
  return row === undefined || field < 0 ? null : { row: Number(row), field: Number(field) };
}

/// Returns the next field in a direction, or the field in the next row. Rows without fields are skipped.
function step(rows, fields) {
  const { rows: all } = shown;
  let { row, field } = shown.at ?? { row: 0, field: -1 };
  const go = by => {
    do row += by;
    while (all[row] && !all[row].fields.length);
  };
  if (rows) go(rows);
  field += fields;
  if (fields > 0 && field >= (all[row]?.fields.length ?? 0)) {
    go(1);
    field = 0;
  } else if (fields < 0 && field < 0) {
    go(-1);
    field = (all[row]?.fields.length ?? 0) - 1;
  }
  return all[row] ? { row, field: Math.min(Math.max(field, 0), all[row].fields.length - 1) } : null;
}

const STEPS = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };

for (const box of [$("records"), $("bytes")]) {
  box.onpointerover = event => {
    const at = pointed(event);
    if (at && !shown.fixed) point(at, box.id);
  };
  box.onclick = event => {
    const at = pointed(event);
    shown.fixed = at && !same(at, shown.fixed) ? at : null;
    point(at, box.id);
  };
}
$("records").onkeydown = event => {
  if (event.key === "Escape") {
    shown.fixed = null;
    point(null);
  }
  const to = STEPS[event.key] && step(...STEPS[event.key]);
  if (!STEPS[event.key]) return;
  event.preventDefault();
  if (to) {
    shown.fixed = to;
    point(to, "both");
  }
};
