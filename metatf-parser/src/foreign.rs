//! Words of other languages and formats, with the words that this language uses instead.

use crate::nearest::nearest;
use crate::schema::{InterpretationWord, is_hexadecimal};
use crate::vocabulary::TYPES;

/// Names of types in other languages. A name may end in a byte order, such as `u2le`, `u32be` or `le32`, which is not
/// part of the table.
const TYPE_NAMES: &[(&str, &[&str])] = &[
    (
        "u8",
        &["uint8", "unit8", "byte", "char", "u1", "bool", "boolean", "uchar", "octet", "ubyte", "unsigned_char", "b8"],
    ),
    ("u16", &["uint16", "unit16", "ushort", "word", "u2", "unsigned_short", "b16"]),
    ("u32", &["uint32", "unit32", "uint", "unsigned", "dword", "u4", "fixed32", "unsigned_int", "b32"]),
    (
        "u64",
        &[
            "uint64",
            "unit64",
            "ulong",
            "qword",
            "size_t",
            "usize",
            "fixed64",
            "unsigned_long",
            "unsigned_long_long",
            "uintptr_t",
            "off_t",
        ],
    ),
    ("i8", &["int8", "s8", "s1", "sbyte", "signed_char", "i1", "schar"]),
    ("i16", &["int16", "short", "s16", "s2", "i2", "short_int"]),
    ("i32", &["int32", "int", "s32", "s4", "integer", "signed", "sint32", "sfixed32", "i4", "signed_int"]),
    ("i64", &["int64", "long", "s64", "isize", "sint64", "sfixed64", "long_long", "long_int", "ssize_t", "intptr_t"]),
    ("f32", &["float", "float32", "f4", "single", "real"]),
    ("f64", &["double", "float64", "f8"]),
    ("text", &["string", "str", "utf8", "varchar", "nvarchar", "wstring", "std_string", "pstring"]),
    ("cstring", &["strz", "asciiz", "cstr", "stringz", "zstring", "nul_terminated", "c_string"]),
    ("bytes", &["blob", "bytea", "binary"]),
];

/// Names of types whose size no type has, with the array of bytes that stores such a value.
const SIZES: &[(&str, &str)] = &[
    ("u128", "bytes 16"),
    ("i128", "bytes 16"),
    ("uint128", "bytes 16"),
    ("uuid", "bytes 16"),
    ("guid", "bytes 16"),
    ("ipv6", "bytes 16"),
    ("u256", "bytes 32"),
    ("f16", "bytes 2"),
    ("half", "bytes 2"),
    ("float16", "bytes 2"),
    ("bf16", "bytes 2"),
    ("f80", "bytes 10"),
    ("f128", "bytes 16"),
    ("long_double", "bytes 16"),
    ("mac", "bytes 6"),
    ("ipv4", "u32"),
];

/// Returns the type that stores the values of a type of another language.
pub(crate) fn type_name(word: &str) -> Option<&'static str> {
    if TYPES.contains(&word) {
        return None;
    }
    let lower = word.to_ascii_lowercase();
    let known = |word: &str| {
        let native = TYPES.into_iter().find(|native| *native == word);
        let foreign = || TYPE_NAMES.iter().find(|(_, names)| names.contains(&word)).map(|(native, _)| *native);
        let sized = || SIZES.iter().find(|(name, _)| *name == word).map(|(_, native)| *native);
        native.or_else(foreign).or_else(sized)
    };
    let plain = lower.trim_start_matches('_');
    let plain = plain.strip_suffix("_t").unwrap_or(plain);
    let ends = ["_le", "_be", "le", "be", "_ne"];
    let starts = ["le_", "be_", "le", "be"];
    let by_suffix = || ends.iter().find_map(|end| known(plain.strip_suffix(end)?));
    let by_prefix = || {
        let bits = starts.iter().find_map(|start| plain.strip_prefix(start))?;
        known(bits).or_else(|| known(&format!("u{bits}")))
    };
    known(&lower).or_else(|| known(plain)).or_else(by_suffix).or_else(by_prefix)
}

/// Returns a type and a format that may store the values of a word that does not determine a size.
pub(crate) fn guess(word: &str) -> Option<(&'static str, &'static str)> {
    Some(match word.to_ascii_lowercase().as_str() {
        "varint" | "leb128" | "uleb128" | "sleb128" | "vlq" | "number" | "num" | "bigint" | "size" | "offset" => {
            ("u64", "")
        }
        "timestamp" | "datetime" | "date" | "instant" => ("u64", "date_ns"),
        "time" | "duration" | "nanos" => ("u64", "time_ns"),
        "pointer" | "ptr" | "address" | "addr" | "void" => ("u64", "hex"),
        "bit" | "flag" => ("u8", "bool"),
        "bits" | "flags" | "bitfield" | "mask" => ("u8", "hex"),
        "enum" | "id" | "code" | "kind" => ("u8", ""),
        "decimal" | "numeric" | "money" => ("f64", ""),
        "array" | "list" | "vec" | "data" | "buffer" | "raw" | "any" | "object" => ("bytes 16", ""),
        _ => return None,
    })
}

