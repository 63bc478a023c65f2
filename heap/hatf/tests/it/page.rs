//! `hatf report --html`: the figures on the page are those of the trace, and clicks have the intended effect.
#![expect(clippy::unwrap_used)]

use std::collections::HashMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use base64::Engine as _;
use hatf_trace::event::{Call, Event, EventKind, EventSink as _, Function};
use hatf_trace::forms::TraceReader;
use hatf_trace::heap::{HeapOptions, HeapWriter};
use hatf_trace::{EventSource as _, Item};
use metatf_test::{Folder, skip};
use serde_json::{Value, json};

use crate::common::{compiled_cpp, hatf};
use crate::shown::hostile_trace;

/// Node.js program that reads a page with the page's own script and prints sums with known values.
const SUMS: &str = r#"
const { readFileSync } = require("fs"), { gunzipSync } = require("zlib");
const [data, file] = process.argv.slice(1);
const { readHeap, ownSums, difference, inclusiveSums, functionSums, liveByFunction, calls } = require(data);
const page = readFileSync(file, "utf8");
const unpacked = id => gunzipSync(Buffer.from(page.match(new RegExp(`<script id="${id}" type="text/plain">([^<]*)`))[1], "base64"));
const heap = readHeap(JSON.parse(unpacked("words")), unpacked("numbers"));
const all = heap.sides.map(side => {
  const last = side.moments.length - 1, chosen = { from: 0, to: last, peak: false, mark: null };
  const total = choice => inclusiveSums(heap, ownSums(side, { ...chosen, ...choice })).bytes[0];
  const live = liveByFunction(heap, side), moments = side.moments.map(({ tick, highest, kept }, to) => {
    const own = ownSums(side, { ...chosen, measure: "live", to });
    const { itself } = functionSums(heap, own, inclusiveSums(heap, own));
    // Three ways to the same numbers.
    itself.bytes.forEach((bytes, fn) => { if (bytes !== live[fn][to]) throw new Error(`${fn} at ${to}`); });
    for (const inverted of [false, true]) {
      const tree = calls(heap, own.bytes, inverted);
      if (tree.value[0] !== itself.bytes.reduce((a, b) => a + b, 0)) throw new Error(`calls at ${to}`);
    }
    return { tick, highest, kept, bytes: total({ measure: "live", to }) };
  });
  const third = Math.floor(last / 3), two = 2 * third;
  return {
    words: side.words, moments,
    totals: Object.fromEntries(heap.words.measures.map(measure => [measure, total({ measure: measure === "peak" ? "live" : measure, peak: measure === "peak" })])),
    third, two, kept: total({ measure: "kept", from: third, to: two }), grown: total({ measure: "change", from: third, to: two }),
    marked: total({ measure: "change", from: 0, to: two, mark: third - 1 }),
    grids: side.grids.map(({ kind, name, row }, grid) => {
      const cells = (row, column) => { const sum = inclusiveSums(heap, ownSums(side, { ...chosen, measure: "grid", grid, row, column })); return [sum.bytes[0], sum.blocks[0]]; };
      const rows = [...new Set(row)].map(row => cells(row, null)[0]);
      return { kind, name, all: cells(null, null), never: cells(null, 21), pinned: cells(0, null), rows: rows.reduce((a, b) => a + b, 0) };
    }),
    parts: [total({ measure: "allocated", to: third }), total({ measure: "allocated", from: third + 1 })],
  };
});
const changes = {};
if (all.length === 2) {
  for (const measure of heap.words.measures) {
    const of = side => ownSums(side, { measure: measure === "peak" ? "live" : measure, from: 0, to: side.moments.length - 1, peak: measure === "peak", mark: null });
    const own = difference(...heap.sides.map(of)), { itself } = functionSums(heap, own, inclusiveSums(heap, own));
    changes[measure] = [...itself.bytes].map((bytes, fn) => [heap.words.functions[fn]?.[0] ?? "unknown stack", bytes, itself.blocks[fn]]).filter(row => row[1] || row[2]);
  }
}
console.log(JSON.stringify({ ...all[0], after: all[1], changes }));
"#;

/// Returns the sums that Node.js finds in a page, or `None` if there is no Node.js.
fn sums(page: &str) -> Option<Value> {
    node(SUMS, page)
}

/// Runs a program of Node.js with the page's own script and a page. Returns its output, or `None` if there is no Node.js.
fn node(program: &str, page: &str) -> Option<Value> {
    let data = metatf_test::root().join("heap/hatf-view/src/page/assets/data.js");
    let ran = Command::new("node").args(["-e", program]).arg(data).arg(page).output();
    let Ok(ran) = ran else {
        skip("no node on this machine");
        return None;
    };
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    Some(serde_json::from_slice(&ran.stdout).unwrap())
}

/// Returns the blocks of a trace by plain counting: the size, the tick of the allocation and the tick of the end.
fn blocks(trace: &str) -> Vec<(u64, u64, Option<u64>)> {
    let mut reader = TraceReader::open(Path::new(trace)).unwrap();
    let (mut tick, mut live, mut all) = (0, HashMap::new(), Vec::new());
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        let (ended, began) = match event.kind {
            EventKind::Call(call) if call.address != 0 => {
                ((call.old != 0).then_some(call.old), Some((call.address, call.size)))
            }
            EventKind::Free { address } => (Some(address), None),
            _ => (None, None),
        };
        if let Some(index) = ended.and_then(|address| live.remove(&address)) {
            tick += 1;
            let block: &mut (u64, u64, Option<u64>) = &mut all[index];
            block.2 = Some(tick);
        }
        if let Some((address, size)) = began {
            tick += 1;
            live.insert(address, all.len());
            all.push((size, tick, None));
        }
    }
    all
}

