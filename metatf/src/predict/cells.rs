//! The models of one section: where each finds what it goes on, and what each has learnt.

use super::Found;
use super::heap::{Heap, Live, SizeRule};
use super::values::Values;
use crate::error::{ErrorKind, Result};
use crate::format::{Format, HeapRole, LeafRef, Model, ModelKind, Predictor};

/// For one model of the format: the cells with the values it goes by.
#[derive(Clone, Debug, Default)]
struct Source {
    /// Heap: what tells contexts apart, then the size. Values: one for each predictor.
    cells: Vec<Option<u32>>,
    /// Values: which of the section's models this is.
    shared: usize,
}

/// What the models of a section go by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cells {
    sources: Vec<Source>,
    /// For each value model the cell whose leaves share it, and its predictors.
    shared: Vec<(u32, Vec<Predictor>)>,
}

impl Cells {
    /// `last` gives the cell with the last value of a leaf; `previous`, for a model, the cell of its leaf's previous
    /// value where the section has such a leaf.
    pub(crate) fn new(
        format: &Format,
        last: impl Fn(LeafRef) -> Option<u32>,
        previous: impl Fn(usize) -> Option<u32>,
    ) -> Self {
        let mut cells = Self::default();
        for (index, model) in format.models.iter().enumerate() {
            let source = previous(index).map(|previous| cells.source(model, &last, previous));
            cells.sources.push(source.unwrap_or_default());
        }
        cells
    }

    fn source(&mut self, model: &Model, last: &impl Fn(LeafRef) -> Option<u32>, previous: u32) -> Source {
        match &model.kind {
            ModelKind::Heap { role, by } => {
                let size = match role {
                    HeapRole::Allocated { size } => last(*size),
                    HeapRole::Freed | HeapRole::Used => None,
                };
                Source { cells: vec![by.and_then(last), size], shared: 0 }
            }
            ModelKind::Values(predictors) => {
                let kinds = |p: &[Predictor]| p.iter().map(|p| (p.kind, p.by.is_some())).collect::<Vec<_>>();
                let same = |s: &(u32, Vec<Predictor>)| s.0 == previous && kinds(&s.1) == kinds(predictors);
                let shared = self.shared.iter().position(same).unwrap_or_else(|| {
                    self.shared.push((previous, predictors.to_vec()));
                    self.shared.len() - 1
                });
                Source { cells: predictors.iter().map(|p| p.by.and_then(last)).collect(), shared }
            }
        }
    }

    /// What a heap's model goes by now: what tells contexts apart, and the size.
    fn heap_contexts(&self, model: u16, cells: &[u64]) -> [u64; 2] {
        let source = self.sources.get(usize::from(model)).map_or(&[][..], |s| &s.cells);
        let value =
            |i: usize| source.get(i).copied().flatten().and_then(|c| cells.get(c as usize)).copied().unwrap_or(0);
        [value(0), value(1)]
    }

    /// How many values a model goes by.
    pub(crate) fn count(&self, model: u16) -> usize {
        self.sources.get(usize::from(model)).map_or(0, |s| s.cells.len())
    }

    /// Appends what a model goes by now.
    pub(crate) fn contexts(&self, model: u16, cells: &[u64], contexts: &mut Vec<u64>) {
        let source = self.sources.get(usize::from(model));
        let values = source.map_or(&[][..], |s| &s.cells).iter();
        contexts.extend(values.map(|cell| cell.and_then(|c| cells.get(c as usize)).copied().unwrap_or(0)));
    }
}

/// What the models of a section have learnt since its state was reset.
#[derive(Clone, Debug, Default)]
pub(crate) struct Models {
    heap: Option<Box<Heap>>,
    values: Vec<Option<Values>>,
    /// Space for what a model goes by.
    contexts: Vec<u64>,
    /// For writers: the rule that a heap begins with.
    pub(crate) rule: SizeRule,
    /// For writers: objects known to be live before the first record.
    pub(crate) carried: Vec<Live>,
}

/// Gives the elements of a model's stream section.
type Next<'n> = &'n mut dyn FnMut() -> Result<u64>;

impl Models {
    /// Forgets everything.
    pub(crate) fn reset(&mut self) {
        self.heap = None;
        self.values.clear();
        self.carried.clear();
    }