/// Returns the type that stores one value of a format of Python's `struct`, such as `<f` or `16s`.
pub(crate) fn struct_format(text: &str) -> Option<String> {
    let text = text.trim_start_matches(['<', '>', '!', '=', '@']).trim();
    let count = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '?');
    Some(match (count, text.strip_prefix(count)?) {
        ("" | "1", "b") => "i8".to_owned(),
        ("" | "1", "B" | "?" | "c") => "u8".to_owned(),
        ("" | "1", "h") => "i16".to_owned(),
        ("" | "1", "H") => "u16".to_owned(),
        ("" | "1", "i" | "l") => "i32".to_owned(),
        ("" | "1", "I" | "L") => "u32".to_owned(),
        ("" | "1", "q" | "n") => "i64".to_owned(),
        ("" | "1", "Q" | "N" | "P") => "u64".to_owned(),
        ("" | "1", "f") => "f32".to_owned(),
        ("" | "1", "d") => "f64".to_owned(),
        (count, "s" | "p" | "B" | "c" | "x") => format!("bytes {}", count.parse::<u32>().ok().filter(|n| *n > 0)?),
        _ => return None,
    })
}

/// Returns the format in which a type of another language shows its values, if the type that stores them has none.
pub(crate) fn type_format(word: &str) -> Option<&'static str> {
    Some(match word.to_ascii_lowercase().as_str() {
        "bool" | "boolean" => "bool",
        "uuid" | "guid" => "uuid",
        "ipv4" => "ipv4",
        "ipv6" => "ipv6",
        "char" => "char",
        "uintptr_t" => "hex",
        _ => return None,
    })
}

/// Formats that do not exist, with the statement to write, in which `$` is the path of the field.
const FORMATS: &[(&[&str], &str)] = &[
    (&["time_ms", "ms", "millis", "milliseconds"], "$.unit = \"ms\";"),
    (&["octal", "oct", "binary", "bin", "x", "0x", "%x", "hexadecimal", "hexa", "%08x"], "$.format = \"hex\";"),
    (&["decimal", "d", "%d", "u", "int", "unsigned", "number", "%u"], "$.format = \"dec\";"),
    (&["string", "str", "text", "ascii", "utf-8", "%s"], "$.format = \"utf8\";"),
    (&["float", "single"], "$.format = \"f32\";"),
    (&["double"], "$.format = \"f64\";"),
    (&["boolean"], "$.format = \"bool\";"),
    (&["timestamp", "unix", "date", "datetime", "epoch", "iso8601", "unix_time"], "$.format = \"date_s\";"),
    (&["time", "duration", "ns", "nanoseconds"], "$.format = \"time_ns\";"),
    (&["us", "micros", "microseconds"], "$.format = \"time_us\";"),
    (&["s", "sec", "seconds"], "$.format = \"time_s\";"),
    (&["ip", "ip4", "inet"], "$.format = \"ipv4\";"),
    (&["ip6", "inet6"], "$.format = \"ipv6\";"),
    (&["guid"], "$.format = \"uuid\";"),
];

/// Returns the statement to write for a format that does not exist.
pub(crate) fn format_statement(name: &str, path: &str) -> Option<String> {
    let lower = name.to_ascii_lowercase();
    // A format of `strftime` or of Java.
    if lower.contains("%y") || lower.contains("yyyy") || lower.contains("%h") {
        return Some(format!("{path}.format = \"date_s\";"));
    }
    let (_, statement) = FORMATS.iter().find(|(names, _)| names.contains(&lower.as_str()))?;
    Some(statement.replace('$', path))
}

/// Names under which other languages know the width of a field.
pub(crate) const SIZE_NAMES: &[&str] = &["size", "length", "len", "bytes", "count", "sizeof", "nbytes", "bits"];

/// Words for data that extends to the end.
pub(crate) const REST_NAMES: &[&str] =
    &["rest", "eos", "eof", "end", "all", "remaining", "inf", "infinity", "until_eof"];

/// Returns the interpretation that a word misspells.
pub(crate) fn interpretation(word: &str) -> Option<&'static str> {
    let names = || InterpretationWord::ALL.iter().map(|word| word.name());
    let other = match word {
        "diff" | "difference" | "deltas" => "delta",
        "offset" | "ref" | "reference" | "pointer" | "index" | "section_offset" => "sectionOffset",
        "section_stride" => "sectionStride",
        "base" | "relative" | "base_offset" => "baseOffset",
        _ => "",
    };
    if other.is_empty() { nearest(word, names()).filter(|near| *near != word) } else { Some(other) }
}

