fn main() {
    metatf_codegen::Config::new("jobs.dtd").generate().unwrap();
}
