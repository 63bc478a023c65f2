//! Names of functions in stacks, and the selection of the program's own functions.

use hatf_arrow::Names;
use hatf_trace::stacks::Stacks;
use hatf_view::calls::Folding;
use hatf_view::symbolize::{Files, name_stacks};
use pyo3::FromPyObject;

/// One or several strings.
#[derive(FromPyObject)]
pub(crate) enum Texts {
    #[pyo3(transparent)]
    One(String),
    #[pyo3(transparent)]
    Many(Vec<String>),
}

/// Returns the frames to fold into their callers.
pub(crate) fn folding(project: Option<Texts>, skip: Option<Texts>, whole: bool) -> Folding {
    let texts = |texts| match texts {
        None => Vec::new(),
        Some(Texts::One(text)) => vec![text],
        Some(Texts::Many(texts)) => texts,
    };
    Folding { skip: texts(skip), project: texts(project), whole }
}

/// Adds function names to all stacks, from the files on this machine.
pub(crate) fn name(stacks: &mut Stacks) {
    if stacks.have_places() {
        name_stacks(stacks, 0, &Files::default());
    }
}

/// A source of function names for the stacks of tables.
pub(crate) struct Named {
    folding: Folding,
}

impl Named {
    pub(crate) fn new(folding: Folding) -> Self {
        Self { folding }
    }
}

impl Names for Named {
    fn name(&self, stacks: &mut Stacks) {
        name(stacks);
    }

    fn folding(&self) -> Folding {
        self.folding.clone()
    }
}
