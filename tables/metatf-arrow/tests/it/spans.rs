//! Compares tables of spans and events with a model of programs, and tests names, dates, large times and damage.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::HashMap;

use arrow_schema::DataType;
use metatf::container::WriteOptions;
use metatf::dynamic::{OwnedRecord, Schema, Writer};
use metatf_arrow::{OpenOptions, Scan, Table, open_tables};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::common::{file, of_batch, rows};

const DTD: &str = r#"section s 1 {
    time.width = 8; time.interpretation = none; time.unit = "us"; time.role = "time";
    thread.width = 1; thread.interpretation = none; thread.role = "thread";
    id.width = 2; id.interpretation = none; id.role = "span";
    above.width = 2; above.interpretation = none; above.role = "parent";
    n.width = 1; n.interpretation = none;
    load: (time, thread, n) { tag.value = 4; tag.span = "begin"; }
    loaded: (time, thread, n) { tag.value = 5; tag.span = "end load"; }
    request: (time, thread, id, above, n) { tag.value = 6; tag.span = "begin"; }
    status.width = 1; status.interpretation = none;
    answered: (time, thread, id, status) { tag.value = 7; tag.span = "end"; }
    in: (time, thread, id) { tag.value = 8; tag.span = "enter"; }
    out: (time, thread, id) { tag.value = 9; tag.span = "leave"; }
    tick: (time, thread, n) { tag.value = 10; }
    plain: (n) { tag.value = 11; }
}"#;

/// Creates a trace from record names and fields as JSON.
fn trace(dtd: &str, records: &[(&str, Value)]) -> Vec<u8> {
    let schema = Schema::parse("s.dtd", dtd.as_bytes()).unwrap();
    let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default()).unwrap();
    let mut owned = OwnedRecord::default();
    for (name, fields) in records {
        let mut line = json!({"@section": "s", "@record": name});
        line.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let line = schema.read_json(line.to_string().as_bytes(), &mut owned).unwrap();
        writer.write(&line, &owned).unwrap();
    }
    writer.finish().unwrap()
}

/// A span of the model.
#[derive(Clone, Debug, Default)]
struct Modelled {
    record: usize,
    name: &'static str,
    begin: u64,
    end: Option<u64>,
    thread: u64,
    id: Option<u64>,
    /// Index of the parent among all spans, or a span number that was not open.
    parent: Option<Result<usize, u64>>,
    n: u64,
    /// A field of the span's last record.
    status: Option<u64>,
    /// Time at which the number was reused, if the span had not ended.
    given_up: Option<u64>,
    inside: u64,
    since: u64,
    busy: Option<u64>,
}

/// A step of a program, as (action, thread, index of the span, time since the previous step).
type Step = (u8, u8, u8, u8);

/// The spans and events of a program in a separate model.
#[derive(Default)]
struct Model {
    records: Vec<(&'static str, Value)>,
    all: Vec<Modelled>,
    /// The indices of closed spans, in closing order.
    closed: Vec<usize>,
    events: Vec<Map<String, Value>>,
    stacks: HashMap<u64, Vec<usize>>,
    inside: HashMap<u64, Vec<usize>>,
}

impl Model {
    fn new(steps: &[Step], numbered: bool) -> Self {
        let (mut model, mut time) = (Self::default(), 0);
        for &(what, thread, which, after) in steps {
            time += u64::from(after) + 1;
            model.step(what % 8, u64::from(thread % 3), which, time, numbered);
        }
        model
    }

    fn parent(&self, thread: u64) -> Option<Result<usize, u64>> {
        if let Some(top) = self.stacks.get(&thread).and_then(|stack| stack.last()) {
            return Some(Ok(*top));
        }
        let number = *self.inside.get(&thread)?.last()?;
        Some(self.open(number).ok_or(self.all[number].id.unwrap()))
    }

    fn open(&self, place: usize) -> Option<usize> {
        (self.all[place].end.is_none() && self.all[place].given_up.is_none()).then_some(place)
    }

    /// Returns the open span with a number.
    fn open_of(&self, id: u64) -> Option<usize> {
        (0..self.all.len()).find(|place| self.all[*place].id == Some(id) && self.open(*place).is_some())
    }