    fn values(&mut self, cells: &Cells, model: u16) -> Option<&mut Values> {
        let shared = cells.sources.get(usize::from(model))?.shared;
        if shared >= self.values.len() {
            self.values.resize(shared + 1, None);
        }
        let predictors = &cells.shared.get(shared)?.1;
        Some(self.values.get_mut(shared)?.get_or_insert_with(|| Values::new(predictors)))
    }

    /// The value behind a code, learnt.
    ///
    /// # Errors
    /// What `next` returns. The inner error: a code that names no candidate, and the like.
    pub(crate) fn decode(
        &mut self,
        format: &Format,
        sources: &Cells,
        model: u16,
        cells: &[u64],
        code: u64,
        next: Next<'_>,
    ) -> Result<Result<u64, ErrorKind>> {
        let unknown = Ok(Err(ErrorKind::NoCandidate(code)));
        let Some(kind) = format.models.get(usize::from(model)).map(|m| &m.kind) else { return unknown };
        let ModelKind::Heap { role, .. } = kind else {
            let mut contexts = std::mem::take(&mut self.contexts);
            contexts.clear();
            sources.contexts(model, cells, &mut contexts);
            let value = self.values(sources, model).map(|values| {
                let value = values.value(&contexts, code, next);
                if let Ok(Some(value)) = value {
                    values.learn(&contexts, value);
                }
                value
            });
            self.contexts = contexts;
            return value.map_or(unknown, |value| value.map(|v| v.ok_or(ErrorKind::NoCandidate(code))));
        };
        let heap = match &mut self.heap {
            Some(heap) => heap,
            None => match Heap::open(next)? {
                Ok(heap) => self.heap.insert(Box::new(heap)),
                Err(kind) => return Ok(Err(kind)),
            },
        };
        let [by, size] = sources.heap_contexts(model, cells);
        let candidate = match role {
            HeapRole::Allocated { .. } => heap.allocated(by, size, code, next)?,
            HeapRole::Freed | HeapRole::Used => heap.freed(by, code, next)?,
        };
        let Some((address, hint)) = candidate else { return unknown };
        match role {
            HeapRole::Allocated { .. } => heap.allocate(by, size, address, code, hint),
            HeapRole::Freed => heap.free(by, hint),
            HeapRole::Used => {}
        }
        Ok(Ok(address))
    }

    /// How a value is coded; nothing is learnt. What a heap's stream section begins with goes to `opening`.
    pub(crate) fn find(
        &mut self,
        format: &Format,
        cells: &Cells,
        model: u16,
        contexts: &[u64],
        value: u64,
        opening: &mut Vec<u64>,
    ) -> Found {
        let kind = format.models.get(usize::from(model)).map(|m| &m.kind);
        let Some(ModelKind::Heap { role, .. }) = kind else {
            return self.values(cells, model).map_or(Found::miss(0, value), |values| values.find(contexts, value));
        };
        let heap = match &mut self.heap {
            Some(heap) => heap,
            None => {
                let carried = std::mem::take(&mut self.carried);
                let (heap, elements) = Heap::carry(self.rule, &carried);
                *opening = elements;
                self.heap.insert(Box::new(heap))
            }
        };
        let &[by, size] = contexts else { return Found::miss(0, value) };
        match role {
            HeapRole::Allocated { .. } => heap.find_allocated(by, size, value),
            HeapRole::Freed | HeapRole::Used => heap.find_freed(by, value),
        }
    }

    /// Forgets a heap whose opening found no place.
    pub(crate) fn forget_heap(&mut self) {
        self.heap = None;
    }

    /// Learns a value that was found.
    pub(crate) fn learn(
        &mut self,
        format: &Format,
        cells: &Cells,
        model: u16,
        contexts: &[u64],
        value: u64,
        found: &Found,
    ) {
        match format.models.get(usize::from(model)).map(|m| &m.kind) {
            Some(ModelKind::Values(_)) => {
                if let Some(values) = self.values(cells, model) {
                    values.learn(contexts, value);
                }
            }
            Some(ModelKind::Heap { role, .. }) => {
                let (Some(heap), &[by, size]) = (&mut self.heap, contexts) else { return };
                match role {
                    HeapRole::Allocated { .. } => heap.allocate(by, size, value, found.code, found.hint),
                    HeapRole::Freed => heap.free(by, found.hint),
                    HeapRole::Used => {}
                }
            }
            None => {}
        }
    }

    /// The live objects, for the next group to begin with.
    pub(crate) fn live(&self) -> Vec<Live> {
        self.heap.as_ref().map_or_else(Vec::new, |heap| heap.live())
    }
}
