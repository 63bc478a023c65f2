//! Vectors of value models whose tables are about to double or have reached their maximum.

use super::Case;
use crate::oracle::Rule;

/// Returns a trace that exposes a rule of the tables, or `None` if the rule is not about tables.
#[must_use]
pub fn tables(rule: Rule) -> Option<Case> {
    let one = "(tag, n) { tag.value = 4; n.interpretation = predicted 1 fcm 1 2; }";
    // 128 numbers per line of all tables, so the tables have at most 32,768 lines.
    let by = "lastValue 16 by tag, lastValue 16 by tag, lastValue 16 by tag, lastValue 14 by tag";
    let two = format!(
        "(tag, n, m) {{ tag.value = 4; n.interpretation = predicted 1 (fcm 1, {by}) 2; m.interpretation = predicted 1 (dfcm 1, {by}) 2; }}"
    );
    let back = |count: u64| (count / RUNS).wrapping_neg() | 1;
    Some(match rule {
        // The 65th value updates one line of 128 or of 64.
        Rule::DoublesAtEquality => counted(one, 65, [&[2], &[0]], (400, 1, 3)),
        Rule::DoublesCopies => counted(one, 64, [&[2], &[0]], (RUNS, 16, back(64))),
        Rule::MostLines => counted(one, 70_000, [&[2], &[0]], (RUNS, 16, back(70_000))),
        Rule::MostNumbers => counted(&two, 34_000, [&[64, 0], &[0, 0]], (RUNS, 16, back(34_000))),
        Rule::ModelsOfOtherBy => few(
            "n.previous = shared; x.width = 1; x.interpretation = none; y.width = 1; y.interpretation = none;
    a: (tag, x, n) { tag.value = 4; n.interpretation = predicted 1 lastValue 1 by x 2; }
    b: (tag, y, n) { tag.value = 5; n.interpretation = predicted 1 lastValue 1 by y 2; }",
            &[100],
            &[&[4, 7, 1], &[5, 7, 0]],
        ),
        Rule::ModelsWithoutBy => few(
            "n.previous = shared; y.width = 1; y.interpretation = none;
    a: (tag, n) { tag.value = 4; n.interpretation = predicted 1 lastValue 1 2; }
    b: (tag, y, n) { tag.value = 5; n.interpretation = predicted 1 lastValue 1 by y 2; }",
            &[100],
            &[&[4, 1], &[5, 0, 0]],
        ),
        Rule::ByTagOfCatchAll => few(
            "rest: (tag, n) { tag.value = other; n.interpretation = predicted 1 lastValue 1 by tag 2; }",
            &[100, 50],
            &[&[10, 1], &[11, 1], &[10, 0]],
        ),
        _ => return None,
    })
}

/// Returns a case with a few records, given byte by byte.
fn few(records: &str, elements: &[u64], content: &[&[u8]]) -> Case {
    let stream = "section m 2 { item: (v) { v.width = 1; v.interpretation = none; } }";
    let dtd = format!("{stream}\nsection s 1 {{\n    {records}\n}}\n");
    Case { dtd, elements: vec![elements.to_vec()], content: content.concat(), records: content.len() as u32 }
}

const RUNS: u64 = 24;

/// Counts upwards with codes that consume an element. Then, in runs, writes one such record `distance` from the
/// previous value, and some records predicted from what followed before. If lines of a table collide, the prediction
/// differs from that of a larger table.
fn counted(record: &str, count: u64, [codes, then]: [&[u8]; 2], (runs, length, distance): (u64, u64, u64)) -> Case {
    let dtd = format!(
        "section m 2 {{ item: (v) {{ v.width = 1; v.interpretation = delta 0; }} }}\nsection s 1 {{ t: {record} }}\n"
    );
    let repeated = |codes: &[u8], n: u64| [&[4], codes].concat().repeat(n as usize);
    let mut content = repeated(codes, count);
    content.extend([repeated(codes, 1), repeated(then, length)].concat().repeat(runs as usize));
    let elements = [vec![1; count as usize], vec![distance; runs as usize]].concat();
    let records = count + runs * (1 + length);
    Case { dtd, elements: vec![elements], content, records: records as u32 }
}
