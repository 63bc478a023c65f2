//! Writes suppressions for the remaining leaks.

use std::fmt::Write as _;

use metatf_page::shown;

use super::frame::Frame;

/// Maximum number of frames in a suppression. By default, valgrind's stacks contain 12 frames, so a suppression with
/// more frames would match no stack.
const FRAMES: usize = 10;

/// A suppression format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuppressionForm {
    /// valgrind: a block of lines for each stack.
    Valgrind,
    /// LeakSanitizer: a line for each function.
    Lsan,
}

/// A leak to suppress. The [module documentation](super) contains an example.
#[derive(Clone, Debug)]
pub struct Entry<'s> {
    /// The name of the suppression.
    pub name: String,
    /// The function for LeakSanitizer's line.
    pub function: &'s str,
    /// The stack, innermost first.
    pub frames: Vec<Frame<'s>>,
}

/// Writes suppressions with `title` as a comment. Returns the text and the number of omitted entries. Entries without a
/// stack are omitted. LeakSanitizer's format also omits entries for `main`, because their line would match everything
/// that `main` calls.
#[must_use]
pub fn write(title: &str, entries: &[Entry<'_>], form: SuppressionForm) -> (String, u64) {
    let mut text = format!("# {}\n", shown(title));
    let (mut functions, mut left_out) = (Vec::new(), 0);
    for Entry { name, function, frames } in entries {
        let written = match form {
            SuppressionForm::Valgrind => {
                let lines = lines(frames);
                if lines.len() < 2 {
                    left_out += 1;
                    continue;
                }
                write!(text, "{{\n   {}\n   Memcheck:Leak\n   {}\n}}\n", shown(name), lines.join("\n   "))
            }
            SuppressionForm::Lsan => {
                let function = lsan_pattern(function);
                if matches!(function.as_str(), "" | "main") {
                    left_out += 1;
                    continue;
                }
                if functions.contains(&function) {
                    continue;
                }
                let written = writeln!(text, "leak:{function}");
                functions.push(function);
                written
            }
        };
        debug_assert!(written.is_ok(), "writing to a String cannot fail");
    }
    (text, left_out)
}

/// Returns the lines of a stack up to `main`, where valgrind's stacks end. The first line is for the allocation
/// function; its callers follow.
fn lines(frames: &[Frame<'_>]) -> Vec<String> {
    let end = frames.iter().position(|frame| frame.function == "main").map_or(frames.len(), |main| main + 1);
    let lines = frames.iter().take(end.min(FRAMES)).map_while(line);
    ["fun:*".to_owned()].into_iter().chain(lines).collect()
}

/// Returns the line for a frame, which contains the function or else the object.
fn line(frame: &Frame<'_>) -> Option<String> {
    let Frame { function, object, .. } = frame;
    let is_plain = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.@$".contains(&byte))
    };
    if is_plain(function) {
        return Some(format!("fun:{function}"));
    }
    // The mangled name contains the same identifiers in the same sequence, with other characters in between.
    let name = identifiers(function, ' ');
    let words: Vec<&str> =
        name.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    // For constructors, operators and the std namespace, mangled names contain other words than demangled names.
    let is_renamed = |words: &[&str]| {
        words.first() == Some(&"std")
            || words.contains(&"operator")
            || name.contains(['~', '{', '\''])
            || words.iter().rev().nth(1).is_some_and(|class| words.last() == Some(class))
    };
    if words.is_empty() || is_renamed(&words) {
        return (!object.is_empty()).then(|| format!("obj:{}", printable(object)));
    }
    Some(format!("fun:*{}*", words.join("*")))
}

/// Returns a name up to its parameters, with `arguments` in place of each template argument list, so that the parts
/// around a list remain separate.
fn identifiers(name: &str, arguments: char) -> String {
    let (mut depth, mut short) = (0_usize, String::new());
    for c in name.chars().take_while(|c| *c != '(') {
        let is_operator = short.ends_with("operator") || short.ends_with("operator<");
        match c {
            '<' if depth > 0 || !is_operator => {
                if depth == 0 {
                    short.push(arguments);
                }
                depth += 1;
            }
            '>' if depth > 0 => depth -= 1,
            c if depth == 0 => short.push(c),
            _ => {}
        }
    }
    short.trim().trim_start_matches("::").to_owned()
}

/// Returns a pattern that matches a function regardless of its template arguments.
fn lsan_pattern(function: &str) -> String {
    let name = printable(&identifiers(function, '*'));
    // Remove these characters from both ends of the pattern, where they would be redundant or anchor the pattern. The
    // pattern can then match anywhere in a name.
    let name =
        name.trim_start_matches(['*', '^']).trim_end_matches(|c: char| matches!(c, '*' | '$') || c.is_whitespace());
    name.trim_start_matches("::").to_owned()
}

/// Returns a pattern that matches a string. Characters that a line cannot contain (control characters, and leading and
/// trailing whitespace) are replaced by `*`.
fn printable(text: &str) -> String {
    let end = text.trim_end().len();
    let start = text.len() - text.trim_start().len();
    let is_held = |at: usize, c: char| {
        at >= start && at < end && shown(c.encode_utf8(&mut [0; 4])) == *c.encode_utf8(&mut [0; 4])
    };
    let mut pattern = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match is_held(at, c) {
            true => pattern.push(c),
            false if pattern.ends_with('*') => {}
            false => pattern.push('*'),
        }
    }
    pattern
}
