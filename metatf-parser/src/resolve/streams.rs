//! Finds stream sections and checks references to them (spec 3.4, 3.5).

use std::collections::HashSet;

use super::ends;
use super::layout::Layout;
use super::leaves::{Resolved, ResolvedLeaf, Sharing};
use super::lines;
use super::model::{Model, ScopeIndex, ScopeModel};
use super::predictors;
use super::tags;
use crate::ast::{self, Int, Setting, Typed, Value};
use crate::codes::Code;
use crate::diagnostic::{Draft, LINE, Reporter};
use crate::schema::{self, Argument, Interpretation, Item, Repeated, Width};
use crate::span::{Source, Span};
use crate::vocabulary::Property;

/// Finds stream sections (spec 3.4). A stream section contains no tagged record, and exactly one untagged record that
/// is not nested in another record of the section.
pub(super) fn find(model: &mut Model) {
    for index in 1..model.scopes.len() {
        let Some(scope) = model.scopes.get(index) else { continue };
        let own = || scope.records.iter().copied().filter(|r| model.records.get(*r).is_some_and(|r| r.named));
        let tagged = own().any(|r| model.records.get(r).is_some_and(|r| r.tagged));
        let mut roots = own().filter(|r| model.records.get(*r).is_some_and(|r| !r.nested));
        let stream = match (tagged, roots.next(), roots.next()) {
            (false, Some(only), None) => Some(only),
            _ => None,
        };
        model.scopes.get_mut(index).into_iter().for_each(|s| s.stream = stream);
    }
}

/// Warns about the element of a stream section if it refers to another section or counts from the previous record, and no
/// field refers to its own section. Then it is an event, and the author has probably forgotten the tag. A DTD of a single
/// section, or with a role, may describe another tool's log, which has no tags.
pub(super) fn alone(model: &Model, resolved: &[Resolved], report: &mut Reporter) {
    let all = || resolved.iter().flat_map(|record| &record.leaves);
    let leaves = || all().map(|leaf| &leaf.leaf);
    let is_log = leaves().any(|leaf| leaf.annotations.contains_key("role"));
    if report.failed() || is_log || model.scopes.len() < 3 {
        return;
    }
    let mut used: HashSet<u8> = leaves().flat_map(|leaf| leaf.section.into_iter().chain(target(leaf))).collect();
    used.extend(all().filter_map(|leaf| leaf.predicted.as_ref()).map(|predicted| predicted.model.section));
    let counts = |leaf: &ResolvedLeaf| matches!(leaf.sharing, Sharing::Property(_) | Sharing::NameAndProperty(_));
    let is_event = |element| {
        let record = resolved.iter().find(|r| r.layout.record == element && r.layout.items.len() > 1);
        record.is_some_and(|record| record.leaves.iter().any(|leaf| target(&leaf.leaf).is_some() || counts(leaf)))
    };
    for scope in model.scopes.iter().skip(1) {
        let element = scope.stream.filter(|element| is_event(*element)).and_then(|element| model.records.get(element));
        let (Some(element), Some(number)) = (element, scope.number) else {
            continue;
        };
        if used.contains(&number) {
            continue;
        }
        let section = scope.ast.head.as_ref().map_or("", |head| head.name.text);
        report.add(
            Draft::new(
                Code::StreamAlone,
                element.ast.name.span,
                format!("`{}` has no tag, so `{section}` is a stream section, but no field refers to it", element.name()),
            )
            .help(format!(
                "write `tag.value = {};` in the block of `{}`, or refer to the section, as in `name: u16 sectionOffset {number}`",
                tags::next_tag(model, [1, 2, 3]),
                element.name()
            )),
        );
    }
}

/// Returns the stream section of an interpretation.
fn target(leaf: &schema::Leaf) -> Option<u8> {
    match leaf.interpretation {
        Interpretation::SectionOffset(section) | Interpretation::SectionStride { section, .. } => Some(section),
        _ => None,
    }
}

/// Checks that the count of each repetition is a number (spec 3.3).
pub(super) fn counts(resolved: &[Resolved], report: &mut Reporter) {
    for record in resolved {
        count(record, &record.layout.items, report);
    }
}