/// The figures at every point in time, of ranges, at the peak and at the end are those of the trace.
#[test]
fn figures_are_the_traces() {
    let folder = Folder::new();
    let Some(program) = compiled_cpp(&folder, "shop", &["-O1", "-g"]) else { return };
    let (trace, page) = (folder.path("shop.mtf"), folder.path("shop.html"));
    hatf(["record", "--stacks", "--usable", "-q", "-o", &trace, "--", program.to_str().unwrap()]).exits(0);
    let report: Value =
        serde_json::from_slice(&hatf(["report", &trace, "--html", &page, "--format", "json"]).exits(0).out).unwrap();
    let Some(found) = sums(&page) else { return };
    let blocks = blocks(&trace);
    let sum = |is: &dyn Fn(u64, u64) -> bool| -> u64 {
        blocks.iter().filter(|(_, from, to)| is(*from, to.unwrap_or(u64::MAX))).map(|(size, ..)| size).sum()
    };
    let number = |value: &Value| value.as_u64().unwrap();
    let place = |value: &Value| usize::try_from(number(value)).unwrap();
    let moments = found["moments"].as_array().unwrap();
    assert!(moments.len() >= 15, "{}", moments.len());
    for moment in moments {
        let tick = number(&moment["tick"]);
        assert_eq!(number(&moment["bytes"]), sum(&|from, to| from <= tick && to > tick), "{moment}");
    }
    let (third, two) = (place(&found["third"]), place(&found["two"]));
    let (start, end) = (number(&moments[third - 1]["tick"]), number(&moments[two]["tick"]));
    assert_eq!(number(&found["kept"]), sum(&|from, to| from > start && from <= end && to > end));
    let grown = sum(&|from, to| from <= end && to > end) as i64 - sum(&|from, to| from <= start && to > start) as i64;
    assert_eq!((found["grown"].as_i64(), found["marked"].as_i64()), (Some(grown), Some(grown)));
    assert_eq!(found["totals"]["peak"], report["peak"]["bytes"]);
    assert_eq!(moments.iter().map(|moment| number(&moment["highest"])).max(), report["peak"]["bytes"].as_u64());
    assert_eq!(found["totals"]["leaked"], report["still_live"]["bytes"]);
    // Reallocs count by their growth.
    assert_eq!(found["totals"]["allocated"], report["sites"]["total"]["allocated"]["bytes"]);
    assert!(report["totals"]["bytes"].as_u64() > found["totals"]["allocated"].as_u64(), "{report}");
    let by = hatf(["sites", &trace, "--by", "copied,slack", "--format", "json"]).exits(0).out;
    let by: Value = serde_json::from_slice(&by).unwrap();
    for measure in ["copied", "slack"] {
        let sites = by["sites"].as_array().unwrap().iter().map(|site| number(&site[measure]["bytes"]));
        let all = sites.sum::<u64>();
        assert!(all > 0, "{measure}");
        assert_eq!(number(&found["totals"][measure]), all, "{measure}");
    }
    assert_eq!(number(&found["parts"][0]) + number(&found["parts"][1]), number(&found["totals"]["allocated"]));
}

/// Table cells sum to known totals: lifetimes to freed and unfreed blocks, and pages to wasted bytes.
#[test]
fn cells_sum_to_all() {
    let folder = Folder::new();
    let Some(program) = compiled_cpp(&folder, "shop", &["-O1", "-g"]) else { return };
    let (trace, page) = (folder.path("shop.mtf"), folder.path("shop.html"));
    hatf(["record", "--stacks", "-q", "-o", &trace, "--", program.to_str().unwrap()]).exits(0);
    let with = ["report", &trace, "--html", &page, "--with", "fragmentation,whatif", "--format", "json"];
    let report: Value = serde_json::from_slice(&hatf(with).exits(0).out).unwrap();
    let moments: Value =
        serde_json::from_slice(&hatf(["fragmentation", &trace, "--format", "json"]).exits(0).out).unwrap();
    assert!(std::fs::read_to_string(&page).unwrap().contains("PREDICTED PEAKS"));
    assert_eq!(report["whatif"]["now"]["allocator"], "glibc");
    let Some(found) = sums(&page) else { return };
    let grids = found["grids"].as_array().unwrap();
    assert_eq!(grids[0]["kind"], "lifetimes");
    let totals = &report["report"]["totals"];
    let (all, never) = (&grids[0]["all"], &grids[0]["never"]);
    assert_eq!(never[0], report["report"]["still_live"]["bytes"]);
    assert_eq!(all[1].as_u64().unwrap() - never[1].as_u64().unwrap(), totals["frees"].as_u64().unwrap());
    assert_eq!((&all[0], &grids[0]["rows"]), (&totals["bytes"], &totals["bytes"]));
    let pages: Vec<_> = grids.iter().filter(|grid| grid["kind"] == "pages").collect();
    for (name, title) in [("end", "END"), ("most pages held", "PEAK"), ("most bytes wasted", "WORST")] {
        let Some(grid) = pages.iter().find(|grid| grid["name"].as_str().unwrap().contains(name)) else {
            panic!("{name}: {grids:?}");
        };
        let is_it = |moment: &&Value| moment["title"].as_str().unwrap().contains(title);
        let moment = &moments["moments"].as_array().unwrap().iter().find(is_it).unwrap()["pages"][0];
        assert_eq!((&grid["all"][0], &grid["rows"]), (&moment["wasted"], &moment["wasted"]), "{name}");
        assert_eq!(grid["pinned"][0], moment["wasted_on_pinned"], "{name}");
    }
}

