//! Reports unknown words and suggests known words.

use crate::codes::Code;
use crate::diagnostic::Draft;
use crate::foreign;
use crate::schema::InterpretationWord;
use crate::span::Span;
use crate::vocabulary::{PREDICTORS, ROLES};

/// Reports a word that is not an interpretation. The syntax stage also uses this function.
pub(crate) fn unknown_interpretation(at: Span, word: &str) -> Draft {
    let words = InterpretationWord::ALL.iter().map(|word| word.name());
    let listed: Vec<String> = words.clone().map(|name| format!("`{name}`")).collect();
    Draft::new(Code::UnknownInterpretation, at, format!("there is no interpretation `{word}`"))
        .help(format!("the interpretations are {}", listed.join(", ")))
        .did_you_mean(at, word, words)
        .maybe_help(foreign::interpretation(word).map(|meant| format!("did you mean `{meant}`?")))
}

/// Reports an unknown predictor in a model.
pub(crate) fn unknown_predictor(at: Span, word: &str) -> Draft {
    Draft::new(Code::PredictorWord, at, format!("there is no predictor `{word}`"))
        .help(format!("the predictors are {}", PREDICTORS.map(|p| format!("`{p}`")).join(", ")))
        .did_you_mean(at, word, PREDICTORS)
}

/// Reports an unknown action on an address in a heap model.
pub(crate) fn unknown_role(at: Span, word: &str) -> Draft {
    Draft::new(Code::PredictorWord, at, format!("`{word}` is not an action on an address"))
        .help("the actions are `allocated SIZE` (where SIZE is the field with the size), `freed` and `used`")
        .did_you_mean(at, word, ROLES)
}

/// Reports an unexpected word after a predictor.
pub(crate) fn unknown_by(at: Span, word: &str) -> Draft {
    Draft::new(Code::PredictorWord, at, format!("`{word}` cannot follow a predictor"))
        .help(
            "a predictor may be followed by `by` and a field, as in `fcm 2 by size`, and must be followed by `,` or \
             the number of a stream section",
        )
        .did_you_mean(at, word, ["by"])
}
