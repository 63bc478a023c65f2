//! The models of one section: the cells that they depend on, and the values that they have learned.

use super::heap::{Guess, Heap, Live};
use super::values::{ValueModel, most_lines};
use super::{CodedValue, NONE};
use crate::format::{Format, HeapRole, LeafRef, Model, ModelKind, Predictor};
use metatf_container::{ErrorKind, Result, SizeRule};

/// The cells that a model of the format depends on.
#[derive(Clone, Debug)]
enum Inputs {
    /// The section has no leaf with this model.
    Absent,
    Heap {
        role: Role,
        /// The cells of the number that identifies the context (`by`) and of the object's size (`size`), or [`NONE`].
        by: u32,
        size: u32,
    },
    Values {
        /// For each predictor, the cell of the value it depends on, or [`NONE`].
        cells: Vec<u32>,
        /// Index of the section's value model.
        shared: usize,
    },
}

/// The effect on the object at a heap address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Allocated,
    Freed,
    Used,
}

/// The cells that the models of a section depend on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cells {
    sources: Vec<Inputs>,
    /// For each value model, the cell shared by its leaves, and its predictors.
    shared: Vec<(u32, Vec<Predictor>)>,
    /// Maximum number of lines in a table of a value model.
    most_lines: usize,
}

/// The inputs of a predicted leaf's model. A heap model depends on the number that distinguishes contexts and on the
/// size, a value model on a range in a list of numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Context {
    Heap { by: u64, size: u64 },
    Values { start: usize, end: usize },
}

impl Cells {
    /// Creates the cells. `last` returns the cell with the last value of a leaf. `previous` returns, for a model, the
    /// cell with the previous value of its leaf, if the section has such a leaf.
    pub(crate) fn new(
        format: &Format,
        last: impl Fn(LeafRef) -> Option<u32>,
        previous: impl Fn(usize) -> Option<u32>,
    ) -> Self {
        let mut cells = Self::default();
        for (index, model) in format.models.iter().enumerate() {
            let source = previous(index).map(|previous| cells.source(model, &last, previous));
            cells.sources.push(source.unwrap_or(Inputs::Absent));
        }
        cells.most_lines = most_lines(cells.shared.iter().flat_map(|(_, predictors)| predictors));
        cells
    }

    fn source(&mut self, model: &Model, last: &impl Fn(LeafRef) -> Option<u32>, previous: u32) -> Inputs {
        let cell = |leaf: Option<LeafRef>| leaf.and_then(last).unwrap_or(NONE);
        match &model.kind {
            ModelKind::Heap { role, by } => {
                let (role, size) = match role {
                    HeapRole::Allocated { size } => (Role::Allocated, cell(Some(*size))),
                    HeapRole::Freed => (Role::Freed, NONE),
                    HeapRole::Used => (Role::Used, NONE),
                };
                Inputs::Heap { role, by: cell(*by), size }
            }
            ModelKind::Values(predictors) => {
                let kinds = |p: &[Predictor]| p.iter().map(|p| (p.kind, p.by.is_some())).collect::<Vec<_>>();
                let same = |s: &(u32, Vec<Predictor>)| s.0 == previous && kinds(&s.1) == kinds(predictors);
                let shared = self.shared.iter().position(same).unwrap_or_else(|| {
                    self.shared.push((previous, predictors.to_vec()));
                    self.shared.len() - 1
                });
                Inputs::Values { cells: predictors.iter().map(|p| cell(p.by)).collect(), shared }
            }
        }
    }

    /// Returns whether a model predicts the addresses of uses, which neither allocate nor free the object.
    pub(crate) fn is_use(&self, model: u16) -> bool {
        self.role(model) == Role::Used
    }

    #[inline]
    fn role(&self, model: u16) -> Role {
        match self.sources.get(usize::from(model)) {
            Some(&Inputs::Heap { role, .. }) => role,
            _ => Role::Used,
        }
    }

