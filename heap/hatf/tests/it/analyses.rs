//! Every row of the table of analyses is a command, a part of `hatf report --with` and its HTML report, and a line of
//! the README and the book.
#![allow(clippy::expect_used, reason = "a failing test must panic")]

use hatf_view::analyses::ANALYSES;
use metatf_test::{Folder, golden, root};
use serde_json::Value;

use crate::common::hatf;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/");

/// Returns the page with the table of analyses after its marker.
fn with_table(text: &str, docs: &str) -> String {
    let (before, rest) = text.split_once("<!-- analyses -->\n").expect("the marker");
    let after = rest.split_inclusive('\n').skip_while(|line| line.starts_with('|')).collect::<String>();
    let row = |analysis: &hatf_view::analyses::Analysis| {
        format!("| {} | [`hatf {}`]({docs}{}) |\n", analysis.question, analysis.name, analysis.page)
    };
    let rows: String = ANALYSES.iter().map(row).collect();
    format!("{before}<!-- analyses -->\n| question | command |\n| --- | --- |\n{rows}{after}")
}

#[test]
fn readme_and_book_list_them() {
    for (page, docs) in [("README.md", "docs/"), ("docs/heap-traces.md", "")] {
        let path = root().join(page);
        let text = std::fs::read_to_string(&path).unwrap();
        golden::hold(&path, &with_table(&text, docs));
    }
}

/// The answer in a report of all analyses is the answer alone, and any one can be left out.
#[test]
fn together_they_answer_as_alone() {
    let (trace, folder) = (format!("{DATA}gawk.raw32.zst"), Folder::new());
    let names: Vec<_> = ANALYSES.iter().map(|analysis| analysis.name).collect();
    let page = folder.path("page.html");
    let all = hatf(["report", &trace, "--with", &names.join(","), "--format", "json", "--html", &page]).exits(0);
    let all: Value = serde_json::from_slice(&all.out).unwrap();
    let page = std::fs::read_to_string(page).unwrap();
    for (at, analysis) in ANALYSES.iter().enumerate() {
        let name = analysis.name;
        assert!(!all[name].is_null(), "{name} is not in the report");
        let others = names.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, name)| *name);
        let others = others.collect::<Vec<_>>().join(",");
        let without = hatf(["report", &trace, "--with", &others, "--format", "json"]).exits(0);
        let without: Value = serde_json::from_slice(&without.out).unwrap();
        assert!(without[name].is_null());
        assert_eq!(without["report"], all["report"]);
        names
            .iter()
            .filter(|other| **other != name)
            .for_each(|other| assert_eq!(without[other], all[other], "{other}"));

        // The page contains the headings of the answer.
        let text = hatf(["report", &trace, "--with", name]).exits(0).text();
        let only = hatf(["report", &trace]).exits(0).text();
        let added: Vec<_> =
            text.lines().skip(only.lines().count()).filter(|line| line.starts_with(char::is_uppercase)).collect();
        assert!(!added.is_empty(), "{name}: {text}");
        let heading = added[0].split([':', '(']).next().unwrap().trim();
        assert!(page.contains(heading), "{heading} is not in the page");
    }
}

#[test]
fn each_is_a_command_with_help() {
    let help = hatf(["--help"]).exits(0).text();
    let with = hatf(["report", "--help"]).exits(0).text();
    let with = with.split_whitespace().collect::<Vec<_>>().join(" ");
    for analysis in ANALYSES {
        assert!(help.contains(&format!("  {:<14} {}\n", analysis.name, analysis.question)), "{}", analysis.name);
        assert!(with.contains(analysis.adds), "{}", analysis.name);
        hatf([analysis.name, "--help"]).exits(0);
        assert!(root().join("docs").join(analysis.page).exists(), "{}", analysis.page);
    }
}
