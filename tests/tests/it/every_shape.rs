//! The formats with generated readers in the fuzz targets cover every shape of the formats in this repository: every
//! distinction that the code generator and the runtime make at compile time.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use metatf_parser::schema::{
    Dtd, ExprOp, Format, HeapRole, Interpretation, Item, Leaf, LeafId, METADATA, ModelKind, Record, Repeated, Section,
    Width,
};
use metatf_tests::fuzzed;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Distinctions, in words.
type Shapes = BTreeSet<String>;

#[test]
fn fuzzed_formats_have_every_shape() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let vector = |name: &str| here.join("vectors/good").join(name).join("format.dtd");
    let fuzzed = fuzzed::VECTORS.map(vector).into_iter().chain(fuzzed::MORE.map(|name| here.join(name)));
    let known: Shapes = fuzzed.flat_map(|path| shapes(&parsed(&path))).collect();

    let folders = [here.join("vectors/good"), here.join("dtds"), here.join("../dtds")];
    let mut missing: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for folder in folders {
        let files = files(&folder);
        assert!(!files.is_empty(), "no DTDs in {}", folder.display());
        for path in files {
            for shape in shapes(&parsed(&path)).into_iter().filter(|shape| !known.contains(shape)) {
                missing.entry(shape).or_default().push(path.strip_prefix(here).unwrap().display().to_string());
            }
        }
    }
    let missing: Vec<String> = missing.iter().map(|(shape, of)| format!("{shape}: {}", of.join(", "))).collect();
    assert!(
        missing.is_empty(),
        "the formats of `tests/src/fuzzed.rs`, which fuzz targets read by generated code, lack a shape of a DTD; add a vector that \
         has it:\n{}",
        missing.join("\n")
    );
}

/// Returns the DTDs in a directory.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "dtd") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn parsed(path: &Path) -> Dtd {
    let text = std::fs::read(path).unwrap();
    metatf_parser::parse("format.dtd", &text).dtd.unwrap_or_else(|| panic!("{} has errors", path.display()))
}

fn shapes(dtd: &Dtd) -> Shapes {
    let mut shapes = Shapes::new();
    let leaves = || dtd.records.iter().flat_map(|record| &record.leaves);
    let history = |leaf: &Leaf| {
        use Interpretation::{BaseOffsetOf, Delta, Stride};
        matches!(leaf.interpretation, Delta(_) | Stride { .. } | BaseOffsetOf(..))
    };
    // Kinds of code that a format needs at all.
    shapes.insert(format!(
        "a format with {}, {} and {}",
        some(!dtd.models.is_empty(), "models"),
        some(dtd.sections.iter().any(|section| section.stream.is_some()), "stream sections"),
        some(leaves().any(history), "values that go by those before")
    ));
    shapes.insert(format!("tags of {} bytes", dtd.tag_width));
    for section in &dtd.sections {
        of_section(dtd, section, &mut shapes);
    }
    for record in dtd.records.iter().skip(METADATA.0 as usize + 1) {
        of_record(record, &mut shapes);
    }
    // The predictors of a value model are data, not code.
    for model in &dtd.models {
        let (kind, by) = match &model.kind {
            ModelKind::Values(predictors) => ("values", predictors.iter().any(|predictor| predictor.by.is_some())),
            ModelKind::Heap { role: HeapRole::Allocated { .. }, by } => ("a heap: allocated", by.is_some()),
            ModelKind::Heap { role: HeapRole::Freed, by } => ("a heap: freed", by.is_some()),
            ModelKind::Heap { role: HeapRole::Used, by } => ("a heap: used", by.is_some()),
        };
        shapes.insert(format!("a model of {kind}{}", if by { " by a leaf" } else { "" }));
    }
    shapes
}

fn some(any: bool, what: &str) -> String {
    format!("{} {what}", if any { "some" } else { "no" })
}

