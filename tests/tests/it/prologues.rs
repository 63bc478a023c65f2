//! Changes, truncates and duplicates the first bytes of files without a header, whose declarations are not trusted. The
//! body is that of a fuzz target; the inputs differ from the vectors in a few bytes.

use metatf_tests::targets::{TARGETS, vectors};

/// Changes per seed.
const CHANGES: u64 = 3000;

#[test]
fn what_a_file_says_of_itself_is_not_believed() {
    let target = TARGETS.iter().find(|target| target.name == "read_trace").expect("the target");
    let files = vectors().into_iter().filter(|path| path.to_string_lossy().contains("x-prologue"));
    let seeds = files.flat_map(|path| {
        let bytes = std::fs::read(&path).expect("a vector");
        (target.seeds)(&path, &bytes)
            .into_iter()
            .filter(|seed| seed.first().is_some_and(|switches| switches & 0x18 == 0x18))
    });
    let seeds: Vec<Vec<u8>> = seeds.collect();
    assert!(seeds.len() >= 8, "only {} seeds", seeds.len());
    for seed in seeds {
        assert!(seed[1] != 0, "an input can choose its DTD");
        (target.run)(&seed);
        for n in 0..CHANGES {
            let mut state = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut next = |below: usize| {
                state = (state ^ state >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9).wrapping_add(n);
                usize::try_from(state >> 33).unwrap_or(0) % below.max(1)
            };
            let mut input = seed.clone();
            for _ in 0..=next(3) {
                // The two bytes before the file select how to read it.
                let at = 2 + next(input.len() - 2);
                match next(4) {
                    0 => input.truncate(at.max(3)),
                    1 => input.insert(at, [0, 0xff, 0x7f, 0x80][next(4)]),
                    _ => input[at] = u8::try_from(next(256)).unwrap_or(0),
                }
            }
            (target.run)(&input);
        }
    }
}
