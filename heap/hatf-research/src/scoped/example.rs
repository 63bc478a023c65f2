//! The example in the paper (Figure 1 and Table 2), in Rust.

use metatf::Result;
use metatf::container::Sink;

use super::memory::ScopedMemory;

/// The variants of the program in Figure 1 and Table 2, which should be the same but differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// The control flow of Figure 1: `m2_8` unless j is a multiple of 3, `h` created at `m0_1`, arrays created by newAInstance
    Figure1,
    /// Table 2, literally: `m2_8` in each iteration, `h` created at `m0_3`, everything created by newInstance
    Table2,
}

/// Paths of labels.
type Paths = &'static [&'static [&'static str]];

/// Returns the label paths that a method captures (Example 3.1).
#[must_use]
pub fn captures(method: &str) -> Paths {
    match method {
        "m0" => &[
            &["m0_2", "m1_3"],
            &["m0_2", "m1_5", "m2_3"],
            &["m0_2", "m1_5", "m2_6"],
            &["m0_2", "m1_5", "m2_7"],
            &["m0_3", "m2_3"],
            &["m0_3", "m2_6"],
            &["m0_3", "m2_7"],
            &["m0_3", "m2_8"],
        ],
        "m1" => &[&["m1_5", "m2_8"], &["m1_6"]],
        _ => &[],
    }
}

/// Size of an object in bytes.
const OBJECT: u64 = 16;

/// Returns the size of an array in bytes.
fn array(elements: u64) -> u64 {
    16 + 8 * elements
}

/// Runs the example and writes its trace.
struct Run<S: Sink> {
    memory: ScopedMemory<S>,
    variant: Variant,
}

/// Runs the paper's example with `m0(mc)`. Returns the sink with its trace.
///
/// The paper does not specify sizes. Here, an object has 16 bytes, and an array of n elements has 16 + 8n bytes.
///
/// # Errors
/// The sink failed.
pub fn example<S: Sink>(variant: Variant, mc: u64, sink: S) -> Result<S> {
    let mut run = Run { memory: ScopedMemory::new(sink)?, variant };
    run.m0(mc)?;
    run.memory.finish()
}

impl<S: Sink> Run<S> {
    fn register(&mut self, method: &str, call_site: &str) -> Result<()> {
        let sites: Vec<&str> = super::memory::register(captures(method), call_site).into_iter().collect();
        self.memory.determine_allocation_site(1, call_site, &sites)
    }

    fn object(&mut self, site: &str, class: &str) -> Result<()> {
        self.memory.new_instance(1, site, class, OBJECT).map(drop)
    }

    fn array(&mut self, site: &str, class: &str, elements: u64) -> Result<()> {
        let size = array(elements);
        match self.variant {
            Variant::Figure1 => self.memory.new_a_instance(1, site, class, elements, size),
            Variant::Table2 => self.memory.new_instance(1, site, class, size),
        }
        .map(drop)
    }

    fn m0(&mut self, mc: u64) -> Result<()> {
        self.memory.enter(1, "m0")?;
        let label = if self.variant == Variant::Figure1 { "m0_1" } else { "m0_3" };
        self.object(label, "Ref0")?;
        self.register("m0", "m0_2")?;
        self.m1(mc)?;
        self.register("m0", "m0_3")?;
        self.m2(mc.saturating_mul(2))?;
        self.memory.exit(1)
    }

    fn m1(&mut self, k: u64) -> Result<()> {
        self.memory.enter(1, "m1")?;
        self.object("m1_2", "Ref0")?;
        self.array("m1_3", "Object[]", k)?;
        for i in 1..=k {
            self.register("m1", "m1_5")?;
            self.m2(i)?;
        }
        self.array("m1_6", "Integer[]", 9)?;
        self.memory.exit(1)
    }

    fn m2(&mut self, n: u64) -> Result<()> {
        self.memory.enter(1, "m2")?;
        self.array("m2_3", "Object[]", n)?;
        for j in 1..=n {
            let third = j % 3 == 0;
            match (third, self.variant) {
                (true, _) => self.array("m2_6", "Integer[]", j * 2 + 1)?,
                (false, Variant::Figure1) => self.object("m2_7", "Integer")?,
                (false, Variant::Table2) => self.array("m2_7", "Integer[]", 1)?,
            }
            if !third || self.variant == Variant::Table2 {
                self.array("m2_8", "Integer[]", 4)?;
            }
        }
        self.memory.exit(1)
    }
}