fn of_section(dtd: &Dtd, section: &Section, shapes: &mut Shapes) {
    if let Some(element) = section.stream.and_then(|element| dtd.record(element)) {
        let strides = |leaf: &Leaf| match leaf.interpretation {
            Interpretation::SectionStride { section: through, .. } => through == section.number,
            _ => false,
        };
        let filled = match () {
            () if dtd.models.iter().any(|model| model.section == section.number) => "that models fill",
            () if dtd.records.iter().flat_map(|record| &record.leaves).any(strides) => "that leaves stride through",
            () => "that users fill",
        };
        let of = match &*element.leaves {
            [leaf] if leaf.is_numeric() && !leaf.repeated => "of numbers",
            leaves if leaves.iter().all(Leaf::is_numeric) => "of several numbers",
            _ => "of byte arrays",
        };
        shapes.insert(format!("a stream section {of} {filled}"));
        return;
    }
    let records: Vec<&Record> =
        section.records.iter().filter(|&&id| id > METADATA).filter_map(|&id| dtd.record(id)).collect();
    let leaves = || records.iter().flat_map(|record| &record.leaves);
    // Tags are compared three at a time. Columns of more than 64 types or 1,024 leaves are filled in another way.
    let listed: usize = section.records.iter().filter_map(|&id| dtd.record(id)).map(|record| record.leaves.len()).sum();
    let count = match records.len() {
        0 => "no",
        1..=3 => "1 to 3",
        4..=61 if listed < 1024 => "more than 3",
        _ => "very many",
    };
    let bytes = leaves().any(|leaf| !leaf.is_numeric());
    shapes.insert(format!("a section of {count} types of record, {}", some(bytes, "byte arrays")));
    if records.iter().any(|record| record.catch_all) {
        shapes.insert("a section with a record of all other tags".to_owned());
    }
    if section.number == 0 && !records.is_empty() {
        shapes.insert("a global section with records".to_owned());
    }
    if section.number != 0 && records.iter().any(|record| record.section.is_none()) {
        shapes.insert("a section that lists global records".to_owned());
    }
    // Ways in which all records of a section can be decoded.
    let expectable = records.iter().all(|record| {
        !repeats(&record.items)
            && record.leaves.iter().enumerate().all(|(index, leaf)| {
                let is_plain = is_stored(leaf) || matches!(leaf.interpretation, Interpretation::Default(_));
                leaf.is_tag() || leaf.constant.is_none() && is_plain && !is_computed(leaf, index)
            })
    });
    let gathers = |leaf: &Leaf| matches!(leaf.interpretation, Interpretation::SectionStride { stride: 1, .. });
    shapes.insert(format!(
        "a section whose records can {}be expected, with {}",
        if expectable { "" } else { "not " },
        some(leaves().any(gathers), "leaves that stride by one")
    ));
    // Leaves that share a previous value.
    let mut cells: Vec<(u32, usize)> =
        section.cells.iter().zip(0..).flat_map(|(cells, at)| cells.iter().map(move |&cell| (cell, at))).collect();
    cells.sort_unstable();
    for pair in cells.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        let who = if pair[0].1 == pair[1].1 { "leaves of a record" } else { "records" };
        shapes.insert(format!("{who} that share a previous value"));
    }
}

/// Returns whether the length of a byte array differs from the number before it.
fn is_computed(leaf: &Leaf, index: usize) -> bool {
    match &leaf.width {
        Width::Variable(expr) => !matches!(*expr.0, [ExprOp::Leaf(LeafId(length))] if usize::from(length) + 1 == index),
        _ => false,
    }
}

fn repeats(items: &[Item]) -> bool {
    items.iter().any(|item| match item {
        Item::Leaf(_) => false,
        Item::Nested { items, .. } => repeats(items),
        Item::Repeat { .. } => true,
    })
}

fn of_record(record: &Record, shapes: &mut Shapes) {
    let what = if record.tag.is_some() { "record" } else { "element" };
    if record.leaves.len() == usize::from(record.tag.is_some()) {
        shapes.insert(format!("a {what} without fields"));
    }
    for (index, leaf) in record.leaves.iter().enumerate().filter(|(_, leaf)| !leaf.is_tag()) {
        of_leaf(what, leaf, index, shapes);
    }
    let behind = record.leaves.iter().skip_while(|leaf| !matches!(leaf.width, Width::Variable(_))).nth(1);
    if behind.is_some() {
        shapes.insert(format!("a {what} with something behind a byte array of any length"));
    }
    of_items(record, &record.items, "", what, shapes);
}

