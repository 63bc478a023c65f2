fn main() {
    metatf_codegen::Config::new("v1.dtd").generate().unwrap();
    metatf_codegen::Config::new("v2.dtd").generate().unwrap();
}
