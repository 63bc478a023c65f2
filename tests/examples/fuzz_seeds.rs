//! Writes the inputs that the fuzz targets start from, made of the vectors: `fuzz_seeds FOLDER`; see `dev/fuzz/seed`.

use metatf_tests::targets::{TARGETS, TARGETS_ELSEWHERE, vectors};
use std::path::Path;

fn main() -> std::io::Result<()> {
    let Some(folder) = std::env::args_os().nth(1) else {
        eprintln!("usage: fuzz_seeds FOLDER");
        std::process::exit(2);
    };
    let here = TARGETS.iter().map(|target| (target.name, target.seeds));
    for (name, seeds) in here.chain(TARGETS_ELSEWHERE.iter().copied()) {
        let folder = Path::new(&folder).join(name);
        std::fs::create_dir_all(&folder)?;
        let mut count = 0;
        for path in vectors() {
            for seed in seeds(&path, &std::fs::read(&path)?) {
                std::fs::write(folder.join(format!("vector-{count:04}")), seed)?;
                count += 1;
            }
        }
        println!("{name}: {count} seeds");
    }
    Ok(())
}
