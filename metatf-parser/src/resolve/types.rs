//! Resolves the types of fields (spec 3.1): the predefined types, the types that the DTD defines, and nested records. A
//! type is a scope of properties, directly after the block of the record that lists the field.

use super::builtin::Types;
use super::lines;
use super::model::{Meaning, Model, RecordIndex, ScopeIndex, ScopeModel, TypeMap, VFIELD, Visible};
use super::slots::Slot;
#[cfg(feature = "index")]
use crate::ast::{self, Interpretation};
use crate::ast::{Argument, Name, Setting, Typed, Value};
use crate::codes::Code;
use crate::diagnostic::{Draft, LINE, Reporter};
use crate::foreign;
use crate::nearest::nearest;
use crate::schema::InterpretationWord;
use crate::span::{Source, Span};
use crate::vocabulary::{Property, REST, TYPES};

/// Maximum number of types that a type is defined with, one by the next.
const MOST_TYPES: usize = 32;

/// Maximum number of sections in which an unknown type is searched, which is the number of sections with valid numbers.
const MOST_SECTIONS: usize = 255;

/// Resolves the types of all scopes and records, and reports unknown types.
pub(super) fn resolve<'a>(model: &mut Model<'a>, types: &'a Types, report: &mut Reporter) {
    let mut scopes: Vec<TypeMap> = Vec::new();
    for (index, scope) in model.scopes.iter().enumerate() {
        let mut map = TypeMap::new();
        for typed in &scope.ast.types {
            defined(typed, report);
            twice(&mut map, typed, "type", report);
            // Meanings follow when the names of all types are known.
            map.entry(typed.name.text).or_insert((typed, Meaning::Nothing));
        }
        debug_assert_eq!(index, scopes.len());
        scopes.push(map);
    }
    for (scope, map) in model.scopes.iter_mut().zip(scopes) {
        scope.types = map;
    }
    for index in 0..model.scopes.len() {
        let found: Vec<(&str, Meaning)> = model
            .scopes
            .get(index)
            .into_iter()
            .flat_map(|scope| &scope.types)
            .map(|(name, (typed, _))| (*name, meaning(model, types, index, typed, true, report)))
            .collect();
        for (name, meaning) in found {
            if let Some((_, slot)) = model.scopes.get_mut(index).and_then(|scope| scope.types.get_mut(name)) {
                *slot = meaning;
            }
        }
    }
    endless(model, report);
    for index in 0..model.records.len() {
        let Some(record) = model.records.get(index) else { continue };
        let (ast, scope) = (record.ast, record.scope);
        let mut map = TypeMap::new();
        for typed in &ast.types {
            if typed.name.text == "tag" {
                let draft = Draft::new(Code::TagProperty, typed.span(), "`tag` cannot have a type");
                let bytes = typed.word.and_then(|word| word.text.strip_prefix(['u', 'i'])?.parse::<u32>().ok());
                report.add(draft.help(format!(
                    "list `tag` without a type, or not at all, and write `tag.width = {};` at the top level",
                    bytes.map_or(1, |bits| bits / 8)
                )));
                continue;
            }
            twice(&mut map, typed, "field", report);
            let meaning = meaning(model, types, scope, typed, false, report);
            map.entry(typed.name.text).or_insert((typed, meaning));
        }
        if let Some(record) = model.records.get_mut(index) {
            record.types = map;
        }
    }
}

/// Reports the definition of a type with the name of a predefined type, or of `tag`.
fn defined(typed: &Typed, report: &mut Reporter) {
    let name = typed.name.text;
    if TYPES.contains(&name) || name == "tag" {
        let message = format!("`{name}` cannot be defined as a type");
        let help = format!("choose a different name, as in `{LINE}`");
        report.add(
            Draft::new(Code::UnknownType, typed.name.span, message)
                .help(help)
                .line(typed.name.span, format!("my_{name}")),
        );
    }
}

fn twice(map: &mut TypeMap, typed: &Typed, what: &str, report: &mut Reporter) {
    let Some((first, _)) = map.get(typed.name.text) else { return };
    let verb = if what == "type" { "is defined twice" } else { "has two types" };
    report.add(
        Draft::new(Code::PropertyTwice, typed.span(), format!("{what} `{}` {verb}", typed.name.text))
            .also(first.span(), "first set here")
            .help(format!(
                "a type applies to all fields of its name: remove one of the two, or rename it, as in `{LINE}`"
            ))
            .line(typed.name.span, format!("{}_2", typed.name.text)),
    );
}

