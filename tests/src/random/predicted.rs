//! Random models of predicted leaves as text, with every predictor and every heap event.

use super::Choices;

/// Returns a random value of `interpretation`. `section` stores the misses, and the predictors may depend on the fields
/// in `known`.
pub(super) fn interpretation(c: &mut Choices<'_>, section: u8, known: &[String]) -> String {
    let model = match c.below(8) {
        0..3 => predictor(c, known),
        3..6 => {
            // At most 4 × 16 candidates.
            let predictors: Vec<String> = (0..1 + c.below(4)).map(|_| predictor(c, known)).collect();
            format!("({})", predictors.join(", "))
        }
        _ => heap(c, known),
    };
    format!("predicted 1 {model} {section}")
}

fn predictor(c: &mut Choices<'_>, known: &[String]) -> String {
    let kind = match c.below(8) {
        0..2 => {
            let most = *c.pick(&[4, 16]);
            format!("lastValue {}", 1 + c.below(most))
        }
        2..4 => "stride".to_owned(),
        4..6 => format!("fcm {}", 1 + c.below(3)),
        _ => format!("dfcm {}", 1 + c.below(3)),
    };
    by(c, kind, known)
}

fn heap(c: &mut Choices<'_>, known: &[String]) -> String {
    let role = match c.below(4) {
        0 | 1 if !known.is_empty() => format!("heap allocated {}", c.pick(known)),
        2 => "heap used".to_owned(),
        _ => "heap freed".to_owned(),
    };
    by(c, role, known)
}

fn by(c: &mut Choices<'_>, what: String, known: &[String]) -> String {
    if !c.chance(40) {
        return what;
    }
    if known.is_empty() || c.chance(10) {
        return format!("{what} by tag");
    }
    format!("{what} by {}", c.pick(known))
}