/// Checks the counts of items, which nest at most 32 levels deep (spec 3.5).
fn count(record: &Resolved, items: &[Item], report: &mut Reporter) {
    for item in items {
        match item {
            Item::Leaf(_) => {}
            Item::Nested { items, .. } => count(record, items, report),
            Item::Repeat { count: counter, body, .. } => {
                let index = usize::from(counter.0);
                let (leaf, raw) = (record.leaves.get(index), record.layout.leaves.get(index));
                if let (Some(leaf), Some(raw)) = (leaf.filter(|l| !l.broken && !l.leaf.is_numeric()), raw) {
                    let message = format!("`{}` is a byte array and cannot count a repetition", leaf.leaf.name);
                    report.add(
                        Draft::new(Code::NotANumber, raw.site, message)
                            .help(format!("write `{}: u16`: a count is a number", leaf.leaf.name)),
                    );
                }
                match body {
                    Repeated::Leaf(_) => {}
                    Repeated::Group(items) | Repeated::Record { items, .. } => count(record, items, report),
                }
            }
        }
    }
}

/// Returns the stream section with this number.
fn stream_section(model: &Model, number: Int) -> Option<ScopeIndex> {
    let number = number.natural().and_then(|n| u8::try_from(n).ok()).filter(|n| *n != 0)?;
    model.scopes.iter().position(|s| s.number == Some(number) && s.stream.is_some())
}

/// The text that sets an interpretation: a statement, or the type of a field.
#[derive(Clone, Copy)]
struct Site<'m, 'a> {
    setting: &'m Setting<'a>,
    typed: Option<&'m Typed<'a>>,
    interpretation: &'m ast::Interpretation<'a>,
}

impl Site<'_, '_> {
    /// Returns the name of the field.
    fn field(&self) -> &str {
        self.typed.map(|typed| typed.name.text).or(self.setting.path.last().map(|name| name.text)).unwrap_or_default()
    }

    /// Returns the line to write with other arguments, which are numbers.
    fn line(&self, arguments: &[u64]) -> Option<String> {
        let arguments: String = arguments.iter().map(|number| format!(" {number}")).collect();
        lines::interpreted(self.setting, self.typed, &format!("{}{arguments}", self.interpretation.word.name()))
    }

    /// Returns the line to write with a text inserted at a location.
    fn inserted(&self, at: Span, text: &str, source: &Source) -> Option<String> {
        lines::interpreted(self.setting, self.typed, &lines::replaced(source, self.setting.value_span, at, text)?)
    }

    /// Returns the line to write with another section.
    fn with_section(&self, section: u8) -> Option<String> {
        let mut numbers = self.interpretation.arguments.iter().map(|argument| match argument {
            ast::Argument::Number(number) => number.natural(),
            _ => None,
        });
        numbers.next()??;
        let others: Vec<u64> = numbers.collect::<Option<_>>()?;
        self.line(&[&[u64::from(section)], others.as_slice()].concat())
    }
}

/// Returns the interpretations that the text sets.
fn sites<'m, 'a>(model: &'m Model<'a>) -> impl Iterator<Item = Site<'m, 'a>> {
    let scopes = model.scopes.iter().flat_map(|s| &s.ast.properties);
    let blocks = model.records.iter().flat_map(|r| &r.ast.block);
    let types = model.scopes.iter().flat_map(|s| &s.ast.types).chain(model.records.iter().flat_map(|r| &r.ast.types));
    let typed = types.flat_map(|typed| typed.settings.iter().map(move |setting| (setting, Some(typed))));
    let all = scopes.chain(blocks).map(|setting| (setting, None)).chain(typed);
    all.filter(|(setting, _)| setting.property == Some(Property::Interpretation)).filter_map(|(setting, typed)| {
        let Value::Interpretation(interpretation) = &setting.value else { return None };
        Some(Site { setting, typed, interpretation })
    })
}

/// Returns the section that an interpretation names, and the field.
fn named<'m>(model: &'m Model) -> impl Iterator<Item = (u64, Site<'m, 'm>)> {
    sites(model).filter_map(|site| {
        let kinds = site.interpretation.word.arguments().iter().zip(&site.interpretation.arguments);
        let number = kinds.into_iter().find_map(|(kind, argument)| match (kind, argument) {
            (Argument::Stream | Argument::NumberStream, ast::Argument::Number(number)) => number.natural(),
            _ => None,
        })?;
        Some((number, site))
    })
}

/// Returns the numbers of the sections that interpretations name.
pub(super) fn named_sections(model: &Model) -> HashSet<u64> {
    named(model).map(|(number, _)| number).collect()
}

