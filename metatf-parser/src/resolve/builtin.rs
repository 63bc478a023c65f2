//! The predefined types (spec 3.6).

use crate::ast::{self, Expression, Int, Interpretation, Name, Setting, Step, Value};
use crate::schema::InterpretationWord;
use crate::span::Span;
use crate::vocabulary::{Property, TYPES};

/// The properties of a predefined type with or without a length.
pub(super) struct Predefined {
    word: &'static str,
    has_length: bool,
    pub(super) settings: Vec<Setting<'static>>,
}

/// The predefined types.
pub(super) struct Types(Vec<Predefined>);

impl Types {
    /// Returns the predefined types (spec 3.6).
    pub(super) fn new() -> Types {
        let none = || interpretation(InterpretationWord::None, Vec::new());
        let mut all = Vec::new();
        let mut add = |word, has_length, settings| all.push(Predefined { word, has_length, settings });
        for (word, bytes) in (1..=8).flat_map(|bytes| [(unsigned(bytes), bytes), (signed(bytes), bytes)]) {
            let signed = word.starts_with('i');
            let base = || interpretation(InterpretationWord::BaseOffset, vec![ast::Argument::Number(int(0))]);
            let mut settings = vec![width(number(bytes)), if signed { base() } else { none() }];
            settings.extend(signed.then(|| format("signed")));
            add(word, false, settings);
        }
        add("f32", false, vec![width(number(4)), none(), format("f32")]);
        add("f64", false, vec![width(number(8)), none(), format("f64")]);
        add("bytes", true, vec![none()]);
        add("cstring", false, vec![width(Value::Until(int(0))), none(), format("utf8")]);
        add("cstring", true, vec![none(), format("cstring")]);
        add("text", false, vec![format("utf8")]);
        add("text", true, vec![none(), format("utf8")]);
        Types(all)
    }

    /// Returns a type by its word, and by whether a length follows.
    pub(super) fn find(&self, word: &str, has_length: bool) -> Option<&Predefined> {
        self.0.iter().find(|known| known.word == word && known.has_length == has_length)
    }
}

fn unsigned(bytes: u64) -> &'static str {
    usize::try_from(bytes).ok().and_then(|n| TYPES.get(n.wrapping_sub(1))).copied().unwrap_or_default()
}

fn signed(bytes: u64) -> &'static str {
    usize::try_from(bytes).ok().and_then(|n| TYPES.get(n + 7)).copied().unwrap_or_default()
}

fn int(magnitude: u64) -> Int {
    Int { negative: false, magnitude, span: Span::PREDEFINED }
}

fn number(value: u64) -> Value<'static> {
    Value::Expression(Expression { steps: vec![Step::Int(int(value))] })
}

fn width(value: Value<'static>) -> Setting<'static> {
    setting(Property::Width, value)
}

fn format(name: &str) -> Setting<'static> {
    setting(Property::Format, Value::Text(name.to_owned()))
}

fn interpretation(word: InterpretationWord, arguments: Vec<ast::Argument<'static>>) -> Setting<'static> {
    setting(Property::Interpretation, Value::Interpretation(Interpretation { word, arguments }))
}

fn setting(property: Property, value: Value<'static>) -> Setting<'static> {
    Setting {
        quoted: false,
        path: Vec::new(),
        name: Name { text: property.name(), span: Span::PREDEFINED },
        property: Some(property),
        value,
        value_span: Span::PREDEFINED,
        annotation: None,
        doc: None,
    }
}
