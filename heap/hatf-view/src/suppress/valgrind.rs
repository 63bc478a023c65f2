//! valgrind suppressions, which are blocks of lines in braces, as described in section 2.5 of the valgrind manual.

use super::frame::{ALLOCATE, Frame};
use super::glob::{Wildcards, matches};
use crate::symbolize::demangled;

/// Maximum number of lines for a stack, which is valgrind's maximum depth.
const DEEPEST: usize = 500;

/// The name of an unknown function.
const UNKNOWN: &str = "???";

/// The objects that contain the allocation functions.
const PRELOADED: [&str; 2] =
    ["/usr/libexec/valgrind/vgpreload_memcheck-amd64-linux.so", "/usr/lib/valgrind/vgpreload_memcheck-amd64-linux.so"];

/// The lines that a stack must match, innermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frames(Vec<Line>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Line {
    /// `...` matches any number of frames, including zero.
    Any,
    Function {
        pattern: String,
        /// The demangled name, if the pattern is a mangled name without wildcards.
        name: Option<String>,
    },
    Object(String),
    Source {
        file: String,
        line: Option<u64>,
    },
}

type Lines<'t> = dyn Iterator<Item = (u64, &'t str)> + 't;

/// Name, line number and rule of each leak suppression, and the number of other suppressions.
pub(super) type Parsed<T> = Result<(Vec<(String, u64, T)>, u64), (u64, String)>;

/// Parses suppressions from numbered lines without comments. An error contains its line number.
pub(super) fn parse<'t>(lines: impl Iterator<Item = (u64, &'t str)> + 't) -> Parsed<Frames> {
    let (mut list, mut others, mut lines) = (Vec::new(), 0, lines);
    let lines: &mut Lines<'t> = &mut lines;
    while let Some((start, line)) = lines.next() {
        if line != "{" {
            return Err((start, "expected `{`, which begins a suppression".to_owned()));
        }
        match block(start, lines)? {
            Some((name, rule)) => list.push((name, start, rule)),
            None => others += 1,
        }
    }
    Ok((list, others))
}

/// Reads a suppression up to its `}`. Returns `None` if the suppression is not for leaks.
fn block<'t>(start: u64, lines: &mut Lines<'t>) -> Result<Option<(String, Frames)>, (u64, String)> {
    let mut next = |what: &str| match lines.next() {
        Some((at, "}")) => Err((at, format!("the suppression ends before its {what}"))),
        Some(line) => Ok(line),
        None => Err((start, format!("the file ends before the suppression's {what}"))),
    };
    let (_, name) = next("name")?;
    let (at, kind) = next("kind, such as Memcheck:Leak")?;
    let Some((tools, kind)) = kind.split_once(':') else {
        return Err((at, "expected an error kind, such as Memcheck:Leak".to_owned()));
    };
    let is_leak = kind.trim() == "Leak" && tools.split(',').any(|tool| tool.trim() == "Memcheck");
    let mut frames = Vec::new();
    loop {
        let Some((at, line)) = lines.next() else {
            return Err((start, "the suppression does not end: expected `}`".to_owned()));
        };
        if line == "}" {
            break;
        }
        // Suppressions for other errors may contain other kinds of lines.
        if !is_leak {
            continue;
        }
        if frames.len() >= DEEPEST {
            return Err((at, format!("the suppression has more than {DEEPEST} frames")));
        }
        frames.extend(frame(line).map_err(|why| (at, why))?);
    }
    if is_leak && frames.iter().all(|frame| *frame == Line::Any) {
        return Err((start, "the suppression matches everything: it needs a line other than `...`".to_owned()));
    }
    Ok(is_leak.then(|| (name.to_owned(), Frames(frames))))
}

