//! The tree-sitter grammar takes a text for right in syntax if and only if the parser does.

use metatf_editors_check::parse;
use metatf_parser::Code;

use crate::texts::{Text, blocks, files};

/// The rules that a grammar without meaning decides. A number that is too wide, parentheses that nest too deep, and a reference
/// that ends in a wrong word are right in syntax.
const SYNTAX: [Code; 7] = [
    Code::OpenComment,
    Code::BadString,
    Code::UnknownCharacter,
    Code::Syntax,
    Code::Brace,
    Code::ReservedWord,
    Code::PredictorWord,
];

/// Texts whose verdicts differ, and why.
const DIFFERENT: &[(&str, &str)] = &[
    ("metatf-parser/tests/diagnostics/e0403-predicted.dtd", MISSPELT),
    ("metatf-parser/tests/diagnostics/e1007-model-revision.dtd", REVISION),
    ("tests/vectors/bad/dtd/groups-40/format.dtd", "a group is not closed; the parser stops at its depth"),
    ("tests/vectors/bad/dtd/predicted-misspelt/format.dtd", MISSPELT),
    ("tests/vectors/bad/dtd/x-revision-none/format.dtd", REVISION),
    ("tests/vectors/bad/trace/x-predicted-revision-none/format.dtd", REVISION),
];

/// The parser's grammar has a rule for it, so that the word is what is reported; it is E0403, as is a word alone.
const MISSPELT: &str = "a model follows a misspelt `predicted`";
/// E1007 is a revision that is unknown as well, which is right in syntax.
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

/// Whether the text has a mistake in syntax by either grammar; `None` if it is not UTF-8, which tree-sitter does not see, or is larger
/// than a DTD may be.
fn verdicts(text: &Text) -> Option<(bool, bool)> {
    let parsed = metatf_parser::parse(&text.name, &text.bytes);
    let has = |codes: &[Code]| parsed.diagnostics.iter().any(|diagnostic| codes.contains(&diagnostic.code));
    if has(&[Code::NotUtf8, Code::TooLarge]) {
        return None;
    }
    let tree = parse(std::str::from_utf8(&text.bytes).expect("it is UTF-8")).expect("the parser of this version");
    Some((has(&SYNTAX), tree.root_node().has_error()))
}
