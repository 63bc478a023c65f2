//! Words that are wrong, and what they are nearly.

use crate::codes::Code;
use crate::diagnostic::Draft;
use crate::schema::InterpretationWord;
use crate::span::Span;
use crate::vocabulary::{PREDICTORS, ROLES};

/// Reports a word that is not an interpretation; the syntax finds some, too.
pub(crate) fn unknown_interpretation(at: Span, word: &str) -> Draft {
    let words = InterpretationWord::ALL.iter().map(|word| word.name());
    let listed: Vec<String> = words.clone().map(|name| format!("`{name}`")).collect();
    Draft::new(Code::UnknownInterpretation, at, format!("there is no interpretation `{word}`"))
        .help(format!("the interpretations are {}", listed.join(", ")))
        .did_you_mean(at, word, words)
}

/// Reports a word where a model has a predictor.
pub(crate) fn unknown_predictor(at: Span, word: &str) -> Draft {
    Draft::new(Code::PredictorWord, at, format!("there is no predictor `{word}`"))
        .help(format!("the predictors are {}", PREDICTORS.map(|p| format!("`{p}`")).join(", ")))
        .did_you_mean(at, word, PREDICTORS)
}

/// Reports a word where a heap model says what happens to an address.
pub(crate) fn unknown_role(at: Span, word: &str) -> Draft {
    Draft::new(Code::PredictorWord, at, format!("`{word}` is nothing that happens to an address"))
        .help("an address is `allocated SIZE` (the field with its size), `freed` or `used`")
        .did_you_mean(at, word, ROLES)
}

/// Reports a word behind a predictor.
pub(crate) fn unknown_by(at: Span, word: &str) -> Draft {
    Draft::new(Code::PredictorWord, at, format!("`{word}` cannot stand behind a predictor"))
        .help(
            "a predictor may go `by` a field, like `fcm 2 by size`; a `,` or the number of a stream section follows it",
        )
        .did_you_mean(at, word, ["by"])
}
