//! Repairs of mistakes. For a syntax error, this is a search for the cheapest edit of a few tokens that makes an item
//! valid. [`meaning`] searches for edits that resolve other mistakes.
//!
//! The search begins at the token that the grammar rejects. It tries edits of the tokens there in the order of their
//! costs, and continues after an edit that moves the mistake further. The grammar checks only the item and its
//! neighbors. If it accepts them, the whole text is checked, so that of several edits one with a meaning is suggested.

mod edits;
mod meaning;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::ops::Range;

use crate::codes::Severity;
use crate::diagnostic::{Diagnostic, Finished, Reporter, Suggestion};
use crate::lexer::{self, Lexed};
use crate::line;
use crate::schema::Dtd;
use crate::span::Source;
use crate::syntax::{Block, first_mistake, open_blocks};
use edits::{Edit, Words, edits};

/// Maximum length of a text, so that hostile input costs little.
const MOST_BYTES: usize = 32 << 10;
/// Maximum number of diagnostics with a repair.
const MOST_REPAIRS: usize = 3;
/// Maximum number of tokens and bytes of the items in which a repair is searched.
const MOST_TOKENS: usize = 120;
const MOST_PART: usize = 1200;
/// Maximum number of bytes that the grammar parses in a search, and of checks of the whole text.
const MOST_WORK: usize = 64 << 10;
const MOST_CHECKS: usize = 16;
/// Maximum number of edits in a repair, and of edits after which the search continues.
const MOST_EDITS: usize = 3;
const MOST_STATES: usize = 40;
/// The cost by which a repair of a text with other mistakes must be cheaper than a repair that makes the text valid.
const BETTER: u32 = 10;
/// Maximum cost of a repair of a text with other mistakes, which may hide that the repair is wrong.
const MOST_BETTER: u32 = 20;
/// The cost of a warning after a repair.
const WARNING: u32 = 6;
/// Maximum cost of a repair that is certain.
const MOST_CERTAIN: u32 = 10;

/// A function that parses and checks a text without repairs.
pub(crate) type Check<'c> = &'c dyn Fn(&[u8]) -> (Option<Dtd>, Finished);

/// Returns the diagnostics with repairs in place of hints that only describe the grammar, and with edits.
pub(crate) fn improve(text: &[u8], finished: Finished, check: Check) -> Vec<Diagnostic> {
    let source = Source::new(text);
    meaning::improve(&source, syntax(&source, finished, check), check)
}

fn syntax(source: &Source, finished: Finished, check: Check) -> Vec<Diagnostic> {
    let is_candidate = |found: &Diagnostic| finished.is_general(found) && found.code.is_syntax();
    let indices = (0..finished.diagnostics.len()).filter(|index| is_candidate(&finished.diagnostics[*index]));
    let indices: Vec<usize> = indices.take(MOST_REPAIRS).collect();
    let Some(whole) = source.all().filter(|text| !indices.is_empty() && text.len() <= MOST_BYTES) else {
        return finished.diagnostics;
    };
    let Some(lexed) = lexer::lex(whole, source.start, &mut Reporter::new(source)) else {
        return finished.diagnostics;
    };
    let context = Context { text: whole, lexed: &lexed, before: mistakes(&finished.diagnostics), check };
    let mut repaired: Vec<(usize, Repair)> = Vec::new();
    for index in indices {
        let found = &finished.diagnostics[index];
        // The repair of an earlier mistake may include this one.
        if repaired.iter().any(|(_, repair)| repair.suggestion.span.contains(&found.primary.span.start)) {
            continue;
        }
        let least = context.rank_of(found.suggestion.as_ref());
        let has_line = found.help.as_ref().is_some_and(|help| help.starts_with("write `"));
        if least == Some(Rank::Valid) && has_line {
            continue;
        }
        if least == Some(Rank::Valid) {
            repaired.extend(context.written(found.suggestion.as_ref()).map(|repair| (index, repair)));
        } else if let Some(repair) = context.repair(found.primary.span.start)
            && least.is_none_or(|least| repair.rank < least && !repair.is_guess)
        {
            repaired.push((index, repair));
        }
    }
    let mut diagnostics = finished.diagnostics;
    for (index, repair) in repaired {
        diagnostics[index].help = Some(repair.help);
        diagnostics[index].suggestion = Some(repair.suggestion);
    }
    diagnostics
}

/// Returns the number of syntax errors.
fn mistakes(diagnostics: &[Diagnostic]) -> usize {
    diagnostics.iter().filter(|found| found.code.is_syntax()).count()
}

/// The state of a text after an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// The text is valid.
    Valid,
    /// The item is valid, but there are other mistakes in the text.
    Better,
}

/// A repair of one mistake.
struct Repair {
    rank: Rank,
    /// Whether the repair removes or invents a word, or may change the meaning.
    is_guess: bool,
    help: String,
    suggestion: Suggestion,
}

/// A text with a syntax error.
struct Context<'c> {
    text: &'c str,
    lexed: &'c Lexed,
    /// The number of syntax errors.
    before: usize,
    check: Check<'c>,
}

