//! Renders a diagnostic as text, with the file, line and column, the source line with the location marked, and a hint
//! (spec 7).

use std::borrow::Cow;
use std::ops::Range;

use annotate_snippets::{Annotation, AnnotationKind, Element, Group, Level, Renderer, Snippet};

use crate::codes::Severity;
use crate::diagnostic::{Diagnostic, Label};

/// Maximum number of columns to show. Longer lines are truncated around the location.
const MOST_COLUMNS: usize = 120;
/// Maximum number of lines between two locations that share an excerpt.
const MOST_LINES: u32 = 400;

/// Returns the diagnostic as text for people, without a trailing line break. `source` is the parsed text, and `color`
/// enables terminal escapes. The first location is shown as `name:line:column`.
#[must_use]
pub fn render(diagnostic: &Diagnostic, name: &str, source: &[u8], color: bool) -> String {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.term_width(MOST_COLUMNS + 20);
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Suggestion => Level::NOTE.with_name("suggestion"),
    };
    let title = level.primary_title(&*diagnostic.message).id(diagnostic.code.as_str());
    let text = Text { name, source };
    let elements = text.one_excerpt(diagnostic).map_or_else(|| text.excerpts(diagnostic), |one| vec![one]);
    let mut group = Group::with_title(title).elements(elements);
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(&**help));
    }
    text.with_true_columns(renderer.render(&[group]), diagnostic)
}

struct Text<'a> {
    name: &'a str,
    source: &'a [u8],
}

impl<'a> Text<'a> {
    /// Shows all locations in one excerpt if they are close to each other and no line is long.
    fn one_excerpt(&self, diagnostic: &'a Diagnostic) -> Option<Element<'a>> {
        let labels = || std::iter::once(&diagnostic.primary).chain(&diagnostic.secondary);
        let (first, last) = (labels().map(|l| l.line).min()?, labels().map(|l| l.line).max()?);
        if last - first > MOST_LINES {
            return None;
        }
        let start = labels().map(|l| self.line(l).start).min()?;
        let end = labels().map(|l| self.line(l).end).max()?;
        let mut excerpt = Cow::Borrowed(std::str::from_utf8(self.source.get(start..end)?).ok()?);
        if excerpt.lines().any(|l| l.len() > MOST_COLUMNS) {
            return None;
        }
        if excerpt.contains('\r') {
            // Replace `\r` with a space, so that the columns stay correct.
            excerpt = excerpt.replace('\r', " ").into();
        }
        if excerpt.is_empty() || excerpt.ends_with('\n') {
            // An empty last line would not be displayed, so mark the end of the text with a space.
            excerpt.to_mut().push(' ');
        }
        let mark = |label: &'a Label, kind: AnnotationKind| {
            let range = label.span.start - start..label.span.end.min(end).max(label.span.start) - start;
            annotation(label, kind, range)
        };
        let snippet = Snippet::source(excerpt)
            .path(self.name)
            .line_start(usize::try_from(first).ok()?)
            .annotation(mark(&diagnostic.primary, AnnotationKind::Primary))
            .annotations(diagnostic.secondary.iter().map(|l| mark(l, AnnotationKind::Context)));
        Some(snippet.into())
    }

    /// Shows each location in a separate excerpt. Long lines are truncated around the location.
    fn excerpts(&self, diagnostic: &'a Diagnostic) -> Vec<Element<'a>> {
        let primary = std::iter::once((&diagnostic.primary, AnnotationKind::Primary));
        let secondary = diagnostic.secondary.iter().map(|l| (l, AnnotationKind::Context));
        let element = |(label, kind): (&'a Label, AnnotationKind)| {
            let (excerpt, range) = self.cut(label);
            let snippet = Snippet::source(excerpt).path(self.name).line_start(usize::try_from(label.line).unwrap_or(1));
            snippet.annotation(annotation(label, kind, range)).into()
        };
        primary.chain(secondary).map(element).collect()
    }

    /// Corrects the column numbers printed for excerpts that show only part of a line.
    fn with_true_columns(&self, rendered: String, diagnostic: &Diagnostic) -> String {
        if self.one_excerpt(diagnostic).is_some() {
            return rendered;
        }
        let mut out = String::new();
        let mut rest = rendered.as_str();
        for label in std::iter::once(&diagnostic.primary).chain(&diagnostic.secondary) {
            let (excerpt, range) = self.cut(label);
            let column = excerpt.get(..range.start).map_or(0, |before| before.chars().count()) + 1;
            let shown = format!("{}:{}:{column}", self.name, label.line);
            if let Some((before, after)) = rest.split_once(&shown) {
                out += before;
                out += &format!("{}:{}:{}", self.name, label.line, label.column);
                rest = after;
            }
        }
        out + rest
    }

    /// Returns the line of a location without its line ending. If the line is long, returns only enough of it on each
    /// side of the location to detect that it is long. The limit saves time if the entire text is one line with a
    /// hundred diagnostics.
    fn line(&self, label: &Label) -> Range<usize> {
        let at = label.span.start.min(self.source.len());
        let least = at.saturating_sub(MOST_COLUMNS + 4);
        let most = self.source.len().min(at + MOST_COLUMNS + 4);
        let before = self.source.get(least..at).unwrap_or_default();
        let after = self.source.get(at..most).unwrap_or_default();
        let start = before.iter().rposition(|b| *b == b'\n').map_or(least, |i| least + i + 1);
        let start = if start == 0 && self.source.starts_with(b"\xEF\xBB\xBF") { 3.min(at) } else { start };
        let end = after.iter().position(|b| *b == b'\n').map_or(most, |i| at + i);
        start..end
    }

    /// Returns the part of the line around a location, and the range of the location in this part. Invalid UTF-8 is
    /// replaced by U+FFFD.
    fn cut(&self, label: &Label) -> (Cow<'a, str>, Range<usize>) {
        let line = self.line(label);
        let at = label.span.start.clamp(line.start, line.end);
        let from = self.boundary(at.saturating_sub(MOST_COLUMNS / 2).max(line.start));
        let to = self.boundary((at + MOST_COLUMNS / 2).min(line.end)).max(at);
        let before = String::from_utf8_lossy(self.source.get(from..at).unwrap_or_default());
        let marked_end = label.span.end.clamp(at, to);
        let marked = String::from_utf8_lossy(self.source.get(at..marked_end).unwrap_or_default());
        let after = String::from_utf8_lossy(self.source.get(marked_end..to).unwrap_or_default());
        let (head, tail) = (if from > line.start { "... " } else { "" }, if to < line.end { " ..." } else { "" });
        let start = head.len() + before.len();
        let range = start..start + marked.len();
        (format!("{head}{before}{marked}{after}{tail}").replace('\r', " ").into(), range)
    }

    /// Returns the start of the character that contains a byte.
    fn boundary(&self, mut at: usize) -> usize {
        while at > 0 && self.source.get(at).is_some_and(|b| b & 0xC0 == 0x80) {
            at -= 1;
        }
        at
    }
}

fn annotation<'a>(label: &'a Label, kind: AnnotationKind, range: Range<usize>) -> Annotation<'a> {
    let annotation = kind.span(range);
    if label.text.is_empty() { annotation } else { annotation.label(&*label.text) }
}
