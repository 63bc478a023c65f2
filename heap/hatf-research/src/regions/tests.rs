//! Compares simulations with a literal implementation of the document's formulas.

use proptest::prelude::*;

use super::*;

fn settings(block: u64, intra: Intra, inter: Inter) -> Settings {
    Settings { block, intra, inter, oversize: Oversize::Grow }
}

fn run(of: Settings, operations: &[Operation<'_>]) -> Outcome {
    let mut simulation = Simulation::new([of]).unwrap();
    operations.iter().for_each(|operation| simulation.operate(1, *operation).unwrap());
    simulation.finish(&[]).outcomes.remove(0)
}

const ENTER: Operation<'static> = Operation::Enter { method: 0 };

fn new(site: u64, size: u64) -> Operation<'static> {
    Operation::New { site, size }
}

/// With 10-byte blocks, 4 + 4 bytes are free for the third object, which would be enough in total.
#[test]
fn intra_region_fragmentation() {
    let operations = [ENTER, new(0, 6), new(0, 6), new(0, 6), new(0, 4), Operation::Exit];
    let outcome = run(settings(10, Intra::First, Inter::Capture), &operations);
    assert_eq!((outcome.intra_sum, outcome.intra_most, outcome.intra_count), (8, 8, 1));
    let percent = Percent { min: 10.0, max: 10.0, average: 10.0 };
    assert_eq!((outcome.used_regions, outcome.all_regions), (percent, percent));
    assert_eq!(outcome.over_time, Percent { min: 0.0, max: 40.0, average: 10.0 });
    assert_eq!((outcome.blocks_looked_at, outcome.blocks_added, outcome.blocks_freed), (5, 3, 3));
    assert_eq!((outcome.objects_collected, outcome.most_bytes), (4, 30));
    assert_eq!(outcome.curve.unwrap().lines[0].most, [0, 0, 40_000, 0]);
}

/// The top region grows although the region below it has a free block.
#[test]
fn inter_region_fragmentation() {
    let operations = [ENTER, ENTER, Operation::Register { call_site: 0, sites: &[7] }, new(7, 6), new(7, 6)];
    let capture = run(settings(10, Intra::First, Inter::Capture), &operations);
    assert_eq!((capture.inter_sum, capture.inter_count, capture.blocks_added), (14, 1, 3));
    for inter in [Inter::First, Inter::Best] {
        let other = run(settings(10, Intra::First, inter), &operations);
        assert_eq!((other.inter_sum, other.blocks_added), (0, 2), "{inter:?}");
    }
    // The lower region registers the site, so the prefix consists of this region alone.
    let below = [ENTER, Operation::Register { call_site: 0, sites: &[7] }, ENTER, new(7, 6), new(7, 6)];
    let outcome = run(settings(10, Intra::First, Inter::First), &below);
    assert_eq!((outcome.blocks_added, outcome.inter_sum), (3, 0));
}

#[test]
fn what_is_outside_and_what_is_too_large() {
    let mut simulation = Simulation::new([settings(10, Intra::Best, Inter::Best)]).unwrap();
    let operations =
        [Operation::Exit, new(1, 5), Operation::Register { call_site: 0, sites: &[1] }, ENTER, new(1, 25), new(1, 0)];
    operations.iter().for_each(|operation| simulation.operate(3, *operation).unwrap());
    let Simulated { stacks, outcomes, .. } = simulation.finish(&[]);
    assert_eq!((stacks.outside, stacks.in_the_heap, stacks.not_exited, stacks.objects), (2, 1, 1, 2));
    assert_eq!((outcomes[0].oversize, outcomes[0].most_bytes, outcomes[0].blocks_freed), (1, 40, 0));
    assert!(Simulation::new([settings(0, Intra::First, Inter::First)]).is_err());
    let refuse = Settings { oversize: Oversize::Refuse, ..settings(10, Intra::First, Inter::First) };
    let mut simulation = Simulation::new([refuse]).unwrap();
    simulation.operate(1, ENTER).unwrap();
    let error = simulation.operate(1, new(1, 11)).unwrap_err();
    assert_eq!(error.to_string(), "an object of 11 bytes does not fit in a block of 10 bytes");
}

