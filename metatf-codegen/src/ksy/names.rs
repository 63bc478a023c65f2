//! Identifiers: lower-case ASCII names that are not words of a target language of Kaitai's compiler.

use heck::ToSnakeCase;

use super::yaml::Map;
use crate::names::{Scope, legal};

/// Keywords of the target languages, which the compiler does not escape.
const KEYWORDS: &[&str] = &[
    "abstract",
    "alias",
    "and",
    "as",
    "assert",
    "async",
    "auto",
    "await",
    "begin",
    "bool",
    "boolean",
    "break",
    "byte",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "continue",
    "def",
    "default",
    "del",
    "delete",
    "do",
    "double",
    "elif",
    "else",
    "elseif",
    "end",
    "ensure",
    "enum",
    "except",
    "explicit",
    "export",
    "extends",
    "extern",
    "false",
    "final",
    "finally",
    "float",
    "fn",
    "for",
    "foreach",
    "friend",
    "from",
    "func",
    "function",
    "global",
    "goto",
    "if",
    "implements",
    "import",
    "in",
    "inline",
    "int",
    "interface",
    "internal",
    "is",
    "lambda",
    "let",
    "local",
    "long",
    "module",
    "mutable",
    "namespace",
    "native",
    "new",
    "nil",
    "nonlocal",
    "not",
    "null",
    "object",
    "operator",
    "or",
    "out",
    "override",
    "package",
    "params",
    "pass",
    "private",
    "protected",
    "public",
    "raise",
    "readonly",
    "redo",
    "ref",
    "register",
    "rescue",
    "retry",
    "return",
    "sealed",
    "self",
    "short",
    "signed",
    "sizeof",
    "static",
    "string",
    "struct",
    "super",
    "switch",
    "synchronized",
    "template",
    "then",
    "this",
    "throw",
    "throws",
    "transient",
    "true",
    "try",
    "typedef",
    "typeof",
    "undef",
    "union",
    "unless",
    "unsafe",
    "unsigned",
    "until",
    "using",
    "var",
    "virtual",
    "void",
    "volatile",
    "when",
    "where",
    "while",
    "with",
    "yield",
];

/// Types of the target languages that a generated class would hide.
const CLASSES: &[&str] = &[
    "array",
    "date",
    "error",
    "exception",
    "hash",
    "integer",
    "list",
    "map",
    "math",
    "none",
    "number",
    "option",
    "promise",
    "result",
    "set",
    "symbol",
    "type",
    "vec",
];

/// The use of an identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Field,
    Type,
    Value,
}

/// Returns an unused identifier for the first of these names that leads to one.
pub(super) fn take(scope: &mut Scope, names: &[&str], of: Of) -> String {
    let candidates: Vec<String> = names.iter().map(|name| identifier(name, of)).collect();
    scope.take(&candidates)
}

fn identifier(name: &str, of: Of) -> String {
    let ascii: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { ' ' }).collect();
    let (prefix, suffix) = match of {
        Of::Field => ("f", "field"),
        Of::Type => ("t", "record"),
        Of::Value => ("v", "value"),
    };
    let id = legal(ascii.to_snake_case(), prefix, name);
    let is_taken = KEYWORDS.contains(&id.as_str()) || (of == Of::Type && CLASSES.contains(&id.as_str()));
    if is_taken { format!("{id}_{suffix}") } else { id }
}

/// Returns the name in the DTD as an annotation, if the identifier differs.
pub(super) fn original(id: &str, name: &str) -> Map {
    if id == name { Map::new() } else { Map::new().entry("-orig-id", super::yaml::Yaml::Text(name.to_owned())) }
}
