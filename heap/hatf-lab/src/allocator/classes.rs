//! Size classes.

/// The largest size for which the table contains the class.
const TABLE: usize = 4096;

/// The block sizes of an allocator, in ascending order.
#[derive(Debug)]
pub(super) struct Classes {
    sizes: Vec<u64>,
    /// The class of each size up to `TABLE`, indexed by the size in 8-byte words.
    table: Vec<u16>,
}

impl Classes {
    pub(super) fn new(sizes: Vec<u64>) -> Self {
        let class = |size: u64| u16::try_from(sizes.partition_point(|of| *of < size)).unwrap_or(u16::MAX);
        let table = (0..=TABLE as u64 / 8).map(|words| class(words * 8)).collect();
        Self { sizes, table }
    }

    /// Returns class sizes with `steps` equal steps per doubling, from `quantum` up to `most` bytes. Up to `steps`
    /// quanta, every multiple of the quantum is a class.
    pub(super) fn geometric(quantum: u64, steps: u64, most: u64) -> Vec<u64> {
        let mut sizes: Vec<u64> = (1..=steps).map(|n| n * quantum).collect();
        let mut base = steps * quantum;
        while base < most {
            sizes.extend((1..=steps).map(|n| base + n * (base / steps)));
            base *= 2;
        }
        sizes.retain(|size| *size <= most);
        sizes
    }

    /// Returns the smallest class for a size, or `None` if the size exceeds all classes.
    #[inline]
    pub(super) fn of(&self, size: u64) -> Option<usize> {
        if size <= TABLE as u64 {
            let class = usize::try_from(size.div_ceil(8)).ok().and_then(|words| self.table.get(words))?;
            return (usize::from(*class) < self.sizes.len()).then_some(usize::from(*class));
        }
        let class = self.sizes.partition_point(|of| *of < size);
        (class < self.sizes.len()).then_some(class)
    }

    /// Returns the block size of a class in bytes.
    #[inline]
    pub(super) fn size(&self, class: usize) -> u64 {
        self.sizes.get(class).copied().unwrap_or(0)
    }

    pub(super) fn len(&self) -> usize {
        self.sizes.len()
    }

    pub(super) fn sizes(&self) -> &[u64] {
        &self.sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_to_a_doubling() {
        let classes = Classes::new(Classes::geometric(16, 4, 320));
        assert_eq!(classes.sizes(), [16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]);
        assert_eq!([0, 1, 16, 17, 129, 320].map(|size| classes.of(size)), [0, 0, 0, 1, 8, 12].map(Some));
        assert_eq!((classes.of(321), classes.of(1 << 40), classes.len()), (None, None, 13));
    }
}
