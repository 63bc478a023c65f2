fn main() -> Result<(), metatf_codegen::Error> {
    let config = metatf_codegen::Config::new().dtd("pools.dtd").emitters("crate::pools");
    // This crate's feature removes the events of individual objects from the program.
    if std::env::var_os("CARGO_FEATURE_WITHOUT_OBJECTS").is_some() {
        return config.without_kind("Object").compile();
    }
    config.compile()
}