/// Resolves a type. If it contains a mistake, reports the mistake.
fn meaning<'a>(
    model: &Model<'a>,
    types: &'a Types,
    scope: ScopeIndex,
    typed: &'a Typed<'a>,
    defines: bool,
    report: &mut Reporter,
) -> Meaning<'a> {
    let Some(word) = typed.word else { return Meaning::Nothing };
    let is_array = matches!(word.text, "bytes" | "cstring" | "text");
    let has_interpretation = typed.settings.iter().any(|s| s.property == Some(Property::Interpretation));
    let wrong = |message: String, help: String| Draft::new(Code::UnknownType, word.span, message).help(help);
    let draft = if TYPES.contains(&word.text) {
        match types.find(word.text, typed.has_length) {
            Some(_) if is_array && has_interpretation => {
                wrong(format!("`{}` is a byte array and has no interpretation", word.text), format!("write `{LINE}`"))
                    .line(typed.span(), number_or_bare(typed, &word))
            }
            Some(_) if defines && word.text == "text" && !typed.has_length => wrong(
                "`text` without a length is a nested record, so only a field can have this type".into(),
                format!(
                    "write `{LINE}` for a fixed length, or use `text` in the field list, as in `{}: text`",
                    typed.name.text
                ),
            )
            .line(word.span, "text 32"),
            Some(found) if word.text == "text" && !typed.has_length => return Meaning::Text(&found.settings),
            Some(found) => return Meaning::Predefined(&found.settings),
            None if typed.has_length => {
                wrong(format!("`{}` has no length", word.text), no_length(typed, &word, report.source))
            }
            None => wrong(
                "`bytes` needs a length".into(),
                format!("write `{0}: bytes 16`, or `{0}: bytes n.value` with an earlier field `n`", typed.name.text),
            ),
        }
    } else if typed.has_length {
        match foreign::type_name(word.text) {
            // The length of such a text is the most that it may have.
            Some("text") if word.text.to_ascii_lowercase().contains("varchar") => {
                let name = typed.name.text;
                let (short, exact) = match length(typed) {
                    Some(number @ ..=255) => (String::new(), number),
                    number => (format!("; in the block, write `{name}.length.width = 2;`"), number.unwrap_or(256)),
                };
                let help = format!("write `{name}: text`{short}, or `{name}: text {exact}` for exactly {exact} bytes");
                wrong(format!("there is no type `{}`", word.text), help)
            }
            Some(same @ ("text" | "bytes" | "cstring")) => wrong(
                format!("there is no type `{}`", word.text),
                match length(typed) {
                    Some(number) => format!("write `{}: {same} {number}`", typed.name.text),
                    None => format!("write `{same}` instead of `{}`", word.text),
                },
            )
            .replace(word.span, same),
            _ if matches!(word.text, "until" | REST) => unknown(model, scope, typed, &word, defines, report.source),
            _ => wrong(format!("`{}` has no length", word.text), no_length(typed, &word, report.source)),
        }
    } else if let Some(found) =
        [scope, 0].into_iter().find(|s| model.scopes.get(*s).is_some_and(|s| s.types.contains_key(word.text)))
    {
        return Meaning::Defined(found, word.text);
    } else {
        match model.visible(scope, word.text) {
            Visible::Record(record)
                if model
                    .records
                    .get(record)
                    .is_some_and(|r| !r.ast.block.iter().any(|s| s.is("tag", Property::Value))) =>
            {
                if defines {
                    wrong(
                        format!("`{}` is a record, so only a field can have this type", word.text),
                        format!("use the record's name in the field list, as in `{}: {}`", typed.name.text, word.text),
                    )
                } else if has_interpretation {
                    wrong(format!("`{}` is a record and has no interpretation", word.text), format!("write `{LINE}`"))
                        .line(typed.span(), number_or_bare(typed, &word))
                } else {
                    return Meaning::Record(record);
                }
            }
            Visible::Record(record) => {
                let record = model.records.get(record).map(|record| record.ast);
                let line =
                    record.filter(|record| record.block.len() == 1).and_then(|r| lines::definition(report.source, r));
                let help = match line {
                    Some(line) => format!("write `{line};` without `tag.value`: only untagged records can be nested"),
                    None => {
                        format!(
                            "only untagged records can be nested: remove `tag.value` from the block of `{0}`, or write \
                             `{1}: u32` for the number of a `{0}`",
                            word.text, typed.name.text
                        )
                    }
                };
                let draft = wrong(format!("the tagged record `{}` is not a type", word.text), help);
                draft.also(record.map_or(Span::PREDEFINED, |record| record.name.span), "defined here, with a tag")
            }
            Visible::PredefinedTagged => wrong(
                format!("the tagged record `{}` is not a type", word.text),
                format!("only untagged records can be nested: write `{}: u32` for a number", typed.name.text),
            ),
            Visible::Nothing if model.unparsed.contains(word.text) => return Meaning::Wrong,
            Visible::Nothing => unknown(model, scope, typed, &word, defines, report.source),
        }
    };
    // A type of another section is reported only once.
    let once = [" applies only there", "the tagged record "].iter().any(|part| draft.message().contains(part));
    match once && report.has_message(Code::UnknownType, draft.message()) {
        true => report.add_again(),
        false => report.add(draft),
    }
    Meaning::Wrong
}

