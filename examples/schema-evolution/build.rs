fn main() -> Result<(), metatf_codegen::Error> {
    metatf_codegen::Config::new().dtd("v1.dtd").dtd("v2.dtd").compile()
}