/// The page keeps a point in time for each mark, and a trace of sizes only yields a page as well.
#[test]
fn pages_of_other_traces() {
    let folder = Folder::new();
    let (trace, page) = (hostile_trace(&folder, "name"), folder.path("phases.html"));
    hatf(["report", &trace, "--html", &page]).exits(0);
    let Some(found) = sums(&page) else { return };
    let marks = found["words"]["marks"].as_array().unwrap();
    assert!(!marks.is_empty());
    for mark in marks {
        let is_it = |moment: &&Value| moment["kept"] == true && moment["tick"] == mark[1];
        assert!(mark[1] == 0 || found["moments"].as_array().unwrap().iter().any(|moment| is_it(&moment)), "{mark}");
    }
    hatf(["record", "-q", "--sizes-only", "-o", &trace, "--", "true"]).exits(0);
    hatf(["report", &trace, "--html", &page]).exits(0);
    assert_eq!(sums(&page).unwrap()["words"]["sizes_only"], true);
    let empty = folder.path("empty.jsonl");
    std::fs::write(&empty, "").unwrap();
    let refused = hatf(["report", &empty, "--html", "/nowhere/page.html"]);
    assert_ne!(hatf(["diff", &empty, &empty, "--html", "/nowhere/page.html"]).status, 0);
    assert_ne!(refused.status, 0);
}

/// Node.js program that prints the words of a page about 20 points in time and about ranges, and the options that print
/// the same figures as tables.
const WORDS: &str = r#"
const { readFileSync } = require("fs"), { gunzipSync } = require("zlib");
const [data, file] = process.argv.slice(1);
const { readHeap, ownSums, inclusiveSums, liveByFunction, bytesText, blocksText, pointText, pointArgument, rangeSentences } = require(data);
const page = readFileSync(file, "utf8");
const unpacked = id => gunzipSync(Buffer.from(page.match(new RegExp(`<script id="${id}" type="text/plain">([^<]*)`))[1], "base64"));
const heap = readHeap(JSON.parse(unpacked("words")), unpacked("numbers")), side = heap.sides[0], last = side.moments.length - 1;
const rows = liveByFunction(heap, side), marked = side.moments.findIndex(moment => moment.kept);
const moments = [marked, ...Array.from({ length: 19 }, (_, number) => Math.floor(last * (number + 1) / 20))].map(to => {
  const { bytes, blocks } = inclusiveSums(heap, ownSums(side, { measure: "live", from: 0, to, peak: false, mark: null }));
  return { at: pointArgument(side, to), point: pointText(side, to), text: `${bytesText(bytes[0])} in ${blocksText(blocks[0])}` };
});
const ranges = [[0, .3], [.1, .2], [.25, .7], [.5, .95], [.9, 1], [.6, .8]].map(ends => ends.map(part => Math.floor(last * part))).map(([from, to]) => {
  const [start, end] = [pointArgument(side, from - 1), pointArgument(side, to)];
  return { start, end, words: [pointText(side, from - 1), pointText(side, to)], sentences: rangeSentences(heap, side, rows, { from, to }) };
});
console.log(JSON.stringify({ moments, ranges, limit: side.words.limit }));
"#;

/// Writes the trace of a server with a growing cache, a slow leak, temporary memory and short-lived blocks. Five rounds at
/// a time have the same time.
fn server_trace(folder: &Folder) -> String {
    let path = folder.path("server.mtf");
    let mut file = hatf_trace::trace::create(path.as_ref()).unwrap();
    let mut writer = HeapWriter::new(&mut file, &HeapOptions::default()).unwrap();
    let about = json!({"command": ["./server", "--port", "80"], "program": "./server", "memory_limit": 64 << 20});
    writer.user_metadata(about.as_object().unwrap()).unwrap();
    let mut event = |time, kind, stack: &[u64]| {
        writer.event(&Event { time, stack: stack.into(), ..Event::new(kind) }).unwrap();
    };
    event(0, EventKind::Source { path: b"/src/server.cpp" }, &[]);
    for (frame, name) in (1..).zip(["main", "remember", "handle_login", "format_line", "<module>"]) {
        event(0, EventKind::Symbol { frame, line: 10 * frame, name: name.as_bytes() }, &[]);
    }
    let address = |round, function| (8 * round + function) << 12;
    for round in 0..10_000 {
        let time = 300_001 * (1 + round / 5);
        let mut malloc = |function, size| {
            let call = Call { size, address: address(round, function), ..Call::new(Function::Malloc) };
            event(time, EventKind::Call(call), &[function, 1]);
        };
        malloc(4, 64 + round % 8);
        if round % 3 == 0 {
            malloc(2, 101);
        }
        if round % 10 == 0 {
            malloc(3, 200);
        }
        if (3_000..4_000).contains(&round) {
            malloc(5, 1_000);
        }
        event(time, EventKind::Free { address: address(round, 4) }, &[]);
        if (5_000..6_000).contains(&round) {
            event(time, EventKind::Free { address: address(round - 2_000, 5) }, &[]);
        }
        if round == 7_001 {
            event(time, EventKind::Mark { name: b"ready" }, &[]);
        }
    }
    event(700_000_000, EventKind::Exit { status: 0 }, &[]);
    writer.finish().unwrap();
    hatf_trace::trace::written(file, path.as_ref()).unwrap();
    path
}

/// Rounds a rate or a time.
#[expect(clippy::cast_possible_truncation, reason = "the number is small")]
fn whole(number: f64) -> u64 {
    number.round() as u64
}