/// Returns a field without its interpretation, which is not for a byte array or a record, or with a number that refers to
/// an element.
fn number_or_bare(typed: &Typed, word: &Name) -> String {
    let name = typed.name.text;
    let reference = typed.settings.iter().find_map(|setting| match &setting.value {
        Value::Interpretation(found) if found.word == InterpretationWord::SectionOffset => {
            match found.arguments.as_slice() {
                [Argument::Number(section)] => Some(section.magnitude),
                _ => None,
            }
        }
        _ => None,
    });
    match (reference, length(typed)) {
        (Some(section), _) => format!("{name}: u16 sectionOffset {section}"),
        (None, Some(bytes)) => format!("{name}: {} {bytes}", word.text),
        (None, None) => format!("{name}: {}", word.text),
    }
}

/// Returns the length in a type, if it is a number.
fn length(typed: &Typed) -> Option<u64> {
    typed.settings.iter().find_map(|setting| match &setting.value {
        Value::Bytes(int) => int.natural(),
        _ => None,
    })
}

/// Returns the help for a length after a type that has none, which may be meant as a value.
fn no_length(typed: &Typed, word: &Name, source: &Source) -> String {
    let name = typed.name.text;
    let condition = typed.settings.iter().find_map(|setting| source.text(setting.value_span));
    let is_condition = |text: &&str| [".bit ", "==", "!=", "<", ">"].iter().any(|mark| text.contains(mark));
    if let Some(text) = condition.filter(is_condition) {
        let text = text.trim_start_matches('(').trim_end_matches(')');
        return format!("write `({text})*{name}: {}` for an optional field", word.text);
    }
    let native = foreign::type_name(word.text).unwrap_or(word.text);
    match length(typed) {
        Some(number) => {
            let constant = if number < 256 { number.to_string() } else { format!("{number:#x}") };
            let constant =
                format!("for a constant, write `{name}: {native}`, and `{name}.value = {constant};` in the block");
            match native {
                "u8" | "i8" => format!("for an array, write `{name}: bytes {number}`; {constant}"),
                _ => constant,
            }
        }
        None => format!(
            "only `bytes`, `text` and `cstring` have a length, as in `{name}: bytes n.value`; for a number, write \
             `{name}: {native}`"
        ),
    }
}

