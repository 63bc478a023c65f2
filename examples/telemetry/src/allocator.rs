//! A toy allocator with an arena per thread, which contains pools of equally sized blocks.

use crate::pools;

/// Size of an arena in bytes.
const ARENA: usize = 1 << 20;
/// Number of blocks by which a pool grows.
const GROW: usize = 64;

/// Blocks of one size.
pub struct Pool {
    number: u8,
    size: usize,
    free: Vec<usize>,
}

/// The memory of a thread.
pub struct Arena {
    memory: Vec<u8>,
    used: usize,
    pools: Vec<Pool>,
}

impl Arena {
    /// Reserves memory and creates pools for blocks of these sizes.
    pub fn new(sizes: &[(&str, u16)]) -> Self {
        pools::arena!(bytes = ARENA as u32);
        let mut arena = Self { memory: vec![0; ARENA], used: 0, pools: Vec::new() };
        pools::label!(address = arena.memory.as_ptr() as u64, id = pools::intern("memory of an arena"));
        for (number, (name, size)) in (0..).zip(sizes) {
            pools::create!(name, pool = number, size = *size);
            arena.pools.push(Pool { number, size: usize::from(*size), free: Vec::new() });
        }
        arena
    }

    /// Allocates a block from a pool.
    pub fn alloc(&mut self, pool: u8) -> Option<usize> {
        let pool = self.pools.get_mut(usize::from(pool))?;
        if pool.free.is_empty() {
            // The fill level of the arena is computed only if the event is enabled.
            pools::grow!(pool = pool.number, used = self.used as f64 / ARENA as f64);
            let end = self.used + GROW * pool.size;
            if end > ARENA {
                return None;
            }
            pool.free.extend((self.used..end).step_by(pool.size));
            self.used = end;
        }
        let at = pool.free.pop()?;
        let address = self.memory.as_ptr() as usize + at;
        pools::alloc!(address = address as u64, pool = pool.number);
        Some(address)
    }

    /// Returns a block to its pool.
    pub fn free(&mut self, pool: u8, address: usize) {
        pools::free!(address = address as u64);
        if let Some(pool) = self.pools.get_mut(usize::from(pool)) {
            pool.free.push(address - self.memory.as_ptr() as usize);
        }
    }
}
