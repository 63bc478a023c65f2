//! Demangled function names, limited in length.

use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, ParseOptions, Symbol};

/// Maximum length of a name in bytes. A trace contains one name per frame, and users read only the beginning.
const LONGEST: usize = 1024;

/// Maximum number of bytes that demangling produces. Because of substitutions, a 255-byte name can demangle to 2^80
/// bytes.
const DEMANGLED: usize = 4 * LONGEST;

/// Maximum length of a mangled name to demangle. Demangling may read each part several times.
const MANGLED: usize = 16 * LONGEST;

/// Maximum nesting depth of the parts of a name.
const DEPTH: u32 = 96;

/// Maximum number of prefixes of a name that are tried until one can be demangled.
const CUTS: usize = 32;

/// Truncates a string to the maximum length of a name.
pub(super) fn cut(text: &str) -> String {
    match text.len() {
        0..=LONGEST => text.to_owned(),
        _ => format!("{}..", &text[..text.floor_char_boundary(LONGEST - 2)]),
    }
}

/// Returns a mangled name, or an empty string if it is too long to be demangled. (A truncated mangled name would be
/// useless for lookups.)
pub(super) fn cut_symbol(name: &str) -> String {
    if name.len() > MANGLED { String::new() } else { name.to_owned() }
}

/// Demangles a C++ or Rust name. C++ names lose their parameters and return types.
pub(crate) fn demangled(name: &str) -> String {
    if name.len() > MANGLED {
        return cut(name);
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        let mut text = Bounded::default();
        // An error means that the buffer is full.
        let _ = write!(text, "{rust:#}");
        return cut(&text.0);
    }
    if !name.starts_with("_Z") {
        return cut(name);
    }
    cpp(name).or_else(|| cpp_without_type(name)).map_or_else(|| cut(name), |name| cut(&shortened(&name)))
}

/// Demangles a C++ name.
fn cpp(name: &str) -> Option<String> {
    let parsing = ParseOptions::default().recursion_limit(DEPTH);
    let symbol = Symbol::new_with_options(name, &parsing).ok()?;
    let options = DemangleOptions::new().no_params().no_return_type().recursion_limit(DEPTH);
    let mut text = Bounded::default();
    let whole = symbol.structured_demangle(&mut text, &options).is_ok();
    (whole || text.is_full()).then_some(text.0)
}

/// Demangles the name of a C++ function whose type the library cannot parse, for example because an expression computes
/// the type. The type is replaced by a type without parameters and result, because the parameters and the result are
/// not shown.
fn cpp_without_type(name: &str) -> Option<String> {
    let ends = name.bytes().enumerate().filter(|(_, byte)| *byte == b'E').map(|(at, _)| at + 1);
    // The name ends at the first `E` for which the prefix can be demangled.
    ends.take(CUTS).find_map(|end| cpp(&format!("{}vv", name.get(..end)?)))
}

/// A string buffer limited to the maximum length of a name.
#[derive(Default)]
struct Bounded(String);

impl Bounded {
    fn is_full(&self) -> bool {
        self.0.len() >= DEMANGLED
    }
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = DEMANGLED.saturating_sub(self.0.len());
        if text.len() < room {
            self.0.push_str(text);
            return Ok(());
        }
        self.0.push_str(&text[..text.floor_char_boundary(room)]);
        // Fill the buffer, so that it also counts as full if a multi-byte character did not fit.
        while self.0.len() < DEMANGLED {
            self.0.push('.');
        }
        Err(fmt::Error)
    }
}

/// Shortens names of the C++ library to the form used in source code, such as `std::string`, without default
/// allocators.
fn shortened(name: &str) -> String {
    let name = name.replace("std::__cxx11::", "std::");
    let mut rest =
        &*name.replace("std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string");
    let mut short = String::with_capacity(rest.len());
    while let Some((before, from)) = rest.split_once(", std::allocator<") {
        short.push_str(before);
        let Some(end) = end_of_arguments(from) else {
            short.push_str(", std::allocator<");
            rest = from;
            continue;
        };
        // `vector<int >` becomes `vector<int>`.
        rest = from
            .get(end..)
            .map_or("", |rest| rest.strip_prefix(' ').filter(|rest| rest.starts_with('>')).unwrap_or(rest));
    }
    short.push_str(rest);
    without_empty_packs(short)
}

/// Removes the commas that the library prints for empty argument packs, as in `make_shared<Cart, >`.
fn without_empty_packs(mut name: String) -> String {
    for (written, wanted) in [(", , ", ", "), (", >", ">"), ("<, ", "<")] {
        // Each iteration shortens the name.
        while name.contains(written) && !name.contains("operator") {
            name = name.replace(written, wanted);
        }
    }
    name
}

