//! LeakSanitizer suppressions, which are lines of the form `leak:PATTERN`. The pattern must occur in the name of a
//! function, its source file or its object.

use super::frame::Frame;
use super::glob::{Wildcards, matches};
use super::valgrind::Parsed;

/// Suppression kinds of other sanitizers, which may occur in the same file.
const OTHERS: [&str; 16] = [
    "race",
    "race_top",
    "thread",
    "mutex",
    "signal",
    "deadlock",
    "called_from_lib",
    "interceptor_name",
    "interceptor_via_fun",
    "interceptor_via_lib",
    "odr_violation",
    "alloc_dealloc_mismatch",
    "vptr_check",
    "src",
    "fun",
    "mainfile",
];

/// A pattern that matches names that contain it. `*` matches any string, `^` the start of the name and `$` its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern(String);

/// Returns whether a line is a suppression.
pub(super) fn is_line(line: &str) -> bool {
    line.split_once(':').is_some_and(|(kind, _)| kind == "leak" || OTHERS.contains(&kind))
}

/// Parses suppressions from numbered lines without comments. An error contains its line number.
pub(super) fn parse<'t>(lines: impl Iterator<Item = (u64, &'t str)>) -> Parsed<Pattern> {
    let (mut list, mut others) = (Vec::new(), 0);
    for (at, line) in lines {
        match line.split_once(':') {
            Some(("leak", "")) => {
                return Err((at, "the suppression matches everything: expected leak:PATTERN".to_owned()));
            }
            Some(("leak", text)) => list.push((text.to_owned(), at, Pattern::new(text))),
            Some((kind, _)) if OTHERS.contains(&kind) => others += 1,
            _ => return Err((at, format!("expected leak:PATTERN, found `{}`", super::quoted(line)))),
        }
    }
    Ok((list, others))
}

impl Pattern {
    fn new(text: &str) -> Self {
        let (start, text) = text.strip_prefix('^').map_or(("*", text), |rest| ("", rest));
        let (text, end) = text.strip_suffix('$').map_or((text, "*"), |rest| (rest, ""));
        Self(format!("{start}{text}{end}"))
    }

    pub(super) fn takes(&self, frame: &Frame<'_>) -> bool {
        let Frame { function, object, file, .. } = frame;
        [function, file, object].into_iter().any(|text| !text.is_empty() && matches(&self.0, text, Wildcards::Star))
    }
}
