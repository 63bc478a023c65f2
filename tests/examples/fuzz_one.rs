//! Runs a fuzz target over files, on the stable toolchain: `fuzz_one TARGET FILE..`.

use metatf_tests::targets::TARGETS;

fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_default();
    let Some(target) = TARGETS.iter().find(|t| t.name == name) else {
        eprintln!(
            "usage: fuzz_one TARGET FILE..; the targets: {:?}",
            TARGETS.iter().map(|t| t.name).collect::<Vec<_>>()
        );
        std::process::exit(2);
    };
    for file in args {
        println!("{file}");
        (target.run)(&std::fs::read(&file)?);
    }
    Ok(())
}