/// Returns the position after the bracket that closes an angle bracket opened just before the text.
fn end_of_arguments(text: &str) -> Option<usize> {
    let mut open = 1_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'<' => open += 1,
            b'>' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some(at + 1);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_languages() {
        let names = ["a", "main", "_ZN3foo3barEv", "_ZN4core3fmt5write17h0123456789abcdefE", "_RNvC1a1f", "_Z", ""];
        let wanted = ["a", "main", "foo::bar", "core::fmt::write", "a::f", "_Z", ""];
        assert_eq!(names.map(demangled), wanted);
    }

    /// Covers empty template argument packs, and types computed by expressions.
    #[test]
    fn names_of_templates() {
        for (mangled, name) in [
            (
                "_ZSt11make_sharedI4CartJEESt10shared_ptrINSt9enable_ifIXntsrSt8is_arrayIT_E5valueES4_E4typeEEDpOT0_",
                "std::make_shared<Cart>",
            ),
            (
                "_ZSt11make_sharedISt6vectorIiSaIiEEJiEESt10shared_ptrINSt9enable_ifIXntsrSt8is_arrayIT_E5valueES6_E4typeEEDpOT0_",
                "std::make_shared<std::vector<int>, int>",
            ),
            (
                "_ZNSt14__shared_countILN9__gnu_cxx12_Lock_policyE2EEC1I4CartSaIvEJEEERPT_St20_Sp_alloc_shared_tagIT0_EDpOT1_",
                "std::__shared_count<(__gnu_cxx::_Lock_policy)2>::__shared_count<Cart>",
            ),
            ("_ZN1PIiJEE1fIJEEEvDpT_", "P<int>::f<>"),
            ("_ZN1PIiJcEE1fIJiiEEEvDpT_", "P<int, char>::f<int, int>"),
        ] {
            assert_eq!(demangled(mangled), name);
        }
    }

    /// Covers names that are short when mangled but would fill the memory when demangled.
    #[test]
    fn names_that_would_not_end() {
        let doubled = |number: u8| {
            let digit = |at: u8| char::from_digit(u32::from(at), 36).unwrap().to_uppercase().to_string();
            let back = |at: u8| format!("S{}_", at.checked_sub(1).map_or(String::new(), digit));
            // S_ is `f`, S0_ is `A`, and each further substitution contains the previous one twice.
            let twice: String = (2..number).map(|at| format!("{}I{}{}E", back(1), back(at), back(at))).collect();
            format!("_Z1fI1AIiiE{twice}Evv")
        };
        let names: Vec<String> = (4..24).map(doubled).collect();
        assert!(names.iter().all(|name| name.len() < 255));
        let text: Vec<String> = names.iter().map(|name| demangled(name)).collect();
        assert_eq!(
            text[0],
            "f<A<int, int>, A<A<int, int>, A<int, int> >, A<A<A<int, int>, A<int, int> >, A<A<int, int>, A<int, int> > > >"
        );
        assert_eq!(text.last().unwrap().len(), LONGEST);
        let long = "é".repeat(70_000);
        assert_eq!(demangled(&long).len(), LONGEST);
        let deep = format!("_Z{}1f", "N".repeat(10_000));
        assert_eq!(demangled(&deep).len(), LONGEST);
        assert!(demangled(&format!("_R{}", "NvC1a1f".repeat(1_000))).len() <= LONGEST);
    }

    #[test]
    fn names_of_the_cpp_library() {
        let string = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
        for (long, short) in [
            (format!("{string}::_M_create"), "std::string::_M_create"),
            (
                format!("std::deque<{string}, std::allocator<{string} > >::push_back"),
                "std::deque<std::string>::push_back",
            ),
            ("std::vector<int, std::allocator<int> >::at".to_owned(), "std::vector<int>::at"),
            (
                "f<std::vector<std::set<A<1>, std::less<A<1> >, std::allocator<A<1> > >, std::allocator<B> >, int>"
                    .to_owned(),
                "f<std::vector<std::set<A<1>, std::less<A<1> >>>, int>",
            ),
            ("operator new".to_owned(), "operator new"),
            ("odd<int, std::allocator<int".to_owned(), "odd<int, std::allocator<int"),
            ("x>, std::allocator<>>".to_owned(), "x>>"),
        ] {
            assert_eq!(shortened(&long), short);
        }
    }
}
