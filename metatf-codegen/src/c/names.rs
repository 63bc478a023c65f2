//! Names in C and C++.

use crate::names::{legal, snake};
use crate::options::OptionError;

/// Keywords of C and C++, and macros of the standard library with which a field name may collide.
const TAKEN: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "assert",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "complex",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "errno",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "linux",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "offsetof",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "stderr",
    "stdin",
    "stdout",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "union",
    "unix",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
];

/// Converts an argument name of a Rust emitter to a C name.
pub(super) fn argument(name: &str) -> String {
    let name = name.trim_start_matches("r#");
    if TAKEN.contains(&name) { format!("{name}_") } else { name.to_owned() }
}

/// Checks a prefix chosen by the user.
pub(super) fn prefix(name: &str) -> Result<String, OptionError> {
    let letter = |c: char| c.is_ascii_alphabetic();
    if name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_ascii_digit() || c == '_') {
        return Ok(name.to_owned());
    }
    Err(OptionError(format!(
        "`{name}` is not a valid prefix for C names: expected letters, digits and `_`, starting with a letter"
    )))
}

/// Derives a prefix from the file name of the DTD, such as `pools` from `pools.dtd`.
pub(super) fn prefix_of(source: &str) -> String {
    let stem = source.rsplit_once('.').map_or(source, |(stem, _)| stem);
    let plain: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    legal(snake(&plain), "dtd", stem)
}
