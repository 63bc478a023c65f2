//! Compares the planner's cheapest path with all possible paths, on short sequences of one field.
//!
//! The model of a field's encoding follows the specification: interpretation, width and remembered width, changed one
//! metadata record at a time. Every chain of metadata records before every value is tried. Options that the planner
//! does not consider are omitted: setting values other than those at hand, bases whose distance to a value crosses 0 or
//! 2^64, and bases whose width changes while they are in force.
#![allow(clippy::expect_used, clippy::cast_possible_truncation, reason = "a test that goes wrong has to panic")]

use super::common::config;
use metatf::Change;
use metatf::container::WriteOptions;
use metatf::dynamic::{OwnedRecord, Schema, Writer};
use metatf::format::Interpretation as I;
use metatf::reader::Metadata;
use metatf_tests::{recoding, runtime};
use metatf_tools::recode::Plan;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Encoding: kind and numbers of the interpretation, width, remembered width, and whether the interpretation was set
/// after the last value.
type State = (u8, u64, u64, u8, u8, bool);

const NONE: u8 = 0;
const DELTA: u8 = 1;
const DEFAULT: u8 = 2;
const STRIDE: u8 = 3;
const BASE: u8 = 4;

fn stores(state: State) -> bool {
    matches!(state.0, NONE | DELTA | BASE)
}

/// Applies a change to an encoding (spec 4); `declared` is the base in the DTD.
fn apply((kind, a, b, width, remembered, fresh): State, change: Change, declared: Option<u64>) -> Option<State> {
    let stores = stores((kind, a, b, width, remembered, fresh));
    let set = |kind, a, b| (kind, a, b);
    match change {
        Change::Width(_) if kind == BASE && !fresh && declared != Some(a) => None,
        Change::Width(0) if !stores => None,
        Change::Width(0) => Some((kind, a, b, 0, remembered, fresh)),
        Change::Width(w) if stores => Some((kind, a, b, w, w, fresh)),
        Change::Width(w) => Some((kind, a, b, 0, w, fresh)),
        Change::Interpretation(interpretation) => {
            let (kind, a, b) = match interpretation {
                I::None => set(NONE, 0, 0),
                I::Delta(initial) => set(DELTA, initial, 0),
                I::Default(value) => set(DEFAULT, value, 0),
                I::Stride(initial, stride) => set(STRIDE, initial, stride),
                I::BaseOffset(base) => set(BASE, base, 0),
                _ => return None,
            };
            let stores = matches!(kind, NONE | DELTA | BASE);
            if stores && remembered == 0 {
                return None;
            }
            Some((kind, a, b, if stores { remembered } else { 0 }, remembered, true))
        }
    }
}

/// Returns the number of bytes of a number, sign-extended if `signed`; 0 for the number 0.
fn bytes(raw: u64, signed: bool) -> u8 {
    let holds = |w: u8| match w {
        0 => raw == 0,
        8 => true,
        w if signed => ((raw << (64 - 8 * w)) as i64 >> (64 - 8 * w)) as u64 == raw,
        w => raw >> (8 * w) == 0,
    };
    (0..=8).find(|&w| holds(w)).unwrap_or(8)
}

/// Returns the encoding after a value, or `None` if it cannot store the value. For delta and stride, the first number
/// of the state is the previous value.
fn store((kind, a, b, width, remembered, _): State, value: u64, declared: Option<u64>, most: u8) -> Option<State> {
    let fits = match kind {
        NONE => bytes(value, false) <= width,
        DELTA => bytes(value.wrapping_sub(a), true) <= width,
        DEFAULT => value == a,
        STRIDE => value == a.wrapping_add(b),
        _ => {
            // Runs that wrap around 2^64 are not tried.
            let near = i128::from(value) - i128::from(a);
            let tried = (1..=3).contains(&width) && width < most && near.unsigned_abs() < 1 << 24;
            let tried = tried || declared == Some(a);
            tried && bytes(value.wrapping_sub(a), true) <= width
        }
    };
    let a = if matches!(kind, DELTA | STRIDE) { value } else { a };
    fits.then_some((kind, a, b, width, remembered, false))
}

fn cheapest(values: &[u64], start: State, declared: Option<u64>) -> u32 {
    let most = values.iter().map(|&v| bytes(v, false)).max().unwrap_or(0);
    let mut reached = HashMap::from([(start, 0_u32)]);
    for (i, &value) in values.iter().enumerate() {
        // All changes that metadata may make here.
        let mut changes: Vec<Change> = (0..=8).map(Change::Width).collect();
        let mut set = vec![I::None, I::Delta(value), I::Default(value)];
        set.extend(
            values
                .get(i + 1)
                .map(|next| next.wrapping_sub(value))
                .filter(|&s| s != 0)
                .map(|s| I::Stride(value.wrapping_sub(s), s)),
        );
        set.extend(declared.map(I::BaseOffset));
        for end in i..values.len() {
            let greatest = values[i..=end].iter().max().copied().unwrap_or(0);
            set.extend([7, 15, 23].map(|bits| I::BaseOffset(greatest.saturating_sub((1 << bits) - 1))));
        }
        changes.extend(set.into_iter().map(Change::Interpretation));
        let mut todo: Vec<State> = reached.keys().copied().collect();
        while let Some(state) = todo.pop() {
            let cost = reached[&state];
            for &change in &changes {
                let Some(next) = apply(state, change, declared) else { continue };
                let metadata = Metadata::new(4, 1, change);
                let cost = cost + 4 + u32::from(metadata.count) * u32::from(metadata.property >> 4);
                // Three records reach any encoding.
                match reached.entry(next) {
                    Entry::Occupied(entry) if *entry.get() <= cost => {}
                    Entry::Occupied(mut entry) => {
                        entry.insert(cost);
                        todo.push(next);
                    }
                    Entry::Vacant(entry) => {
                        entry.insert(cost);
                        todo.push(next);
                    }
                }
            }
        }
        let mut behind = HashMap::new();
        for (state, cost) in reached {
            let Some(next) = store(state, value, declared, most) else { continue };
            let cost = cost + u32::from(if stores(next) { next.3 } else { 0 });
            behind.entry(next).and_modify(|c: &mut u32| *c = cost.min(*c)).or_insert(cost);
        }
        reached = behind;
    }
    reached.into_values().min().expect("eight bytes hold anything")
}