/// The words about 20 points in time and six ranges are those of `hatf sites --at` and `--live-between`, whose points are
/// those that the page prints.
#[test]
fn words_are_those_of_the_text() {
    let folder = Folder::new();
    let (trace, page) = (server_trace(&folder), folder.path("server.html"));
    hatf(["report", &trace, "--html", &page]).exits(0);
    let Some(found) = node(WORDS, &page) else { return };
    let of = |value: &Value| value.as_str().unwrap().to_owned();
    let moments = found["moments"].as_array().unwrap();
    assert_eq!(moments.len(), 20);
    for moment in moments {
        let text = hatf(["sites", &trace, "--at", &of(&moment["at"])]).exits(0).text();
        assert!(text.contains(&format!("LIVE AT THE CHOSEN TIME: {}\n", of(&moment["text"]))), "{moment}: {text}");
    }
    // Only the mark is between events with the same time.
    let events = moments.iter().filter(|moment| of(&moment["point"]).starts_with("event "));
    assert_eq!(events.count(), 1, "{found}");

    // Live bytes at a point, the time of the point, and the live bytes of each function.
    let at = |point: &str| -> (i64, u64, HashMap<String, i64>) {
        if point.is_empty() {
            return (0, 0, HashMap::new());
        }
        let json = hatf(["sites", &trace, "--at", point, "--format", "json"]).exits(0).out;
        let json: Value = serde_json::from_slice(&json).unwrap();
        let functions = json["groups"].as_array().unwrap().iter();
        let functions = functions.map(|group| (of(&group["name"]), group["own"]["at"]["bytes"].as_i64().unwrap_or(0)));
        let functions: HashMap<_, _> = functions.collect();
        (functions.values().sum(), json["at"]["time"].as_u64().unwrap(), functions)
    };
    let (mut grew, mut shrank) = (0, 0);
    for range in found["ranges"].as_array().unwrap() {
        let (start, end) = (of(&range["start"]), of(&range["end"]));
        let ((before, began, functions), (after, ended, functions_after)) = (at(&start), at(&end));
        let (bytes, span) = (metatf_page::units::bytes, ended - began);
        let by = |change: i64| {
            let rate = change as f64 * 1e9 / span as f64;
            format!("{} ({}/s)", bytes(change as u64), bytes(whole(rate)))
        };
        let change = |name: &String| functions_after.get(name).unwrap_or(&0) - functions.get(name).unwrap_or(&0);
        let most = functions_after.keys().max_by_key(|name| change(name)).unwrap();
        let line = ["main", "remember", "handle_login", "format_line", "<module>"].iter().position(|name| name == most);
        let (verb, total) = if after > before { ("grew", after - before) } else { ("shrank", before - after) };
        let (line, most_by) = (10 * (line.unwrap() + 1), by(change(most)));
        let sentence = format!(
            "From {} to {}, live memory {verb} by {}, from {} to {}; {most} at server.cpp:{line} grew the most, by {most_by}.",
            of(&range["words"][0]),
            of(&range["words"][1]),
            by(total),
            bytes(before as u64),
            bytes(after as u64),
        );
        assert_eq!(of(&range["sentences"][0]), sentence);
        let kept = hatf(["sites", &trace, "--live-between", &format!("{start}..{end}")]).exits(0).text();
        let kept = kept.split_once("ALLOCATED IN THE RANGE, LIVE AT ITS END: ").unwrap().1.lines().next().unwrap();
        assert_eq!(of(&range["sentences"][1]), format!("{kept} allocated in this range were live at its end."));
        let limit = found["limit"].as_i64().unwrap();
        let left = (limit - after) as f64 / (total as f64 / span as f64);
        let left = metatf_page::units::nanoseconds(whole(left));
        let sentence = format!("At this rate, memory would reach the limit of 64.0 MiB after another {left}.");
        let said = range["sentences"].get(2).map(of);
        assert_eq!(said, (after > before).then_some(sentence));
        *if after > before { &mut grew } else { &mut shrank } += 1;
    }
    assert!(grew >= 4 && shrank >= 1, "{grew} {shrank}");
}

/// Script for a reader's actions and the resulting content of the page. The function `act()` performs the actions.
const ACTS: &str = r##"<script>
const text = id => $(id).textContent, result = { errors: [] };
window.addEventListener("error", event => result.errors.push(event.message));
window.addEventListener("unhandledrejection", event => result.errors.push(String(event.reason)));
const drag = (from, to, chart = charts[0]) => {
  const bounds = chart.getBoundingClientRect();
  chart.setPointerCapture = () => {};
  const at = part => ({ clientX: bounds.left + 64 + (bounds.width - 72) * part, clientY: bounds.top + 50, pointerId: 1, bubbles: true });
  chart.dispatchEvent(new PointerEvent("pointerdown", at(from)));
  chart.dispatchEvent(new PointerEvent("pointermove", at(to)));
  chart.dispatchEvent(new PointerEvent("pointerup", at(to)));
};
const key = key => document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const first = () => $("functions").tBodies[0].rows[0]?.cells[6].innerText;
const look = name => result[name] = { chosen: text("chosen"), about: text("about"), measure: state.measure, first: first(), rows: $("functions").tBodies[0].rows.length, boxes: boxes.length };
const wait = setInterval(() => {
  if ($("heap").hidden && $("failed").hidden) return;
  clearInterval(wait);
  result.failed = text("failed");
  try { if (!$("heap").hidden) act(); } catch (error) { result.errors.push(String(error.stack)); }
  done();
}, 20);
function done() {
  const pre = document.createElement("pre");
  pre.id = "result";
  pre.textContent = JSON.stringify(result);
  document.body.append(pre);
}
</script>"##;

/// A reader's actions on the page of the shop.
const OF_SHOP: &str = r##"function act() {
  look("start");
  const side = heap.sides[0], part = share => endOf(side, Math.floor(side.moments.length * share)) / axisEnd(side);
  drag(part(.3), part(.7)); look("range");
  drag(part(.8), part(.8)); look("moment");
  key("m"); key("e"); document.querySelector('[data-measure=change]').click(); look("change");
  key("m"); key("a"); document.querySelector('[data-measure=leaked]').click(); look("leaked");
  key("i"); look("inverted"); key("i");
  $("find").value = "second"; $("find").oninput(); look("found"); result.share = text("found"); find("");
  key("p");
  const box = boxes.find(box => box.node > 0 && nameOf(picture.fn[box.node]).includes("load")), bounds = $("icicle").getBoundingClientRect();
  $("icicle").dispatchEvent(new MouseEvent("click", { clientX: bounds.left + box.x + 2, clientY: bounds.top + box.row * ROW + 4, bubbles: true }));
  look("zoomed"); result.out = $("out").hidden; key("Escape"); look("back");
  document.querySelector("#sentences li:nth-child(3) button").click(); look("sentence");
  const cells = () => $("grids").querySelectorAll("[aria-pressed=true]").length;
  result.grids = $("grids").querySelectorAll("table").length;
  const never = [...$("grids").querySelectorAll("th button")].find(button => button.textContent === "never freed");
  never.click(); look("never"); result.pressed = cells(); never.click(); look("unpressed"); result.left = cells();
  $("grids").querySelector("td button").click(); look("cell");
  document.querySelector('[data-measure=pinned]').click(); look("pinned");
  drag(part(.3), part(.7)); look("kept");
}"##;

