//! Runs mutants of the oracle against the conformance vectors. `dev/scripts/mutants` compiles this file together with a
//! copy of the oracle in which every site calls [`on`] or [`number`].
//!
//! Usage: `mutants PROGRESS SKIPPED FIRST STEP`. The program tests each mutant whose number is FIRST modulo STEP, except
//! for those in the file SKIPPED. The file PROGRESS contains the number of the mutant in progress, because some mutants
//! end the process. The output has one line per mutant: its number, and the vector that catches it, `survives` or
//! `unreached`.
//!
//! `mutants --answers FILE` writes the answers to all vectors. `mutants --differ FILE` prints the first vector whose
//! answer is not that of the file, or `survives`.
#![allow(dead_code, unused, clippy::all, missing_docs)]

mod conformance;
mod oracle;

use conformance::{Answer, Vector, vectors};
use std::io::{Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

pub use shared::{Seen, Value, What};
mod shared;

/// Replacement for the module of the test library that reads predicted leaves.
mod models {
    use crate::oracle::{self, Rule};
    use crate::{Seen, What};

    pub(crate) fn of_oracle(schema: &crate::runtime::Schema, trace: &[u8], broken: Option<Rule>) -> (Vec<Seen>, bool) {
        let (seen, result) = oracle::read_broken(&schema.dtd, trace, broken);
        (seen.into_iter().filter(|seen| seen.what == What::Record).collect(), result.is_err())
    }
}

/// Replacement for the module of the test library that parses DTDs.
mod runtime {
    use std::cell::RefCell;
    use std::collections::HashMap;
    use std::rc::Rc;

    pub(crate) struct Schema {
        pub(crate) dtd: Rc<metatf_parser::Dtd>,
    }

    pub(crate) fn schema(text: &str) -> Schema {
        thread_local!(static PARSED: RefCell<HashMap<String, Rc<metatf_parser::Dtd>>> = RefCell::default());
        let parse = || Rc::new(metatf_parser::parse("format.dtd", text.as_bytes()).dtd.expect("a valid DTD"));
        let dtd = PARSED.with_borrow_mut(|parsed| parsed.entry(text.to_owned()).or_insert_with(parse).clone());
        Schema { dtd }
    }
}

/// Number of the mutant in progress.
static MUTANT: AtomicUsize = AtomicUsize::new(usize::MAX);
/// Steps that the run may still take.
static FUEL: AtomicU64 = AtomicU64::new(u64::MAX);
/// Sites reached.
static REACHED: [AtomicBool; 1 << 14] = [const { AtomicBool::new(false) }; 1 << 14];

fn reach(site: usize) {
    REACHED[site].store(true, Relaxed);
    let fuel = FUEL.load(Relaxed);
    assert!(fuel > 0, "too many steps");
    FUEL.store(fuel - 1, Relaxed);
}

/// Returns whether the only mutant of a comparison, or the first one of a pattern, is in progress.
pub(crate) fn on(site: usize) -> bool {
    reach(site);
    MUTANT.load(Relaxed) == 2 * site
}

/// Returns whether the second mutant of a pattern is in progress.
pub(crate) fn on_second(site: usize) -> bool {
    reach(site);
    MUTANT.load(Relaxed) == 2 * site + 1
}

/// Integer that a mutant increments or decrements.
pub(crate) trait Step: Copy {
    fn up(self) -> Self;
    fn down(self) -> Self;
}

macro_rules! step {
    ($($type:ty)*) => { $(impl Step for $type {
        fn up(self) -> Self { self.wrapping_add(1) }
        fn down(self) -> Self { self.wrapping_sub(1) }
    })* };
}

step!(u8 u16 u32 u64 u128 usize i32 i64);

/// Returns a number, incremented or decremented by the mutants of the site.
pub(crate) fn number<T: Step>(site: usize, value: T) -> T {
    reach(site);
    match MUTANT.load(Relaxed) {
        mutant if mutant == 2 * site => value.up(),
        mutant if mutant == 2 * site + 1 => value.down(),
        _ => value,
    }
}

/// Returns everything that the oracle reads from a vector, with the times of groups and whether labels are true.
fn answer(vector: &Vector) -> (Answer, String, bool) {
    let bytes = std::fs::read(vector.trace_file()).expect("a trace");
    let times = format!("{:?}", oracle::times(&bytes));
    let has_labels = vector.name.contains("/x-columns");
    let dtd = has_labels.then(|| std::fs::read_to_string(vector.dtd_file()).ok()).flatten();
    let labels = dtd.is_none_or(|text| oracle::labels(&runtime::schema(&text).dtd, &bytes).is_ok());
    (vector.answer(None), times, labels)
}

/// Returns the answers to all vectors as text, one per line.
fn answers() -> impl Iterator<Item = (String, String)> {
    vectors().into_iter().map(|vector| {
        FUEL.store(u64::MAX, Relaxed);
        let found = catch_unwind(AssertUnwindSafe(|| answer(&vector)));
        (vector.name.clone(), format!("{found:?}").replace('\n', " "))
    })
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    std::panic::set_hook(Box::new(|_| {}));
    if arguments[1] == "--answers" {
        let lines: String = answers().map(|(_, answer)| answer + "\n").collect();
        return std::fs::write(&arguments[2], lines).expect("a file");
    }
    if arguments[1] == "--differ" {
        let right = std::fs::read_to_string(&arguments[2]).expect("a file");
        let differs = answers().zip(right.lines()).find(|((_, answer), right)| answer != right);
        return println!("{}", differs.map_or("survives".to_owned(), |((name, _), _)| name));
    }
    let number = |at: usize| arguments[at].parse::<usize>().expect("a number");
    let (first, step) = (number(3), number(4));
    let skipped = std::fs::read_to_string(&arguments[2]).unwrap_or_default();
    let skipped: Vec<usize> = skipped.lines().filter_map(|line| line.parse().ok()).collect();
    // Whether each site has only one mutant.
    let single = include!("single");
    let mut progress = std::fs::File::create(&arguments[1]).expect("a file");
    let mut done = |mutant: usize, result: &str| println!("{mutant} {result}");

    let mut runs = Vec::new();
    for vector in vectors() {
        REACHED.iter().for_each(|site| site.store(false, Relaxed));
        FUEL.store(u64::MAX, Relaxed);
        let right = answer(&vector);
        let steps = u64::MAX - FUEL.load(Relaxed);
        let reached: Vec<usize> = (0..REACHED.len()).filter(|site| REACHED[*site].load(Relaxed)).collect();
        runs.push((steps, vector, right, reached));
    }
    runs.sort_by_key(|(steps, ..)| *steps);
    let sites = single.len();
    let mut mutants: Vec<usize> = (0..2 * sites).filter(|mutant| mutant % step == first).collect();
    mutants.retain(|mutant| mutant % 2 == 0 || !single[mutant / 2]);
    for mutant in mutants.into_iter().filter(|mutant| !skipped.contains(mutant)) {
        progress.seek(SeekFrom::Start(0)).expect("a file");
        write!(progress, "{mutant:8}").expect("a file");
        let mut result = "unreached".to_owned();
        for (steps, vector, right, reached) in &runs {
            if reached.binary_search(&(mutant / 2)).is_err() {
                continue;
            }
            MUTANT.store(mutant, Relaxed);
            FUEL.store(20 * steps + 100_000, Relaxed);
            let found = catch_unwind(AssertUnwindSafe(|| answer(vector)));
            MUTANT.store(usize::MAX, Relaxed);
            if found.ok().as_ref() != Some(right) {
                result = vector.name.clone();
                break;
            }
            result = "survives".to_owned();
        }
        done(mutant, &result);
    }
}
