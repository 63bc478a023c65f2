//! Errors of the predictions for allocators, as in Tables 10, 11, 13 and 14 of the paper, and rank orders.

use serde::Serialize;

use hatf_lab::statistics::mean;

/// Actual and predicted values of one metric, as in Tables 15 and 16 of the paper.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Predictions {
    /// The names of the allocators.
    pub allocators: Vec<String>,
    /// The names of the models.
    pub models: Vec<String>,
    /// The programs.
    pub programs: Vec<Predicted>,
}

/// The values of one program.
///
/// # Examples
///
/// ```
/// use hatf_research::model::evaluate::Predicted;
///
/// let name = "perl".to_owned();
/// let models = vec![Some(vec![2.0, 4.0]), None];
/// let predicted = Predicted { name, actual: vec![1.0, 4.0], models };
/// // The first model is wrong by 100% for one of two allocators, and the second model was stopped.
/// assert_eq!(predicted.errors().of_models, [Some(0.5), None]);
/// assert_eq!(predicted.ranks()[0].map(|rank| (rank.discordant, rank.pairs)), Some((0, 1)));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Predicted {
    /// The program's name.
    pub name: String,
    /// The values of the trace itself, by allocator.
    pub actual: Vec<f64>,
    /// The means over trials, by model and allocator. `None` if the model was stopped.
    pub models: Vec<Option<Vec<f64>>>,
}

/// The relative errors for one program, as in a part of Table 10 or 13.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Errors {
    /// Errors by model and allocator.
    pub errors: Vec<Option<Vec<f64>>>,
    /// The mean over allocators, by model.
    pub of_models: Vec<Option<f64>>,
    /// The mean over models that were not stopped, by allocator.
    pub of_allocators: Vec<Option<f64>>,
}

/// The mean errors over all programs, as in Table 11 or 14.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Mean errors by model.
    pub of_models: Vec<Option<f64>>,
    /// Mean errors by allocator.
    pub of_allocators: Vec<Option<f64>>,
}

/// The quality of a model's ranking of the allocators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rank {
    /// The number of allocator pairs that the model ranks in the wrong order.
    pub discordant: usize,
    /// The number of all pairs.
    pub pairs: usize,
}

/// Values are tied if they differ by at most this fraction of the larger one.
const TIE: f64 = 0.02;

impl Predicted {
    /// Returns the relative errors, `|actual - predicted| / actual`.
    #[must_use]
    pub fn errors(&self) -> Errors {
        let error = |(actual, predicted): (&f64, &f64)| (actual - predicted).abs() / actual;
        let of_model = |values: &Vec<f64>| self.actual.iter().zip(values).map(error).collect::<Vec<_>>();
        let errors: Vec<Option<Vec<f64>>> = self.models.iter().map(|values| values.as_ref().map(of_model)).collect();
        let of_models = errors.iter().map(|errors| errors.as_deref().map(mean)).collect();
        let of = |allocator| some(errors.iter().flatten().filter_map(|errors| errors.get(allocator).copied()));
        let of_allocators = (0..self.actual.len()).map(of).collect();
        Errors { errors, of_models, of_allocators }
    }

    /// Compares each model's order of allocators with the actual order. A pair that is within 2% in either order is
    /// tied and therefore not discordant.
    #[must_use]
    pub fn ranks(&self) -> Vec<Option<Rank>> {
        let rank = |values: &Vec<f64>| {
            let both: Vec<_> = self.actual.iter().zip(values).collect();
            let pairs = both.iter().enumerate().flat_map(|(n, a)| both.iter().skip(n + 1).map(move |b| (a, b)));
            let discordant = |(a, b): &(&(&f64, &f64), &(&f64, &f64))| order(*a.0, *b.0) * order(*a.1, *b.1) < 0;
            let count = both.len();
            Rank { discordant: pairs.filter(discordant).count(), pairs: count * count.saturating_sub(1) / 2 }
        };
        self.models.iter().map(|values| values.as_ref().map(rank)).collect()
    }
}

/// Returns 1 if `a` is greater, -1 if it is smaller, and 0 for a tie.
fn order(a: f64, b: f64) -> i32 {
    match (a - b).abs() <= TIE * a.max(b) {
        true => 0,
        false if a > b => 1,
        false => -1,
    }
}

impl Predictions {
    /// Averages the errors over programs. For each model, its means over allocators are averaged; for each allocator,
    /// its means over models.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let errors: Vec<Errors> = self.programs.iter().map(Predicted::errors).collect();
        let over = |count: usize, of: fn(&Errors) -> &[Option<f64>]| {
            let mean = |at: usize| some(errors.iter().filter_map(|errors| of(errors).get(at).copied().flatten()));
            (0..count).map(mean).collect()
        };
        Summary {
            of_models: over(self.models.len(), |errors| &errors.of_models),
            of_allocators: over(self.allocators.len(), |errors| &errors.of_allocators),
        }
    }
}

/// Returns the mean, or `None` if there are no values.
fn some(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| mean(&values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders() {
        let actual = vec![1.0, 2.0, 3.0, 3.03];
        let models = vec![Some(vec![1.0, 2.0, 3.0, 2.0]), Some(vec![3.0, 2.0, 1.99, 1.0]), None];
        let predicted = Predicted { name: String::new(), actual, models };
        let rank = |discordant| Some(Rank { discordant, pairs: 6 });
        // The first model only swaps a tied pair. For the second model, a tied pair does not count.
        assert_eq!(predicted.ranks(), [rank(0), rank(4), None]);
    }

    #[test]
    fn stopped_models_are_left_out() {
        let predicted = Predicted {
            name: String::new(),
            actual: vec![1.0, 4.0],
            models: vec![Some(vec![2.0, 4.0]), None, Some(vec![1.0, 1.0])],
        };
        let errors = predicted.errors();
        assert_eq!(errors.of_models, [Some(0.5), None, Some(0.375)]);
        assert_eq!(errors.of_allocators, [Some(0.5), Some(0.375)]);
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let all =
            Predictions { allocators: names(&["a", "b"]), models: names(&["x", "y", "z"]), programs: vec![predicted] };
        let summary = Summary { of_models: errors.of_models, of_allocators: errors.of_allocators };
        assert_eq!(all.summary(), summary);
    }
}