/// The sites captured by a region, and the size and free bytes of each of its blocks.
type LiteralRegion = (Vec<u64>, Vec<(u64, u64)>);

/// A literal implementation of the formulas in section 4.
#[derive(Default)]
struct Literal {
    stack: Vec<LiteralRegion>,
    intra: u64,
    inter: u64,
}

impl Literal {
    fn allocate(&mut self, of: Settings, site: u64, size: u64) {
        let captor = (0..self.stack.len()).rev().find(|at| self.stack[*at].0.contains(&site));
        let prefix: Vec<usize> = (0..=captor.unwrap_or(self.stack.len() - 1)).collect();
        // Returns K_i of a region in the order of the strategy.
        let k = |region: usize| {
            let blocks = &self.stack[region].1;
            let mut k: Vec<usize> = (0..blocks.len()).filter(|at| blocks[*at].1 >= size).collect();
            if of.intra == Intra::Best {
                k.sort_by_key(|at| (blocks[*at].1, *at));
            }
            k
        };
        let left = |region: usize| k(region).first().map(|at| self.stack[region].1[*at].1 - size);
        let last = prefix[prefix.len() - 1];
        let region = match of.inter {
            Inter::Capture => last,
            Inter::First => prefix.iter().rev().copied().find(|region| !k(*region).is_empty()).unwrap_or(last),
            Inter::Best => {
                let fits = prefix.iter().rev().copied().filter(|region| left(*region).is_some());
                fits.min_by_key(|region| left(*region)).unwrap_or(last)
            }
        };
        let free = |region: usize| self.stack[region].1.iter().map(|(_, free)| free).sum::<u64>();
        let block = k(region).first().copied();
        if block.is_none() {
            self.intra += if free(region) >= size { free(region) } else { 0 };
            let other = prefix.iter().any(|other| *other != region && !k(*other).is_empty());
            self.inter += if other { prefix.iter().map(|region| free(*region)).sum() } else { 0 };
        }
        let blocks = &mut self.stack[region].1;
        match block {
            Some(block) => blocks[block].1 -= size,
            None => {
                let bytes = of.block * size.div_ceil(of.block).max(1);
                blocks.push((bytes, bytes - size));
            }
        }
    }
}

proptest! {
    #[test]
    fn as_the_formulas(
        operations in proptest::collection::vec((0_u8..8, 0_u64..4, 0_u64..40), 0..120),
        block in 1_u64..30,
        best: bool,
        inter in 0_u8..3,
    ) {
        let intra = if best { Intra::Best } else { Intra::First };
        let of = settings(block, intra, [Inter::Capture, Inter::First, Inter::Best][usize::from(inter)]);
        let (mut literal, mut simulation) = (Literal::default(), Simulation::new([of]).unwrap());
        for (kind, site, size) in operations {
            let sites = [site, size % 4];
            let operation = match kind {
                0 | 1 => ENTER,
                2 => Operation::Exit,
                3 => Operation::Register { call_site: 0, sites: &sites },
                _ => new(site, size),
            };
            simulation.operate(1, operation).unwrap();
            match operation {
                Operation::Enter { .. } => literal.stack.push((Vec::new(), vec![(block, block)])),
                Operation::Exit => drop(literal.stack.pop()),
                Operation::Register { sites, .. } => {
                    if let Some(top) = literal.stack.last_mut() {
                        top.0 = sites.to_vec();
                    }
                }
                Operation::New { .. } if literal.stack.is_empty() => {}
                Operation::New { site, size } => literal.allocate(of, site, size),
            }
        }
        let Simulated { stacks, outcomes, .. } = simulation.finish(&[]);
        prop_assert_eq!((outcomes[0].intra_sum, outcomes[0].inter_sum), (literal.intra, literal.inter));
        prop_assert_eq!(outcomes[0].blocks_added - outcomes[0].blocks_freed,
            literal.stack.iter().map(|(_, blocks)| blocks.len() as u64).sum::<u64>());
        prop_assert_eq!(stacks.not_exited, literal.stack.len() as u64);
    }
}
