//! Events from a program that has neither the standard library nor memory to allocate: firmware, a kernel, a boot loader.
#![no_std]
#![forbid(unsafe_code)]

/// Emitters of `pools.dtd`, which the build script makes.
#[allow(missing_docs, unreachable_pub, reason = "all of it, whatever the program takes")]
pub mod pools {
    include!(concat!(env!("OUT_DIR"), "/pools.rs"));
}

use pools::Emitter;

/// What the device does: makes a pool and gives out its blocks. `write` sends bytes where they are kept, to flash or through a serial port,
/// and `clock` is the device's. Returns whether the whole trace was written.
// region: run
pub fn run(clock: fn() -> u64, write: impl FnMut(&[u8]) -> bool) -> bool {
    let mut buffer = [0; 1024];
    let Some(mut emitter) = Emitter::begin(&mut buffer, clock, write) else { return false };
    emitter.control = u64::MAX;
    pools::create(&mut emitter, 3, 32, "blocks of 32 bytes");
    for block in 0..500 {
        pools::alloc(&mut emitter, 0x2000_0000 + 32 * block, 3);
    }
    pools::grow(&mut emitter, 3, 0.75);
    emitter.finish()
}
// endregion