/// Checks the section numbers in every interpretation.
pub(super) fn references(model: &Model, resolved: &[Resolved], report: &mut Reporter) {
    for site in sites(model) {
        let Site { setting, interpretation, .. } = site;
        let word = interpretation.word;
        let source = report.source;
        for (kind, argument) in word.arguments().iter().zip(&interpretation.arguments) {
            match (kind, argument) {
                (Argument::Stream, ast::Argument::Number(number)) => offset(model, resolved, *number, site, report),
                (Argument::NumberStream, ast::Argument::Number(number)) => {
                    number_stream(model, resolved, *number, site, report);
                }
                (Argument::Steps, ast::Argument::Number(steps)) => stride_range(setting, *steps, report),
                (Argument::Model, ast::Argument::Model(predicted)) => {
                    let line = |text: &str| site.inserted(Span::at(predicted.span.start()), text, source);
                    predictors::check(predicted, line, report);
                }
                _ => {}
            }
        }
    }
}

fn offset(model: &Model, resolved: &[Resolved], number: Int, site: Site, report: &mut Reporter) {
    let Some(scope) = stream_section(model, number) else {
        if is_ambiguous(model, number) {
            return;
        }
        no_stream(model, Code::NoStream, number, site, report);
        return;
    };
    let element = model.scopes.get(scope).and_then(|s| s.stream);
    let element = resolved.iter().find(|record| Some(record.layout.record) == element);
    if let Some(place) = element.and_then(ends::extends) {
        let message = format!("the elements of section {} extend to the end of their chunk", number.magnitude);
        report.add(
            Draft::new(Code::RestPlace, number.span, message)
                .also(place, "extends to the end")
                .help("a table contains many elements, so each must state its length (`data.width = length.value;`)"),
        );
    }
}

/// Checks whether several sections have this number, which has been reported.
fn is_ambiguous(model: &Model, number: Int) -> bool {
    let has_number = |scope: &&ScopeModel| {
        let own = scope.ast.head.as_ref().and_then(|head| head.number);
        own.is_some_and(|own| own.magnitude == number.magnitude && own.negative == number.negative)
    };
    model.scopes.iter().filter(has_number).count() > 1
}

/// Returns the number of sections with this number.
fn scope_count(model: &Model, number: Int) -> usize {
    let known = number.natural().and_then(|n| u8::try_from(n).ok());
    model.scopes.iter().skip(1).filter(|scope| known.is_some() && scope.number == known).count()
}

fn not_stream(model: &Model, number: Int) -> String {
    let known = number.natural().and_then(|n| u8::try_from(n).ok()).filter(|n| *n != 0);
    match model.scopes.iter().find(|s| known.is_some() && s.number == known).and_then(|s| s.ast.head.as_ref()) {
        Some(head) => format!("section {} (`{}`) is not a stream section", number.magnitude, head.name.text),
        None => format!("there is no section {}{}", if number.negative { "-" } else { "" }, number.magnitude),
    }
}

