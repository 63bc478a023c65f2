#[metatf_derive::metatf(dtd = "dtds/nowhere.dtd")]
mod m {}

fn main() {}
