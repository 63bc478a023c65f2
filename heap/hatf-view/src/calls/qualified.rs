//! Qualified function names within demangled names.

/// Returns a demangled name without the return type that C++ puts before templates.
///
/// For example, `void std::vector<int>::push_back(int const&)` becomes `std::vector<int>::push_back(int const&)`.
pub(super) fn qualified(text: &str) -> &str {
    let (mut depth, mut start) = (0_u32, 0);
    for (at, byte) in text.bytes().enumerate() {
        let rest = text.get(at..).unwrap_or_default();
        match byte {
            // The operator's name may be a symbol or contain a space.
            _ if depth == 0 && at == start && rest.starts_with("operator") => break,
            b'(' if depth == 0 && rest.starts_with("(anonymous namespace)") => depth += 1,
            // The arguments begin here.
            b'(' if depth == 0 && at > start => break,
            b'<' | b'(' | b'[' | b'{' => depth += 1,
            // The arrow in the type of a Rust function is not a closing bracket.
            b'>' if text.get(..at).is_some_and(|before| before.ends_with('-')) => {}
            b'>' | b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b' ' if depth == 0 => start = at + 1,
            _ => {}
        }
    }
    text.get(start..).unwrap_or(text)
}

/// Returns the leading part of a qualified name. For Rust's `<alloc::vec::Vec<T> as ..>::extend`, this is the type. If
/// the type has no path, as in `<T as alloc::slice::Join>::join`, this is the trait.
pub(super) fn leading(text: &str) -> &str {
    let name = qualified(text);
    let Some(inner) = name.strip_prefix('<') else { return name };
    let plain = |text: &'_ str| -> usize { text.len() - text.trim_start_matches(['<', '&', '*', '[', '(']).len() };
    let of = inner.get(plain(inner)..).unwrap_or(inner);
    let of = of.trim_start_matches("mut ").trim_start_matches("dyn ");
    match of.split_once(" as ") {
        Some((of, implemented)) if !of.contains("::") => implemented,
        _ => of,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn return_types_are_left_out() {
        let names = [
            ("main", "main"),
            ("parse(int, char const*)", "parse(int, char const*)"),
            (
                "void std::vector<int, std::allocator<int> >::emplace_back<int>(int&&)",
                "std::vector<int, std::allocator<int> >::emplace_back<int>(int&&)",
            ),
            ("std::pair<int, int> mine::make<int>(int)", "mine::make<int>(int)"),
            ("operator new(unsigned long)", "operator new(unsigned long)"),
            ("bool mine::operator< <int>(mine::A<int> const&)", "mine::operator< <int>(mine::A<int> const&)"),
            ("(anonymous namespace)::load(int)", "(anonymous namespace)::load(int)"),
            ("int (anonymous namespace)::load<int>(int)", "(anonymous namespace)::load<int>(int)"),
            ("main::{lambda()#1}::operator()() const", "main::{lambda()#1}::operator()() const"),
            (
                "core::ops::function::FnOnce::call_once{{vtable.shim}}",
                "core::ops::function::FnOnce::call_once{{vtable.shim}}",
            ),
            ("", ""),
            (" ", ""),
            ("a\u{e9} b", "b"),
            (">>) x", "x"),
        ];
        for (text, expected) in names {
            assert_eq!(qualified(text), expected);
        }
    }

    #[test]
    fn rust_implementations_lead_with_their_type() {
        for (text, start) in [
            ("<alloc::vec::Vec<T> as core::iter::Extend<T>>::extend", "alloc::vec::"),
            ("<&mut mine::Reader as std::io::Read>::read", "mine::Reader "),
            ("<[T] as alloc::slice::Join>::join", "alloc::slice::"),
            ("<T as alloc::slice::<impl [T]>::to_vec_in::ConvertVec>::to_vec", "alloc::slice::"),
            ("<usize as mine::Print>::print", "mine::Print"),
            ("<F as mine::Parser>::parse", "mine::Parser"),
            ("<mine::A>::new", "mine::A"),
            ("<", ""),
        ] {
            assert!(leading(text).starts_with(start), "{text}: {}", leading(text));
        }
    }
}
