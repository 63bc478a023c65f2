//! Destructors that are compiled once.
//!
//! The compiler emits a type's destructor in every crate that drops a value of the type. The destructor of a reader with
//! everything in it is longer than most programs that read a trace.

use crate::reader::RecordReader;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

/// A value whose destructor is not compiled in other crates.
pub(crate) struct Outlined<T: Discard>(ManuallyDrop<T>);

/// A type without type parameters, so that [`discard`](Self::discard) is compiled in this crate.
pub(crate) trait Discard {
    /// Drops the value.
    fn discard(self);
}

impl Discard for RecordReader<'_> {
    #[inline(never)]
    fn discard(self) {}
}

impl<T: Discard> Outlined<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }
}

impl<T: Discard> Deref for Outlined<T> {
    type Target = T;

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Discard> DerefMut for Outlined<T> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: Discard> Drop for Outlined<T> {
    fn drop(&mut self) {
        // SAFETY: a destructor runs once, and nothing uses the value after it.
        T::discard(unsafe { ManuallyDrop::take(&mut self.0) });
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Cursor, Read};
    use std::sync::Arc;

    #[metatf_derive::metatf(dtd = "tests/dtds/good.dtd")]
    mod readings {}

    /// A source that shares a count of references with the test.
    struct Counted(Cursor<Vec<u8>>, #[allow(dead_code, reason = "only counted")] Arc<()>);

    impl Read for Counted {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0.read(buffer)
        }
    }

    #[test]
    fn a_reader_is_dropped_once() {
        let mut writer = readings::Writer::new(Vec::new()).unwrap();
        for time in 0..3 {
            writer.reading(&readings::Reading { time, vfield: b"x" }).unwrap();
        }
        let file = writer.finish().unwrap();
        let count = Arc::new(());
        let open = |file: &[u8]| {
            let source = Counted(Cursor::new(file.to_vec()), Arc::clone(&count));
            readings::Trace::from_read(source)
        };
        for records in 0..5 {
            let mut trace = open(&file).unwrap();
            for _ in 0..records {
                trace.next().unwrap();
            }
            drop(trace);
            assert_eq!(Arc::strong_count(&count), 1, "after {records} records");
        }
        // An iterator takes the trace, and a panic drops it.
        assert_eq!(open(&file).unwrap().into_iter().count(), 3);
        assert_eq!(Arc::strong_count(&count), 1);
        let panics =
            std::panic::catch_unwind(|| open(&file).unwrap().for_each(|_| std::panic::resume_unwind(Box::new(()))));
        assert!(panics.is_err());
        assert_eq!(Arc::strong_count(&count), 1);
        // A file that is not a trace is dropped with the error.
        assert!(open(b"no trace").is_err());
        assert_eq!(Arc::strong_count(&count), 1);
    }
}