/// Reports a name that only another section defines, as a type or an untagged record.
pub(super) fn elsewhere(
    model: &Model,
    scope: ScopeIndex,
    code: Code,
    name: &str,
    place: Span,
    source: &Source,
) -> Option<Draft> {
    let others = || {
        model
            .scopes
            .iter()
            .enumerate()
            .skip(1)
            .take(MOST_SECTIONS)
            .filter(|(index, _)| *index != scope)
            .map(|(_, other)| other)
    };
    let record = |section: &ScopeModel| {
        let record = model.records.get(*section.names.get(name)?).filter(|record| !record.tagged)?;
        let block = if record.ast.brace.is_some() { " { ... }" } else { ";" };
        let text = lines::definition(source, record.ast).map(|line| format!("{line}{block}"));
        Some(("record", record.ast.name.span, text.unwrap_or_else(|| format!("{name}: (...)"))))
    };
    let (section, (what, definition, text)) = others().find_map(|section| {
        let typed = section.types.get(name).map(|(typed, _)| {
            let text = definition_text(source, typed).unwrap_or_else(|| format!("type {name}: ..."));
            ("type", typed.name.span, text)
        });
        Some((section, typed.or_else(|| record(section))?))
    })?;
    let head = section.ast.head.as_ref()?;
    let (number, section) = (section.number.unwrap_or_default(), head.name.text);
    let message = format!("{what} `{name}` is defined in section {number} (`{section}`) and applies only there");
    let draft = Draft::new(code, place, message).also(definition, "defined here");
    Some(draft.help(format!("move `{text}` out of the section, to the top level")))
}

/// Returns the definition of a type with its block.
fn definition_text(source: &Source, typed: &Typed) -> Option<String> {
    let start = typed.name.span.start();
    let text = source.following(start, 200);
    let open = text.find(['{', ';'])?;
    let end = if text.get(open..)?.starts_with('{') { text.find('}')? } else { open };
    Some(format!("type {}", lines::flat(source, Span::new(start, start + end + 1))?))
}

/// Returns the help for a field of bits, such as `b4`: a byte with names for its bits. The fields of bits next to it must
/// fill the byte; the first contains the most significant bits.
fn bit_fields(types: &[Typed], typed: &Typed, source: &Source) -> Option<String> {
    let bits = |typed: &Typed| -> Option<u64> {
        let digits = typed.word?.text.strip_prefix('b')?;
        digits.parse().ok().filter(|bits| (1..8).contains(bits) && !typed.has_length)
    };
    let (mut group, mut total, mut end): (Vec<&Typed>, u64, usize) = (Vec::new(), 0, 0);
    for other in types {
        let follows = source.text(Span::new(end.min(other.name.span.start()), other.name.span.start()));
        if total >= 8 || bits(other).is_none() || follows.is_none_or(|between| between.trim() != ",") {
            if group.iter().any(|field| field.name.span == typed.name.span) {
                break;
            }
            (group, total) = (Vec::new(), 0);
        }
        let Some(bits) = bits(other) else { continue };
        total += bits;
        group.push(other);
        end = other.word.map_or(end, |word| word.span.end());
    }
    if total != 8 || !group.iter().any(|field| field.name.span == typed.name.span) {
        return None;
    }
    let name = group.iter().map(|field| field.name.text).collect::<Vec<_>>().join("_");
    let mut names: Vec<String> = Vec::new();
    for field in &group {
        let bits = bits(field)?;
        total -= bits;
        let range = if bits == 1 { total.to_string() } else { format!("{total}-{}", total + bits - 1) };
        names.insert(0, format!("{range} {}", field.name.text));
    }
    Some(format!(
        "write `{name}: u8` for these {} fields; in the block, write `{name}.flags = \"{}\";`",
        group.len(),
        names.join(", ")
    ))
}

