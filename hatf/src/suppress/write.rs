//! Writing suppressions of what is left.

use std::fmt::Write as _;

use metatf_page::shown;

use super::frame::Frame;

/// The most frames of a suppression: valgrind's stacks have 12 unless it is asked for more, and one that needs more takes none.
const FRAMES: usize = 10;

/// A form of suppressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuppressionForm {
    /// A block of lines for each stack.
    Valgrind,
    /// A line for each function.
    Lsan,
}

/// What is suppressed.
#[derive(Clone, Debug)]
pub struct Entry<'s> {
    /// What it is called.
    pub name: String,
    /// The function that LeakSanitizer's line names.
    pub function: &'s str,
    /// The stack, innermost first.
    pub frames: Vec<Frame<'s>>,
}

/// Writes suppressions, which `title` is said of. Returns how many entries it left out, too: those without a stack, and in the form of
/// LeakSanitizer `main`, since a line of it takes whatever the function calls.
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
        debug_assert!(written.is_ok(), "a String takes everything");
    }
    (text, left_out)
}

/// Returns the lines of a stack up to `main`, where those of valgrind end: first the function that allocates, then those that called it.
fn lines(frames: &[Frame<'_>]) -> Vec<String> {
    let end = frames.iter().position(|frame| frame.function == "main").map_or(frames.len(), |main| main + 1);
    let lines = frames.iter().take(end.min(FRAMES)).map_while(line);
    ["fun:*".to_owned()].into_iter().chain(lines).collect()
}

/// Returns the line of a frame: its function, or else its object.
fn line(frame: &Frame<'_>) -> Option<String> {
    let Frame { function, object, .. } = frame;
    let is_plain = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.@$".contains(&byte))
    };
    if is_plain(function) {
        return Some(format!("fun:{function}"));
    }
    // As the linker has it, a name has the same identifiers, with other characters between.
    let name = identifiers(function, ' ');
    let words: Vec<&str> =
        name.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    // The linker's names of constructors, of operators and of what is in std have other words.
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

/// Returns a name up to its parameters, with `arguments` in place of each list of template arguments. What is on both sides of a list stays apart.
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

/// Returns a pattern that takes a function, whatever its template arguments are.
fn lsan_pattern(function: &str) -> String {
    let name = printable(&identifiers(function, '*'));
    // At the ends these would mean the beginning and the end of a name; text may stand there anyway.
    let name =
        name.trim_start_matches(['*', '^']).trim_end_matches(|c: char| matches!(c, '*' | '$') || c.is_whitespace());
    name.trim_start_matches("::").to_owned()
}

/// Returns a pattern that takes a text, with `*` for what a line cannot hold: control characters, and whitespace at its ends.
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