/// Returns declarations of the field in a DTD, with the encoding that each one means.
fn declarations() -> Vec<(&'static str, State, Option<u64>)> {
    vec![
        ("x.width = 4; x.interpretation = none;", (NONE, 0, 0, 4, 4, false), None),
        ("x.width = 0; x.interpretation = none;", (NONE, 0, 0, 0, 0, false), None),
        ("x.interpretation = default 5;", (DEFAULT, 5, 0, 0, 0, false), None),
        ("x.width = 2; x.interpretation = default 0;", (DEFAULT, 0, 0, 0, 2, false), None),
        ("x.width = 1; x.interpretation = delta 300;", (DELTA, 300, 0, 1, 1, false), None),
        ("x.interpretation = stride 1 200;", (STRIDE, 1, 200, 0, 0, false), None),
        ("x.width = 1; x.interpretation = baseOffset 70000;", (BASE, 70000, 0, 1, 1, false), Some(70000)),
    ]
}

fn value() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(5),
        0..300_u64,
        (0..6_u64).prop_map(|n| 1 + 200 * n),
        69_990..70_200_u64,
        (0..4_u64).prop_map(|n| (1 << 40) + 40 * n),
        (0..3_u64).prop_map(|n| (1 << 40) + 40_000 * n),
        Just(u64::MAX - 1),
    ]
}

/// Returns a trace of one predicted field, in runs of one value or of a few alternating values.
fn predicted(text: &str, runs: &[(u64, u64, usize)], version: u8) -> (Schema, Vec<u8>) {
    let schema = runtime::schema(&format!(
        "section m 1 {{ e: (x) {{ x.width = 8; x.interpretation = none; }} }}
         section s 2 {{ r: (tag, x) {{ tag.value = 4; {text} }} }}"
    ));
    let record = schema.format.records.iter().position(|r| r.name == "r").expect("it has one");
    let section = schema.format.section_named("s").expect("it has one");
    let options = WriteOptions { version, ..WriteOptions::default() };
    let mut writer = Writer::new(Vec::new(), &schema, &options).expect("memory takes anything");
    for value in runs.iter().flat_map(|&(first, turns, count)| (0..count as u64).map(move |i| first + i % turns)) {
        let mut owned = OwnedRecord::default();
        owned.push_number(value);
        writer.record(section, record as u16, &owned).expect("any number can be written");
    }
    let trace = writer.finish().expect("memory takes anything");
    (schema, trace)
}

proptest! {
    #![proptest_config(config(40))]

    /// Codes have the minimum width: no other plan needs fewer bytes, and a run of code 0 needs no bytes except its
    /// metadata.
    #[test]
    fn codes_take_no_more_than_by_another_plan(
        runs in vec((0..4_u64, 1..4_u64, 1..60_usize), 1..8), width in 0..3_u8, version in 0..2_u8, block in 1..300_usize
    ) {
        let text = format!("x.width = {width}; x.interpretation = predicted 1 (lastValue 3, fcm 1) 1;");
        let (schema, trace) = predicted(&text, &runs, version);
        let about = format!("{runs:?} {text} version {version}");
        recoding::check(&schema, &trace, block, &about);
        recoding::optimal_is_smallest(&schema, &trace, block, &about);
    }
}

#[test]
fn a_row_of_code_0_takes_no_bytes() {
    let (schema, trace) = predicted("x.width = 1; x.interpretation = predicted 1 lastValue 1 1;", &[(9, 1, 400)], 1);
    let optimal = recoding::recoded(&schema, &trace, Plan::Optimal, 1000).expect("the trace is whole");
    // Tags, the first code, a metadata record that sets the width of codes to 0, and the element of the first value.
    assert_eq!(recoding::content(&schema, &optimal), 400 + 1 + 5 + 1);
}

proptest! {
    #![proptest_config(config(60))]

    #[test]
    fn no_path_is_cheaper(values in vec(value(), 1..7), declaration in 0..7_usize) {
        let (text, start, declared) = declarations()[declaration];
        let schema = runtime::schema(&format!("section s 1 {{ r: (tag, x) {{ tag.value = 4; {text} }} }}"));
        let mut writer = Writer::new(Vec::new(), &schema, &WriteOptions::default()).expect("memory takes anything");
        let section = schema.format.section_named("s").expect("it has one");
        let record = schema.format.records.iter().position(|r| r.name == "r").expect("it has one");
        for &value in &values {
            let mut owned = OwnedRecord::default();
            owned.push_number(value);
            writer.record(section, record as u16, &owned).expect("any number can be written");
        }
        let trace = writer.finish().expect("memory takes anything");
        let optimal = recoding::recoded(&schema, &trace, Plan::Optimal, 1000).expect("the trace is whole");
        let found = recoding::content(&schema, &optimal) - values.len();
        prop_assert_eq!(found as u32, cheapest(&values, start, declared), "{:?} {}", values, text);
    }
}