    /// Returns the current inputs of a model. For a value model, the numbers are appended to `numbers`.
    #[inline]
    pub(crate) fn context(&self, model: u16, cells: &[u64], numbers: &mut Vec<u64>) -> Context {
        let value = |cell: u32| cells.get(cell as usize).copied().unwrap_or(0);
        match self.sources.get(usize::from(model)) {
            Some(&Inputs::Heap { by, size, .. }) => Context::Heap { by: value(by), size: value(size) },
            Some(Inputs::Values { cells, .. }) => {
                let start = numbers.len();
                numbers.extend(cells.iter().map(|&cell| value(cell)));
                Context::Values { start, end: numbers.len() }
            }
            Some(Inputs::Absent) | None => Context::Values { start: 0, end: 0 },
        }
    }
}

/// The contents of the models of a section since its state was reset.
#[derive(Clone, Debug, Default)]
pub(crate) struct Models {
    heap: Option<Box<Heap>>,
    spare: HeapPool,
    values: Vec<Option<ValueModel>>,
    /// Buffer for the inputs of a value model.
    numbers: Vec<u64>,
    /// For writers, the initial size rule of a heap.
    rule: SizeRule,
    /// For writers, the statistics for guessing the size rule, while the rule is still unknown.
    guess: Option<Box<Guess>>,
    /// Whether the guessed rule differs from the heap's rule.
    outdated: bool,
    /// For writers, the objects known to be live before the first record.
    pub(crate) carried: Vec<Live>,
}

/// Discarded heaps, kept for their memory. Requesting fresh memory from the system takes 5% of the time spent on a
/// group of 100,000 records, and more if several threads request memory.
#[derive(Debug, Default)]
struct HeapPool(Vec<Heap>);

/// Maximum number of heaps in the pool. A writer uses two at a time when it determines whether to carry objects into a
/// group.
const MOST_SPARE: usize = 2;

/// A clone starts with an empty pool.
impl Clone for HeapPool {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl HeapPool {
    /// Returns a heap with arbitrary contents.
    fn take(&mut self) -> Box<Heap> {
        Box::new(self.0.pop().unwrap_or_else(|| Heap::new(SizeRule::default())))
    }

    fn put(&mut self, heap: Option<Box<Heap>>) {
        self.0.extend(heap.filter(|_| self.0.len() < MOST_SPARE).map(|heap| *heap));
    }
}

/// Returns the next element of a model's stream section.
type NextElement<'n> = &'n mut dyn FnMut() -> Result<u64>;

impl Models {
    /// Sets the initial size rule of heaps, for writers. If it is `None`, the rule is guessed.
    pub(crate) fn set_rule(&mut self, rule: Option<SizeRule>) {
        self.rule = rule.unwrap_or_default();
        self.guess = rule.is_none().then(|| Box::new(Guess::new()));
    }

    /// Requests a reset before the next record, because the last record ends its content.
    pub(crate) fn end_content(&mut self) {
        self.outdated = true;
    }

    /// Returns whether a heap uses a rule that turned out to be wrong, or the last record ends its content, so the heap
    /// should be reset.
    #[inline]
    pub(crate) fn is_outdated(&self) -> bool {
        self.outdated
    }

    #[inline]
    fn note(&mut self, size: u64, address: u64) {
        if let Some(guess) = &mut self.guess
            && let Some(rule) = guess.note(size, address)
        {
            self.guess = None;
            self.outdated = rule != self.rule;
            self.rule = rule;
        }
    }

    /// Discards everything that the models have learned, except for the size rule.
    pub(crate) fn reset(&mut self) {
        self.outdated = false;
        self.spare.put(self.heap.take());
        self.values.clear();
        self.carried.clear();
    }

    /// Returns a value model.
    fn values(&mut self, sources: &Cells, model: u16) -> Option<&mut ValueModel> {
        let Some(&Inputs::Values { shared, .. }) = sources.sources.get(usize::from(model)) else { return None };
        if shared >= self.values.len() {
            self.values.resize(shared + 1, None);
        }
        let predictors = &sources.shared.get(shared)?.1;
        Some(self.values.get_mut(shared)?.get_or_insert_with(|| ValueModel::new(predictors, sources.most_lines)))
    }