fn unknown(model: &Model, scope: ScopeIndex, typed: &Typed, word: &Name, defines: bool, source: &Source) -> Draft {
    let own = [scope, 0].into_iter().filter_map(|s| model.scopes.get(s)).flat_map(|s| s.types.keys().copied());
    let records = [scope, 0].into_iter().filter_map(|s| model.scopes.get(s)).flat_map(|s| s.names.keys().copied());
    let untagged = |name: &&str| match model.visible(scope, name) {
        Visible::Record(record) => model.records.get(record).is_some_and(|r| !r.tagged),
        _ => false,
    };
    let known: Vec<&str> = TYPES.into_iter().chain(own).chain(records.filter(untagged)).collect();
    let draft = Draft::new(Code::UnknownType, word.span, format!("there is no type `{}`", word.text));
    if let Some(draft) = elsewhere(model, scope, Code::UnknownType, word.text, word.span, source) {
        return draft;
    }
    let (prefix, name) = (if defines { "type " } else { "" }, typed.name.text);
    if TYPES.contains(&name) && !defines {
        let swapped = format!("{}: {name}", word.text);
        let draft = draft.help(format!("write `{swapped}`: the name of a field precedes its type"));
        return draft.propose(typed.name.span.to(word.span), swapped);
    }
    let condition = typed.settings.iter().find_map(|setting| source.text(setting.value_span));
    if let ("until", None, Some(text)) = (word.text, length(typed), condition) {
        let item = text.split(['.', ' ']).next().unwrap_or_default();
        return draft.help(format!("write `{name}: (until {text})*{item}`"));
    }
    if matches!(word.text, REST | "until") {
        let width = if word.text == REST { "rest".to_owned() } else { format!("until {}", length(typed).unwrap_or(0)) };
        return draft.help(format!(
            "list `{name}` without a type, and write `{name}.width = {width}; {name}.interpretation = none;` in the block"
        ));
    }
    let digits = word.text.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    if let Some("bytes" | "byte" | "char" | "text" | "string" | "str") = word.text.strip_suffix(digits)
        && digits.parse::<u32>().is_ok()
    {
        let array = if word.text.starts_with(['b', 'c']) { "bytes" } else { "text" };
        let text = format!("{array} {digits}");
        return draft.help(format!("write `{prefix}{name}: {text}`")).replace(word.span, text);
    }
    let record = model.records.iter().find(|r| r.ast.types.iter().any(|other| other.name.span == typed.name.span));
    if let Some(line) = record.and_then(|record| bit_fields(&record.ast.types, typed, source)) {
        return draft.help(line);
    }
    if let Some(same) = foreign::type_name(word.text) {
        let format = foreign::type_format(word.text).map_or_else(String::new, |format| match defines {
            true => format!("; in its block, write `format = \"{format}\";`"),
            false => format!("; in the block, write `{name}.format = \"{format}\";`"),
        });
        let draft = draft.help(format!("write `{prefix}{name}: {same}`{format}"));
        return if format.is_empty() { draft.replace(word.span, same) } else { draft.propose(word.span, same) };
    }
    match nearest(word.text, known.iter().copied()) {
        // Not an edit that `--fix` makes: a similar type may have another size or sign.
        Some(near) => draft.help(format!("did you mean `{prefix}{name}: {near}`?")),
        None if foreign::guess(word.text).is_some() => {
            let (guess, format) = foreign::guess(word.text).unwrap_or_default();
            let statement =
                if format.is_empty() { String::new() } else { format!(", and `{name}.format = \"{format}\";`") };
            draft.help(format!("for example, write `{prefix}{name}: {guess}`{statement}"))
        }
        None => {
            let example = if word.text == name { "my_type" } else { word.text };
            // Names of values are probably those of a small number.
            let block = record.map_or(&[][..], |record| &record.ast.block);
            if block.iter().any(|s| s.is(name, Property::Values) || s.is(name, Property::Flags)) {
                return draft
                    .help(format!("write `{name}: u8`, or `{name}: u16` for a larger number with names of values"));
            }
            draft.help(format!(
                "write `{prefix}{name}: u32` with the size of the number, or define the type, as in `type {example}: u32;`; \
                 the types are `u8` to `u64`, `i8` to `i64`, `f32`, `f64`, `bytes N`, `text`, `cstring` and untagged records"
            ))
        }
    }
}

/// Reports types that are defined by themselves, or by too many others.
fn endless(model: &mut Model, report: &mut Reporter) {
    let mut wrong = Vec::new();
    for (index, scope) in model.scopes.iter().enumerate() {
        for (name, (typed, _)) in &scope.types {
            if chain(model, index, name).nth(MOST_TYPES).is_some() {
                let message = format!("type `{name}` is defined by itself, or by more than {MOST_TYPES} other types");
                report.add(
                    Draft::new(Code::UnknownType, typed.span(), message)
                        .help(format!("define the type by a predefined type, as in `{LINE}`"))
                        .line(typed.span(), format!("{name}: u32")),
                );
                wrong.push((index, *name));
            }
        }
    }
    for (index, name) in wrong {
        if let Some((_, meaning)) = model.scopes.get_mut(index).and_then(|scope| scope.types.get_mut(name)) {
            *meaning = Meaning::Wrong;
        }
    }
}

