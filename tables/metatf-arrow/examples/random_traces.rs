//! Writes random traces of random formats, their row counts, and damaged copies: `random_traces FOLDER COUNT SEED`.
//!
//! For each trace `FOLDER/random-000.mtf`, the DTD is in the `.dtd` file next to it and, for version 1 DTDs, also
//! embedded in the trace. `FOLDER/tables.jsonl` has one line per trace with the row count of each table, or the error
//! that ends the table. `FOLDER/damaged-000.mtf` is a copy that is truncated or has some bytes changed; every second
//! copy has its checksums corrected so that readers get past them. Traces with fewer than 30 rows or with more than one
//! refused table are discarded, because they leave little to compare. `dev/scripts/random-traces` compares the tables with
//! the output of `metatfc dump`.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test")]

use std::fs;
use std::path::Path;

use metatf_arrow::{OpenOptions, Scan, message, open};
use metatf_tests::example::Example;
use metatf_tests::random::Seed;
use metatf_tests::targets::mend;
use serde_json::{Map, Value, json};

fn main() {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let [folder, count, seed] = &args[..] else {
        eprintln!("usage: random_traces FOLDER COUNT SEED");
        std::process::exit(2);
    };
    let (folder, mut random) = (Path::new(folder), Random(seed.parse().unwrap()));
    fs::create_dir_all(folder).unwrap();
    let mut lines = String::new();
    let mut n = 0;
    while n < count.parse::<u32>().unwrap() {
        let seed = Seed { dtd: random.bytes(400), data: random.bytes(4000), options: random.exactly(9) };
        let example = Example::new(&seed, true);
        let write = |name: &str, trace: &[u8]| {
            let path = folder.join(format!("{name}-{n:03}.mtf"));
            fs::write(path.with_extension("dtd"), &example.text).unwrap();
            fs::write(&path, trace).unwrap();
            path
        };
        let path = write("random", &example.trace);
        let tables = tables(&path, &example);
        let rows = tables.values().filter_map(Value::as_u64).sum::<u64>();
        if rows < 30 || tables.values().filter(|rows| rows.is_string()).count() > 1 {
            continue;
        }
        lines += &json!({ "trace": path, "tables": tables }).to_string();
        lines += "\n";
        let damaged = damage(&mut random, example.trace.clone());
        write("damaged", &if n % 2 == 0 { damaged } else { mend(&damaged) });
        n += 1;
    }
    fs::write(folder.join("tables.jsonl"), lines).unwrap();
}

/// Returns the row count of each table, or its error message.
fn tables(path: &Path, example: &Example) -> Map<String, Value> {
    let mut all = Map::new();
    for table in open(path, &OpenOptions { dtd: Some(example.schema.clone()), ..OpenOptions::default() }).unwrap() {
        let batches = table.scan(&Scan { threads: 1, ..Scan::default() }).unwrap();
        let rows = batches.map(|batch| batch.map(|batch| batch.num_rows())).sum::<Result<usize, _>>();
        all.insert(table.name().to_owned(), rows.map_or_else(|error| message(&error).into(), Into::into));
    }
    all
}

/// Changes up to four bytes of a trace, or truncates it.
fn damage(random: &mut Random, mut trace: Vec<u8>) -> Vec<u8> {
    match random.below(4) {
        0 => trace.truncate(random.below(trace.len())),
        changes => {
            for _ in 0..=changes {
                let at = random.below(trace.len());
                trace[at] = random.next().to_le_bytes()[0];
            }
        }
    }
    trace
}

/// A SplitMix64 generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() >> 32).unwrap() % n
    }

    fn bytes(&mut self, most: usize) -> Vec<u8> {
        let length = self.below(most);
        self.exactly(length)
    }

    fn exactly(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next().to_le_bytes()[0]).collect()
    }
}