    fn step(&mut self, what: u8, thread: u64, which: u8, time: u64, numbered: bool) {
        let (record, place) = (self.records.len(), self.all.len());
        let chosen = (place > 0).then(|| usize::from(which) % place.max(1));
        let at = json!({"time": time, "thread": thread});
        let with = |more: Value| {
            let mut fields = at.as_object().unwrap().clone();
            fields.extend(more.as_object().unwrap().clone());
            Value::Object(fields)
        };
        let parent = self.parent(thread);
        let span = Modelled { record, begin: time, thread, n: u64::from(which), ..Modelled::default() };
        match (what, numbered) {
            (0 | 1, false) => {
                self.all.push(Modelled { name: "load", parent, ..span });
                self.stacks.entry(thread).or_default().push(place);
                self.records.push(("load", with(json!({"n": which}))));
            }
            (2 | 3, false) => {
                if let Some(ended) = self.stacks.get_mut(&thread).and_then(Vec::pop) {
                    (self.all[ended].end, self.all[ended].n) = (Some(time), u64::from(which));
                    self.closed.push(ended);
                }
                self.records.push(("loaded", with(json!({"n": which}))));
            }
            (0 | 1, true) => {
                let id = u64::from(which % 5) + 1;
                // Every third span names its parent.
                let named = chosen.filter(|_| which.is_multiple_of(3)).and_then(|above| self.all[above].id);
                let parent = named.map_or(parent, |above| Some(self.open_of(above).ok_or(above)));
                if let Some(before) = self.open_of(id) {
                    self.all[before].given_up = Some(time);
                    self.closed.push(before);
                }
                self.all.push(Modelled { name: "request", id: Some(id), parent, ..span });
                self.records.push(("request", with(json!({"id": id, "above": named.unwrap_or(0), "n": which}))));
            }
            (2..=4, true) if let Some(id) = chosen.and_then(|chosen| self.all[chosen].id) => {
                let status = if what == 2 { json!({"id": id, "status": which}) } else { json!({"id": id}) };
                self.records.push((["answered", "in", "out"][usize::from(what) - 2], with(status)));
                self.of_number(what, thread, id, which, time);
            }
            (5, _) => self.records.push(("plain", json!({"n": which}))),
            _ => {
                let [parent_record, number, name] = self.above(parent);
                let row = json!({
                    "@number": record, "name": "tick", "time": time * 1000, "process": null, "thread": thread, "thread_name": null,
                    "@parent": parent_record, "parent": number, "parent_name": name, "level": null, "level_number": null,
                    "target": null, "file": null, "line": null, "message": null, "fields": {"n": which.to_string()},
                });
                self.events.push(row.as_object().unwrap().clone());
                self.records.push(("tick", with(json!({"n": which}))));
            }
        }
    }

    fn of_number(&mut self, what: u8, thread: u64, id: u64, which: u8, time: u64) {
        let open = self.open_of(id);
        let numbers: Vec<_> = self.all.iter().map(|span| span.id).collect();
        let inside = self.inside.entry(thread).or_default();
        match (what, open) {
            (2, Some(open)) => {
                (self.all[open].end, self.all[open].status) = (Some(time), Some(u64::from(which)));
                self.closed.push(open);
            }
            (3, Some(open)) => {
                let span = &mut self.all[open];
                if span.inside == 0 {
                    (span.since, span.thread) = (time, thread);
                }
                span.inside += 1;
                inside.push(open);
            }
            (4, _) => {
                let last = |wanted: &dyn Fn(usize) -> bool| inside.iter().rposition(|other| wanted(*other));
                let at = last(&|other| Some(other) == open).or_else(|| last(&|other| numbers[other] == Some(id)));
                let left = at.map(|at| inside.remove(at));
                let Some(open) = open.filter(|open| left.is_none_or(|left| left == *open)) else { return };
                let span = &mut self.all[open];
                if span.inside > 0 {
                    span.inside -= 1;
                    if span.inside == 0 {
                        span.busy = Some(span.busy.unwrap_or(0) + time - span.since);
                    }
                }
            }
            _ => {}
        }
    }

    fn above(&self, parent: Option<Result<usize, u64>>) -> [Value; 3] {
        match parent {
            None => [Value::Null, Value::Null, Value::Null],
            Some(Err(number)) => [Value::Null, number.into(), Value::Null],
            Some(Ok(place)) => {
                let span = &self.all[place];
                [span.record.into(), span.id.into(), span.name.into()]
            }
        }
    }

