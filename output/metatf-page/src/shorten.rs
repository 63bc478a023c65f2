//! Shortening of lines that name functions and source files.

use std::borrow::Cow;

/// The characters that replace omitted directories. Unlike `..`, they cannot be mistaken for the parent directory.
const DIRECTORIES: &str = "...";
/// The characters that replace omitted arguments.
const ARGUMENTS: &str = "..";

/// Shortens a line to at most `width` characters, if that is possible without cutting names: first omits directories in
/// the middle of paths, then template arguments and argument lists, longest first. Names of functions and files and
/// line numbers are kept, so the result may be longer than `width`.
///
/// # Examples
///
/// ```
/// use metatf_page::shortened;
///
/// let line = "std::map<long, std::string>::at(long const&) at /home/me/work/shop/src/cart.cpp:27";
/// assert_eq!(shortened(line, 80), "std::map<long, std::string>::at(long const&) at /home/.../shop/src/cart.cpp:27");
/// assert_eq!(shortened(line, 64), "std::map<long, std::string>::at(long const&) at cart.cpp:27");
/// assert_eq!(shortened(line, 50), "std::map<..>::at(long const&) at cart.cpp:27");
/// assert_eq!(shortened(line, 20), "std::map<..>::at(..) at cart.cpp:27");
/// ```
#[must_use]
pub fn shortened(line: &str, width: usize) -> Cow<'_, str> {
    if letters(line) <= width {
        return line.into();
    }
    let mut words: Vec<Cow<'_, str>> = line.split(' ').map(Cow::from).collect();
    let mut surplus = letters(line) - width;
    for word in &mut words {
        let before = letters(word);
        if let Some(short) = without_directories(word, before.saturating_sub(surplus)) {
            surplus = surplus.saturating_sub(before.saturating_sub(letters(&short)));
            *word = short.into();
        }
        if surplus == 0 {
            break;
        }
    }
    let line = words.join(" ");
    if surplus == 0 { line.into() } else { without_arguments(&line, surplus).into() }
}

/// Returns a path with fewer directories, if `word` is a path: the first and as many of the last directories as fit
/// `room`, or else only the file name.
fn without_directories(word: &str, room: usize) -> Option<String> {
    let path = word.trim_start_matches('(');
    let (directory, file) = path.rsplit_once('/')?;
    // Units such as MiB/s are no paths.
    let is_path = path.starts_with(['/', '.']) || file.trim_end_matches('.').contains('.');
    if file.is_empty() || !is_path || directory.is_empty() {
        return None;
    }
    let lead = word.get(..word.len() - path.len()).unwrap_or_default();
    let root = usize::from(directory.starts_with('/'));
    let end = directory.get(root..).and_then(|rest| rest.find('/')).map(|at| at + root);
    let (first, rest) = end.map_or((directory, ""), |end| directory.split_at(end));
    // Keep the last directories, starting at each slash after the first omitted one.
    let last = rest.match_indices('/').skip(1).filter_map(|(at, _)| rest.get(at..)).chain([""]);
    let mut all = last.filter(|_| !rest.is_empty()).map(|last| format!("{lead}{first}/{DIRECTORIES}{last}/{file}"));
    let fitting = all.find(|path| letters(path) <= room);
    Some(fitting.unwrap_or_else(|| format!("{lead}{file}")))
}

/// Replaces the longest argument lists until the line is shorter by `surplus` characters.
fn without_arguments(line: &str, mut surplus: usize) -> String {
    let mut lists = argument_lists(line);
    lists.sort_by_key(|list| std::cmp::Reverse(list.len()));
    let mut omitted = Vec::new();
    for list in lists {
        if surplus == 0 {
            break;
        }
        let length = line.get(list.clone()).map_or(0, letters).saturating_sub(ARGUMENTS.len());
        surplus = surplus.saturating_sub(length);
        omitted.push(list);
    }
    omitted.sort_by_key(|list| std::cmp::Reverse(list.start));
    let mut short = line.to_owned();
    omitted.into_iter().for_each(|list| short.replace_range(list, ARGUMENTS));
    short
}

/// Returns the outermost lists of template arguments and arguments that are longer than their replacement, without
/// their brackets. A list follows a name directly.
fn argument_lists(line: &str) -> Vec<std::ops::Range<usize>> {
    let (mut lists, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match c {
            '<' | '(' | '[' | '{' if depth > 0 => depth += 1,
            '<' | '(' => {
                let is_after_name = before.is_alphanumeric() || matches!(before, '_' | '>' | ')');
                let is_operator = line.get(..at).is_some_and(|name| name.ends_with("operator"));
                if is_after_name && !is_operator {
                    (depth, start) = (1, at + 1);
                }
            }
            // The `>` of an arrow closes no bracket.
            '>' if matches!(before, '-' | '=') => {}
            '>' | ')' | ']' | '}' if depth > 0 => {
                depth -= 1;
                if depth == 0 && at - start > ARGUMENTS.len() {
                    lists.push(start..at);
                }
            }
            _ => {}
        }
        before = c;
    }
    lists
}

/// Shortens text to at most `width` characters by omitting its middle, if names need not be kept.
pub(crate) fn without_middle(text: &str, width: usize) -> Cow<'_, str> {
    let all = letters(text);
    if all <= width {
        return text.into();
    }
    let kept = width.saturating_sub(ARGUMENTS.len());
    let (start, end) = (kept.div_ceil(2), kept / 2);
    text.chars().take(start).chain(ARGUMENTS.chars()).chain(text.chars().skip(all - end)).collect()
}

/// Returns the number of characters.
pub(crate) fn letters(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_lines_remain() {
        for (line, width, expected) in [
            ("main at /a/b/main.c:7", 30, "main at /a/b/main.c:7"),
            ("main at /home/b/main.c:7", 23, "main at main.c:7"),
            ("main at /home/b/main.c:7", 1, "main at main.c:7"),
            ("main at ./csu/../sysdeps/nptl/start.h:58", 37, "main at ./.../sysdeps/nptl/start.h:58"),
            ("main at ./csu/../sysdeps/nptl/start.h:58", 30, "main at ./.../nptl/start.h:58"),
            ("main (/usr/include/c++/12/new.h:1)", 20, "main (new.h:1)"),
            ("+3.24 MiB/s in f", 5, "+3.24 MiB/s in f"),
            ("<- 84.3% f<int, int> in /usr/lib/x.so.1", 10, "<- 84.3% f<..> in x.so.1"),
            ("operator<<<char, int>(char)", 26, "operator<<<char, int>(..)"),
            ("operator()(int, int)", 2, "operator()(..)"),
            ("<a::B<c, d> as e::F>::g", 2, "<a::B<..> as e::F>::g"),
            ("a<b, c>(d->e, f)", 2, "a<..>(..)"),
            ("(model only; there is no library)", 9, "(model only; there is no library)"),
            ("a<b, c", 2, "a<b, c"),
            ("a/", 0, "a/"),
            ("/x", 0, "/x"),
            ("", 0, ""),
        ] {
            assert_eq!(shortened(line, width), expected, "{line} {width}");
        }
    }

    #[test]
    fn both_ends_remain() {
        assert_eq!(without_middle("abcdefghij", 7), "abc..ij");
        assert_eq!(without_middle("abcdefghij", 10), "abcdefghij");
        assert_eq!(without_middle("abc", 0), "..");
    }
}
