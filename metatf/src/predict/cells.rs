//! The models of one section: the cells that each goes by, and what each has learnt.

use super::heap::{Guess, Heap, Live};
use super::values::{ValueModel, most_lines};
use super::{CodedValue, NONE};
use crate::format::{Format, HeapRole, LeafRef, Model, ModelKind, Predictor};
use metatf_container::{ErrorKind, Result, SizeRule};

/// The cells that one model of the format goes by.
#[derive(Clone, Debug)]
enum Inputs {
    /// The section has no leaf of this model.
    Absent,
    Heap {
        role: Role,
        /// The cells of the number that distinguishes contexts, and of the size; [`NONE`]: there is none.
        by: u32,
        size: u32,
    },
    Values {
        /// For each predictor the cell of what it goes by; [`NONE`]: nothing.
        cells: Vec<u32>,
        /// Which of the section's value models this is.
        shared: usize,
    },
}

/// What happens to an address of a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Allocated,
    Freed,
    Used,
}

/// What the models of a section go by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cells {
    sources: Vec<Inputs>,
    /// For each value model the cell whose leaves share it, and its predictors.
    shared: Vec<(u32, Vec<Predictor>)>,
    /// Lines that a table of a value model has at most.
    most_lines: usize,
}

/// The inputs of a predicted leaf's model. Of a heap: the number that distinguishes contexts, and the size. Of values: which part
/// of a list of numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Context {
    Heap { by: u64, size: u64 },
    Values { start: usize, end: usize },
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

    /// Whether a model's addresses are of objects that neither begin nor end.
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

    /// What a model goes by now; of values the numbers are appended to `numbers`.
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

/// What the models of a section have learnt since its state was reset.
#[derive(Clone, Debug, Default)]
pub(crate) struct Models {
    heap: Option<Box<Heap>>,
    spare: HeapPool,
    values: Vec<Option<ValueModel>>,
    /// Space for what a value model goes by.
    numbers: Vec<u64>,
    /// For writers: the rule that a heap begins with.
    rule: SizeRule,
    /// For writers: the rule is not known yet.
    guess: Option<Box<Guess>>,
    /// The guess came to another rule than the heap goes by.
    outdated: bool,
    /// For writers: objects known to be live before the first record.
    pub(crate) carried: Vec<Live>,
}

/// Heaps that are not wanted any more, for their memory: fresh from the system it takes a twentieth of the time of a group of
/// 100,000 records, and more where several threads ask for it.
#[derive(Debug, Default)]
struct HeapPool(Vec<Heap>);

/// A writer has two at a time when it finds out whether objects are to be carried into a group.
const MOST_SPARE: usize = 2;

/// A copy needs no memory of others.
impl Clone for HeapPool {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl HeapPool {
    /// A heap in which anything may be.
    fn take(&mut self) -> Box<Heap> {
        Box::new(self.0.pop().unwrap_or_else(|| Heap::new(SizeRule::default())))
    }

    fn put(&mut self, heap: Option<Box<Heap>>) {
        self.0.extend(heap.filter(|_| self.0.len() < MOST_SPARE).map(|heap| *heap));
    }
}

/// Gives the elements of a model's stream section.
type NextElement<'n> = &'n mut dyn FnMut() -> Result<u64>;

impl Models {
    /// For writers: heaps begin with this rule; without one, it is guessed.
    pub(crate) fn set_rule(&mut self, rule: Option<SizeRule>) {
        self.rule = rule.unwrap_or_default();
        self.guess = rule.is_none().then(|| Box::new(Guess::new()));
    }

    /// Whether a heap goes by a rule that turned out to be the wrong one: it should be reset.
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

    /// Forgets everything but the rule.
    pub(crate) fn reset(&mut self) {
        self.outdated = false;
        self.spare.put(self.heap.take());
        self.values.clear();
        self.carried.clear();
    }

    /// Gives a value model.
    fn values(&mut self, sources: &Cells, model: u16) -> Option<&mut ValueModel> {
        let Some(&Inputs::Values { shared, .. }) = sources.sources.get(usize::from(model)) else { return None };
        if shared >= self.values.len() {
            self.values.resize(shared + 1, None);
        }
        let predictors = &sources.shared.get(shared)?.1;
        Some(self.values.get_mut(shared)?.get_or_insert_with(|| ValueModel::new(predictors, sources.most_lines)))
    }

    /// The value behind a code, learnt, where that needs no element of the stream section and goes the usual way of a
    /// heap. `None`: nothing has happened, and [`decode`](Self::decode) is to be asked.
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

    /// The value behind a code, learnt.
    ///
    /// # Errors
    /// What `next` returns. The inner error: a code that names no candidate, and the like.
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

    /// The code of a heap's address, learnt, where that needs no element of the stream section. `None`: nothing has
    /// happened, and [`find`](Self::find) is to be asked.
    #[inline]
    pub(crate) fn encode_hit(&mut self, sources: &Cells, model: u16, context: Context, value: u64) -> Option<u64> {
        let Context::Heap { by, size } = context else { return None };
        self.encode_hit_of(sources.role(model), by, size, value)
    }

    /// As [`encode_hit`](Self::encode_hit), by the cells.
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

    /// How a value is coded; nothing is learnt. `numbers`: what value models go by. What a heap's stream section begins
    /// with goes to `opening`.
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

    /// Drops a model that [`find`](Self::find) made and that has learnt nothing yet: a reader will not know of it.
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

    /// Whether a model has been made since the state was reset.
    pub(crate) fn is_known(&self, sources: &Cells, model: u16) -> bool {
        match sources.sources.get(usize::from(model)) {
            Some(Inputs::Heap { .. }) => self.heap.is_some(),
            Some(&Inputs::Values { shared, .. }) => self.values.get(shared).is_some_and(Option::is_some),
            Some(Inputs::Absent) | None => true,
        }
    }

    /// Makes models that have learnt nothing but that these objects are live.
    pub(crate) fn with_live(&mut self, carried: Vec<Live>) -> Self {
        let spare = std::mem::take(&mut self.spare);
        Self { rule: self.rule, carried, spare, ..Self::default() }
    }

    /// Puts others in place of these, and keeps the memory.
    pub(crate) fn replace(&mut self, mut others: Self) {
        others.spare.put(self.heap.take());
        *self = others;
    }

    /// Learns a value that was found.
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

    /// The live objects, for the next group to begin with.
    pub(crate) fn live(&self) -> Vec<Live> {
        self.heap.as_ref().map_or_else(Vec::new, |heap| heap.live())
    }
}
