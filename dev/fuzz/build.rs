//! Generates and compiles the C readers of the target `read_c`, with coverage for libFuzzer and AddressSanitizer.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

#[path = "../../tests/src/c_formats.rs"]
mod c_formats;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = env::var("OUT_DIR")?;
    let out = Path::new(&out);
    let vectors = Path::new("../../tests/vectors/good");
    let mut build = cc::Build::new();
    build.flag("-fsanitize-coverage=trace-pc").opt_level(1).define("_GNU_SOURCE", None);
    // Undefined behavior traps, because rustc links no runtime library for it.
    build.flag("-fsanitize=undefined").flag("-fsanitize-undefined-trap-on-error");
    if env::var("CARGO_CFG_SANITIZE").is_ok_and(|list| list.contains("address")) {
        build.flag("-fsanitize=address");
    }
    let mut readers = String::new();
    let mut calls = String::new();
    for (number, name) in c_formats::FORMATS.iter().enumerate() {
        let path = vectors.join(name).join("format.dtd");
        println!("cargo:rerun-if-changed={}", path.display());
        let text = fs::read(&path)?;
        let dtd = metatf_parser::parse("format.dtd", &text).dtd.ok_or("a DTD of a vector is wrong")?;
        let header = metatf_codegen::generate_c_reader(&dtd, &metatf_codegen::Options::new("format.dtd"), "fuzzed")?;
        let source = format!("#define READ read_{number}\n{header}\n{}", fs::read_to_string("read_c.h")?);
        let file = out.join(format!("read_{number}.c"));
        fs::write(&file, format!("#define FUZZED_IMPLEMENTATION\n#define FUZZED_PRINT\n{source}"))?;
        build.file(file);
        writeln!(readers, "fn read_{number}(bytes: *const u8, size: usize, flags: i32, text: *mut *mut u8, length: *mut usize) -> i32;")?;
        writeln!(calls, "(include_str!({:?}), read_{number}),", path.canonicalize()?)?;
    }
    println!("cargo:rerun-if-changed=read_c.h");
    println!("cargo:rerun-if-changed=coverage.c");
    build.try_compile("readers")?;
    cc::Build::new().file("coverage.c").try_compile("coverage")?;
    let all = format!("unsafe extern \"C\" {{ {readers} }}\nstatic READERS: &[(&str, Reader)] = &[{calls}];");
    fs::write(out.join("readers.rs"), all)?;
    Ok(())
}
