//! Generates the reader and the writer of `access.dtd`.

#[cfg(feature = "metatf")]
fn main() -> Result<(), metatf_codegen::Error> {
    metatf_codegen::Config::new().dtd("access.dtd").compile()
}

#[cfg(not(feature = "metatf"))]
fn main() {}