    /// Decodes a code and learns its value on the heap's fast path, which requires no stream section element. Returns
    /// `None` and changes nothing if the fast path does not apply; the caller must then use [`decode`](Self::decode).
    #[inline]
    pub(crate) fn decode_hit(&mut self, sources: &Cells, model: u16, cells: &[u64], code: u64) -> Option<u64> {
        let Some(&Inputs::Heap { role, by, size }) = sources.sources.get(usize::from(model)) else { return None };
        let value = |cell: u32| cells.get(cell as usize).copied().unwrap_or(0);
        let heap = self.heap.as_mut()?;
        match role {
            Role::Allocated => heap.allocated_usual(value(by), value(size), code),
            Role::Freed => heap.freed_usual(value(by), code),
            Role::Used => None,
        }
    }

    /// Decodes a code and learns its value.
    ///
    /// # Errors
    /// Returns any error from `next`. The inner result is an error if the code is invalid, for example because it has
    /// no candidate.
    pub(crate) fn decode(
        &mut self,
        sources: &Cells,
        model: u16,
        cells: &[u64],
        code: u64,
        next: NextElement<'_>,
    ) -> Result<Result<u64, ErrorKind>> {
        let unknown = Ok(Err(ErrorKind::NoCandidate(code)));
        let mut numbers = std::mem::take(&mut self.numbers);
        numbers.clear();
        let context = sources.context(model, cells, &mut numbers);
        let Context::Heap { by, size } = context else {
            let value = self.values(sources, model).map(|values| {
                let value = values.value(&numbers, code, next);
                if let Ok(Some(value)) = value {
                    values.learn(&numbers, value);
                }
                value
            });
            self.numbers = numbers;
            return value.map_or(unknown, |value| value.map(|v| v.ok_or(ErrorKind::NoCandidate(code))));
        };
        let heap = match &mut self.heap {
            Some(heap) => heap,
            None => {
                let mut heap = self.spare.take();
                if let Err(kind) = heap.open(next)? {
                    return Ok(Err(kind));
                }
                self.heap.insert(heap)
            }
        };
        let role = sources.role(model);
        let candidate = match role {
            Role::Allocated => heap.allocated(by, size, code, next)?,
            Role::Freed | Role::Used => heap.freed(by, code, next)?,
        };
        let Some((address, hint)) = candidate else { return unknown };
        match role {
            Role::Allocated => heap.allocate(by, size, address, code, hint),
            Role::Freed => heap.free(by, hint),
            Role::Used => {}
        }
        Ok(Ok(address))
    }

    /// Returns the code of a heap address and learns the address on the heap's fast path, which requires no stream
    /// section element. Returns `None` and changes nothing if the fast path does not apply; the caller must then use
    /// [`find`](Self::find).
    #[inline]
    pub(crate) fn encode_hit(&mut self, sources: &Cells, model: u16, context: Context, value: u64) -> Option<u64> {
        let Context::Heap { by, size } = context else { return None };
        self.encode_hit_of(sources.role(model), by, size, value)
    }

    /// Returns the code like [`encode_hit`](Self::encode_hit), with the inputs taken from the cells.
    #[inline(always)]
    pub(crate) fn encode_hit_from_cells(
        &mut self,
        sources: &Cells,
        model: u16,
        cells: &[u64],
        value: u64,
    ) -> Option<u64> {
        let Some(&Inputs::Heap { role, by, size }) = sources.sources.get(usize::from(model)) else { return None };
        let cell = |cell: u32| cells.get(cell as usize).copied().unwrap_or(0);
        self.encode_hit_of(role, cell(by), cell(size), value)
    }

    #[inline(always)]
    fn encode_hit_of(&mut self, role: Role, by: u64, size: u64, value: u64) -> Option<u64> {
        let Some(heap) = self.heap.as_mut().filter(|_| self.guess.is_none()) else {
            return self.encode_hit_and_guess(role, by, size, value);
        };
        match role {
            Role::Allocated => heap.encode_allocated(by, size, value),
            Role::Freed => heap.encode_freed(by, value),
            Role::Used => None,
        }
    }

