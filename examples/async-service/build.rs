fn main() -> Result<(), metatf_codegen::Error> {
    metatf_codegen::Config::new().dtd("service.dtd").compile()
}
