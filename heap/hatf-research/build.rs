//! Generates the readers and writers for the DTDs of scoped memory, as any user of these DTDs would.

fn main() -> Result<(), metatf_codegen::Error> {
    metatf_codegen::Config::new().dtd("dtds/scoped.dtd").dtd("dtds/scoped-log.dtd").compile()
}