    /// Returns the part of a span in which no direct child was open.
    fn own(&self, place: usize) -> Option<u64> {
        let span = &self.all[place];
        let end = span.end?;
        let below = self.all.iter().filter(|other| other.parent == Some(Ok(place)));
        let until = |other: &Modelled| other.end.or(other.given_up).unwrap_or(end).min(end);
        let below: Vec<_> = below.map(|other| (other.begin, until(other))).collect();
        let covered = (span.begin..end).filter(|at| below.iter().any(|(from, to)| from <= at && at < to));
        Some(end - span.begin - covered.count() as u64)
    }

    /// Returns the rows of spans. Closed spans come first.
    fn spans(&self) -> Vec<Map<String, Value>> {
        let open = (0..self.all.len()).filter(|place| self.open(*place).is_some());
        let rows = self.closed.iter().copied().chain(open).map(|place| {
            let span = &self.all[place];
            let [parent_record, number, name] = self.above(span.parent);
            let ns = |us: Option<u64>| us.map(|us| us * 1000);
            let mut row = json!({
                "@number": span.record, "name": span.name, "begin_time": span.begin * 1000, "end_time": ns(span.end),
                "duration_ns": ns(span.end.map(|end| end - span.begin)), "self_ns": ns(self.own(place)), "busy_ns": ns(span.busy),
                "span": span.id, "process": null, "thread": span.thread, "thread_name": null, "@parent": parent_record,
                "parent": number, "parent_name": name, "level": null, "level_number": null, "target": null, "file": null,
                "line": null, "fields": {"n": span.n.to_string()},
            });
            if let Some(status) = span.status {
                row["fields"]["status"] = status.to_string().into();
            }
            row.as_object().unwrap().clone()
        });
        rows.collect()
    }
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases: cases * metatf_test::factor(), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn programs_have_the_spans_and_events_of_a_model(
        steps in vec(any::<Step>(), 0..120),
        numbered in any::<bool>(),
        chosen in vec(any::<prop::sample::Index>(), 1..5),
    ) {
        let model = Model::new(&steps, numbered);
        let file = file(&trace(DTD, &model.records));
        let tables = open_tables(file.path(), &OpenOptions::default()).unwrap();
        let (spans, events) = (tables.spans().unwrap(), tables.events().unwrap());
        let all = [(spans, model.spans()), (events, model.events.clone())];
        for (table, wanted) in &all {
            let (found, error) = rows(table, &Scan::default());
            prop_assert_eq!(error, None);
            prop_assert_eq!(&found, wanted);
            // Selected columns in any order and selected rows have the same values in the same order.
            let columns: Vec<usize> = chosen.iter().map(|at| at.index(table.schema().fields().len())).collect();
            let (some, _) = rows(table, &Scan { columns: Some(columns.clone()), ..Scan::default() });
            let names: Vec<String> = columns.iter().map(|at| table.schema().field(*at).name().clone()).collect();
            let projected = |row: &Map<String, Value>| names.iter().map(|name| (name.clone(), row[name].clone())).collect();
            prop_assert_eq!(some, wanted.iter().map(projected).collect::<Vec<Map<_, _>>>());
        }
        // Read all tables at once.
        let count = tables.all().len();
        let mut at_once = vec![Vec::new(); 2];
        for next in tables.scan_together(&[(count - 2, None), (count - 1, None)], 2).unwrap() {
            let (place, batch) = next.unwrap();
            at_once[place].extend(of_batch(&batch));
        }
        prop_assert_eq!(at_once, all.map(|(_, wanted)| wanted).to_vec());
    }

