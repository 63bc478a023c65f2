//! Strings in traces and DTDs that contain terminal control characters.

use super::common::{metatfc, run};
use metatf_test::Folder;
use serde_json::json;

/// Terminal control characters, a false line break, and characters that change the text direction.
const HOSTILE: &str = "a\x1b[31m\x1b]0;title\x07\rb\u{9b}2J\u{202e}\u{2066}\u{7f}\u{e0041}\nFORGED c";
/// The same without the characters that strings and comments of a DTD cannot contain.
const IN_DTD: &str = "a\x1b[31m\x1b]0;title\x07b\u{9b}2J\u{202e}\u{7f}c";

/// Creates a directory with `s.dtd`, another version of it in `t.dtd`, and a trace of each, in which every string is
/// hostile.
fn folder() -> Folder {
    let here = Folder::new();
    let dtd = |extra: &str| {
        format!(
            "// {IN_DTD}
section s 1 {{
    // {IN_DTD}
    time.width = 4; time.interpretation = none; time.role = \"time\"; time.unit = \"us\";
    size.width = 4; size.interpretation = none; size.unit = \"{IN_DTD}\\nFORGED{extra}\"; size.note = \"{IN_DTD}\";
    id.width = 2; id.interpretation = none; id.role = \"span\";
    what.width = 1; what.interpretation = none; what.role = \"string_id\";
    alloc: (tag, time, size) {{ tag.value = 4; }}
    request: (tag, time, id, what) {{ tag.value = 8; tag.span = \"begin {IN_DTD}\"; }}
    answered: (tag, time, id) {{ tag.value = 9; tag.span = \"end\"; }}
    name: (tag, what, vfield) {{ tag.value = 12; vfield.data.format = \"utf8\"; vfield.data.role = \"string\"; }}
}}
"
        )
    };
    here.write("s.dtd", dtd(""));
    here.write("t.dtd", dtd("2"));
    here.write("bad.dtd", format!("section s 1 {{ // {IN_DTD}\n  x: (tag, {IN_DTD}) {{ \"{IN_DTD}\" }}\n"));
    let lines = |size: u32| {
        let record = |name: &str, fields: serde_json::Value| {
            let mut line = json!({"@section": "s", "@record": name});
            line.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
            format!("{line}\n")
        };
        [
            record("comment", json!({"text": HOSTILE})),
            record("name", json!({"what": 1, "vfield": HOSTILE})),
            record("alloc", json!({"time": 1, "size": size})),
            record("request", json!({"time": 2, "id": 7, "what": 1})),
            record("answered", json!({"time": 5, "id": 7})),
        ]
        .concat()
    };
    run(&here, &["convert", "--dtd", "s.dtd", "-", "s.mtf"], lines(7).as_bytes()).exits(0);
    run(&here, &["convert", "--dtd", "t.dtd", "-", "t.mtf"], lines(8).as_bytes()).exits(0);
    let mut torn = here.read("s.mtf");
    torn.truncate(torn.len() - 40);
    here.write("torn.mtf", torn);
    here
}

/// Every command escapes control characters in text output, and JSON output preserves the strings.
#[test]
fn what_a_terminal_obeys_is_shown() {
    let here = &folder();
    let runs: &[&[&str]] = &[
        &["new", "spans"],
        &["check", "s.dtd"],
        &["check", "bad.dtd"],
        &["check", "--message-format", "json", "bad.dtd"],
        &["check", "--reads", "s.dtd", "t.dtd"],
        &["fmt", "--check", "s.dtd"],
        &["gen", "s.dtd", "-o", "s.rs"],
        &["show", "s.dtd", "--trace", "s.mtf", "--doc", "pages"],
        &["convert", "s.mtf", "tables"],
        &["convert", "--dtd", "s.dtd", "tables/name.csv", "i.mtf"],
        &["sql", "s.mtf", "select 1"],
        &["check", "--lint", "s.dtd"],
        &["check", "--trace", "s.mtf", "s.dtd"],
        &["check", "--message-format", "json", "--trace", "s.mtf", "s.dtd"],
        &["show", "s.mtf"],
        &["show", "--format", "json", "s.mtf"],
        &["diff", "s.dtd", "t.dtd"],
        &["diff", "--format", "json", "s.dtd", "t.dtd"],
        &["dump", "s.mtf"],
        &["dump", "--all", "--resolve", "s.mtf"],
        &["dump", "--format", "hex", "s.mtf"],
        &["dump", "--format", "jsonl", "--names", "s.mtf"],
        &["dump", "--format", "jsonl", "--all", "--resolve", "s.mtf"],
        &["dump", "--where", "time == x", "s.mtf"],
        &["dump", "--salvage", "torn.mtf"],
        &["convert", "--dtd", "bad.dtd", "-", "z.mtf"],
        &["diff", "s.mtf", "t.mtf"],
        &["diff", "--format", "json", "s.mtf", "t.mtf"],
        &["convert", "s.mtf", "r.mtf"],
        &["sort", "--by", "time", "s.mtf", "-o", "o.mtf"],
        &["sort", "s.mtf", "s.mtf", "-o", "m.mtf"],
        &["sort", "s.mtf", "t.mtf", "-o", "m.mtf"],
        &["stat", "--spans", "s.mtf"],
        &["stat", "--spans", "--format", "json", "s.mtf"],
        &["dump", "--format", "chrome", "s.mtf"],
        &["stat", "s.mtf"],
        &["stat", "--format", "json", "s.mtf"],
        &["verify", "s.mtf", "torn.mtf"],
    ];
    for run in runs {
        let done = metatfc(here, run);
        for text in [String::from_utf8(done.out).expect("text"), done.err] {
            let obeyed = text.chars().find(|c| metatf_cli::is_control(*c) && *c != '\n' && *c != '\t');
            assert_eq!(obeyed, None, "{run:?}: {text}");
            assert!(!text.lines().any(|line| line.trim_start().starts_with("FORGED")), "{run:?}: {text}");
        }
    }
    // Programs receive the original strings: JSON escapes them, and CSV contains them unchanged.
    let line = metatfc(here, &["dump", "--format", "jsonl", "--record", "name", "s.mtf"]).exits(0).text();
    let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(line["vfield"], HOSTILE);
    let csv = metatfc(here, &["convert", "s.mtf", "-", "--to", "csv", "--record", "name"]).exits(0).text();
    assert!(csv.contains(HOSTILE), "{csv}");
    metatfc(here, &["show", "--format", "dtd", "s.mtf"]).exits(0).prints(IN_DTD);
    for format in ["show", "stat"] {
        let json = metatfc(here, &[format, "--format", "json", "s.mtf"]).exits(0).text();
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).expect("JSON")["report_version"], 1, "{format}");
    }
    // These commands print no strings of a trace or DTD: `telemetry` reads a running program, and `lsp`
    // answers with JSON.
    let others = ["telemetry", "control", "lsp", "help"];
    let help = metatfc(here, &["--help"]).exits(0).text();
    let commands = help.split("Commands:").nth(1).and_then(|rest| rest.split("Options:").next()).expect("a list");
    for line in commands.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   ")) {
        let name = line.split_whitespace().next().expect("a name");
        assert!(others.contains(&name) || runs.iter().any(|run| run[0] == name), "`metatfc {name}` is not run here");
    }
}
