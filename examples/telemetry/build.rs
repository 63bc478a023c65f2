fn main() -> Result<(), metatf_codegen::Error> {
    let config = metatf_codegen::Config::new().dtd("pools.dtd").emitters("crate::pools");
    // A feature of this crate leaves the events of single objects out of the program.
    if std::env::var_os("CARGO_FEATURE_WITHOUT_OBJECTS").is_some() {
        return config.without_kind("Object").compile();
    }
    config.compile()
}
