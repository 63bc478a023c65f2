//! Writes the inputs that the fuzz targets start from, made of the vectors: `fuzz_seeds FOLDER`; see `fuzz/seed`.

use metatf_tests::targets::{TARGETS, vectors};
use std::path::Path;

fn main() -> std::io::Result<()> {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("usage: fuzz_seeds FOLDER");
        std::process::exit(2);
    };
    for target in TARGETS {
        let folder = Path::new(&folder).join(target.name);
        std::fs::create_dir_all(&folder)?;
        let mut count = 0;
        for path in vectors() {
            for seed in (target.seeds)(&path, &std::fs::read(&path)?) {
                std::fs::write(folder.join(format!("vector-{count:04}")), seed)?;
                count += 1;
            }
        }
        println!("{}: {count} seeds", target.name);
    }
    Ok(())
}
