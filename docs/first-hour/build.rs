fn main() -> Result<(), metatf_codegen::Error> {
    metatf_codegen::Config::new().dtd("requests.dtd").dtd("requests2.dtd").compile()
}