/// Rewrites a list of numbers and names in another notation, such as `RUNNING = 0, SLEEPING = 1`, as `0 RUNNING, 1
/// SLEEPING`. Numbers that are missing count up from 0, or from the number before. In a list of `flags`, numbers that
/// are powers of two become the numbers of their bits if `masks` is set.
pub(crate) fn name_list(text: &str, masks: bool) -> Option<String> {
    let text = &text.replace("..", "-");
    if let Some(list) = hexadecimal(text).filter(|_| !masks) {
        return Some(list);
    }
    let inner = text.trim().trim_matches(|c: char| matches!(c, '{' | '}' | '[' | ']' | '(' | ')'));
    let mut out = Vec::new();
    let mut next = 0_u64;
    for item in inner.split([',', ';', '\n', '|']).map(str::trim).filter(|item| !item.is_empty()) {
        let parts = |c: char| c.is_whitespace() || matches!(c, '=' | ':' | '>' | '<' | '"' | '\'');
        let mut words: Vec<&str> = item.split(parts).filter(|word| !word.is_empty() && *word != "-").collect();
        // `0-running` is a number and a name, but `4-7` is a range of bits.
        if let [only] = words.as_slice()
            && let Some((first, last)) = only.split_once('-')
            && (number(first).is_some() != number(last).is_some())
        {
            words = vec![first, last];
        }
        let at = words.iter().position(|word| number(word).is_some() || is_range(word));
        let code = at.map(|at| words.remove(at));
        // Without its number, a name of several words may begin with a number in another notation.
        if code.is_none() && words.len() > 1 {
            return None;
        }
        let name = words.join(" ");
        if name.is_empty() || out.len() >= 64 {
            return None;
        }
        match code {
            Some(range) if is_range(range) => {
                let (first, last) = range.split_once('-')?;
                let is_reversed = number(first)? > number(last)?;
                out.push(if is_reversed { format!("{last}-{first} {name}") } else { format!("{range} {name}") });
            }
            Some(code) => {
                let value = number(code)?;
                let value = match masks {
                    true if value.is_power_of_two() => u64::from(value.trailing_zeros()),
                    true => return None,
                    false => value,
                };
                let written = if masks || number(code).is_none() { value.to_string() } else { code.to_owned() };
                out.push(format!("{written} {name}"));
                next = value.checked_add(1)?;
            }
            None => {
                out.push(format!("{next} {name}"));
                next = next.checked_add(1)?;
            }
        }
    }
    (!out.is_empty()).then(|| out.join(", "))
}

/// Adds `0x` to the numbers of a list if all of them are hexadecimal, and some of them have letters and digits.
fn hexadecimal(text: &str) -> Option<String> {
    let (mut out, mut is_mixed) = (Vec::new(), false);
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let (code, name) = item.split_once(char::is_whitespace)?;
        u64::from_str_radix(code, 16).ok().filter(|_| !code.starts_with('+'))?;
        is_mixed |= is_hexadecimal(code);
        out.push(format!("0x{code} {}", name.trim()));
    }
    is_mixed.then(|| out.join(", "))
}

fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

fn is_range(word: &str) -> bool {
    word.split_once('-').is_some_and(|(first, last)| number(first).is_some() && number(last).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_other_languages() {
        let cases = [
            ("uint16_t", Some("u16")),
            ("__u32", Some("u32")),
            ("u2le", Some("u16")),
            ("le32", Some("u32")),
            ("U64", Some("u64")),
            ("strz", Some("cstring")),
            ("u128", Some("bytes 16")),
            ("size_t", Some("u64")),
            ("Text", Some("text")),
            ("u32", None),
            ("cpu", None),
        ];
        for (word, native) in cases {
            assert_eq!(type_name(word), native, "{word}");
        }
    }

    #[test]
    fn lists_in_other_notations() {
        assert_eq!(name_list("RUNNING = 0, SLEEPING = 1", false).as_deref(), Some("0 RUNNING, 1 SLEEPING"));
        assert_eq!(name_list("{0: running; 1: sleeping}", false).as_deref(), Some("0 running, 1 sleeping"));
        assert_eq!(name_list("read, write", true).as_deref(), Some("0 read, 1 write"));
        assert_eq!(name_list("0x1 read, 0x80 append", true).as_deref(), Some("0 read, 7 append"));
        let magic = name_list("a1b2c3d4 micros, 10 nanos", false);
        assert_eq!(magic.as_deref(), Some("0xa1b2c3d4 micros, 0x10 nanos"));
        assert_eq!(name_list("dead letter, 1 sent", false), None);
        assert_eq!(name_list("3 read", true), None);
        assert_eq!(name_list("0, 1", false), None);
        assert_eq!(name_list("", false), None);
    }
}
