//! Names of functions in stacks, and which of them are the program's own.

use std::cell::RefCell;

use hatf::calls::{Folding, GroupBy, Places};
use hatf::stacks::Stacks;
use hatf::symbolize::{Files, name_stacks};
use hatf_arrow::Names;
use pyo3::FromPyObject;

/// A text, or several.
#[derive(FromPyObject)]
pub(crate) enum Texts {
    #[pyo3(transparent)]
    One(String),
    #[pyo3(transparent)]
    Many(Vec<String>),
}

/// Which frames are folded into their callers.
pub(crate) fn folding(project: Option<Texts>, skip: Option<Texts>, whole: bool) -> Folding {
    let texts = |texts| match texts {
        None => Vec::new(),
        Some(Texts::One(text)) => vec![text],
        Some(Texts::Many(texts)) => texts,
    };
    Folding { skip: texts(skip), project: texts(project), whole }
}

/// Puts names to all stacks, from the files of this machine.
pub(crate) fn name(stacks: &mut Stacks) {
    if stacks.have_places() {
        name_stacks(stacks, 0, &Files::default());
    }
}

thread_local! {
    /// The own function of each stack of the trace that this thread reads: a scan names all, then asks for each.
    static OWN: RefCell<Vec<Option<String>>> = const { RefCell::new(Vec::new()) };
}

/// Names the stacks of tables.
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
        let places = Places::new(stacks, &self.folding, GroupBy::Function);
        let own = |stack: u64| {
            let group = places.group(places.own(stack).next()?);
            places.keys().get(group as usize).map(|place| place.name.clone())
        };
        let own = (0..stacks.count()).map(own).collect();
        OWN.with_borrow_mut(|known| *known = own);
    }

    fn own_function(&self, _: &Stacks, number: u64) -> Option<String> {
        OWN.with_borrow(|known| known.get(usize::try_from(number).ok()?)?.clone())
    }
}
