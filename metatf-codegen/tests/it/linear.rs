//! Code generation takes time proportional to the size of the DTD. The tests count allocations, which do not depend on
//! the machine. If every record were compared with every other one, each pair would allocate names.

use crate::ALLOCATOR;
use metatf_codegen::{Options, generate_source};
use metatf_test::alone;
use std::fmt::Write as _;

/// A function that returns a DTD with the given number of records.
type Shape = fn(usize) -> String;

const HEAD: &str =
    "tag.width = 2; a.width = 4; a.interpretation = none; time.width = 8; time.interpretation = delta 0;\n";

/// Each record has its own fields.
fn own_fields(n: usize) -> String {
    section(n, |text, i| {
        let _ = writeln!(text, "r{i}: (tag, time, f{i}, vfield) {{ f{i}.width = 2; f{i}.interpretation = none;");
    })
}

/// All records share a previous value.
fn shared_fields(n: usize) -> String {
    section(n, |text, i| {
        let _ = writeln!(text, "r{i}: (tag, time, a) {{");
    })
}

/// Each record nests another.
fn nested(n: usize) -> String {
    section(n, |text, i| {
        let _ = writeln!(
            text,
            "in{i}: (a, time) {{ }}\nr{i}: (tag, in{i}, n*in{i}) {{ n.width = 1; n.interpretation = none;"
        );
    })
}

/// All names become the same type name in Rust.
fn clashing(n: usize) -> String {
    section(n, |text, i| {
        let name: String = (0..12).map(|bit| if i >> bit & 1 == 1 { "aB" } else { "a_b" }).collect();
        let _ = writeln!(text, "{name}: (tag, a) {{");
    })
}

fn section(n: usize, record: impl Fn(&mut String, usize)) -> String {
    let mut text = format!("{HEAD}section s 1 {{\n");
    for i in 0..n {
        record(&mut text, i);
        let _ = writeln!(text, "tag.value = {}; }}", i + 4);
    }
    text + "}\n"
}

/// Many sections contain records with the same names.
fn sections(n: usize) -> String {
    let mut text = HEAD.to_owned();
    for s in 1..=n.div_ceil(5) {
        let _ = writeln!(text, "section s{s} {s} {{");
        for i in 0..5 {
            let _ = writeln!(text, "r{i}: (tag, a) {{ tag.value = {}; }}", i + 4);
        }
        text += "}\n";
    }
    text
}

#[test]
fn twice_the_records_take_twice_the_work() {
    if !alone("linear::twice_the_records_take_twice_the_work") {
        return;
    }
    let shapes: [(&str, Shape); 5] = [
        ("own fields", own_fields),
        ("shared fields", shared_fields),
        ("nested", nested),
        ("clashing", clashing),
        ("sections", sections),
    ];
    for (name, shape) in shapes {
        let work = |n| {
            let text = shape(n);
            let (generated, work) = ALLOCATOR.count(|| generate_source(text.as_bytes(), &Options::new("many.dtd")));
            assert!(generated.is_ok_and(|g| g.source.len() > 100 * n), "{name}");
            work
        };
        let (half, whole) = (work(200), work(400));
        assert!(whole < half * 23 / 10, "{name}: {half} allocations for 200 records, {whole} for 400");
    }
}
