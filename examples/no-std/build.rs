fn main() -> Result<(), metatf_codegen::Error> {
    metatf_codegen::Config::new().dtd("../telemetry/pools.dtd").no_std_emitters().compile()
}
