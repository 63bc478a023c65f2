//! `docs/diagnostics.md` is generated from the list of codes in `metatf-parser`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use metatf_parser::{Code, Severity};
use metatf_test::{golden, root};
use std::fmt::Write as _;

const HEAD: &str = "\
# Diagnostics

<!-- Made from metatf-parser/src/codes.rs by the test `the_page_of_diagnostics_is_current`; METATF_BLESS=1 rewrites it. -->

Every diagnostic of `metatfc check`, the build script and the attribute has a stable code.
Errors (`E`) reject a DTD.
Warnings (`W`) do not, unless `--deny-warnings` is given.
A single run reports every diagnostic.

";

fn page() -> String {
    let mut page = HEAD.to_owned();
    let mut severity = None;
    for code in Code::ALL {
        if severity != Some(code.severity()) {
            severity = Some(code.severity());
            page += if code.severity() == Severity::Error { "## Errors\n\n" } else { "## Warnings\n\n" };
        }
        // The example is indented in the explanation, which Markdown treats as code.
        writeln!(page, "### {code}\n\n{}\n", code.explain().trim_end()).unwrap();
    }
    page.truncate(page.trim_end().len());
    page + "\n"
}

#[test]
fn the_page_of_diagnostics_is_current() {
    golden::hold(&root().join("docs/diagnostics.md"), &page());
}

#[test]
fn each_example_breaks_its_rule() {
    let mut wrong = Vec::new();
    for code in Code::ALL {
        let Some((_, example)) = code.explain().split_once("breaks the rule:\n\n    ") else { continue };
        // In an example, `\xE9` denotes the byte with this value.
        let mut text = example.trim_end().as_bytes().to_vec();
        if let Some(at) = text.windows(4).position(|w| w == br"\xE9") {
            text.splice(at..at + 4, [0xE9]);
        }
        // Some examples are properties in a record block.
        let block = [b"r: (tag, a) { tag.value = 4; ".as_slice(), &text, b" }"].concat();
        let mut found = metatf_parser::parse("example", &text).diagnostics;
        found.extend(metatf_parser::parse("example", &block).diagnostics);
        if !found.iter().any(|d| d.code == *code) {
            let found: Vec<_> = found.iter().map(|d| d.code.as_str()).collect();
            wrong.push(format!("{code}: {example}gives {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
