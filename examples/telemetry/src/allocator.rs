//! A toy allocator: an arena for each thread, and pools of blocks of one size in it.

use crate::pools;

/// Bytes of an arena.
const ARENA: usize = 1 << 20;
/// Blocks by which a pool grows.
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
    /// Reserves memory, and makes pools for blocks of these sizes.
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

    /// Gives out a block of a pool.
    pub fn alloc(&mut self, pool: u8) -> Option<usize> {
        let pool = self.pools.get_mut(usize::from(pool))?;
        if pool.free.is_empty() {
            // The share of the arena is computed only where somebody wants to know.
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

    /// Takes a block back.
    pub fn free(&mut self, pool: u8, address: usize) {
        pools::free!(address = address as u64);
        if let Some(pool) = self.pools.get_mut(usize::from(pool)) {
            pool.free.push(address - self.memory.as_ptr() as usize);
        }
    }
}
