//! Function names shortened for people. Additions of compilers are removed, and template arguments are kept only if
//! they are short.
//!
//! # Examples
//!
//! ```
//! use hatf_trace::short_name::short_name;
//!
//! assert_eq!(short_name("core::fmt::write::h0123456789abcdef"), "core::fmt::write");
//! assert_eq!(short_name("std::map<std::string, std::vector<int>>::at"), "std::map<..>::at");
//! assert_eq!(short_name("std::vector<int>::push_back"), "std::vector<int>::push_back");
//! assert_eq!(short_name("malloc@plt"), "malloc");
//! ```

use std::borrow::Cow;

/// Maximum length in bytes of the template arguments that are kept.
const ARGUMENTS: usize = 24;

/// Suffixes that compilers append to the names of function copies.
const COPIES: [&str; 6] = [".isra.", ".constprop.", ".part.", ".cold", ".lto_priv.", ".llvm."];

/// Shortens the name of a function: `h::h0123456789abcdef` is `h`, `std::map<a long list>::at` is `std::map<..>::at`, and
/// `f[clone .isra.0]`, `f.isra.0` and `f@plt` are `f`.
#[must_use]
pub fn short_name(name: &str) -> Cow<'_, str> {
    let name = without_additions(name);
    if name.contains('<') { Cow::Owned(without_arguments(name)) } else { Cow::Borrowed(name) }
}

fn without_additions(name: &str) -> &str {
    let plain = name.split_once("[clone ").map_or(name, |(before, _)| before.trim_end());
    let plain = plain.strip_suffix("@plt").unwrap_or(plain);
    let is_hash = |hash: &&str| hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    let plain = match plain.rsplit_once("::h") {
        Some((before, hash)) if is_hash(&hash) => before,
        _ => plain,
    };
    let copies = COPIES.iter().filter_map(|copy| plain.find(copy));
    // A name that begins with such a suffix is an ordinary name.
    let end = copies.filter(|at| *at > 0).min().unwrap_or(plain.len());
    if plain.is_empty() { name } else { plain.get(..end).unwrap_or(plain) }
}

/// Omits long argument lists. In Rust, angle brackets contain an argument list too, except for those around the type
/// that a function belongs to.
fn without_arguments(name: &str) -> String {
    let (mut short, mut rest) = (String::with_capacity(name.len()), name);
    while let Some(at) = rest.find('<') {
        let (before, from) = rest.split_at(at);
        short.push_str(before);
        let inner = if short.ends_with("operator") || short.ends_with("operator<") { None } else { arguments(from) };
        let Some(inner) = inner else {
            short.push('<');
            rest = from.get(1..).unwrap_or_default();
            continue;
        };
        let is_type = short.is_empty() || inner.starts_with("impl ");
        short.push('<');
        match inner.len() {
            0..=ARGUMENTS => short.push_str(inner),
            _ if is_type => short.push_str(&without_arguments(inner)),
            _ => short.push_str(".."),
        }
        short.push('>');
        rest = from.get(inner.len() + 2..).unwrap_or_default();
    }
    short.push_str(rest);
    short
}

/// Returns the text between the bracket at the start of a string and the matching closing bracket, or `None` if no
/// bracket closes it.
fn arguments(text: &str) -> Option<&str> {
    let (mut open, mut before) = (0_usize, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' => open += 1,
            // The `>` of an arrow closes no bracket.
            b'>' if before != b'-' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return text.get(1..at);
        }
        before = byte;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_people_read() {
        for (name, short) in [
            ("main", "main"),
            ("", ""),
            ("@plt", "@plt"),
            ("malloc@plt", "malloc"),
            ("core::fmt::write::h0123456789abcdef", "core::fmt::write"),
            ("core::fmt::write::h0123456789abcdeg", "core::fmt::write::h0123456789abcdeg"),
            ("f[clone .isra.0]", "f"),
            ("ns::f [clone .constprop.0] [clone .cold]", "ns::f"),
            ("f.isra.0.cold", "f"),
            (".cold", ".cold"),
            ("std::vector<int>::push_back", "std::vector<int>::push_back"),
            ("std::vector<std::pair<long, unsigned char const*>>::push_back", "std::vector<..>::push_back"),
            (
                "(anonymous namespace)::f::{lambda(int)#1}::operator()",
                "(anonymous namespace)::f::{lambda(int)#1}::operator()",
            ),
            ("operator<<", "operator<<"),
            ("ns::operator< <std::vector<int>, std::vector<long> >", "ns::operator< <..>"),
            ("S::operator->", "S::operator->"),
            ("f<decltype(a->b), and what else there may be>", "f<..>"),
            ("a<b", "a<b"),
            (
                "<alloc::vec::Vec<core::option::Option<alloc::string::String>> as core::clone::Clone>::clone",
                "<alloc::vec::Vec<..> as core::clone::Clone>::clone",
            ),
            ("core::ptr::drop_in_place::<alloc::vec::Vec<alloc::string::String>>", "core::ptr::drop_in_place::<..>"),
            ("a::<impl b::Trait for c::Type>::f", "a::<impl b::Trait for c::Type>::f"),
        ] {
            assert_eq!(short_name(name), short, "{name}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_shortened(name in "[a-z<>:.@\\[\\]é -]{0,80}") {
            proptest::prop_assert!(short_name(&name).len() <= name.len());
        }
    }
}
