//! Computes the class of each character of a text with the highlight query.

use std::sync::LazyLock;

use metatf_editors_check::{language, parse};
use tree_sitter::{Query, QueryCursor, StreamingIterator as _};

/// The highlights of the tree-sitter grammar.
static HIGHLIGHTS: LazyLock<Query> = LazyLock::new(|| {
    let text = include_str!("../../../tree-sitter-metatf/queries/highlights.scm");
    Query::new(&language(), text).unwrap_or_else(|error| panic!("highlights.scm: {error}"))
});

/// The class of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    Comment,
    String,
    Number,
    Keyword,
    Section,
    Record,
    Property,
    Name,
}

impl Class {
    pub(crate) const ALL: [Self; 8] = [
        Self::Comment,
        Self::String,
        Self::Number,
        Self::Keyword,
        Self::Section,
        Self::Record,
        Self::Property,
        Self::Name,
    ];

    fn of_capture(name: &str) -> Option<Self> {
        Some(match name {
            "comment" => Self::Comment,
            "string" => Self::String,
            "number" => Self::Number,
            "keyword" => Self::Keyword,
            "module" => Self::Section,
            "type" => Self::Record,
            "property" => Self::Property,
            "variable" | "variable.member" | "constant" => Self::Name,
            "operator" | "punctuation.bracket" | "punctuation.delimiter" => return None,
            other => panic!("a capture without a class: {other}"),
        })
    }

    /// Returns the class of a scope in a TextMate grammar, in which the quoted name of an annotation is a string.
    pub(crate) fn of_scope(scope: &str) -> Option<Self> {
        let starts = [
            ("comment.", Self::Comment),
            ("string.", Self::String),
            ("constant.character.escape.", Self::String),
            ("constant.numeric.", Self::Number),
            ("keyword.control.", Self::Keyword),
            ("keyword.other.", Self::Keyword),
            ("entity.name.namespace.", Self::Section),
            ("entity.name.type.", Self::Record),
            ("support.type.property-name.", Self::Property),
            ("variable.", Self::Name),
        ];
        starts.iter().find(|(start, _)| scope.starts_with(start)).map(|(_, class)| *class)
    }
}

/// Returns the class of each byte of a syntactically correct text. If there are several captures, the last pattern
/// wins, as in editors.
pub(crate) fn classes(text: &str) -> Vec<Option<Class>> {
    let tree = parse(text).expect("the parser of this version");
    let mut captures = Vec::new();
    let mut cursor = QueryCursor::new();
    let mut matches = cursor.matches(&HIGHLIGHTS, tree.root_node(), text.as_bytes());
    while let Some(found) = matches.next() {
        for capture in found.captures() {
            let name = HIGHLIGHTS.capture_names()[capture.index as usize];
            captures.push((found.pattern_index, capture.node.byte_range(), Class::of_capture(name)));
        }
    }
    captures.sort_by_key(|(pattern, ..)| *pattern);
    let mut classes = vec![None; text.len()];
    for (_, range, class) in captures {
        classes[range].fill(class);
    }
    classes
}