/// Reports a number that is not the number of a stream section.
fn no_stream(model: &Model, code: Code, number: Int, site: Site, report: &mut Reporter) {
    if report.is_full() {
        return report.add_again();
    }
    let message = not_stream(model, number);
    let draft = |message: &str| Draft::new(code, number.span, message);
    // The arguments may be in the wrong order.
    if let [ast::Argument::Number(first), ast::Argument::Number(second)] = site.interpretation.arguments.as_slice()
        && let (Some(stride), Some(section), Some(_)) =
            (first.natural(), second.natural(), stream_section(model, *second))
        && let Some(line) = site.line(&[section, stride])
    {
        let message = format!("the first argument of `sectionStride` is the section, and {message}");
        return report.add(draft(&message).help(format!("write `{line}`")));
    }
    let known = number.natural().filter(|n| *n != 0);
    let scope = model.scopes.iter().find(|s| known.is_some() && s.number.map(u64::from) == known);
    let records = || scope.into_iter().flat_map(|s| &s.records).filter_map(|r| model.records.get(*r));
    let mut roots = records().filter(|record| !record.nested);
    let holds = |extent: Span| extent.start() <= number.span.start() && number.span.end() <= extent.end();
    let is_own = scope.and_then(|scope| scope.ast.extent).is_some_and(holds);
    match (roots.next(), roots.next(), roots.next()) {
        (Some(only), None, None) if only.tagged && !is_own => {
            if report.has_message(code, &message) {
                return report.add_again();
            }
            let tag = only.ast.block.iter().find(|setting| setting.is("tag", Property::Value));
            let place = tag.map_or(only.ast.name.span, Setting::target);
            let line = lines::definition(report.source, only.ast).filter(|_| only.ast.block.len() == 1);
            let line = line.map(|line| line.replacen("(tag, ", "(", 1));
            let draft = draft(&message).also(place, format!("because `{}` has a tag", only.name()));
            report.add(draft.help(match line {
                Some(line) => format!("write `{line};` without `tag.value`"),
                None => format!("remove `tag.value` from the block of `{}`", only.name()),
            }));
        }
        (Some(first), Some(second), None) if !first.tagged && !second.tagged => {
            if report.has_message(code, &message) {
                return report.add_again();
            }
            let draft = draft(&message).also(second.ast.name.span, "because it has a second record");
            let name = second.name();
            let free = (1..=u8::MAX).find(|free| model.scopes.iter().all(|s| s.number != Some(*free)));
            let of_second = named(model)
                .filter(|(n, _)| Some(*n) == known)
                .skip(1)
                .map(|(_, site)| site)
                .max_by_key(|site| name.starts_with(site.field()).then_some(site.field().len()));
            let section = match &of_second {
                Some(site) if name.starts_with(site.field()) => format!("{}s", site.field()),
                _ => format!("{name}s"),
            };
            let line = lines::definition(report.source, second.ast).filter(|_| second.ast.block.is_empty());
            let draft = draft.help(match (line, free) {
                (Some(line), Some(free)) => {
                    let reference = of_second.and_then(|site| site.with_section(free));
                    let reference = reference.map_or_else(String::new, |line| format!(", and write `{line}`"));
                    format!("move `{name}` into its own section: `section {section} {free} {{ {line}; }}`{reference}")
                }
                _ => format!("move `{name}` into its own section: a stream section has one record"),
            });
            report.add(draft);
        }
        _ => {
            let first = model.scopes.iter().filter(|s| s.stream.is_some()).find_map(|scope| scope.number).unwrap_or(2);
            let draft = draft(&message).help(stream_help(model, number, code, site, is_own));
            report.add(draft.line(number.span, first.to_string()));
        }
    }
}

/// Returns the help for a number that is not the number of a stream section. `is_own` is set for the number of the field's
/// own section, which the author cannot mean.
fn stream_help(model: &Model, number: Int, code: Code, site: Site, is_own: bool) -> String {
    let streams = model.scopes.iter().filter(|s| s.stream.is_some());
    let named: Vec<String> = streams
        .clone()
        .filter_map(|s| Some(format!("{} (`{}`)", s.number?, s.ast.head.as_ref()?.name.text)))
        .take(10)
        .collect();
    let only = streams.clone().find_map(|scope| scope.number).filter(|_| named.len() == 1);
    let is_free = |number: u8| model.scopes.iter().all(|scope| scope.number != Some(number));
    let wanted = number.natural().and_then(|n| u8::try_from(n).ok()).filter(|n| *n != 0 && is_free(*n));
    if let (Some(only), [name]) = (only, named.as_slice()) {
        return match site.with_section(only) {
            Some(line) => match wanted {
                Some(number) => format!("define section {number}, or write `{line}` for section {name}"),
                None if is_own || scope_count(model, number) == 0 => {
                    format!("write `{line}`: the only stream section is {name}")
                }
                None => format!("the only stream section is {name}: write `{line}`"),
            },
            None => format!("write `{LINE}`: the only stream section is {name}"),
        };
    }
    if !named.is_empty() {
        let first = streams.clone().find_map(|scope| scope.number);
        return match first.and_then(|first| site.with_section(first)) {
            Some(line) => format!("write `{line}` with the number of a stream section: {}", named.join(", ")),
            None => format!("write `{LINE}` with the number of a stream section: {}", named.join(", ")),
        };
    }
    let free = wanted.or_else(|| (1..=u8::MAX).find(|number| is_free(*number))).unwrap_or(2);
    let section = match code {
        Code::NoNumberStream => format!("section numbers {free} {{ element: (number: u32); }}"),
        _ => format!("section names {free} {{ name: vfield; }}"),
    };
    let reference = site.with_section(free).filter(|_| wanted.is_none());
    let reference = reference.map_or_else(String::new, |line| format!(", and write `{line}`"));
    format!("define a section whose only record is untagged, such as `{section}`{reference}")
}

