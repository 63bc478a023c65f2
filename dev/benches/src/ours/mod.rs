//! The loops using the readers and writers of this project.

/// Defines loops over a `Trace` that sum the result of a function `fields` over its records.
macro_rules! loops {
    () => {
        fn sum_next(mut trace: Trace<'_>) -> Result<u64> {
            let mut sum = 0_u64;
            while let Some(record) = trace.next()? {
                sum = sum.wrapping_add(fields(&record));
            }
            Ok(sum)
        }

        /// Returns the sum of all fields, record by record.
        ///
        /// # Errors
        /// Returns the errors of the trace.
        pub fn all(trace: &[u8]) -> Result<u64> {
            sum_next(Trace::from_slice(trace)?)
        }

        fn sum_each(mut trace: Trace<'_>) -> Result<u64> {
            let mut sum = 0_u64;
            trace.for_each(|record| sum = sum.wrapping_add(fields(&record)))?;
            Ok(sum)
        }

        /// Returns the sum of all fields, using `for_each`.
        ///
        /// # Errors
        /// Returns the errors of the trace.
        pub fn each_all(trace: &[u8]) -> Result<u64> {
            sum_each(Trace::from_slice(trace)?)
        }

        /// Returns the sum of all fields. Each group is read by one of this many threads.
        ///
        /// # Errors
        /// Returns the errors of the trace.
        #[cfg(feature = "parallel")]
        pub fn par_all(trace: &[u8], threads: usize) -> Result<u64> {
            let mut all = 0_u64;
            Trace::from_slice(trace)?.par_groups().threads(threads).unordered(
                |group| {
                    let mut sum = 0_u64;
                    group.for_each(|record| sum = sum.wrapping_add(fields(&record)))?;
                    Ok::<_, metatf::Error>(sum)
                },
                |sum| {
                    all = all.wrapping_add(sum);
                    Ok(())
                },
            )?;
            Ok(all)
        }
    };
}

pub mod hatf10;
pub mod heap;
pub mod names;
pub mod universal;