/// Returns a type and the types by which it is defined.
fn chain<'a>(
    model: &Model<'a>,
    scope: ScopeIndex,
    name: &str,
) -> impl Iterator<Item = (ScopeIndex, &'a Typed<'a>, Meaning<'a>)> {
    let find = |scope: ScopeIndex, name: &str| {
        model.scopes.get(scope)?.types.get(name).map(|(typed, meaning)| (scope, *typed, *meaning))
    };
    std::iter::successors(find(scope, name), move |(_, _, meaning)| match meaning {
        Meaning::Defined(scope, name) => find(*scope, name),
        _ => None,
    })
}

/// The properties and the doc of one type.
pub(super) struct Link<'m, 'a> {
    pub(super) slot: Slot<'m, 'a>,
    pub(super) doc: Option<&'a str>,
}

/// Checks whether a mistake in a type has been reported.
pub(super) fn is_wrong(model: &Model, meaning: Meaning) -> bool {
    match meaning {
        Meaning::Wrong => true,
        Meaning::Defined(scope, name) => {
            chain(model, scope, name).take(MOST_TYPES).any(|(_, _, meaning)| matches!(meaning, Meaning::Wrong))
        }
        _ => false,
    }
}

/// Returns the properties that a type contains, nearest first (spec 3.1).
pub(super) fn links<'m, 'a>(model: &'m Model<'a>, typed: &'a Typed<'a>, meaning: Meaning<'a>) -> Vec<Link<'m, 'a>> {
    let mut out = vec![Link { slot: Slot::of(&typed.settings), doc: typed.doc.as_deref() }];
    match meaning {
        Meaning::Predefined(settings) => out.push(Link { slot: Slot::of(settings), doc: None }),
        Meaning::Defined(scope, name) => {
            for (scope, typed, meaning) in chain(model, scope, name).take(MOST_TYPES) {
                let statements = model.scopes.get(scope).and_then(|s| s.slots.get(&[typed.name.text]));
                out.extend(statements.map(|slot| Link { slot, doc: None }));
                out.push(Link { slot: Slot::of(&typed.settings), doc: typed.doc.as_deref() });
                if let Meaning::Predefined(settings) = meaning {
                    out.push(Link { slot: Slot::of(settings), doc: None });
                }
            }
        }
        Meaning::Nothing | Meaning::Wrong | Meaning::Text(_) | Meaning::Record(_) => {}
    }
    out
}

/// Reports properties that a block sets although the type in the field list does (spec 3.5).
pub(super) fn conflicts(model: &Model, report: &mut Reporter) {
    let records = model.records.iter().map(|record| (&record.types, &record.slots));
    let scopes = model.scopes.iter().map(|scope| (&scope.types, &scope.slots));
    for (types, slots) in records.chain(scopes) {
        for (name, (typed, meaning)) in types {
            let path: &[&str] = if matches!(meaning, Meaning::Text(_)) { &[name, "data"] } else { &[name] };
            let Some(slot) = slots.get(path) else { continue };
            let predefined = match meaning {
                Meaning::Predefined(settings) | Meaning::Text(settings) => *settings,
                _ => &[],
            };
            // An interpretation in the type replaces that of the predefined type, so it is reported only once.
            let mut set: Vec<Property> = typed.settings.iter().chain(predefined).filter_map(|s| s.property).collect();
            set.dedup();
            for second in set.into_iter().filter_map(|property| slot.get(property)) {
                let message = format!("`{}.{}` is set twice", second.path_text(), second.name.text);
                let value = report.source.text(second.value_span).unwrap_or_default();
                let value =
                    if matches!(second.value, Value::Interpretation(_)) && value != "none" { value } else { "" };
                report.add(
                    Draft::new(Code::PropertyTwice, second.target(), message)
                        .also(typed.span(), "the type sets it")
                        .help(instead(typed, second, value))
                        .quote(second.target()),
                );
            }
        }
    }
}