    /// Damage in a trace is also reported when reading its spans and events, with the name of the file.
    #[test]
    fn damage_is_an_error_as_of_records(steps in vec(any::<Step>(), 1..60), at in any::<prop::sample::Index>(), bits in 1_u8..) {
        let model = Model::new(&steps, true);
        let mut bytes = trace(DTD, &model.records);
        let at = at.index(bytes.len());
        bytes[at] ^= bits;
        let file = file(&bytes);
        let schema = Schema::parse("s.dtd", DTD.as_bytes()).unwrap();
        // Use stored values so that no value is refused.
        let options = OpenOptions { dtd: Some(schema), force_dtd: true, stored: true, ..OpenOptions::default() };
        let Ok(tables) = open_tables(file.path(), &options) else { return Ok(()) };
        let mut records = tables.all().into_iter().take(tables.of_records());
        let is_damaged = records.any(|table| rows(&table, &Scan { threads: 1, ..Scan::default() }).1.is_some());
        for (table, wanted) in [(tables.spans().unwrap(), model.spans()), (tables.events().unwrap(), model.events)] {
            let (found, error) = rows(&table, &Scan::default());
            prop_assert_eq!(error.is_some(), is_damaged);
            match error {
                None => prop_assert_eq!(found, wanted),
                Some(error) => prop_assert!(error.contains(file.path().to_str().unwrap()), "{error}"),
            }
        }
    }
}

/// Returns the row of a table whose column `name` has this value.
fn row(table: &dyn Table, name: &str) -> Map<String, Value> {
    rows(table, &Scan::default()).0.into_iter().find(|row| row["name"] == name).unwrap()
}

#[test]
fn damage_is_behind_the_rows_before_it() {
    let steps: Vec<Step> = (0..4000_u32).map(|n| (if n % 3 == 2 { 2 } else { 0 }, 0, 1, 1)).collect();
    let model = Model::new(&steps, false);
    let bytes = trace(DTD, &model.records);
    let file = file(&bytes[..bytes.len() - 200]);
    let tables = open_tables(file.path(), &OpenOptions::default()).unwrap();
    let (found, error) = rows(&tables.spans().unwrap(), &Scan::default());
    assert!(error.unwrap().contains(file.path().to_str().unwrap()));
    let whole = model.spans();
    let ended: Vec<_> = found.iter().take_while(|row| !row["end_time"].is_null()).collect();
    assert_eq!(ended, whole.iter().take(ended.len()).collect::<Vec<_>>());
    assert!(found.iter().skip(ended.len()).all(|row| row["end_time"].is_null()));
}

#[test]
fn records_keep_their_names() {
    let dtd = r#"section s 1 {
        time.width = 4; time.interpretation = none; time.role = "time";
        spans: (time) { tag.value = 4; tag.span = "begin"; }
        spans_2: (time) { tag.value = 5; tag.span = "end spans"; }
        events_2: (time) { tag.value = 6; }
    }"#;
    let file = file(&trace(dtd, &[("spans", json!({"time": 5})), ("spans_2", json!({"time": 9}))]));
    let tables = open_tables(file.path(), &OpenOptions::default()).unwrap();
    let names: Vec<String> = tables.all().iter().map(|table| table.name().to_owned()).collect();
    assert_eq!(names, ["spans", "spans_2", "events_2", "spans_3", "events"]);
    assert_eq!(tables.of_records(), 3);
    assert_eq!(row(&tables.spans().unwrap(), "spans")["duration_ns"], 4);
    // A range that does not contain the first byte has no rows.
    let batches = tables.scan_range(3, None, 1..u64::MAX, 1).unwrap();
    assert_eq!(batches.count(), 0);
    assert_eq!(tables.scan_range(3, None, 0..1, 1).unwrap().count(), 1);
    assert!(tables.scan_range(5, None, 0..1, 1).is_err());
    assert!(tables.scan_range(3, Some(&[99]), 0..1, 1).is_err());
}

#[test]
fn a_format_without_spans_has_no_such_tables() {
    let dtd = "section s 1 { time.width = 4; time.interpretation = none; time.role = \"time\"; a: (time) { tag.value = 4; } }";
    let file = file(&trace(dtd, &[("a", json!({"time": 5}))]));
    let tables = open_tables(file.path(), &OpenOptions::default()).unwrap();
    assert!(tables.spans().is_none() && tables.events().is_none() && tables.all().len() == 1);
}

#[test]
fn dates_are_points_in_time() {
    let dtd = r#"section s 1 {
        time.width = 8; time.interpretation = none; time.role = "time"; time.format = "date_ms";
        a: (time) { tag.value = 4; tag.span = "begin"; }
        b: (time) { tag.value = 5; tag.span = "end"; }
    }"#;
    let times = ["2026-11-27T02:25:04.5Z", "2026-11-27T02:25:06Z"].map(|time| json!({ "time": time }));
    let file = file(&trace(dtd, &[("a", times[0].clone()), ("b", times[1].clone())]));
    let tables = open_tables(file.path(), &OpenOptions::default()).unwrap();
    let spans = tables.spans().unwrap();
    assert!(matches!(spans.schema().field_with_name("end_time").unwrap().data_type(), DataType::Timestamp(..)));
    let row = row(&spans, "a");
    assert_eq!(row["duration_ns"], 1_500_000_000_u64);
    assert_eq!(row["end_time"]["since 1970"], 1_795_746_306_000_000_000_u64);
}