/// Checks that a section is a stream section with one numeric leaf (spec 3.5). [`element_sizes`] ensures that the leaf
/// is not repeated and stores bytes.
fn number_stream(model: &Model, resolved: &[Resolved], number: Int, site: Site, report: &mut Reporter) {
    let word = site.interpretation.word.name();
    let Some(scope) = stream_section(model, number) else {
        if is_ambiguous(model, number) {
            return;
        }
        no_stream(model, Code::NoNumberStream, number, site, report);
        return;
    };
    let element = model.scopes.get(scope).and_then(|s| s.stream);
    let Some(target) = resolved.iter().find(|r| Some(r.layout.record) == element) else { return };
    let one_number = match target.leaves.as_slice() {
        [only] => only.broken || only.leaf.is_numeric(),
        _ => false,
    };
    if !one_number {
        let name = model.records.get(target.layout.record).map(|r| r.ast.name.span);
        let field = site.field();
        let numbers = resolved.iter().filter(|r| matches!(r.leaves.as_slice(), [only] if only.leaf.is_numeric()));
        let sections = numbers.filter_map(|r| model.scopes.iter().find(|s| s.stream == Some(r.layout.record)));
        let known = sections.filter_map(|s| Some((s.number?, s.ast.head.as_ref()?.name.text)));
        let known = known.min_by_key(|(_, name)| !name.starts_with(field));
        let free = (1..=u8::MAX).find(|free| model.scopes.iter().all(|s| s.number != Some(*free))).unwrap_or(2);
        let section = known.map_or(free, |(number, _)| number);
        let line = site.with_section(section);
        let line = line.as_deref().unwrap_or(LINE);
        let help = match known {
            Some((_, name)) => {
                format!("write `{line}` for section `{name}`: `{word}` requires a stream section of single numbers")
            }
            None => {
                let is_new = |name: &String| {
                    model.scopes.iter().all(|s| s.ast.head.as_ref().is_none_or(|h| h.name.text != name))
                };
                let names = ["s", "_numbers", "_misses"].map(|end| format!("{field}{end}"));
                let name = names.into_iter().find(is_new).unwrap_or_else(|| format!("{field}_section"));
                format!(
                    "`{word}` requires a stream section of single numbers: write `section {name} {free} {{ {field}_value: \
                     ({field}: u32); }}`, and write `{line}`"
                )
            }
        };
        let message = format!("an element of section {} is not a single number", number.magnitude);
        let draft =
            Draft::new(Code::NoNumberStream, number.span, message).help(help).line(number.span, section.to_string());
        report.add(match name {
            Some(span) => draft.also(span, "the element"),
            None => draft,
        });
    }
}

fn stride_range(setting: &Setting, stride: Int, report: &mut Reporter) {
    if stride.natural().is_none_or(|s| s == 0) {
        report.add(
            Draft::new(Code::StrideRange, stride.span, "the stride of a `sectionStride` must be at least 1")
                .also(setting.target(), "set here")
                .help(format!("write `{LINE}` to read every element in turn"))
                .line(stride.span, "1"),
        );
    }
}

/// Checks that an element (spec 3.4) always stores at least one byte outside of repetitions and variable arrays.
pub(super) fn element_sizes(model: &Model, resolved: &[Resolved], report: &mut Reporter) {
    let elements = resolved.iter().filter(|r| model.records.get(r.layout.record).is_some_and(|m| !m.tagged));
    elements.for_each(|element| element_size(model, element, report));
}

fn element_size(model: &Model, resolved: &Resolved, report: &mut Reporter) {
    let Layout { record, items, .. } = &resolved.layout;
    if resolved.leaves.iter().any(|l| l.broken) || stores_a_byte(items, resolved) {
        return;
    }
    let Some(record) = model.records.get(*record) else { return };
    report.add(
        Draft::new(
            Code::EmptyElement,
            record.ast.name.span,
            format!("an element `{}` may contain no bytes", record.name()),
        )
        .help({
            let line = lines::definition(report.source, record.ast).filter(|line| line.contains(": ("));
            let line = line.map(|line| line.replacen(": (", ": (size: u8, ", 1));
            let line = line.unwrap_or_else(|| format!("{}: (size: u8, ...)", record.name()));
            format!("add a field that always stores bytes, as in `{line}`")
        }),
    );
}

fn stores_a_byte(items: &[Item], resolved: &Resolved) -> bool {
    items.iter().any(|item| match item {
        Item::Nested { items, .. } => stores_a_byte(items, resolved),
        Item::Repeat { .. } => false,
        Item::Leaf(id) => resolved.leaves.get(usize::from(id.0)).is_some_and(|l| match l.leaf.width {
            Width::Number(width) => width > 0 && l.leaf.interpretation.stores(),
            Width::Array(_) | Width::Until(_) => true,
            Width::Unset | Width::Variable(_) | Width::Rest => false,
        }),
    })
}