/// Returns the help for a property that a type sets, too.
fn instead(typed: &Typed, second: &Setting, value: &str) -> String {
    let name = typed.name.text;
    let word = typed.word.map_or("", |word| word.text);
    let width = match &second.value {
        Value::Expression(expression) => expression.as_int().and_then(|int| int.natural()),
        Value::Bytes(int) => int.natural(),
        _ => None,
    };
    match (second.property, width, word.as_bytes().first()) {
        (Some(Property::Width), Some(bytes @ 1..=8), _) if word == "bytes" => {
            format!("write `{name}: u{}` for a number, or remove the property", bytes * 8)
        }
        (Some(Property::Width), Some(bytes @ 1..=8), Some(sign @ (b'u' | b'i'))) => {
            format!("write `{name}: {}{}`, and remove the property", char::from(*sign), bytes * 8)
        }
        (Some(Property::Width), Some(bytes @ (4 | 8)), Some(b'f')) => {
            format!("write `{name}: f{}`, and remove the property", bytes * 8)
        }
        (Some(Property::Width), Some(bytes), _) => {
            let array = if matches!(word, "text" | "cstring") { word } else { "bytes" };
            format!("write `{name}: {array} {bytes}`, and remove the property")
        }
        (Some(Property::Format), ..) if word == "f32" => format!("write `{name}: u32`, or remove the property"),
        (Some(Property::Format), ..) if word == "f64" => format!("write `{name}: u64`, or remove the property"),
        (Some(Property::Format), ..) if word == "text" && !typed.has_length => {
            format!("write `{name}: vfield`, or remove the property")
        }
        (Some(Property::Interpretation), ..) if !typed.has_length && !word.is_empty() && !value.is_empty() => {
            format!("write `{name}: {word} {value}`, and remove `{LINE}`, or remove only the statement")
        }
        (Some(Property::Interpretation), ..) => {
            format!("remove `{LINE}`: the type of `{name}` sets the interpretation")
        }
        _ => format!("remove `{LINE}`, or write `{name}: u32` with another type"),
    }
}

/// Returns the record that a typed field nests.
pub(super) fn nested(meaning: Meaning) -> Option<RecordIndex> {
    match meaning {
        Meaning::Text(_) => Some(VFIELD),
        Meaning::Record(record) => Some(record),
        Meaning::Nothing | Meaning::Wrong | Meaning::Predefined(_) | Meaning::Defined(..) => None,
    }
}

/// Returns the statements for which a type is shorthand, one for each property that it sets.
#[cfg(feature = "index")]
pub(super) fn statements(model: &Model, typed: &Typed, meaning: Meaning, text: &str) -> Vec<String> {
    let name = typed.name.text;
    if let Meaning::Text(settings) = meaning {
        let value = |setting: &Setting| written(&setting.value).unwrap_or_default();
        return settings.iter().map(|s| format!("{name}.data.{} = {};", s.name.text, value(s))).collect();
    }
    let mut seen: Vec<&str> = Vec::new();
    let mut out = Vec::new();
    for setting in links(model, typed, meaning).iter().flat_map(|link| link.slot.settings()) {
        if seen.contains(&setting.name.text) {
            continue;
        }
        seen.push(setting.name.text);
        let source = || text.get(setting.value_span.range()).map(|value| value.split_whitespace().collect::<Vec<_>>());
        let value = match written(&setting.value) {
            Some(value) => value,
            None => source().unwrap_or_default().join(" "),
        };
        let property = if setting.quoted { format!("\"{}\"", setting.name.text) } else { setting.name.text.to_owned() };
        out.push(format!("{name}.{property} = {value};"));
    }
    out
}

/// Returns the text of a value that the DTD does not contain as it would be in a statement.
#[cfg(feature = "index")]
fn written(value: &Value) -> Option<String> {
    match value {
        Value::Bytes(length) => Some(format!("bytes {}", length.magnitude)),
        Value::Until(end) => Some(format!("until {}", end.magnitude)),
        Value::Text(text) if !text.contains(['"', '\\', '\n', '\t', '\r']) => Some(format!("\"{text}\"")),
        Value::Expression(expression) => Some(expression.as_int()?.natural()?.to_string()),
        Value::Interpretation(Interpretation { word, arguments }) => {
            let mut out = word.name().to_owned();
            for argument in arguments {
                let ast::Argument::Number(number) = argument else { return None };
                out += &format!(" {}{}", if number.negative { "-" } else { "" }, number.magnitude);
            }
            Some(out)
        }
        _ => None,
    }
}
