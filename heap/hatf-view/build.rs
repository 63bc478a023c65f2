//! Generates the reader and writer for the DTD of heap profiles, as any user of the DTD would.

fn main() -> Result<(), metatf_codegen::Error> {
    metatf_codegen::Config::new().dtd("dtds/heapprof.dtd").compile()
}
