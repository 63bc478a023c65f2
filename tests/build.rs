//! Generates a reader and writer for the DTD of every good vector, one for all vectors with the same text, and a list that has
//! the one of each vector; and likewise for shipped DTDs with stream sections.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Shipped DTDs whose records take values from stream sections, by what they say or by metadata.
const SHIPPED: [&str; 2] = ["HATF10-split", "heap"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let vectors = Path::new("vectors/good");
    println!("cargo:rerun-if-changed={}", vectors.display());
    let out_dir = std::path::PathBuf::from(std::env::var("OUT_DIR")?);
    let (mut modules, mut list) = (String::new(), String::new());
    let mut known = BTreeMap::new();
    let mut folders: Vec<_> = std::fs::read_dir(vectors)?.collect::<Result<_, _>>()?;
    folders.sort_by_key(std::fs::DirEntry::file_name);
    for folder in folders {
        let name = folder.file_name().to_string_lossy().into_owned();
        let dtd = folder.path().join("format.dtd");
        if !dtd.exists() {
            continue;
        }
        let text = std::fs::read(&dtd)?;
        if !known.contains_key(&text) {
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
    for name in SHIPPED {
        let module = format!("shipped_{}", name.replace('-', "_").to_lowercase());
        let file = format!("{module}.rs");
        let dtd = format!("../dtds/{name}.dtd");
        println!("cargo:rerun-if-changed={dtd}");
        metatf_codegen::Config::new().dtd(dtd).file_name(&file).module(&module).compile()?;
        writeln!(modules, "include!(concat!(env!(\"OUT_DIR\"), \"/{file}\"));")?;
        writeln!(list, "    ({name:?}, Ways::of::<{module}::Protocol>()),")?;
    }
    let list = format!("static SHIPPED: &[(&str, Ways)] = &[\n{list}];\n");
    std::fs::write(out_dir.join("shipped.rs"), modules + &list)?;
    Ok(())
}