/// A reader's actions on the page of two versions of the shop.
const OF_TWO: &str = r##"function act() {
  const [before, after] = heap.sides, part = (side, share) => endOf(side, Math.floor(side.moments.length * share)) / axisEnd(side);
  look("start"); result.charts = charts.length; result.mark = $("mark").hidden;
  result.measures = [...$("measures").children].map(button => button.dataset.measure);
  drag(part(before, .3), part(before, .7), charts[0]); look("range");
  drag(part(after, .5), part(after, .5), charts[1]); look("moment");
  charts[0].dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true })); look("key");
  for (const measure of ["allocated", "temporary", "slack"]) { document.querySelector(`[data-measure=${measure}]`).click(); look(measure); }
  key("a"); document.querySelector('[data-measure=allocated]').click(); look("whole");
  document.querySelector("#functions th:nth-child(3) button").click(); look("sorted");
  key("i"); look("inverted"); key("i");
  document.querySelector("#sentences li:nth-child(1) button").click(); look("sentence");
  result.labels = charts.map(chart => chart.getAttribute("aria-label"));
}"##;

/// A reader's actions on the page of the server.
const OF_SERVER: &str = r##"function act() {
  const questions = [...$("questions").children, ...$("other-questions").querySelectorAll("li")].map(item => item.textContent);
  const legend = () => [...$("legend").children].map(item => item.textContent);
  const styles = name => [...document.querySelectorAll("#legend span, #functions td:last-child")].filter(item => item.textContent.startsWith(name)).map(item => item.querySelector(".key")?.style.background);
  const see = name => { look(name); Object.assign(result[name], { legend: legend(), range: text("range"), command: text("command"), axis: charts[0].getAttribute("aria-label"), back: $("back").hidden, zoom: $("zoom").disabled, title: text("code-title") }); };
  const side = heap.sides[0], part = share => endOf(side, Math.floor(side.moments.length * share)) / axisEnd(side);
  Object.assign(result, { questions, header: document.querySelector("header").innerText, sentences: text("sentences"), open: $("with-report").open });
  see("start");
  key("a"); see("whole"); key("z"); result.unzoomed = state.views.length;
  result.colours = [...styles("remember"), ...boxes.filter(box => nameOf(picture.fn[box.node]) === "remember").map(() => colourOf(heap.words.functions.findIndex(([name]) => name === "remember")))];
  drag(part(.75), part(.9)); see("range");
  key("z"); see("zoomed");
  drag(part(0), part(.5)); see("part");
  key("x"); see("back");
  drag(part(.2), part(.2)); see("moment");
  const { from, to } = state.at[0];
  charts[0].dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", shiftKey: true, bubbles: true })); see("extended");
  key("p"); document.querySelector('[data-measure=change]').click(); see("change");
}"##;

/// Returns the script that performs these actions.
fn acts(act: &str) -> String {
    ACTS.replace("function done() {", &format!("{act}\nfunction done() {{"))
}

/// Opens a page in a browser, acts in it and returns its content after each action, or `None` if there is no browser.
fn shown(page: &str, acts: &str) -> Option<Value> {
    let folder = Folder::new();
    let acted = folder.path("acted.html");
    let page = std::fs::read_to_string(page).unwrap();
    // The page's policy allows only the page's own scripts, so the test's script is added to it.
    let allowed = scripts(acts).map(hash).collect::<String>();
    let with = page.replacen("script-src ", &format!("script-src {allowed} "), 1) + acts;
    std::fs::write(&acted, with).unwrap();
    let options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--virtual-time-budget=20000",
        "--window-size=1200,1600",
        "--dump-dom",
    ];
    let profile = format!("--user-data-dir={}", folder.path("profile"));
    let run = |browser| {
        Command::new(browser)
            .args(options)
            .args([&profile, &format!("file://{acted}")])
            .stderr(Stdio::null())
            .output()
            .ok()
    };
    let Some(output) = ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(run) else {
        skip("no chromium on this machine");
        return None;
    };
    let document = String::from_utf8(output.stdout).unwrap();
    let result = document.split_once("<pre id=\"result\">");
    assert!(result.is_some(), "{document}");
    let (_, result) = result.unwrap();
    let result = result.split("</pre>").next().unwrap().replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    Some(serde_json::from_str(&result).unwrap())
}

