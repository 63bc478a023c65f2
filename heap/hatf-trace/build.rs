//! Generates readers and writers for the DTDs of heap traces, as any user of these DTDs would.

fn main() -> Result<(), metatf_codegen::Error> {
    metatf_codegen::Config::new().dtd("dtds/HATF10.dtd").dtd("dtds/heap.dtd").compile()
}
