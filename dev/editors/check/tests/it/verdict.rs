//! Checks that the tree-sitter grammar accepts a text if and only if the parser does.

use metatf_editors_check::parse;
use metatf_parser::Code;

use crate::texts::{Text, blocks, files};

/// The errors that a grammar can detect. Numbers that are too wide, parentheses that are nested too deeply, and
/// references that end in a wrong word are syntactically correct.
const SYNTAX: [Code; 7] = [
    Code::OpenComment,
    Code::BadString,
    Code::UnknownCharacter,
    Code::Syntax,
    Code::Brace,
    Code::ReservedWord,
    Code::PredictorWord,
];

/// Texts with different results, and the reasons.
const DIFFERENT: &[(&str, &str)] = &[
    ("metatf-parser/tests/diagnostics/e0403-predicted.dtd", MISSPELT),
    ("metatf-parser/tests/diagnostics/e1007-model-revision.dtd", REVISION),
    ("tests/vectors/bad/dtd/groups-40/format.dtd", "a group is not closed; the parser stops at its depth"),
    ("tests/vectors/bad/dtd/predicted-misspelt/format.dtd", MISSPELT),
    ("tests/vectors/bad/dtd/x-revision-none/format.dtd", REVISION),
    ("tests/vectors/bad/trace/x-predicted-revision-none/format.dtd", REVISION),
];

/// The parser's grammar has a rule for this case to report the word. Its code is E0403, the same as for a single word.
const MISSPELT: &str = "a model follows a misspelt `predicted`";
/// E1007 also covers an unknown revision, which is syntactically correct.
const REVISION: &str = "the revision of a model is missing";

#[test]
fn every_dtd() {
    let mut different = Vec::new();
    let (mut right, mut wrong) = (0, 0);
    for text in files().into_iter().chain(blocks()) {
        let Some((pest, tree_sitter)) = verdicts(&text) else { continue };
        *if pest { &mut wrong } else { &mut right } += 1;
        if pest != tree_sitter {
            different.push(format!("{}: pest {pest}, tree-sitter {tree_sitter}", text.name));
        }
    }
    let expected: Vec<_> = DIFFERENT.iter().map(|(name, _)| *name).collect();
    let found: Vec<_> = different.iter().map(|line| line.split(": ").next().unwrap_or_default()).collect();
    assert_eq!(found, expected, "{different:#?}");
    assert!(right > 600 && wrong > 20, "{right} texts are right, {wrong} are wrong");
}

/// Returns whether each grammar finds a syntax error in the text. Returns `None` if the text exceeds the maximum size
/// of a DTD, or is not UTF-8, because tree-sitter cannot parse other encodings.
fn verdicts(text: &Text) -> Option<(bool, bool)> {
    let parsed = metatf_parser::parse(&text.name, &text.bytes);
    let has = |codes: &[Code]| parsed.diagnostics.iter().any(|diagnostic| codes.contains(&diagnostic.code));
    if has(&[Code::NotUtf8, Code::TooLarge]) {
        return None;
    }
    let tree = parse(std::str::from_utf8(&text.bytes).expect("it is UTF-8")).expect("the parser of this version");
    Some((has(&SYNTAX), tree.root_node().has_error()))
}
