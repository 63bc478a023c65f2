//! Tests the rules that need no trace: each reports its findings, a comment suppresses them, and suggested edits leave
//! a valid DTD.
#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

use metatf_parser::schema::Origin;
use metatf_parser::{Code, Diagnostic, Rule, index, lint, parse};

fn found(text: &str) -> Vec<Diagnostic> {
    let index = index(text.as_bytes());
    assert_eq!(parse("", text.as_bytes()).errors(), 0, "{:?}", index.diagnostics);
    lint(text.as_bytes(), &index, |_| true)
}

/// Returns the findings of these rules as `rule line:column message`.
fn of(rules: &[Rule], text: &str) -> Vec<String> {
    let found = found(text).into_iter().filter(|found| rules.iter().any(|rule| found.code == Code::Lint(*rule)));
    found.map(|f| format!("{} {}:{} {}", f.code, f.primary.line, f.primary.column, f.message)).collect()
}

const DOCS: [Rule; 3] = [Rule::UndocumentedSection, Rule::UndocumentedRecord, Rule::UndocumentedField];

#[test]
fn documentation() {
    let text = "\
tag.width = 1;
section log 1 {
    // When.
    time.width = 8; time.interpretation = none;
    job.width = 4; job.interpretation = none;
    // It began.
    begin: (tag, time, job) { tag.value = 4; }
    end: (tag, time, job, names: (2)*vfield) { tag.value = 5; }
}
// Names.
section names 2 { name: vfield; }
section codes 3 { code: (number) { number.width = 1; number.interpretation = none; } }
";
    let wanted = [
        "undocumented-section 2:9 section `log` has no documentation",
        "undocumented-field 5:5 field `job` has no documentation",
        "undocumented-record 8:5 record `end` has no documentation",
        "undocumented-section 12:9 section `codes` has no documentation",
        "undocumented-record 12:19 record `code` has no documentation",
    ];
    assert_eq!(of(&DOCS, text), wanted);
    // The head comment of the file documents its only section.
    let one = "// A log.\n\nsection log 1 {\n    // A mark.\n    mark: (tag) { tag.value = 4; }\n}\n";
    assert_eq!(of(&DOCS, one), [""; 0]);
}

#[test]
fn what_nothing_uses() {
    let rules = [Rule::EmptySection, Rule::UnreferencedStream];
    let text = "\
section a 1 { r: (tag, x, y) { tag.value = 4; x.width = 1; x.interpretation = sectionOffset 2; y.interpretation = sectionStride 3 1; } }
section names 2 { name: vfield; }
section values 3 { v: (n) { n.width = 1; n.interpretation = none; } }
section lost 4 { w: (n) { n.width = 1; n.interpretation = none; } }
section meant 5 { // lint: allow unreferenced-stream
    u: (n) { n.width = 1; n.interpretation = none; }
}
section empty 6 { }
// Metadata sets `x` to `sectionStride 7 1`.
section steps 7 { t: (n) { n.width = 1; n.interpretation = delta 0; } }
";
    let wanted = [
        "unreferenced-stream 4:9 no field refers to the stream section `lost`",
        "empty-section 8:9 section `empty` has no records",
    ];
    assert_eq!(of(&rules, text), wanted);
    let global = "mark: (tag) { tag.value = 4; }\nsection a 1 { }\nsection b 2 { }\n";
    assert_eq!(of(&rules, global), [""; 0]);
}

#[test]
fn properties_without_effect() {
    let text = "\
section a 1 {
    size.width = 4; size.interpretation = none;
    state.values = \"0 on, 1 off\"; state.width = 1; state.interpretation = none;
    r: (tag, size, state) { tag.value = 4; size.width = 2; state.values = \"0 a, 1 b\"; }
    s: (tag, size) { tag.value = 5; size.width = 8; }
}
";
    let found = found(text);
    let found: Vec<_> = found.iter().filter(|finding| finding.code == Code::Lint(Rule::OverriddenProperty)).collect();
    let messages: Vec<_> = found.iter().map(|finding| finding.message.as_str()).collect();
    let wanted = [
        "`size.width` has no effect: a nearer setting overrides it for each of its fields",
        "`state.values` has no effect: a nearer setting overrides it for each of its fields",
    ];
    assert_eq!(messages, wanted);
    let edited = found[0].suggestion.as_ref().unwrap().apply(text.as_bytes()).unwrap();
    assert_eq!(String::from_utf8(edited).unwrap(), text.replacen("size.width = 4; ", "", 1));
    // The property takes effect if one record has no setting of its own.
    let used = text.replace("size.width = 8;", "");
    assert_eq!(of(&[Rule::OverriddenProperty], &used).len(), 1);
}