#[test]
fn what_is_clicked_changes_what_it_should() {
    let folder = Folder::new();
    let Some(program) = compiled_cpp(&folder, "shop", &["-O1", "-g"]) else { return };
    let (trace, named, page) = (folder.path("shop.mtf"), folder.path("shop.sym.mtf"), folder.path("shop.html"));
    hatf(["record", "--stacks", "-q", "-o", &trace, "--", program.to_str().unwrap()]).exits(0);
    hatf(["symbolize", &trace]).exits(0);
    hatf(["report", &named, "--html", &page, "--with", "sites,churn,fragmentation"]).exits(0);
    let Some(found) = shown(&page, &acts(OF_SHOP)) else { return };
    let of = |name: &str, what: &str| found[name][what].as_str().unwrap().to_owned();
    assert_eq!((&found["errors"], &found["failed"]), (&Value::Array(Vec::new()), &Value::from("")), "{found}");
    assert!(of("start", "chosen").starts_with("the peak, at "), "{found}");
    assert!(of("start", "about").ends_with("blocks: live at the peak"), "{found}");
    assert!(of("range", "chosen").contains(" to ") && of("range", "measure") == "kept", "{found}");
    assert!(of("moment", "chosen").starts_with("up to ") && of("moment", "measure") == "live", "{found}");
    assert!(of("change", "chosen").contains("mark at ") && of("change", "about") != of("moment", "about"), "{found}");
    assert!(of("leaked", "about") != of("change", "about"), "{found}");
    assert_eq!(found["inverted"]["about"], found["leaked"]["about"], "{found}");
    assert!(found["inverted"]["boxes"] != found["leaked"]["boxes"], "{found}");
    assert!(found["found"]["rows"] == 1 && of("found", "first").starts_with("shop::second"), "{found}");
    assert!(found["zoomed"]["boxes"] != found["back"]["boxes"] && found["out"] == false, "{found}");
    assert_eq!(found["back"]["boxes"], found["start"]["boxes"], "{found}");
    assert_eq!(of("sentence", "measure"), "allocated", "{found}");
    assert!(found["grids"].as_u64().unwrap() >= 2 && found["pressed"] == 1 && found["left"] == 0, "{found}");
    let amount = |name: &str| of(name, "about").split(':').next().unwrap().to_owned();
    assert!(of("never", "about").ends_with("lifetime never freed") && amount("never") == amount("leaked"), "{found}");
    assert_eq!(
        (of("unpressed", "measure"), amount("unpressed")),
        ("allocated".to_owned(), amount("sentence")),
        "{found}"
    );
    assert!(of("cell", "about").contains("size < ") && amount("cell") != amount("sentence"), "{found}");
    assert!(of("pinned", "about").contains("live pinned") && of("kept", "measure") == "kept", "{found}");
}

/// The legend follows the selection and colors are consistent, the axis zooms, the command prints the selection, and all
/// questions of README are listed.
#[test]
fn the_selection_determines_the_legend_and_the_command() {
    let folder = Folder::new();
    let (trace, page) = (server_trace(&folder), folder.path("server.html"));
    hatf(["report", &trace, "--html", &page]).exits(0);
    let Some(found) = shown(&page, &acts(OF_SERVER)) else { return };
    assert_eq!((&found["errors"], &found["failed"]), (&Value::Array(Vec::new()), &Value::from("")), "{found}");
    let of = |name: &str, what: &str| found[name][what].as_str().unwrap().to_owned();
    let header = found["header"].as_str().unwrap();
    for part in
        ["./server --port 80", "Exited with status 0 after 700 ms.", "1.21 MiB in 3,169 blocks, 300 ms after the start"]
    {
        assert!(header.contains(part), "{part}: {found}");
    }
    assert!(!found["sentences"].as_str().unwrap().contains("Exited"), "{found}");
    assert_eq!(found["open"], false, "{found}");
    let readme = std::fs::read_to_string(metatf_test::root().join("README.md")).unwrap();
    let (_, table) = readme.split_once("<!-- analyses -->").unwrap();
    let questions: Vec<_> =
        table.lines().skip(3).map_while(|line| line.strip_prefix("| ")?.split(" | ").next()).collect();
    assert!(questions.len() >= 6, "{questions:?}");
    let listed: Vec<_> = found["questions"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    for question in questions {
        let line =
            listed.iter().find(|text| text.starts_with(question)).unwrap_or_else(|| panic!("{question}: {found}"));
        assert!(*line == question || line.contains("hatf report ") && line.contains(" --with "), "{line}");
    }

    let legend = |name: &str| found[name]["legend"].to_string();
    assert!(legend("whole").contains("<module> of server.cpp") && legend("whole").contains("remember"), "{found}");
    assert!(!legend("range").contains("<module>") && legend("range").contains("other functions"), "{found}");
    let colours = found["colours"].as_array().unwrap();
    assert!(colours.len() >= 3, "{found}");
    // The browser prints `#rrggbb` as `rgb(r, g, b)` in styles.
    assert_eq!((&colours[0], &colours[2]), (&colours[1], &Value::from("#e69f00")), "{found}");
    assert_eq!(colours[0], "rgb(230, 159, 0)", "{found}");

    assert_eq!((&found["unzoomed"], &found["whole"]["zoom"]), (&0.into(), &true.into()), "{found}");
    assert_eq!(
        (&found["range"]["back"], &found["zoomed"]["back"], &found["back"]["back"]),
        (&true.into(), &false.into(), &true.into())
    );
    assert!(
        of("zoomed", "axis").starts_with("live bytes over 450 ms to 540 ms: at most 472 KiB; ")
            && of("back", "axis").starts_with("live bytes over 700 ms"),
        "{found}"
    );
    // The same part of the chart is a smaller part of the trace.
    assert!(of("part", "chosen") != of("range", "chosen") && of("part", "range").starts_with("From 4"), "{found}");

    // The printed commands print the amount on the page.
    for name in ["start", "whole", "range", "part", "moment", "extended"] {
        let command = of(name, "command");
        let arguments: Vec<_> = command.split(' ').skip(1).collect();
        let about = of(name, "about");
        let amount = about.split(':').next().unwrap();
        let text = hatf(arguments).exits(0).text();
        assert!(text.lines().any(|line| line.ends_with(&format!(": {amount}"))), "{name}: {command}: {amount}: {text}");
    }
    assert!(of("range", "command").contains(" --live-between 4") && of("start", "command").ends_with(" --by peak"));
    assert!(of("moment", "command").contains(" --at ") && of("moment", "range").is_empty(), "{found}");
    assert!(
        of("extended", "range").contains("live memory ") && of("extended", "title").starts_with("Which code"),
        "{found}"
    );
}

/// Returns the scripts of a page that a browser runs.
fn scripts(page: &str) -> impl Iterator<Item = &str> {
    page.split("<script>").skip(1).filter_map(|rest| Some(rest.split_once("</script>")?.0))
}

/// Returns the name of a script in a policy.
fn hash(script: &str) -> String {
    let mut program = Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    program.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let digits = String::from_utf8(program.wait_with_output().unwrap().stdout).unwrap();
    let bytes: Vec<u8> = (0..32).map(|n| u8::from_str_radix(&digits[2 * n..2 * n + 2], 16).unwrap()).collect();
    format!("'sha256-{}'", base64::engine::general_purpose::STANDARD.encode(bytes))
}

/// A browser runs the page's two scripts and no injected one.
#[test]
fn the_policy_names_the_scripts() {
    let folder = Folder::new();
    let (trace, page) = (folder.path("a.jsonl"), folder.path("a.html"));
    std::fs::write(&trace, "").unwrap();
    hatf(["report", &trace, "--html", &page]).exits(0);
    let page = std::fs::read_to_string(page).unwrap();
    let policy = page.split("script-src ").nth(1).unwrap().split('"').next().unwrap();
    let hashes: Vec<String> = scripts(&page).map(hash).collect();
    assert_eq!(hashes.len(), 2);
    assert_eq!(policy, hashes.join(" "), "the policy in heap/hatf-view/src/page/assets/page.html");
}

/// Names with markup are shown as text.
#[test]
fn names_are_texts() {
    let folder = Folder::new();
    let evil = "</script><script>document.title='obeyed'</script>\u{7}\"'`${1}<b onclick=x>&lt;{view}{below}";
    let (trace, page) = (hostile_trace(&folder, evil), folder.path("evil.html"));
    hatf(["report", &trace, "--html", &page, "--with", "sites,churn,fragmentation,profile"]).exits(0);
    let looks = "function act() { result.title = document.title; result.bold = document.querySelectorAll('b[onclick]').length; result.first = first(); }";
    let Some(found) = shown(&page, &acts(looks)) else { return };
    assert_eq!((&found["failed"], &found["bold"]), (&Value::from(""), &Value::from(0)), "{found}");
    assert!(!found["title"].as_str().unwrap().contains("obeyed"), "{found}");
    assert!(found["first"].as_str().unwrap().contains("</script>"), "{found}");
}

/// `hatf run` prints the program's own functions, writes a trace and a page, and exits with the program's status.
#[test]
fn a_program_is_run_and_shown() {
    let folder = Folder::new();
    let Some(program) = compiled_cpp(&folder, "shop", &["-O1", "-g"]) else { return };
    let (trace, page) = (folder.path("shop.mtf"), folder.path("shop.html"));
    hatf(["run", "-o", &trace, program.to_str().unwrap()])
        .exits(0)
        .says("At most ")
        .says("shop::add at ")
        .says("NEXT")
        .says(&format!("hatf sites {trace}"));
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("<script id=\"numbers\""));
    // The header states the program, its end and its peaks.
    let header = html.split_once("<header>").unwrap().1.split_once("</header>").unwrap().0;
    for part in
        [&format!("<h1>{}</h1>", program.display()), "<td>Exited with status 0 after ", "<td>Peak of live memory</td>"]
    {
        assert!(header.contains(part), "{part}: {header}");
    }
    // If a shell only starts the program, the screen describes the process with the higher peak, and says so. The
    // status is the shell's.
    let script = format!("{}; exit 3", program.display());
    hatf(["run", "-o", &trace, "sh", "-c", &script])
        .exits(3)
        .says("shop::add at ")
        .says("shop.processes/")
        .says("2 processes were recorded; this is process 2, `shop`, whose peak is ");
    let nothing = folder.path("nothing.mtf");
    hatf(["run", "-o", &nothing, "true"]).exits(0).says("no allocations were recorded");
    hatf(["run", "-o", &trace, "/nowhere/program"]).exits(127);
    hatf(["run"]).exits(2);
}

