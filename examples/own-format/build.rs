fn main() {
    metatf_codegen::Config::new("requests.dtd").generate().unwrap();
}