#[test]
fn names_that_are_alike() {
    let text = "\
section Log 1 {
    callSite.width = 1; callSite.interpretation = none;
    callsite.width = 1; callsite.interpretation = none;
    r: (tag, callSite) { tag.value = 4; }
    R: (tag, callsite) { tag.value = 5; }
}
section log 2 { q: (tag) { tag.value = 4; } }
";
    let wanted = [
        "similar-names 5:5 records `r` and `R` differ only in case or underscores",
        "similar-names 5:14 fields `callSite` and `callsite` differ only in case or underscores",
        "similar-names 7:9 sections `Log` and `log` differ only in case or underscores",
    ];
    assert_eq!(of(&[Rule::SimilarNames], text), wanted);
}

#[test]
fn comments_allow() {
    let text = "section a 1 { r: (tag) { tag.value = 4; } } // lint: allow undocumented-section, undocumented-record\n";
    assert_eq!(of(&DOCS, text), [""; 0]);
    let head = format!("/* lint: allow undocumented-record */\n\n{}", &text[..44]);
    assert_eq!(of(&DOCS, &head), [""; 0]);
    let other = "// lint: allow similar-names\n\n\nsection a 1 { r: (tag) { tag.value = 4; } }\n";
    assert_eq!(of(&DOCS, other), ["undocumented-record 4:15 record `r` has no documentation"]);
}

/// A DTD with errors has no findings, because the rest may be misread.
#[test]
fn a_text_with_errors_has_no_findings() {
    let text = b"section a 1 { r: (tag, x) { tag.value = 4; } }";
    let index = index(text);
    assert!(!index.diagnostics.is_empty());
    assert_eq!(lint(text, &index, |_| true), []);
}

/// Runs the rules on the DTDs of all valid vectors, with and without copied statements that may have no effect. Every
/// edit leaves a valid DTD and removes its finding; removing an overridden property also preserves the meaning.
#[test]
fn edits_leave_a_dtd_that_checks() {
    let good = metatf_test::root().join("tests/vectors/good");
    let folders = std::fs::read_dir(good).expect("the vectors are there").flatten();
    let mut files: Vec<_> =
        folders.map(|folder| folder.path().join("format.dtd")).filter(|file| file.exists()).collect();
    files.extend(std::fs::read_dir(metatf_test::root().join("dtds")).unwrap().flatten().map(|file| file.path()));
    files.retain(|file| file.extension().is_some_and(|extension| extension == "dtd"));
    files.sort();
    let (mut findings, mut edits) = (0, 0);
    for file in files {
        let text = String::from_utf8(std::fs::read(&file).unwrap()).unwrap();
        for text in [text.clone(), with_overridden(&text)] {
            let index = index(text.as_bytes());
            for finding in lint(text.as_bytes(), &index, |_| true) {
                findings += 1;
                assert!(text.get(finding.primary.span.clone()).is_some(), "{}: {finding:?}", file.display());
                let Some(edit) = &finding.suggestion else { continue };
                edits += 1;
                let edited = edit.apply(text.as_bytes()).expect("the edit is in the text");
                let (old, new) = (parse("", text.as_bytes()).dtd.unwrap(), parse("", &edited));
                let new = new.dtd.unwrap_or_else(|| panic!("{}: {finding:?}: {:?}", file.display(), new.diagnostics));
                if finding.code == Code::Lint(Rule::OverriddenProperty) {
                    assert_eq!(old.fingerprint(), new.fingerprint(), "{}: {finding:?}", file.display());
                }
                let again = lint(&edited, &metatf_parser::index(&edited), |_| true);
                let same = |f: &&Diagnostic| f.code == finding.code && f.message == finding.message;
                let before = lint(text.as_bytes(), &index, |_| true).iter().filter(same).count();
                assert!(again.iter().filter(same).count() < before, "{}: {finding:?} is found again", file.display());
            }
        }
    }
    assert!(findings > 100 && edits > 20, "{findings} findings, {edits} edits");
}

/// Copies the settings of a record's block to the top level, where they have no effect unless another record uses them.
fn with_overridden(text: &str) -> String {
    let index = index(text.as_bytes());
    let mut out = text.to_owned();
    for record in &index.records {
        for field in record.fields.iter().filter(|field| !field.leaf.is_tag()) {
            let set = field.set(metatf_parser::Property::Width);
            let Some(span) = set.filter(|set| matches!(set.scope, Origin::Block(_))).and_then(|set| set.span.clone())
            else {
                continue;
            };
            let name = &field.leaf.name;
            let more = format!("{out}\n{name}.width = 3;\n");
            let is_path = text.get(span).is_some_and(|target| target.matches('.').count() == 1);
            if is_path && parse("", more.as_bytes()).errors() == 0 {
                out = more;
            }
        }
    }
    out
}