fn of_leaf(what: &str, leaf: &Leaf, index: usize, shapes: &mut Shapes) {
    let interpretation = match leaf.interpretation {
        Interpretation::None => "none",
        Interpretation::BaseOffset(_) => "baseOffset of a number",
        Interpretation::BaseOffsetOf(..) => "baseOffset of a leaf",
        Interpretation::Delta(_) => "delta",
        Interpretation::Default(_) => "default",
        Interpretation::Stride { .. } => "stride",
        Interpretation::SectionOffset(_) => "sectionOffset",
        Interpretation::SectionStride { stride: 1, .. } => "sectionStride by one",
        Interpretation::SectionStride { .. } => "sectionStride by more than one",
        Interpretation::Predicted(_) => "predicted",
    };
    if leaf.is_numeric() {
        shapes.insert(format!("a leaf of a {what}: {interpretation}"));
    }
    let kind = match (&leaf.width, leaf.format) {
        // Generated code represents byte arrays of up to 32 bytes as Rust arrays.
        (Width::Array(bytes), _) if *bytes <= 32 => "a short array",
        (Width::Array(_), _) => "a long array",
        (Width::Variable(_), _) if is_computed(leaf, index) => "an array of a computed length",
        (Width::Variable(_), _) => "an array as long as the number before it says",
        (Width::Until(_), _) => "an array up to a byte",
        (Width::Rest, _) => "an array up to the end",
        (_, Format::Signed) => "a signed number",
        (_, Format::F32) => "a floating-point number of 4 bytes",
        (_, Format::F64) => "a floating-point number",
        _ => "a number",
    };
    let repeated = if leaf.repeated { "repeated " } else { "" };
    let constant = if leaf.constant.is_some() { "constant " } else { "" };
    shapes.insert(format!("a {repeated}{constant}leaf of a {what} that is {kind}"));
    match &leaf.width {
        Width::Number(bytes) if is_stored(leaf) => {
            // For other interpretations the width is data. Widths between 0 and a full word need a mask.
            let bytes = match bytes {
                0 => "no bytes",
                8 => "8 bytes",
                _ => "1 to 7 bytes",
            };
            shapes.insert(format!("a leaf of a {what} that is stored as it is, or with a base, in {bytes}"));
        }
        Width::Variable(expr) => {
            let op = |op: &ExprOp| match op {
                ExprOp::Push(_) => "a number",
                ExprOp::Leaf(_) => "a leaf",
                // Not in a width.
                ExprOp::Rest | ExprOp::Until => "its items",
                ExprOp::Add => "+",
                ExprOp::Sub => "-",
                ExprOp::Mul => "*",
                ExprOp::Div => "/",
                ExprOp::Rem => "%",
                ExprOp::Bit(_) => "a bit",
                ExprOp::Compare(_) => "a comparison",
            };
            shapes.extend(expr.0.iter().map(|step| format!("a width with {}", op(step))));
        }
        _ => {}
    }
}

/// Returns whether the DTD stores a number unchanged or relative to a base, which the program can expect.
fn is_stored(leaf: &Leaf) -> bool {
    matches!(
        leaf.interpretation,
        Interpretation::None | Interpretation::BaseOffset(_) | Interpretation::SectionOffset(_)
    )
}

/// Collects the structure of items; `inside` describes the surrounding item.
fn of_items(of: &Record, items: &[Item], inside: &str, what: &str, shapes: &mut Shapes) {
    for (at, item) in items.iter().enumerate() {
        match item {
            Item::Leaf(_) => {}
            Item::Nested { record, items, .. } => {
                let nested = if record == "vfield" { "a vfield" } else { "a nested record" };
                shapes.insert(format!("{nested} in {inside}a {what}"));
                of_items(of, items, "a nested record in ", what, shapes);
            }
            Item::Repeat { count, body, .. } => {
                let counted =
                    if at > 0 && items[at - 1] == Item::Leaf(*count) { "counted in place" } else { "counted before" };
                let counted = match of.leaf(*count).is_some_and(|leaf| leaf.computed.is_some()) {
                    true if of.is_optional(*count) => "there if an expression is 1",
                    true if of.ends_by_content().is_some() => "counted by its items",
                    true => "counted by an expression",
                    false => counted,
                };
                let (body, items) = match body {
                    Repeated::Leaf(_) => ("leaf", &[][..]),
                    Repeated::Group(items) => ("group", &items[..]),
                    Repeated::Record { record, items, .. } if record == "vfield" => ("vfield", &items[..]),
                    Repeated::Record { items, .. } => ("record", &items[..]),
                };
                shapes.insert(format!("a repeated {body} in {inside}a {what}, {counted}"));
                of_items(of, items, "a repetition in ", what, shapes);
            }
        }
    }
}