/// Records two versions of the shop and writes their page. Returns the page and the output of `hatf diff`.
fn page_of_two(folder: &Folder) -> Option<(String, Value)> {
    let page = folder.path("change.html");
    let mut traces = Vec::new();
    for (version, items) in [("before", "-DITEMS=200"), ("after", "-DITEMS=260")] {
        std::fs::create_dir(folder.join(version)).unwrap();
        let program = compiled_cpp(folder, "shop", &["-O1", "-g", items])?;
        let (kept, trace) = (folder.join(version).join("shop"), folder.path(&format!("{version}.mtf")));
        std::fs::rename(program, &kept).unwrap();
        hatf(["record", "--stacks", "--usable", "-q", "-o", &trace, "--", kept.to_str().unwrap()]).exits(0);
        traces.push(trace);
    }
    let diff = hatf(["diff", &traces[0], &traces[1], "--html", &page, "--format", "json"]).exits(0);
    Some((page, serde_json::from_slice(&diff.out).unwrap()))
}

/// The page of two traces has the figures of `hatf diff` for each function and measure.
#[test]
fn figures_of_two_are_the_differences() {
    let folder = Folder::new();
    let Some((page, diff)) = page_of_two(&folder) else { return };
    let Some(found) = sums(&page) else { return };
    for measure in ["peak", "leaked", "allocated", "temporary", "short"] {
        let mut shown = Vec::new();
        for row in found["changes"][measure].as_array().unwrap() {
            shown.push((row[0].as_str().unwrap().to_owned(), row[1].as_i64().unwrap(), row[2].as_i64().unwrap()));
        }
        let of = |function: &Value, what: &str| function["change"][measure][what].as_i64().unwrap();
        let changed = |function: &&Value| of(function, "bytes") != 0 || of(function, "blocks") != 0;
        let mut known: Vec<_> = diff["functions"].as_array().unwrap().iter().filter(changed).collect();
        known.sort_by_key(|function| function["name"].as_str().unwrap());
        shown.sort();
        assert_eq!(shown.len(), known.len(), "{measure}: {shown:?}");
        for ((name, bytes, blocks), function) in shown.iter().zip(known) {
            assert!(function["name"].as_str().unwrap().starts_with(name), "{name}: {function}");
            assert_eq!((*bytes, *blocks), (of(function, "bytes"), of(function, "blocks")), "{measure}: {name}");
        }
        for (side, name) in [(&found, "before"), (&found["after"], "after")] {
            assert_eq!(side["totals"][measure], diff["total"][name][measure]["bytes"], "{measure} {name}");
        }
    }
    assert!(!found["changes"]["peak"].as_array().unwrap().is_empty());
}

