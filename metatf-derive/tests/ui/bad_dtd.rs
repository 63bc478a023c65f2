#[metatf_derive::metatf(dtd = "dtds/bad.dtd")]
mod m {}

fn main() {}
