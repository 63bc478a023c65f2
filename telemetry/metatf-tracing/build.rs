//! Generates readers, writers and emitters for `tracing.dtd`.

fn main() -> Result<(), metatf_codegen::Error> {
    metatf_codegen::Config::new().dtd("tracing.dtd").emitters("crate::records").compile()
}