/// The items in which a repair is searched, as offsets in the text.
struct Part {
    range: Range<usize>,
    /// The end of the item with the mistake. More items may follow.
    end: usize,
    blocks: Vec<Block>,
}

impl Part {
    /// Returns the text of a range in the part.
    fn of<'t>(&self, text: &'t str, range: &Range<usize>) -> &'t str {
        text.get(self.range.start + range.start..self.range.start + range.end).unwrap_or_default()
    }
}

/// A part of the text after some edits.
struct State {
    text: String,
    /// The range of all edits, before and after them.
    old: Range<usize>,
    new: Range<usize>,
    edits: usize,
    cost: u32,
    is_guess: bool,
    /// The number of bytes from the mistake to the end.
    left: usize,
}

impl State {
    /// Returns the state after another edit.
    fn edited(&self, edit: &Edit) -> Option<State> {
        let Range { start, end } = edit.range.clone();
        let text = [self.text.get(..start)?, &edit.text, self.text.get(end..)?].concat();
        let (old, new) = if self.edits == 0 {
            (start..end, start..start + edit.text.len())
        } else {
            let first = if start < self.new.start { start } else { self.old.start };
            let last = if end > self.new.end { end - self.new.end + self.old.end } else { self.old.end };
            let new = self.new.start.min(start)..self.new.end.max(end) + edit.text.len() - (end - start);
            (first..last, new)
        };
        let (edits, cost, is_guess) = (self.edits + 1, self.cost + edit.cost, self.is_guess || edit.is_guess);
        Some(State { text, old, new, edits, cost, is_guess, left: 0 })
    }
}

/// A repair that the grammar accepts.
struct Found {
    state: State,
    rank: Rank,
    cost: u32,
    dtd: Option<Dtd>,
    whole: String,
}

