//! Checks byte arrays that contain records of a section (spec 3.7), and whether the section can be nested in this way.

use std::collections::{BTreeMap, BTreeSet};

use super::leaves::{Resolved, ResolvedLeaf};
use super::model::{Model, ScopeIndex};
use crate::codes::Code;
use crate::diagnostic::{Draft, LINE, Reporter};
use crate::schema::{Interpretation, Width};
use crate::span::Span;

/// Maximum nesting depth of sections (spec 3.7).
const MOST_NESTING: usize = 8;

/// Checks the sections that byte arrays refer to.
pub(super) fn check(model: &Model, resolved: &[Resolved], report: &mut Reporter) {
    let mut uses: Vec<(ScopeIndex, Span)> = Vec::new();
    for (number, place) in resolved.iter().flat_map(|r| &r.leaves).filter_map(|l| l.leaf.section.zip(l.nested)) {
        // One property of a section or the top level can apply to many leaves, so several leaves may share a location.
        let scope = model.scopes.iter().position(|s| s.number == Some(number));
        match scope.filter(|scope| !model.top_records(*scope).is_empty()) {
            Some(scope) if !uses.contains(&(scope, place)) => uses.push((scope, place)),
            Some(_) => {}
            None => report.add(
                Draft::new(Code::NestedSection, place, format!("there is no section {number} with records"))
                    .help(format!(
                        "define the section, as in `section items {number} {{ item: (size: u32); }}`, or write the number of \
                         another section"
                    )),
            ),
        }
    }
    let graph = Graph::of(model, resolved, uses.iter().map(|(scope, _)| *scope).collect());
    for (scope, place) in uses {
        if let Some(taker) = graph.taker(scope) {
            report.add(stream_in_array(model, resolved, scope, taker, place));
        }
        if !graph.too_deep.contains(&scope) {
            continue;
        }
        let deep = if graph.nests_itself(scope) {
            format!("section {} contains itself through a byte array", number(model, scope))
        } else {
            format!("sections in byte arrays are nested more than {MOST_NESTING} levels deep")
        };
        report.add(
            Draft::new(Code::NestedSection, place, deep)
                .help(format!("remove `{LINE}`, so that the field is a plain byte array"))
                .quote(place),
        );
    }
}

/// Returns the report of a field of a nested section that depends on a stream section. `place` is the property that nests
/// the section.
fn stream_in_array(model: &Model, resolved: &[Resolved], scope: ScopeIndex, taker: Taker, place: Span) -> Draft {
    let (record, leaf) = taker;
    let name = model.records.get(record.layout.record).map_or("", |record| record.name());
    let all = || resolved.iter().flat_map(|record| record.leaves.iter().map(move |leaf| (record, leaf)));
    let array = all().find(|(_, leaf)| leaf.nested == Some(place)).map_or_else(String::new, |(owner, leaf)| {
        let owner = model.records.get(owner.layout.record).map_or("", |record| record.name());
        format!(" `{owner}.{}`", leaf.leaf.name)
    });
    let (field, word) = (&leaf.leaf.name, leaf.leaf.interpretation.parts().word.name());
    let message = format!("`{name}` is a record in the byte array{array}, so `{field}` cannot use `{word}`");
    let names = ["length", "len", "size", &format!("{field}_length"), &format!("{field}_size")].map(str::to_owned);
    let before = record.leaves.iter().take_while(|other| other.place != leaf.place);
    let length = before.map(|other| &other.leaf).filter(|other| other.is_numeric()).find(|l| names.contains(&l.name));
    let bytes = length.map_or_else(|| "text".to_owned(), |length| format!("bytes {}.value", length.name));
    let help = match (&leaf.leaf.interpretation, &leaf.leaf.width) {
        (Interpretation::SectionOffset(_), Width::Number(width @ 1..=8)) => format!(
            "to store the bytes, write `{field}: {bytes}`; to store only the number, write `{field}: u{}`",
            width * 8
        ),
        _ => format!("store the value itself, as in `{field}: u32`"),
    };
    Draft::new(Code::NestedSection, place, message)
        .label(format!("these bytes are records of section {}", number(model, scope)))
        .also(leaf.place, "records in a byte array cannot use stream sections")
        .help(help)
}

fn number(model: &Model, scope: ScopeIndex) -> u8 {
    model.scopes.get(scope).and_then(|s| s.number).unwrap_or(0)
}

/// A field that depends on a stream section, with its record.
type Taker<'a> = (&'a Resolved<'a>, &'a ResolvedLeaf);

/// The nesting of sections in byte arrays: for each nested section, the sections that its own byte arrays contain.
struct Graph<'a> {
    children: BTreeMap<ScopeIndex, BTreeSet<ScopeIndex>>,
    /// For each section, a field that depends on a stream section.
    takers: BTreeMap<ScopeIndex, Taker<'a>>,
    /// The sections that nest too deeply, including sections that nest themselves.
    too_deep: BTreeSet<ScopeIndex>,
}

impl<'a> Graph<'a> {
    fn of(model: &Model, resolved: &'a [Resolved<'a>], sections: BTreeSet<ScopeIndex>) -> Self {
        let mut graph = Self { children: BTreeMap::new(), takers: BTreeMap::new(), too_deep: BTreeSet::new() };
        for scope in sections {
            let tops = model.top_records(scope);
            let mut children = BTreeSet::new();
            let tops = resolved.iter().filter(|r| tops.contains(&r.layout.record));
            for (record, leaf) in tops.flat_map(|r| r.leaves.iter().map(move |leaf| (r, leaf))) {
                children.extend(leaf.leaf.section.and_then(|n| model.scopes.iter().position(|s| s.number == Some(n))));
                let takes = matches!(
                    leaf.leaf.interpretation,
                    Interpretation::SectionOffset(_)
                        | Interpretation::SectionStride { .. }
                        | Interpretation::Predicted(_)
                );
                if takes {
                    graph.takers.entry(scope).or_insert((record, leaf));
                }
            }
            graph.children.insert(scope, children);
        }
        // Start with all sections. Each round keeps only the sections that nest a remaining section, so after the last
        // round, the remaining sections nest too deeply.
        graph.too_deep.extend(graph.children.keys());
        for _ in 0..MOST_NESTING {
            let stays = |scope: &ScopeIndex| {
                graph.children.get(scope).is_some_and(|c| c.iter().any(|child| graph.too_deep.contains(child)))
            };
            graph.too_deep = graph.too_deep.iter().copied().filter(stays).collect();
        }
        graph
    }

    fn taker(&self, scope: ScopeIndex) -> Option<Taker<'a>> {
        self.takers.get(&scope).copied()
    }

    fn nests_itself(&self, scope: ScopeIndex) -> bool {
        let (mut seen, mut open) = (BTreeSet::new(), vec![scope]);
        while let Some(at) = open.pop() {
            open.extend(self.children.get(&at).into_iter().flatten().filter(|child| seen.insert(**child)));
        }
        seen.contains(&scope)
    }
}