/// Parses a line of a stack. Returns `None` for the line that selects kinds of leaks.
fn frame(line: &str) -> Result<Option<Line>, String> {
    if line == "..." {
        return Ok(Some(Line::Any));
    }
    let expected = || format!("expected fun:NAME, obj:PATH, src:FILE:LINE or `...`, found `{}`", super::quoted(line));
    let (kind, text) = line.split_once(':').ok_or_else(expected)?;
    let text = text.trim();
    match kind {
        // A trace does not contain references to blocks, so leaks of all kinds match.
        "match-leak-kinds" => Ok(None),
        _ if text.is_empty() => Err(expected()),
        "fun" => {
            let name = Some(demangled(text)).filter(|name| name != text && !is_open(text));
            Ok(Some(Line::Function { pattern: text.to_owned(), name }))
        }
        "obj" => Ok(Some(Line::Object(text.to_owned()))),
        "src" => {
            let numbered = text.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?)));
            let (file, line) = numbered.map_or((text, None), |(file, line)| (file, Some(line)));
            Ok(Some(Line::Source { file: file.to_owned(), line }))
        }
        _ => Err(expected()),
    }
}

/// Returns whether a pattern contains wildcards.
fn is_open(pattern: &str) -> bool {
    pattern.contains(['*', '?'])
}

impl Line {
    /// Returns whether the line is for a function of this name, which another recorder may have left mangled.
    fn names(&self, function: &str) -> bool {
        let Self::Function { pattern, name } = self else { return false };
        let mut patterns = name.iter().chain([pattern]);
        patterns.any(|pattern| matches(pattern, function, Wildcards::StarAndQuestion))
    }

    fn takes(&self, frame: &Frame<'_>) -> bool {
        let is = |pattern: &str, text| matches(pattern, text, Wildcards::StarAndQuestion);
        match self {
            Self::Any => true,
            Self::Function { .. } => self.names(if frame.function.is_empty() { UNKNOWN } else { frame.function }),
            Self::Object(pattern) => is(pattern, frame.object),
            Self::Source { file, line } => {
                let name = frame.file.rsplit('/').next().unwrap_or_default();
                let is_file = !frame.file.is_empty() && (is(file, frame.file) || is(file, name));
                is_file && line.is_none_or(|line| line == frame.line)
            }
        }
    }

    /// Returns whether the line matches the allocation function, which is the innermost frame of valgrind's stacks.
    fn takes_allocation(&self) -> bool {
        let is = |pattern: &str, text: &&str| matches(pattern, text, Wildcards::StarAndQuestion);
        match self {
            Self::Any => true,
            Self::Function { .. } => ALLOCATE.iter().any(|name| self.names(name)),
            Self::Object(pattern) => PRELOADED.iter().any(|path| is(pattern, path)),
            Self::Source { .. } => false,
        }
    }
}

impl Frames {
    /// Returns whether the suppression matches a stack. The lines must match the innermost frames, which follow the
    /// allocation function. The time is at most proportional to the product of both lengths.
    pub(super) fn takes(&self, frames: &[Frame<'_>]) -> bool {
        let Self(lines) = self;
        let takes = |line: &Line, place: usize| match place.checked_sub(1) {
            None => line.takes_allocation(),
            Some(place) => frames.get(place).is_some_and(|frame| line.takes(frame)),
        };
        let (mut at, mut place) = (0, 0);
        // The position after the last `...`, and the last frame from which a match was tried there.
        let mut any: Option<(usize, usize)> = None;
        loop {
            match lines.get(at) {
                None => return true,
                Some(Line::Any) => {
                    any = Some((at + 1, place));
                    at += 1;
                }
                Some(line) if takes(line, place) => (at, place) = (at + 1, place + 1),
                Some(_) => match any {
                    Some((behind, tried)) if tried < frames.len() => {
                        any = Some((behind, tried + 1));
                        (at, place) = (behind, tried + 1);
                    }
                    _ => return false,
                },
            }
        }
    }

    pub(super) fn cannot_match(&self) -> Option<&'static str> {
        let is_mangled = |line: &Line| {
            let Line::Function { pattern, .. } = line else { return false };
            pattern.starts_with("_Z") && is_open(pattern)
        };
        let why = "mangled names with wildcards cannot match: write the demangled name, as in fun:own::parse*";
        self.0.iter().any(is_mangled).then_some(why)
    }
}
