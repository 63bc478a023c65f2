#[metatf_derive::metatf(dtd = "x.dtd")]
struct M;

fn main() {}
