//! `dump` and `convert` share the language of conditions: they select the same rows and report the same mistakes.

use std::collections::BTreeSet;

use crate::common::{metatfc, run};
use metatf_test::Folder;

const DTD: &str = r#"
section s 1 {
    n.width = 4; n.interpretation = none;
    signed.width = 4; signed.interpretation = none; signed.format = "signed";
    wide.width = 8; wide.interpretation = none;
    part.width = 8; part.interpretation = none; part.format = "f64";
    ok.width = 1; ok.interpretation = none; ok.format = "bool";
    host.width = 4; host.interpretation = none; host.format = "ipv4";
    to.width = 16; to.interpretation = none; to.format = "ipv6";
    at.width = 8; at.interpretation = none; at.format = "date_ms";
    state.width = 1; state.interpretation = none; state.values = "0 idle, 1 busy, 7 not found";
    mode.width = 1; mode.interpretation = none; mode.flags = "0 read, 1 write, 7 top";
    key.width = 9; key.interpretation = none;
    count.width = 1; count.interpretation = none;
    there.width = 1; there.interpretation = none; there.format = "bool";
    extra.width = 2; extra.interpretation = none;
    x.width = 2; x.interpretation = none;
    lock.width = 1; lock.interpretation = none; lock.flags = "0 held, 1 waited";
    r: (tag, n, signed, wide, part, ok, host, to, at, state, mode, vfield, key, there*extra, count*(x, lock)) {
        tag.value = 4; vfield.data.format = "utf8";
    }
}
"#;

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("c.dtd", DTD);
    let lines: String = (0..40_i64)
        .map(|n| {
            let name = ["", "a", "it's", "x and y", "größer"][usize::try_from(n % 5).unwrap_or(0)];
            let extra = if n % 3 == 0 { String::new() } else { (n % 4).to_string() };
            let items: Vec<String> =
                (0..n % 4).map(|i| format!(r#"{{"x":{},"lock":{}}}"#, i * n, (i + n) % 4)).collect();
            format!(
                r#"{{"@section":"s","@record":"r","n":{n},"signed":{},"wide":{},"part":{},"ok":{},"host":{},"to":"20010db80000000000000000000000{:02x}","at":{},"state":{},"mode":{},"vfield":"{name}","key":"{:018x}","extra":[{extra}],"count_items":[{}]}}{}"#,
                n * (1 - n % 2 * 2),
                u64::MAX - u64::try_from(n).unwrap_or(0),
                (n as f64) / 8.0 - 1.0,
                n % 2 == 0,
                167_772_160 + n,
                n,
                1_700_000_000_000_i64 + n * 1000,
                [0, 1, 7, 9][usize::try_from(n % 4).unwrap_or(0)],
                [0, 1, 3, 0x81, 0x10][usize::try_from(n % 5).unwrap_or(0)],
                n,
                items.join(","),
                '\n'
            )
        })
        .collect();
    run(&folder, &["convert", "--dtd", "c.dtd", "-", "c.mtf"], lines.as_bytes()).exits(0);
    folder
}

/// Returns the `n` of the rows that `dump` selects.
fn dumped(folder: &Folder, condition: &str) -> BTreeSet<u64> {
    let lines = metatfc(folder, &["dump", "--format", "jsonl", "--where", condition, "c.mtf"]).exits(0).text();
    let n = |line: &str| serde_json::from_str::<serde_json::Value>(line).ok()?["n"].as_u64();
    lines.lines().map(|line| n(line).expect("a row")).collect()
}

/// Returns the `n` of the rows that `convert` selects.
fn exported(folder: &Folder, condition: &str, more: &[&str]) -> BTreeSet<u64> {
    let args = ["convert", "c.mtf", "--columns", "n", "--where", condition, "c.csv"];
    metatfc(folder, &[&args[..], more].concat()).exits(0);
    let csv = std::fs::read_to_string(folder.path("c.csv")).expect("the export");
    std::fs::remove_file(folder.path("c.csv")).expect("the export");
    csv.lines().skip(1).map(|line| line.parse().expect("a number")).collect()
}

#[test]
fn the_same_rows() {
    let folder = &folder();
    let all: BTreeSet<u64> = (0..40).collect();
    for condition in [
        "n < 10",
        "n >= 0x10 and n <= 20",
        "n in (1, 2, 0x3) or n == 30",
        "n not in (1, 2, 3) && !(n > 5)",
        "not ok and n < 8",
        "ok == true && n != 4",
        "ok = false",
        "signed < 0",
        "signed == -3",
        "wide == 18446744073709551610",
        "wide > 0xfffffffffffffff0",
        "part < 0.5",
        "part == 1",
        "part >= 2.5 and part != 3",
        "host == \"10.0.0.7\" or host = '10.0.0.8'",
        "host & 1",
        "to == '2001:db8::5'",
        "at >= \"2023-11-14T22:13:30Z\"",
        "at < 1700000004000",
        "state == busy",
        "state == \"not found\" or state == 9",
        "state != busy && state > 1",
        "mode & write",
        "mode == \"read|top\"",
        "mode & 0x10",
        "mode == 0",
        "mode",
        "vfield == 'it''s'",
        "vfield = \"größer\" or vfield == \"x and y\"",
        "vfield",
        "not vfield",
        "key == x\"000000000000000005\"",
        "extra",
        "extra == 2",
        "not (extra < 3)",
        "extra != 2",
        "x > 50",
        "count_items.x == 31",
        "lock & waited",
        "lock == held",
        "x > signed and n < 12",
        "x == n",
    ] {
        let rows = dumped(folder, condition);
        assert!(!rows.is_empty() && rows != all, "{condition} selects {rows:?}");
        assert_eq!(exported(folder, condition, &[]), rows, "{condition}");
        let without = dumped(folder, &format!("!({condition})"));
        assert_eq!(&rows ^ &without, all, "{condition}");
        assert_eq!(exported(folder, &format!("not ({condition})"), &[]), without, "not ({condition})");
    }
    // With `--stored`, values are numbers, but names still select them.
    for condition in ["state == busy", "mode & write", "ok", "lock & waited", "host == '10.0.0.7'"] {
        assert_eq!(exported(folder, condition, &["--stored"]), dumped(folder, condition), "{condition}");
    }
}

#[test]
fn the_same_mistakes() {
    let folder = &folder();
    for (condition, message) in [
        ("n >", "expected a field, a number or a string\n    n >\n       ^"),
        ("sise > 1", "unknown field `sise`; available fields: "),
        ("n == 'x'", "cannot compare `n` (a number) with \"x\" (a string)\n    n == 'x'\n    ^"),
        // Strings need quotes: an unquoted word is a field or the name of a value.
        ("vfield == a", "unknown field `a`"),
        ("vfield > 3", "cannot compare `vfield` (a string) with `3` (a number)"),
        ("vfield = größer", "expected `and`, `or` or the end of the condition\n    vfield = größer\n               ^"),
        ("n < 3 garbage", "expected `and`, `or` or the end of the condition\n    n < 3 garbage\n          ^"),
        ("n in 3", "expected `(` and the values, as in `in (1, 2)`"),
        ("(n < 3", "this `(` is not closed"),
        ("n == 99999999999999999999", "expected a number of at most 64 bits"),
        ("", "expected a field, a number or a string"),
    ] {
        metatfc(folder, &["dump", "--where", condition, "c.mtf"]).exits(2).says(message);
        metatfc(folder, &["convert", "c.mtf", "--where", condition, "c.csv"]).exits(2).says(message);
    }
}
