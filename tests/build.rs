//! Generates readers and writers for the DTDs of chosen good vectors, with `METATF_ALL=1` of all of them: one for all vectors with the
//! same text, and a list that has the one of each vector; and so for DTDs with stream sections.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

#[path = "src/fuzzed.rs"]
#[allow(unreachable_pub, reason = "the library has it, too")]
mod fuzzed;

/// DTDs whose records take values from stream sections, by what they say or by metadata; one whose values have names; the one of golden
/// files.
const MORE: [&str; 8] = [
    fuzzed::MORE[0],
    fuzzed::MORE[1],
    fuzzed::MORE[2],
    fuzzed::MORE[3],
    fuzzed::MORE[4],
    "../dtds/HATF10-split.dtd",
    "../metatf-codegen/tests/golden/named.dtd",
    "golden/1.0/every.dtd",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let vectors = Path::new("vectors/good");
    println!("cargo:rerun-if-changed={}", vectors.display());
    println!("cargo:rerun-if-env-changed=METATF_ALL");
    let out_dir = std::path::PathBuf::from(std::env::var("OUT_DIR")?);
    let (mut modules, mut list) = (String::new(), String::new());
    let mut known = BTreeMap::new();
    let mut folders: Vec<_> = std::fs::read_dir(vectors)?.collect::<Result<_, _>>()?;
    let all = std::env::var_os("METATF_ALL").is_some_and(|value| value == "1");
    let chosen = || fuzzed::VECTORS.iter().chain(&fuzzed::TESTED);
    let place = |name: &str| chosen().position(|known| *known == name).unwrap_or(usize::MAX);
    folders.sort_by_key(|folder| {
        let name = folder.file_name().to_string_lossy().into_owned();
        (place(&name), name)
    });
    let fuzzing = std::env::var_os("CARGO_CFG_FUZZING").is_some();
    if fuzzing {
        folders.truncate(fuzzed::VECTORS.len());
    }
    for folder in folders {
        let name = folder.file_name().to_string_lossy().into_owned();
        let dtd = folder.path().join("format.dtd");
        if !dtd.exists() {
            continue;
        }
        let text = std::fs::read(&dtd)?;
        if !known.contains_key(&text) {
            if !all && place(&name) == usize::MAX {
                continue;
            }
            let module = format!("v_{}", name.replace('-', "_"));
            let file = format!("{module}.rs");
            metatf_codegen::Config::new().dtd(dtd).file_name(&file).module(&module).compile()?;
            writeln!(modules, "include!(concat!(env!(\"OUT_DIR\"), \"/{file}\"));")?;
            known.insert(text.clone(), module);
        }
        let module = &known[&text];
        writeln!(list, "        ({name:?}, Ways::of::<{module}::Protocol>()),")?;
    }
    let list = format!("static VECTORS: &[(&str, Ways)] = &[\n{list}];\n");
    std::fs::write(out_dir.join("vectors.rs"), modules + &list)?;
    let (mut modules, mut list) = (String::new(), String::new());
    for dtd in MORE.into_iter().take(if fuzzing { fuzzed::MORE.len() } else { MORE.len() }) {
        let module = format!("more_{}", modules.len());
        let file = format!("{module}.rs");
        println!("cargo:rerun-if-changed={dtd}");
        metatf_codegen::Config::new().dtd(dtd).file_name(&file).module(&module).compile()?;
        writeln!(modules, "include!(concat!(env!(\"OUT_DIR\"), \"/{file}\"));")?;
        writeln!(list, "    ({dtd:?}, Ways::of::<{module}::Protocol>()),")?;
    }
    let list = format!("static MORE: &[(&str, Ways)] = &[\n{list}];\n");
    std::fs::write(out_dir.join("more.rs"), modules + &list)?;
    Ok(())
}
