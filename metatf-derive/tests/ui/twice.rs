#[metatf_derive::metatf(dtd = "x.dtd", dtd = "y.dtd")]
mod m {}

fn main() {}
