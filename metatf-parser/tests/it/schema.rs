//! The resolved schema of a DTD: lookup, layout, keys, sharing and expressions (spec 3, 4).
#![allow(clippy::unwrap_used, clippy::panic)] // Test helpers may panic.

use metatf_parser::schema::{
    Dtd, ExprOp, Format, Interpretation, Item, Leaf, LeafId, Origin, Record, Repeated, SectionId, Width,
};
use metatf_parser::{Code, Severity, parse};

fn dtd(text: &str) -> Dtd {
    let parsed = parse("test.dtd", text.as_bytes());
    parsed.dtd.unwrap_or_else(|| panic!("{:#?}", parsed.diagnostics))
}

fn codes(text: &str) -> Vec<Code> {
    parse("test.dtd", text.as_bytes()).diagnostics.iter().map(|d| d.code).collect()
}

fn errors(text: &str) -> Vec<Code> {
    codes(text).into_iter().filter(|code| code.severity() == Severity::Error).collect()
}

fn record<'d>(dtd: &'d Dtd, section: &str, name: &str) -> &'d Record {
    dtd.find_record(dtd.section_named(section).unwrap(), name).unwrap()
}

fn leaf<'d>(record: &'d Record, path: &[&str]) -> &'d Leaf {
    record.leaf_at(path).unwrap_or_else(|| panic!("{path:?} in {:?}", record.leaves)).1
}

const X: &str = "x.width = 1; x.interpretation = none; n.width = 1; n.interpretation = none;";

