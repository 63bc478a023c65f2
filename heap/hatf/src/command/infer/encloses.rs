//! Selection of the scopes that enclose allocations, by `--by` or by coverage.

use std::path::Path;

use hatf_research::scoped::{ScopeCoverage, ScopeKind};
use hatf_trace::{Error, Result};
use metatf_page::units::percent;
use serde::Serialize;

/// Kinds of scopes that enclose allocations.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Encloses {
    /// Functions whose entries and exits the trace records
    Functions,
    /// Phases and marks
    Phases,
    /// Calls inferred from the stacks of allocations
    Stacks,
}

impl Encloses {
    /// Returns the name of the scopes as an argument of `--by`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Functions => "functions",
            Self::Phases => "phases",
            Self::Stacks => "stacks",
        }
    }

    /// Returns the kind of scopes, or `None` for stacks.
    pub(super) fn scopes(self) -> Option<ScopeKind> {
        match self {
            Self::Functions => Some(ScopeKind::Functions),
            Self::Phases => Some(ScopeKind::Phases),
            Self::Stacks => None,
        }
    }
}

/// Chooses the kind of scopes and explains the choice.
pub(super) fn chosen(by: Option<Encloses>, trace: &Path, coverage: &ScopeCoverage) -> Result<(Encloses, String)> {
    let lacks = |what| Err(Error::Trace(format!("{}: the trace has no {what}", trace.display()).into()));
    let best = coverage.best().map_or(Encloses::Stacks, |by| match by {
        ScopeKind::Functions => Encloses::Functions,
        ScopeKind::Phases => Encloses::Phases,
    });
    let share = |objects| percent(objects, coverage.objects);
    let (in_functions, in_phases) = (share(coverage.in_functions), share(coverage.in_phases));
    let because = match (by, best) {
        (Some(Encloses::Functions), _) if coverage.functions == 0 => {
            return lacks("function entries; build the program with hatf cc --functions");
        }
        (Some(Encloses::Phases), _) if coverage.phases == 0 => {
            return lacks("phases or marks; to add them to a program, see hatf.h");
        }
        (Some(_), _) => "as requested by --by".to_owned(),
        (None, Encloses::Functions) => format!("{in_functions} of the objects are allocated in recorded functions"),
        (None, Encloses::Phases) => format!("{in_phases} of the objects are allocated in phases or marks that end"),
        (None, Encloses::Stacks) if coverage.functions + coverage.phases == 0 => {
            "the trace has neither functions nor phases".to_owned()
        }
        (None, Encloses::Stacks) => format!(
            "only {in_functions} of the objects are allocated in functions, and {in_phases} in phases or marks that end"
        ),
    };
    Ok((by.unwrap_or(best), because))
}
