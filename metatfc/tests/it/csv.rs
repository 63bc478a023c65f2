//! Formulas, optional fields and strings in CSV.

use super::common::{metatfc, run};
use metatf_test::Folder;

const DTD: &str = "section s 1 {
    i.width = 4; i.interpretation = none; i.format = \"signed\";
    r.width = 8; r.interpretation = none; r.format = \"f64\";
    all: (tag, i, r, vfield) { tag.value = 4; vfield.data.format = \"utf8\"; }
}";

/// With `--no-formulas`, untrusted strings remain strings in a spreadsheet, and numbers remain numbers.
#[test]
fn csv_without_formulas() {
    let here = &Folder::new();
    here.write("s.dtd", DTD);
    let texts = ["=1+2", "@SUM(A1)", "+x", "-y", "\\t=1", "plain", "-7", "1e3"];
    let line =
        |text: &&str| format!("{{\"@section\":\"s\",\"@record\":\"all\",\"i\":-5,\"r\":-0.5,\"vfield\":\"{text}\"}}\n");
    let lines: String = texts.iter().map(line).collect();
    run(here, &["convert", "--dtd", "s.dtd", "-", "s.mtf"], lines.as_bytes()).exits(0);
    let csv = |options: &[&str]| {
        metatfc(here, &[&["convert", "s.mtf", "-", "--to", "csv"], options].concat()).exits(0).text()
    };
    let cells = |csv: &str| -> Vec<String> {
        csv.lines().skip(1).map(|line| line.rsplit_once(',').unwrap().1.to_owned()).collect()
    };
    assert_eq!(cells(&csv(&[])), ["=1+2", "@SUM(A1)", "+x", "-y", "\t=1", "plain", "-7", "1e3"]);
    let marked = csv(&["--no-formulas"]);
    assert_eq!(cells(&marked), ["'=1+2", "'@SUM(A1)", "'+x", "'-y", "'\t=1", "plain", "-7", "1e3"]);
    assert!(marked.contains(",-5,-0.5,"), "numbers are numbers: {marked}");
    metatfc(here, &["convert", "s.mtf", "s.sqlite", "--no-formulas"])
        .exits(2)
        .says("--no-formulas requires CSV output");
}

/// An optional field, and a field that refers to a string table.
const OPTIONAL: &str = "
    section names 2 { name_item: vfield { vfield.data.format = \"utf8\"; } }
    section s 1 {
        task: (tag, comm, has_cpu*cpu) {
            tag.value = 4; comm.width = 4; comm.interpretation = sectionOffset 2;
            has_cpu.width = 1; has_cpu.interpretation = none; has_cpu.format = \"bool\";
            cpu.width = 2; cpu.interpretation = none;
        }
    }
";

const TASKS: &str = r#"{"@section":"names","@record":"name_item","vfield":"spawned/0"}
{"@section":"names","@record":"name_item","vfield":"it's, quoted"}
{"@section":"s","@record":"task","comm":0,"has_cpu":1,"cpu":[100]}
{"@section":"s","@record":"task","comm":10,"has_cpu":0,"cpu":[]}
{"@section":"s","@record":"task","comm":0,"has_cpu":1,"cpu":[200]}
"#;

#[test]
fn strings_are_text_and_optional_fields_are_values() {
    let here = &Folder::new();
    here.write("t.dtd", OPTIONAL);
    run(here, &["convert", "--dtd", "t.dtd", "-", "t.mtf"], TASKS.as_bytes()).exits(0);
    let csv = |options: &[&str]| {
        let args = [&["convert", "t.mtf", "-", "--to", "csv", "--record", "task", "--columns", "comm,cpu"], options];
        metatfc(here, &args.concat())
    };
    assert_eq!(csv(&[]).exits(0).text(), "comm,cpu\nspawned/0,100\n\"it's, quoted\",\nspawned/0,200\n");
    assert_eq!(csv(&["--where", "comm = \"it's, quoted\""]).exits(0).text(), "comm,cpu\n\"it's, quoted\",\n");
    assert_eq!(csv(&["--stored"]).exits(0).text(), "comm,cpu\n0,[100]\n10,[]\n0,[200]\n");
}
