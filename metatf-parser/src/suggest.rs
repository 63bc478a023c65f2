//! Reports unknown words and suggests known words.

use crate::codes::Code;
use crate::diagnostic::{Draft, LINE};
use crate::foreign;
use crate::nearest::nearest;
use crate::schema::InterpretationWord;
use crate::span::Span;
use crate::vocabulary::{PREDICTORS, ROLES};

/// Reports a word that is not an interpretation, and its arguments, which end at the end of `whole`. The syntax stage
/// also uses this function.
pub(crate) fn unknown_interpretation(at: Span, word: &str, whole: Span) -> Draft {
    let words = InterpretationWord::ALL.iter().map(|word| word.name());
    let listed: Vec<String> = words.clone().map(|name| format!("`{name}`")).collect();
    let draft = Draft::new(Code::UnknownInterpretation, at, format!("there is no interpretation `{word}`"));
    let Some(meant) = foreign::interpretation(word) else {
        let help = format!("for a plain number, write `{LINE}`; the interpretations are {}", listed.join(", "));
        return draft.help(help).line(whole, "none");
    };
    let meant = match meant {
        "delta" | "default" | "baseOffset" if whole == at => format!("{meant} 0"),
        "stride" if whole == at => "stride 0 1".to_owned(),
        _ => meant.to_owned(),
    };
    let is_typo = nearest(word, words).is_some();
    let draft = draft.write(at, meant.as_str());
    if is_typo { draft.replace(at, meant) } else { draft }
}

/// Reports an unknown predictor in a model.
pub(crate) fn unknown_predictor(at: Span, word: &str) -> Draft {
    Draft::new(Code::PredictorWord, at, format!("there is no predictor `{word}`"))
        .help(format!(
            "the predictors are {}, as in `predicted 1 (lastValue 1, fcm 2) 3;` for section 3",
            PREDICTORS.map(|p| format!("`{p}`")).join(", ")
        ))
        .did_you_mean(at, word, PREDICTORS)
}

/// Reports an unknown action on an address in a heap model.
pub(crate) fn unknown_role(at: Span, word: &str) -> Draft {
    Draft::new(Code::PredictorWord, at, format!("`{word}` is not an action on an address"))
        .help(format!(
            "write `{LINE}`, or another action: `allocated SIZE` (where SIZE is the field with the size) or `freed`"
        ))
        .line(at, "used")
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