    #[cold]
    #[inline(never)]
    fn encode_hit_and_guess(&mut self, role: Role, by: u64, size: u64, value: u64) -> Option<u64> {
        let heap = self.heap.as_mut()?;
        match role {
            Role::Allocated => {
                let code = heap.encode_allocated(by, size, value)?;
                self.note(size, value);
                Some(code)
            }
            Role::Freed => heap.encode_freed(by, value),
            Role::Used => None,
        }
    }

    /// Returns the coding of a value without learning it. `numbers` are the inputs of value models. The first elements
    /// of a heap's stream section are written to `opening`.
    #[inline]
    pub(crate) fn find(
        &mut self,
        sources: &Cells,
        model: u16,
        (context, numbers): (Context, &[u64]),
        value: u64,
        opening: &mut Vec<u64>,
    ) -> CodedValue {
        let (by, size) = match context {
            Context::Heap { by, size } => (by, size),
            Context::Values { start, end } => {
                let numbers = numbers.get(start..end).unwrap_or_default();
                return self
                    .values(sources, model)
                    .map_or(CodedValue::miss(0, value), |values| values.find(numbers, value));
            }
        };
        let heap = match &mut self.heap {
            Some(heap) => heap,
            None => {
                let carried = std::mem::take(&mut self.carried);
                let mut heap = self.spare.take();
                opening.extend(heap.carry(self.rule, &carried));
                self.heap.insert(heap)
            }
        };
        match sources.role(model) {
            Role::Allocated => heap.find_allocated(by, size, value),
            Role::Freed | Role::Used => heap.find_freed(by, value),
        }
    }

    /// Drops a model that [`find`](Self::find) created but that has learned nothing, because a reader would not have
    /// created it.
    pub(crate) fn drop_new(&mut self, sources: &Cells, model: u16) {
        match sources.sources.get(usize::from(model)) {
            Some(Inputs::Heap { .. }) => self.spare.put(self.heap.take()),
            Some(&Inputs::Values { shared, .. }) => {
                if let Some(values) = self.values.get_mut(shared) {
                    *values = None;
                }
            }
            Some(Inputs::Absent) | None => {}
        }
    }

    /// Returns whether a model has been created since the state was reset.
    pub(crate) fn is_known(&self, sources: &Cells, model: u16) -> bool {
        match sources.sources.get(usize::from(model)) {
            Some(Inputs::Heap { .. }) => self.heap.is_some(),
            Some(&Inputs::Values { shared, .. }) => self.values.get(shared).is_some_and(Option::is_some),
            Some(Inputs::Absent) | None => true,
        }
    }

    /// Creates models that have learned only that these objects are live.
    pub(crate) fn with_live(&mut self, carried: Vec<Live>) -> Self {
        let spare = std::mem::take(&mut self.spare);
        Self { rule: self.rule, carried, spare, ..Self::default() }
    }

    /// Replaces these models with `others`, keeping the memory of the replaced models for reuse.
    pub(crate) fn replace(&mut self, mut others: Self) {
        others.spare.put(self.heap.take());
        *self = others;
    }

    /// Learns a value, given its coding as returned by [`find`](Self::find).
    #[inline]
    pub(crate) fn learn(
        &mut self,
        sources: &Cells,
        model: u16,
        (context, numbers): (Context, &[u64]),
        value: u64,
        found: &CodedValue,
    ) {
        match context {
            Context::Heap { by, size } => {
                let Some(heap) = &mut self.heap else { return };
                match sources.role(model) {
                    Role::Allocated => {
                        heap.allocate(by, size, value, found.code, found.hint);
                        self.note(size, value);
                    }
                    Role::Freed => heap.free(by, found.hint),
                    Role::Used => {}
                }
            }
            Context::Values { start, end } => {
                let numbers = numbers.get(start..end).unwrap_or_default();
                if let Some(values) = self.values(sources, model) {
                    values.learn(numbers, value);
                }
            }
        }
    }

    /// Returns the live objects, with which the next group can start.
    pub(crate) fn live(&self) -> Vec<Live> {
        self.heap.as_ref().map_or_else(Vec::new, |heap| heap.live())
    }
}