#[test]
fn look_up_order() {
    let dtd = dtd("x.width = 1; x.interpretation = none; y.width = 1; y.interpretation = none;
        p: (x, y) { y.width = 4; }
        section s 1 { x.width = 2;
            a: (tag, p) { tag.value = 4; }
            b: (tag, q) { tag.value = 5; q.p.x.width = 3; }
            q: (p, x) { p.y.width = 5; } }
        section t 2 { a: (tag, p) { tag.value = 4; } }
        g: (tag, p) { tag.value = 9; }");
    let width = |section, name, path: &[&str]| leaf(record(&dtd, section, name), path).width.clone();
    assert_eq!(width("s", "a", &["p", "x"]), Width::Number(2), "the section that lists the tagged record");
    assert_eq!(width("t", "a", &["p", "x"]), Width::Number(1));
    assert_eq!(width("s", "g", &["p", "x"]), Width::Number(1), "a global record has no section");
    assert_eq!(width("s", "a", &["p", "y"]), Width::Number(4));
    assert_eq!(width("s", "b", &["q", "p", "x"]), Width::Number(3), "the outermost block");
    assert_eq!(width("s", "b", &["q", "p", "y"]), Width::Number(5), "outer blocks before inner ones");
    assert_eq!(width("s", "b", &["q", "x"]), Width::Number(2));
    let b = record(&dtd, "s", "b");
    assert_eq!(leaf(b, &["q", "p", "x"]).width_origin, Some(Origin::Block("b".into())));
    assert_eq!(leaf(b, &["q", "x"]).width_origin, Some(Origin::Section(SectionId(1))));
    assert_eq!(leaf(b, &["q", "x"]).interpretation_origin, Origin::Global);
}

#[test]
fn predefined_leaves_look_no_further_than_blocks() {
    let dtd = dtd("length.width = 2; length.interpretation = none; data.width = 3; data.interpretation = none;
        section s 1 { r: (tag, length, vfield, data) { tag.value = 4; }
            q: (tag, vfield) { tag.value = 5; vfield.length.width = 4; vfield.data.format = \"utf8\"; } }");
    let r = record(&dtd, "s", "r");
    assert_eq!(leaf(r, &["vfield", "length"]).width, Width::Number(1));
    assert_eq!(leaf(r, &["length"]).width, Width::Number(2));
    let Width::Variable(expr) = &leaf(r, &["vfield", "data"]).width else { panic!() };
    assert_eq!(expr.0, [ExprOp::Leaf(LeafId(2))]);
    let q = record(&dtd, "s", "q");
    assert_eq!(leaf(q, &["vfield", "length"]).width, Width::Number(4));
    assert_eq!(leaf(q, &["vfield", "data"]).format, Format::Utf8);
    let comment = record(&dtd, "s", "comment");
    assert_eq!((comment.leaves.len(), leaf(comment, &["vfield", "data"]).format), (3, Format::Utf8));
}

#[test]
fn keys_and_groups() {
    let text = format!(
        "{X} section s 1 {{ p: (x, x); r: (tag, x, (x, (n)), p, p, n*(x, x), n*p, n*x) {{ tag.value = 4; }} }}"
    );
    let dtd = dtd(&text);
    let r = record(&dtd, "s", "r");
    let paths: Vec<String> = r.leaves.iter().map(|l| l.path.join(".")).collect();
    let expected = "tag x x_2 n p.x p.x_2 p_2.x p_2.x_2 n_items.x n_items.x_2 p_3.x p_3.x_2 x_3";
    assert_eq!(paths.join(" "), expected);
    assert!(
        matches!(&r.items[6], Item::Repeat { count: LeafId(3), key, body: Repeated::Group(_) } if key == "n_items")
    );
    assert!(matches!(&r.items[7], Item::Repeat { body: Repeated::Record { record, .. }, .. } if record == "p"));
    assert!(matches!(&r.items[8], Item::Repeat { key, body: Repeated::Leaf(LeafId(12)), .. } if key == "x_3"));
    assert!(r.leaves[12].repeated && !r.leaves[3].repeated);
    assert_eq!(codes(&text.replace("n*x)", "n*x, p_3)")).first(), Some(&Code::KeyClash));
    assert_eq!(codes(&text.replace("n*x)", "n*x, n_items)")).first(), Some(&Code::KeyClash));
}

const Y: &str = "y.width = 1; y.interpretation = none;";

#[test]
fn names_of_repetitions() {
    let of = |fields: &str| format!("{X} {Y} section s 1 {{ p: (x); r: (tag, n, {fields}) {{ tag.value = 4; }} }}");
    let paths = |fields: &str| {
        let text = of(fields);
        let dtd = dtd(&text);
        assert_eq!(
            metatf_parser::format("t.dtd", text.as_bytes()).map(|t| self::dtd(&t).fingerprint()).ok(),
            Some(dtd.fingerprint())
        );
        let leaves = &record(&dtd, "s", "r").leaves;
        leaves.iter().skip(2).map(|l| l.path.join(".")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(paths("ps: n*p, p"), "ps.x p.x");
    assert_eq!(paths("n*p, few: (n.bit 0)*p, p, n*p"), "p.x (n.bit 0) few.x p_2.x p_3.x");
    assert_eq!(paths("pairs: n*(x, y), n*(x, y), xs: n*x"), "pairs.x pairs.y n_items.x n_items.y xs");
    assert_eq!(paths("n*(x: n*p, section: n*y), (ys: ((2) + 1)*(y))"), "n_items.x.x n_items.section (3) ys.y");
    // The name is not a path inside the DTD.
    let text = of("ps: n*p, p").replace("tag.value", "p.x.width = 2; tag.value");
    let widths: Vec<_> = record(&dtd(&text), "s", "r").leaves.iter().skip(2).map(|l| l.width.clone()).collect();
    assert_eq!(widths, [Width::Number(2), Width::Number(2)]);
    assert_eq!(errors(&text.replace("p.x.width", "ps.x.width")), [Code::UnknownField]);
    for (fields, wanted) in [
        ("p: n*p, p", Code::KeyClash),
        ("ps: n*p, ps: n*x", Code::KeyClash),
        ("x, x: n*p", Code::KeyClash),
        ("tag: n*p", Code::TagNotFirst),
        ("ps: q", Code::UnknownType),
        ("ps: (n*p)", Code::Syntax),
        ("a: b: n*p", Code::Syntax),
        ("none: n*p", Code::ReservedWord),
    ] {
        assert_eq!(errors(&of(fields)), [wanted], "{fields}");
    }
    // A name needs a list: this is a record `r`, and then a record `ps`.
    assert_eq!(errors(&of("x").replace("p: (x);", "p: ps: n*x;")), [Code::Syntax]);
}

#[test]
fn a_mistake_next_to_a_name_is_one_mistake() {
    let text = format!(
        "{X} {Y} section s 1 {{ p: (x); r: (tag,, n,\n  ps: n*p,\n  few: (n.bit 0)*p) {{ tag.value = 4; }} q: (tag) {{ tag.value = 4; }} }}"
    );
    assert_eq!(codes(&text), [Code::Syntax]);
}

#[test]
fn earlier_paths() {
    let dtd = dtd(&format!(
        "{X} {Y} x.was = \"w\"; n.was = \"m\"; section s 1 {{ p: (y); r: (tag, ps: n*p, n*p, n*(y), a: n*(y), xs: n*x, n*x) {{ tag.value = 4; }} }}"
    ));
    let paths = record(&dtd, "s", "r").earlier_paths();
    let paths: Vec<String> = paths.iter().map(|(id, paths)| format!("{}: {}", id.0, paths.join(" "))).collect();
    let wanted = ["1: m", "2: p.y", "4: m_items.y", "5: n_items.y m_items.y", "6: x w", "7: w"];
    assert_eq!(paths, wanted);
}

#[test]
fn counts() {
    let dtd = dtd(&format!(
        "{X} section s 1 {{ a: (tag, n*(n*x, x)) {{ tag.value = 4; }} b: (tag, m*n, x) {{ tag.value = 5;
        m.interpretation = default 4; }} c: (tag, n*(m*x), x) {{ tag.value = 6; m.interpretation = default 2; }} }}"
    ));
    let a = record(&dtd, "s", "a");
    assert_eq!(a.leaves.len(), 4, "the inner n is the outer one");
    assert_eq!(a.items[1], Item::Leaf(LeafId(1)));
    let b = record(&dtd, "s", "b");
    assert!(matches!(b.items[2], Item::Repeat { count: LeafId(1), .. }));
    let c = record(&dtd, "s", "c");
    let Item::Repeat { body: Repeated::Group(items), .. } = &c.items[2] else { panic!() };
    assert_eq!(items[0], Item::Leaf(LeafId(2)), "a count in place stands in the item");
    assert_eq!(
        codes(&format!(
            "{X} section s 1 {{ a: (tag, n*(m*x), m*x) {{ tag.value = 4; m.interpretation = default 1; }} }}"
        )),
        [Code::OutOfRepetition]
    );
}

#[test]
fn tags() {
    let dtd = dtd("tag.width = 2; note: vfield { tag.value = 0x100 + 2 * tag.width; }");
    let note = dtd.find_record(&dtd.sections[0], "note").unwrap();
    assert_eq!((note.tag, note.leaves.len()), (Some(0x104), 3));
    assert!(note.leaves[0].is_tag() && note.leaves[0].constant == Some(0x104));
    assert_eq!(dtd.sections[0].records.len(), 4);
    assert_eq!(dtd.tagged(&dtd.sections[0], 0x104).map(|(id, _)| id.0), Some(3));
    assert_eq!(leaf(&dtd.records[2], &["record"]).width, Width::Number(2));
}

#[test]
fn expressions() {
    let dtd = dtd("section s 1 { d.interpretation = none; n.width = 1; n.interpretation = none;
        text: (n, d) { d.width = n.value + n.width; }
        r: (tag, n, d, n, e, text) { tag.value = 4; d.width = n.value * (2 + 3) - 1; e.width = 2 * 3; e.interpretation = none;
            text.d.width = text.n.value; } }");
    let r = record(&dtd, "s", "r");
    let Width::Variable(d) = &leaf(r, &["d"]).width else { panic!() };
    use ExprOp::{Mul, Push, Sub};
    assert_eq!(d.0, [ExprOp::Leaf(LeafId(1)), Push(5), Mul, Push(1), Sub], "the nearest n before d; constants folded");
    assert_eq!(leaf(r, &["e"]).width, Width::Number(6));
    let Width::Variable(d) = &leaf(r, &["text", "d"]).width else { panic!() };
    assert_eq!(d.0, [ExprOp::Leaf(LeafId(5))]);
}

#[test]
fn scope_level_expressions_look_outwards() {
    let text = "d.width = n.value; d.interpretation = none; n.width = 1; n.interpretation = none;
        section s 1 { p: (d); r: (tag, n, p) { tag.value = 4; } }";
    assert!(matches!(leaf(record(&dtd(text), "s", "r"), &["p", "d"]).width, Width::Variable(_)));
    let block = text.replace("d.width = n.value;", "").replace("p: (d);", "p: (d) { d.width = n.value; }");
    assert_eq!(codes(&block), [Code::UnknownReference], "a record does not know who nests it");
}

#[test]
fn interpretations() {
    let dtd = dtd("section t 2 { e: (v) { v.width = 4; v.interpretation = delta -1; } }
        section s 1 { a: (tag, v, w, vfield) { tag.value = 4; v.interpretation = stride 5 -3; w.interpretation = sectionStride 2 7; }
            b: (tag, v, w, x, y) { tag.value = 5; v.width = 1; v.interpretation = baseOffset a.w.value;
            w.width = 4; w.interpretation = sectionOffset 2; x.interpretation = default 0x_ff; y.width = 1;
            y.interpretation = baseOffset a.vfield.length.value; } }"
        .replace("0x_ff", "0xf_f")
        .as_str());
    let (a, b) = (record(&dtd, "s", "a"), record(&dtd, "s", "b"));
    let of = |record: &Record, path: &str| leaf(record, &[path]).interpretation;
    assert_eq!(of(a, "v"), Interpretation::Stride { initial: 5, stride: 3_u64.wrapping_neg() });
    assert_eq!(of(a, "w"), Interpretation::SectionStride { section: 2, stride: 7 });
    assert_eq!(of(b, "w"), Interpretation::SectionOffset(2));
    assert_eq!(of(b, "x"), Interpretation::Default(255));
    let Interpretation::BaseOffsetOf(id, base) = of(b, "v") else { panic!() };
    assert_eq!((dtd.record(id).unwrap(), base), (a, LeafId(2)));
    let Interpretation::BaseOffsetOf(_, base) = of(b, "y") else { panic!() };
    assert_eq!(a.leaf(base).unwrap().path, ["vfield", "length"]);
    let stream = dtd.section_named("t").unwrap();
    assert_eq!(stream.records, [stream.stream.unwrap()]);
    assert_eq!(stream.cell_initials, [u64::MAX]);
}

#[test]
fn shared_cells() {
    let dtd = dtd("time.width = 1; time.interpretation = delta 7; g: (tag, time) { tag.value = 20; }
        section s 1 { t.previous = shared; t.width = 1; t.interpretation = none;
            a: (tag, time, t) { tag.value = 4; } b: (tag, t, time) { tag.value = 5; time.previous = own; t.interpretation = delta 3; }
            c: (tag, time, t) { tag.value = 6; t.previous = own; time.interpretation = none; } }
        section u 2 { a: (tag, time) { tag.value = 4; } }");
    let s = dtd.section_named("s").unwrap();
    let cells = |name: &str| {
        let at = s.records.iter().position(|id| dtd.record(*id).unwrap().name == name).unwrap();
        s.cells[at].clone()
    };
    let (g, a, b, c) = (cells("g"), cells("a"), cells("b"), cells("c"));
    assert_eq!(g[1], a[1], "one global property");
    assert_ne!(a[1], b[2], "own");
    assert_ne!(a[1], c[1], "neither delta nor stride");
    assert_eq!(a[2], b[1], "shared by name");
    assert_ne!(a[2], c[2]);
    assert_eq!(s.cell_initials[a[1] as usize], 7);
    assert_eq!(s.cell_initials[a[2] as usize], 3);
    for section in &dtd.sections {
        let lengths = section.records.iter().zip(&section.cells);
        let right = lengths.filter(|(id, cells)| cells.len() == dtd.record(**id).unwrap().leaves.len()).count();
        assert_eq!(right, section.records.len() - 2, "section and metadata have none");
    }
}

#[test]
fn docs_and_annotations() {
    let dtd = dtd("// Head of\n// the file.\n\n/* The heap.\n * Two lines. */\nsection heap 1 {
        // not this\n\n        // A block.\n        alloc: (tag, size, size2, vfield) { tag.value = 4;
            // Bytes asked for.\n            size.width = 4; size.interpretation = none; size.unit = \"B\"; size.level = 3; // not this
            size2.doc = \"a \\\"b\\\"\"; size2.width = 4; size2.interpretation = none; size2.format = \"hex\";
            vfield.doc = \"name\"; } }");
    assert_eq!(dtd.doc.as_deref(), Some("Head of\nthe file."));
    let heap = dtd.section_named("heap").unwrap();
    assert_eq!(heap.doc.as_deref(), Some("The heap.\nTwo lines."));
    let alloc = record(&dtd, "heap", "alloc");
    assert_eq!(alloc.doc.as_deref(), Some("A block."));
    let size = leaf(alloc, &["size"]);
    assert_eq!((size.doc.as_deref(), size.unit.as_deref()), (Some("Bytes asked for."), Some("B")));
    assert_eq!(size.annotations.get("level").map(String::as_str), Some("3"));
    let second = leaf(alloc, &["size2"]);
    assert_eq!((second.doc.as_deref(), second.format), (Some("a \"b\""), Format::Hex));
    assert!(matches!(&alloc.items[3], Item::Nested { doc: Some(doc), .. } if doc == "name"));
}

#[test]
fn docs_of_typed_fields() {
    let dtd = dtd("section s 1 { r: (
        // A plain field.
        flags: u8,
        // An optional field.
        (flags.bit 1)*cpu: u16,
        n: u8,
        // A repeated field.
        n*value: u16,
        // A repetition with a name.
        pairs: (flags.value / 2)*pair: u8,
        (2)*
        // A comment after the count.
        after: u8, (3)*last: u8) { tag.value = 4; } }");
    let record = record(&dtd, "s", "r");
    let docs: Vec<&str> = record.leaves.iter().filter_map(|leaf| leaf.doc.as_deref()).collect();
    let expected = [
        "A plain field.",
        "An optional field.",
        "A repeated field.",
        "A repetition with a name.",
        "A comment after the count.",
    ];
    assert_eq!(docs, expected);
}

#[test]
fn meaning() {
    let base = dtd("// c\nx.width = 1; x.interpretation = none; section s 1 { r: (tag, x) { tag.value = 4; } }");
    let same = dtd(
        "section s 1 { r: x { tag.value = 0x4; x.doc = \"d\"; x.format = \"hex\"; x.width = 1; x.interpretation = none; } }",
    );
    let other = dtd("x.width = 2; x.interpretation = none; section s 1 { r: (tag, x) { tag.value = 4; } }");
    assert!(base.same_meaning(&same) && base.fingerprint() == same.fingerprint());
    assert!(!base.same_meaning(&other) && base.fingerprint() != other.fingerprint());
    // Generated readers contain the fingerprint, so it must never change.
    assert_eq!(base.fingerprint(), 14_032_378_044_040_196_875);
}

#[test]
fn one_mistake_one_error() {
    let only = |text: &str, code| assert_eq!(codes(text), [code], "{text}");
    only("tag.width = 3; section s 1 { r: (tag) { tag.value = 400; } }", Code::TagWidth);
    only("section s 1 { r: (tag, a) { tag.value = 4; a.width = \"1\"; a.interpretation = none; } }", Code::ValueKind);
    only("section s 1 { r: (tag, a) { tag.value = 4; a.width = 1 a.interpretation = none; } }", Code::Syntax);
    only(
        "x.width = 1; x.interpretation = none; section s 1 { p: (x) q: (tag, p) { tag.value = 3; } }",
        Code::TagReserved,
    );
    only("section s 300 { r: (tag, a) { tag.value = 4; a.width = 1; a.interpretation = none; } }", Code::SectionNumber);
    only(
        "section s 1 { r: (tag, a) { tag.value = 4; a.width = b.value; a.interpretation = none; } }",
        Code::UnknownReference,
    );
}

#[test]
fn a_global_property_is_reported_once() {
    let text = "a.width = b.value; a.interpretation = none; section s 1 { r: (tag, a) { tag.value = 4; } q: (tag, a) { tag.value = 5; } }";
    assert_eq!(codes(text), [Code::UnknownReference]);
}

#[test]
fn units_of_time() {
    let of = |unit: &str| {
        let text = format!(
            "a.width = 1; a.interpretation = none; a.unit = \"{unit}\"; section s 1 {{ r: (tag, a) {{ tag.value = 4; }} }}"
        );
        leaf(record(&dtd(&text), "s", "r"), &["a"]).nanoseconds()
    };
    let units = ["ns", "us", "microseconds", "ms", "s", "second", "tick", "byte"];
    let wanted =
        [Some(1), Some(1_000), Some(1_000), Some(1_000_000), Some(1_000_000_000), Some(1_000_000_000), None, None];
    assert_eq!(units.map(of), wanted);
}