#[test]
fn a_time_above_63_bits_is_refused_unless_values_are_stored() {
    let records =
        [("load", json!({"time": 1, "thread": 0, "n": 0})), ("loaded", json!({"time": u64::MAX, "thread": 0, "n": 0}))];
    let file = file(&trace(DTD, &records));
    let tables = open_tables(file.path(), &OpenOptions::default()).unwrap();
    let (found, error) = rows(&tables.spans().unwrap(), &Scan::default());
    assert!(found.is_empty());
    let error = error.unwrap();
    assert!(error.contains("record 0 (spans), column end_time: 18446744073709551615 does not fit"), "{error}");
    let stored = open_tables(file.path(), &OpenOptions { stored: true, ..OpenOptions::default() }).unwrap();
    assert_eq!(row(&stored.spans().unwrap(), "load")["end_time"], u64::MAX);
}

/// Tests a `tracing` program with values in separate records, levels, source locations and thread names.
#[test]
fn a_program_has_fields_and_places() {
    let dtd = std::fs::read_to_string(metatf_test::root().join("telemetry/metatf-tracing/tracing.dtd")).unwrap();
    let dtd = dtd.replace("section tracing", "section s");
    let callsite = |callsite: u8, is_span: bool, level: &str, name: &str, fields: &str| {
        json!({"thread": 1, "callsite": callsite, "is_span": is_span, "level": level, "line": 36, "l1": 4, "target": "shop",
            "l2": name.len(), "name": name, "l3": 6, "file": "cart.c", "l4": fields.len(), "fields": fields})
    };
    let text = |field: u8, text: &str| json!({"thread": 1, "field": field, "length": text.len(), "words": text});
    let records = [
        ("thread_is", json!({"thread": 1, "length": 4, "called": "main"})),
        ("callsite_is", callsite(10, true, "info", "request", "path,status,path")),
        ("callsite_is", callsite(12, false, "warn", "event cart.c:36", "message,bytes")),
        ("span", json!({"time": 10, "thread": 1, "callsite": 10, "id": 7, "parent": 0})),
        ("text", text(0, "/old")),
        ("enter", json!({"time": 11, "thread": 1, "id": 7})),
        ("event", json!({"time": 12, "thread": 1, "callsite": 12, "parent": 0})),
        ("text", text(0, "sent")),
        ("uint", json!({"thread": 1, "field": 1, "number": 4096})),
        ("more", json!({"time": 13, "thread": 1, "id": 7})),
        ("uint", json!({"thread": 1, "field": 1, "number": 200})),
        ("text", text(2, "/new")),
        ("exit", json!({"time": 14, "thread": 1, "id": 7})),
        ("close", json!({"time": 15, "thread": 1, "id": 7})),
    ];
    let file = file(&trace(&dtd, &records));
    let tables = open_tables(file.path(), &OpenOptions::default()).unwrap();
    let place = json!({"target": "shop", "file": "cart.c", "line": 36, "thread_name": "main", "process": null});
    let with_place = |mut row: Value| {
        row.as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
        row.as_object().unwrap().clone()
    };
    let span = with_place(json!({
        "@number": 3, "name": "request", "begin_time": 10, "end_time": 15, "duration_ns": 5, "self_ns": 5, "busy_ns": 3, "span": 7,
        "thread": 1, "@parent": null, "parent": null, "parent_name": null, "level": "info", "level_number": 3,
        "fields": {"path": "/new", "status": "200"},
    }));
    assert_eq!(row(&tables.spans().unwrap(), "request"), span);
    let event = with_place(json!({
        "@number": 6, "name": "event cart.c:36", "time": 12, "thread": 1, "@parent": 3, "parent": 7, "parent_name": "request",
        "level": "warn", "level_number": 2, "message": "sent", "fields": {"bytes": "4096"},
    }));
    assert_eq!(row(&tables.events().unwrap(), "event cart.c:36"), event);
}

/// A parent with all bits set means that there is no parent. The record tables show the raw value.
#[test]
fn records_without_a_parent_are_rows() {
    let begin = json!({"time": 1, "thread": 0, "id": u64::MAX, "above": u64::MAX, "n": 0});
    let file = file(&trace(DTD, &[("request", begin)]));
    let tables = open_tables(file.path(), &OpenOptions::default()).unwrap();
    let requests = tables.all().into_iter().find(|table| table.name() == "request").unwrap();
    let (found, error) = rows(&requests, &Scan::default());
    assert_eq!(error, None);
    assert_eq!((&found[0]["above"], &found[0]["id"]), (&u64::MAX.into(), &u64::MAX.into()));
    assert_eq!(row(&tables.spans().unwrap(), "request")["parent"], Value::Null);
}