impl Context<'_> {
    /// Returns the state of the text after a suggested edit, if it is better.
    fn rank_of(&self, suggestion: Option<&Suggestion>) -> Option<Rank> {
        let suggestion = suggestion?;
        let edited = suggestion.apply(self.text.as_bytes())?;
        let end = suggestion.span.start + suggestion.text.len();
        Some(self.rank(&edited, suggestion.span.start..end)?.0)
    }

    /// Returns a suggested edit with the line to write.
    fn written(&self, suggestion: Option<&Suggestion>) -> Option<Repair> {
        let suggestion = suggestion?.clone();
        let edited = String::from_utf8(suggestion.apply(self.text.as_bytes())?).ok()?;
        let help = format!("write `{}`", line::item(&edited, suggestion.span.start, false)?);
        Some(Repair { rank: Rank::Valid, is_guess: false, help, suggestion })
    }

    /// Returns the state of an edited text, its schema, and the number of warnings.
    fn rank(&self, edited: &[u8], item: Range<usize>) -> Option<(Rank, Option<Dtd>, u32)> {
        let (dtd, finished) = (self.check)(edited);
        let errors = || finished.diagnostics.iter().filter(|found| found.severity == Severity::Error);
        let warnings = finished.diagnostics.len() - errors().count();
        let after = mistakes(&finished.diagnostics);
        let is_later = |found: &Diagnostic| found.primary.span.start >= item.end;
        let is_better = after < self.before || after == self.before && errors().all(is_later);
        let is_better = is_better && !errors().any(|found| item.contains(&found.primary.span.start));
        let rank = match dtd {
            Some(_) => Rank::Valid,
            None if is_better => Rank::Better,
            None => return None,
        };
        Some((rank, dtd, u32::try_from(warnings).unwrap_or(u32::MAX)))
    }

    /// Returns the part of the text around a mistake.
    fn part(&self, mistake: usize) -> Option<Part> {
        let tokens = &self.lexed.tokens;
        let at = tokens.partition_point(|token| token.span.end() <= mistake);
        let ends = |index: &usize| matches!(self.lexed.mark(*index), Some(b';' | b'{' | b'}'));
        let start_of = |at: usize| (0..at).rev().find(ends).map_or(0, |index| index + 1);
        let mut first = start_of(at);
        // A mistake at the start of an item may be in the item before.
        if first == at && at > 0 && self.lexed.mark(at - 1) != Some(b'}') {
            first = start_of(at - 1);
        }
        let last = (at..tokens.len()).find(ends).unwrap_or(tokens.len().saturating_sub(1));
        // A mark in an item may end it too early.
        let mut after = last;
        for _ in 0..2 {
            after = (after + 1..tokens.len()).find(ends).unwrap_or(after);
        }
        let span = |index: usize| tokens.get(index).map(|token| token.span);
        let start = span(first)?.start();
        let is_short = |index: usize| {
            index < first + MOST_TOKENS && span(index).is_some_and(|span| span.end() <= start + MOST_PART)
        };
        let after = if is_short(after) { after } else { last };
        let blocks = open_blocks(self.text, tokens, first);
        // The token after the item shows whether the item is complete.
        let end = span((last + 1).min(after))?.end();
        is_short(after).then_some(Part { range: start..span(after)?.end(), end, blocks })
    }

    /// Returns the cheapest repair of a mistake.
    fn repair(&self, mistake: usize) -> Option<Repair> {
        let part = self.part(mistake)?;
        let words = Words::new(self.text, self.lexed);
        let found = self.search(&part, &words)?;
        let mut lines: Vec<String> = Vec::new();
        let mut best = None;
        for found in found {
            let changed = [part.of(self.text, &found.state.old), found.state.text.get(found.state.new.clone())?];
            let is_whole = changed.iter().any(|text| text.contains([',', '(', ')']));
            let line = line::item(&found.whole, part.range.start + found.state.new.start, is_whole)?;
            let letters = |line: &str| line.split_whitespace().collect::<String>();
            if line.starts_with(';') {
                return None;
            }
            if lines.iter().all(|known| letters(known) != letters(&line)) {
                lines.push(line);
            }
            best = best.or(Some(found));
        }
        let best = best?;
        let help = match lines.as_slice() {
            [line] => format!("write `{line}`"),
            [line, other] => format!("write `{line}` or `{other}`"),
            _ => return None,
        };
        let span = part.range.start + best.state.old.start..part.range.start + best.state.old.end;
        let text = best.state.text.get(best.state.new.clone())?.to_owned();
        let certain = best.rank == Rank::Valid && best.cost <= MOST_CERTAIN && lines.len() == 1;
        let suggestion = Suggestion { span, text, certain };
        Some(Repair { rank: best.rank, is_guess: best.state.is_guess, help, suggestion })
    }

    /// Returns the cheapest repairs of equal costs and different meanings.
    fn search(&self, part: &Part, words: &Words) -> Option<Vec<Found>> {
        let text = self.text.get(part.range.clone())?.to_owned();
        let behind = part.range.end - part.end;
        let (mut work, mut checks) = (MOST_WORK, MOST_CHECKS);
        let left = text.len() - self.mistake(&text, part)?;
        if left <= behind {
            return None;
        }
        let mut states = vec![State { text, old: 0..0, new: 0..0, edits: 0, cost: 0, is_guess: false, left }];
        let (mut queue, mut tried, mut best) = (BinaryHeap::new(), HashSet::new(), Vec::<Found>::new());
        // The edits, each with the index of its state, and the number of states whose edits are known.
        let (mut all, mut expanded) = (Vec::new(), 0);
        loop {
            for (index, state) in states.iter().enumerate().skip(expanded) {
                for edit in edits(&state.text, state.text.len() - state.left, words) {
                    queue.push(Reverse((state.cost + edit.cost, all.len())));
                    all.push((index, edit));
                }
            }
            expanded = states.len();
            let Some(Reverse((cost, index))) = queue.pop() else { break };
            let margin = |found: &Found| if found.rank == Rank::Valid { 0 } else { BETTER };
            if best.first().is_some_and(|found| found.cost + margin(found) < cost) {
                break;
            }
            let Some((parent, edit)) = all.get(index) else { break };
            let before = states.get(*parent);
            // The items after the mistake only confirm a repair.
            let before = before.filter(|state| edit.range.end + behind <= state.text.len());
            let Some(state) = before.and_then(|state| state.edited(edit)) else { continue };
            if !tried.insert(state.text.clone()) {
                continue;
            }
            let Some(rest) = work.checked_sub(state.text.len()) else { break };
            work = rest;
            let Some(mistake) = self.mistake(&state.text, part) else { continue };
            let left = state.text.len() - mistake;
            if left <= behind {
                let Some(rest) = checks.checked_sub(1) else { break };
                checks = rest;
                let whole =
                    [self.text.get(..part.range.start)?, &state.text, self.text.get(part.range.end..)?].concat();
                let end = part.range.start + state.text.len() - behind;
                if let Some((rank, dtd, warnings)) = self.rank(whole.as_bytes(), part.range.start..end) {
                    let found = Found { rank, cost: state.cost + WARNING * warnings, dtd, whole, state };
                    if rank == Rank::Better && (found.cost > MOST_BETTER || found.state.is_guess) {
                        continue;
                    }
                    let order = |found: &Found| (found.rank, found.cost);
                    best.retain(|known| order(known) <= order(&found));
                    if best.first().is_none_or(|known| {
                        order(known) == order(&found) && (found.dtd.is_none() || known.dtd != found.dtd)
                    }) {
                        best.push(found);
                    }
                }
            } else if states.get(*parent).is_some_and(|parent| left < parent.left)
                && state.edits < MOST_EDITS
                && states.len() < MOST_STATES
            {
                states.push(State { left, ..state });
            }
        }
        Some(best)
    }

    /// Returns the offset of the first mistake in a part.
    fn mistake(&self, text: &str, part: &Part) -> Option<usize> {
        let source = Source::new(text.as_bytes());
        let lexed = lexer::lex(text, 0, &mut Reporter::new(&source))?;
        Some(first_mistake(text, &lexed, part.blocks.clone()))
    }
}
