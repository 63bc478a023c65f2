//! Reports have the same formats in every command.

use crate::NAME;
use crate::common::{metatfc, run};
use crate::folder;
use metatf_test::Folder;

/// Creates a directory with two DTDs, a trace of the first, a different trace, and a trace with spans.
fn traces() -> Folder {
    let here = folder();
    let dtd = here.text("a.dtd");
    here.write("b.dtd", dtd.replace("size.unit = \"bytes\";", "size.unit = \"words\";"));
    let lines = here.text("a.jsonl");
    let first = format!("{}\n{NAME}\n", lines.lines().next().unwrap_or_default());
    run(&here, &["convert", "--dtd", "a.dtd", "-", "b.mtf"], first.as_bytes()).exits(0);
    let spans = "section s 1 { time.width = 4; time.interpretation = none; time.role = \"time\";
        thread.width = 1; thread.interpretation = none; thread.role = \"thread\";
        load: (tag, time, thread) { tag.value = 4; tag.span = \"begin\"; }
        loaded: (tag, time, thread) { tag.value = 5; tag.span = \"end\"; } }";
    here.write("s.dtd", spans);
    let span =
        |name: &str, time: u32| format!("{{\"@section\":\"s\",\"@record\":\"{name}\",\"time\":{time},\"thread\":1}}\n");
    let lines = [span("load", 1000), span("load", 2000), span("loaded", 5000), span("loaded", 9000)].concat();
    run(&here, &["convert", "--dtd", "s.dtd", "-", "s.mtf"], lines.as_bytes()).exits(0);
    here
}

/// The commands with reports, their exit status, a part of their output, and whether they have a picture.
const COMMANDS: &[(&[&str], i32, &str, bool)] = &[
    (&["stat", "a.mtf"], 0, "heap alloc", false),
    (&["diff", "a.dtd", "b.dtd"], 1, "a median change", false),
    (&["show", "a.dtd"], 0, "A block.", false),
    (&["stat", "--spans", "s.mtf"], 0, "DURATIONS", true),
    (&["diff", "a.mtf", "b.mtf"], 1, "FIRST DIFFERENCE", false),
];

#[test]
fn all_forms_on_standard_output_and_in_a_file() {
    let here = &traces();
    for (command, status, said, _) in COMMANDS {
        for (format, begins) in
            [("text", ""), ("markdown", "## "), ("html", "<!doctype html>"), ("json", "{\n  \"report_version\": 1,\n")]
        {
            let args = [command, &["--format", format][..]].concat();
            let printed = metatfc(here, &args).exits(*status).text();
            assert!(printed.starts_with(begins), "{args:?}: {printed}");
            assert!(format == "json" || printed.contains(said), "{args:?}: {printed}");
            let to_file = metatfc(here, &[&args[..], &["-o", "report"]].concat()).exits(*status);
            assert_eq!((to_file.text(), here.text("report")), (String::new(), printed), "{args:?}");
        }
    }
}

/// An empty report prints no text, so scripts do not have to parse it.
#[test]
fn what_is_the_same() {
    let here = &traces();
    assert_eq!(metatfc(here, &["diff", "a.mtf", "a.mtf"]).exits(0).text(), "");
    for format in ["markdown", "html"] {
        metatfc(here, &["diff", "--format", format, "a.mtf", "a.mtf"]).exits(0).prints("no differences in 5 records");
    }
}

#[test]
fn pictures_where_there_is_one() {
    let here = &traces();
    for (command, status, _, has_picture) in COMMANDS {
        let run = metatfc(here, &[command, &["--format", "svg"][..]].concat());
        if *has_picture {
            assert!(run.exits(*status).text().starts_with("<svg "), "{command:?}");
        } else {
            run.exits(1).says("standard output: this report has no picture");
        }
    }
    // The graph counts the nested span only once.
    metatfc(here, &["stat", "--spans", "--format", "svg", "s.mtf"]).exits(0).prints("8.00 us");
}

/// Other output than reports also goes to the file, which appears only when it is complete.
#[test]
fn other_forms_in_a_file() {
    let here = &traces();
    let commands: &[&[&str]] = &[&["show", "--format", "dtd", "a.mtf"], &["stat", "--spans=tree", "s.mtf"]];
    for command in commands {
        let printed = metatfc(here, command).exits(0).text();
        let to_file = metatfc(here, &[command, &["-o", "other"][..]].concat()).exits(0);
        assert_eq!((to_file.text(), here.text("other")), (String::new(), printed), "{command:?}");
        metatfc(here, &[command, &["-o", "none/other"][..]].concat()).exits(1).says("none/other: No such file");
    }
}