#[test]
fn what_is_clicked_changes_what_it_should_of_two() {
    let folder = Folder::new();
    let Some((page, _)) = page_of_two(&folder) else { return };
    let Some(found) = shown(&page, &acts(OF_TWO)) else { return };
    let of = |name: &str, what: &str| found[name][what].as_str().unwrap().to_owned();
    assert_eq!((&found["errors"], &found["failed"]), (&Value::Array(Vec::new()), &Value::from("")), "{found}");
    assert_eq!((&found["charts"], &found["mark"]), (&Value::from(2), &Value::from(true)), "{found}");
    assert!(!found["measures"].as_array().unwrap().contains(&Value::from("change")), "{found}");
    assert!(
        of("start", "chosen").starts_with("before: the peak, at ") && of("start", "about").starts_with('+'),
        "{found}"
    );
    assert!(
        of("start", "about").ends_with("live at the peak") && of("start", "first").starts_with("shop::add"),
        "{found}"
    );
    // A choice in one trace leaves the other unchanged.
    assert!(of("range", "chosen").contains(" to ") && of("range", "chosen").contains("after: the peak"), "{found}");
    assert!(
        of("moment", "chosen").contains("after: up to ") && !of("moment", "chosen").contains("before: up to "),
        "{found}"
    );
    assert_ne!(of("key", "chosen"), of("moment", "chosen"), "{found}");
    assert_eq!(of("whole", "chosen"), "the whole trace", "{found}");
    assert!(of("slack", "about").contains("beyond the requested size"), "{found}");
    assert_eq!(of("inverted", "about"), of("sorted", "about"), "{found}");
    assert!(found["inverted"]["boxes"] != found["sorted"]["boxes"], "{found}");
    assert_eq!(of("sentence", "about"), of("start", "about"), "{found}");
    assert!(found["labels"][1].as_str().unwrap().contains("after.mtf: live bytes"), "{found}");
}

/// The search works if some stacks are unknown.
#[test]
fn found_among_unknown_stacks() {
    let folder = Folder::new();
    let (trace, page) = (folder.path("trace.mtf"), folder.path("page.html"));
    let mut file = hatf_trace::trace::create(trace.as_ref()).unwrap();
    let mut writer = HeapWriter::new(&mut file, &HeapOptions::default()).unwrap();
    writer.event(&Event::new(EventKind::Symbol { frame: 9, line: 7, name: b"wanted" })).unwrap();
    writer.event(&Event { stack: (&[9]).into(), ..Event::malloc(16, 8) }).unwrap();
    writer.event(&Event::malloc(32, 8)).unwrap();
    writer.finish().unwrap();
    hatf(["report", &trace, "--html", &page]).exits(0);
    let act = "function act() { find('want'); look('found'); find('not known'); look('none'); find(''); look('all'); }";
    let Some(found) = shown(&page, &acts(act)) else { return };
    assert_eq!(found["errors"], Value::Array(Vec::new()), "{found}");
    assert_eq!(
        (&found["found"]["rows"], &found["none"]["rows"], &found["all"]["rows"]),
        (&1.into(), &0.into(), &2.into())
    );
}

/// If points in time kept for marks, and functions that are each large at some time, exceed the size of a page, the
/// page is larger.
#[test]
fn what_cannot_be_made_smaller_is_shown() {
    const SITES: u64 = 500;
    const MARKS: u64 = 260;
    let folder = Folder::new();
    let (trace, page) = (folder.path("trace.mtf"), folder.path("page.html"));
    let mut file = hatf_trace::trace::create(trace.as_ref()).unwrap();
    let mut writer = HeapWriter::new(&mut file, &HeapOptions::default()).unwrap();
    let mut random = 1_u64;
    let mut small = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        random >> 40
    };
    for mark in 0..MARKS {
        for site in 0..SITES {
            let (frame, at) = ([site + 1], mark * SITES + site);
            // The site is large at some points in time, but not after them.
            let large = site * MARKS / SITES..site * MARKS / SITES + 5;
            let size = if mark == large.start { 1 << 40 } else { small() };
            if mark == large.end {
                writer.event(&Event { time: at, ..Event::free((large.start * SITES + site + 1) << 41) }).unwrap();
            }
            writer.event(&Event { time: at, stack: (&frame).into(), ..Event::malloc((at + 1) << 41, size) }).unwrap();
        }
        writer.event(&Event { time: (mark + 1) * SITES, ..Event::new(EventKind::Mark { name: b"mark" }) }).unwrap();
    }
    writer.finish().unwrap();
    hatf(["report", &trace, "--symbols", "none", "--html", &page]).exits(0);
    let size = std::fs::metadata(&page).unwrap().len();
    assert!((1_000_000..3_000_000).contains(&size), "{size}");
}

/// A mark is chosen by name in both traces.
#[test]
fn marks_are_chosen_by_name() {
    let folder = Folder::new();
    let (trace, page) = (hostile_trace(&folder, "name"), folder.path("marks.html"));
    hatf(["diff", &trace, &trace, "--html", &page]).exits(0);
    let act = "function act() {
      const select = $('named'), option = [...select.options].find(option => option.text === 'name (5)');
      select.value = option.value; select.onchange(); look('marked');
    }";
    let Some(found) = shown(&page, &acts(act)) else { return };
    assert_eq!(found["errors"], Value::Array(Vec::new()), "{found}");
    // Five blocks, of 100 to 500 bytes.
    let about = found["marked"]["about"].as_str().unwrap();
    assert!(about.starts_with("0 B, from 1.46 KiB in 5 blocks to 1.46 KiB in 5 blocks"), "{found}");
}
