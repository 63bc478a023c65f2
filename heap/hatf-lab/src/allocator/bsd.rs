//! BSD: Kingsley's allocator from 4.2BSD, with one bucket per power of two. Blocks are never split or merged.
//!
//! (Table 6 of the paper calls the allocator "buddy-based"; section 4.4 correctly states that it "does not coalesce
//! items".)

use super::{ADDRESS_SPACE, Act, Acts, Allocator, Place};

/// Parameters that the paper leaves open. On a VAX, 4.2BSD used a 4-byte header and blocks of 8 bytes or more; 4.3BSD
/// refilled buckets by pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BsdSettings {
    /// Bytes before each block.
    pub header: u64,
    /// The smallest block size in bytes, a power of two.
    pub least: u64,
    /// Bytes that an empty bucket requests from the system, unless its block size is larger.
    pub refill: u64,
}

impl Default for BsdSettings {
    fn default() -> Self {
        Self { header: 8, least: 16, refill: 2048 }
    }
}

/// A power-of-two allocator.
///
/// # Examples
///
/// With a header of 4 bytes, an object of 5 bytes needs a block of 16 bytes:
///
/// ```
/// use hatf_lab::allocator::{Acts, Allocator, Bsd, BsdSettings};
///
/// let (mut bsd, mut acts) = (Bsd::new(BsdSettings { header: 4, least: 8, refill: 4_096 }), Acts::default());
/// bsd.switch_to(0);
/// let addresses = [4, 4, 5].map(|size| bsd.allocate(size, &mut acts).map(|place| place.address));
/// assert_eq!(addresses, [Some(4), Some(8 + 4), Some(4_096 + 4)]);
/// ```
#[derive(Debug)]
pub struct Bsd {
    settings: BsdSettings,
    /// The free blocks (taken from the end) and the number of blocks in use, for each power of two.
    buckets: Vec<(Vec<u64>, u64)>,
    heap: u64,
    touched: usize,
}

impl Bsd {
    /// Creates an empty heap. `least` and `refill` should be powers of two.
    #[must_use]
    pub fn new(settings: BsdSettings) -> Self {
        let buckets = (0..64).map(|_| (Vec::new(), 0)).collect();
        Self { settings, buckets, heap: 0, touched: 0 }
    }

    /// Returns the bucket for a request and its block size.
    fn bucket(&self, size: u64) -> Option<(usize, u64)> {
        let block = size.checked_add(self.settings.header)?.checked_next_power_of_two()?.max(self.settings.least);
        Some((block.trailing_zeros() as usize, block))
    }

    /// Requests memory from the system for an empty bucket. Blocks are used in ascending address order.
    #[cold]
    fn refill(&mut self, bucket: usize, block: u64, acts: &mut Acts) -> Option<()> {
        let bytes = self.settings.refill.max(block);
        let end = self.heap.checked_add(bytes).filter(|end| *end <= ADDRESS_SPACE)?;
        let (free, _) = self.buckets.get_mut(bucket)?;
        free.extend((0..bytes / block).rev().map(|n| self.heap + n * block));
        acts.add(Act::Cut, free.len() as u64);
        acts.note(Act::Sbrk);
        self.heap = end;
        Some(())
    }
}

impl Allocator for Bsd {
    fn name(&self) -> String {
        let BsdSettings { header, least, refill } = self.settings;
        format!("bsd:header={header}:least={least}:refill={refill}")
    }

    fn allocate(&mut self, size: u64, acts: &mut Acts) -> Option<Place> {
        let (bucket, block) = self.bucket(size)?;
        if self.buckets.get(bucket)?.0.is_empty() {
            self.refill(bucket, block, acts)?;
        }
        let (free, used) = self.buckets.get_mut(bucket)?;
        let address = free.pop()? + self.settings.header;
        *used += 1;
        acts.add(Act::Doubled, u64::from(block.trailing_zeros() - self.settings.least.trailing_zeros()));
        acts.note(Act::Unlinked);
        self.touched = bucket;
        Some(Place { address, block: 0 })
    }

    fn free(&mut self, place: Place, size: u64, acts: &mut Acts) {
        let bucket = self.bucket(size).map_or(0, |(bucket, _)| bucket);
        if let Some((free, used)) = self.buckets.get_mut(bucket) {
            free.push(place.address - self.settings.header);
            *used -= 1;
        }
        acts.note(Act::Inserted);
        self.touched = bucket;
    }

    fn heap(&self) -> u64 {
        self.heap
    }

    fn check_touched(&self) -> Result<(), String> {
        let (free, _) = self.buckets.get(self.touched).ok_or("no such bucket")?;
        match free.last() {
            Some(top) if top + (1 << self.touched) > self.heap => {
                Err(format!("free block at {top} ends above the heap"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that free and used blocks add up to the heap and that no two free blocks overlap.
    fn check(&self) -> Result<(), String> {
        let sizes = (0..).map(|power| 1_u64 << power);
        let sum: u64 =
            self.buckets.iter().zip(sizes.clone()).map(|((free, used), size)| (free.len() as u64 + used) * size).sum();
        if sum != self.heap {
            return Err(format!("the blocks add up to {sum} bytes, but the heap has {}", self.heap));
        }
        let mut free: Vec<(u64, u64)> = self
            .buckets
            .iter()
            .zip(sizes)
            .flat_map(|((free, _), size)| free.iter().map(move |at| (*at, at + size)))
            .collect();
        free.sort_unstable();
        match free.windows(2).find(|pair| matches!(pair, [first, second] if first.1 > second.0)) {
            Some(pair) => Err(format!("free blocks overlap: {pair:?}")),
            None => Ok(()),
        }
    }
}
