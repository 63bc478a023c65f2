//! Live bytes of each site at up to 1,000 points in time.
//!
//! [`Moments`](crate::moments::Moments) stores for each block when it was allocated and freed, which takes most of the
//! time of a pass. This module stores only the sums.

use crate::moments::{Ends, Moment, key, parts};
use crate::objects::ObjectEvent;
use crate::site_counts::Sites;

/// The maximum number of stored values.
const MOST: usize = 2 << 20;

/// The live bytes of each site at the ends of moments.
///
/// # Examples
///
/// ```
/// use hatf_lab::history::LiveBySiteBuilder;
/// use hatf_lab::sites::Sites;
/// use hatf_lab::{Objects, Observer as _};
/// use hatf_trace::Event;
///
/// let (mut objects, mut sites, mut builder) = (Objects::new(), Sites::with_changes(), LiveBySiteBuilder::default());
/// for event in [Event::malloc(0x1000, 100), Event::malloc(0x2000, 20), Event::free(0x1000)] {
///     objects.follow(&event, 7, &mut |event| {
///         builder.before(event, &mut sites);
///         sites.event(event)
///     })?;
/// }
/// let live = builder.finish(&sites);
/// assert_eq!((live.moments.len(), live.values[0].site, live.values[0].bytes), (1, 7, 20));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveBySite {
    /// The moments, in order.
    pub moments: Vec<Moment>,
    /// The values that differ from those at the end of the previous moment, ordered by site and moment.
    pub values: Vec<LiveBytes>,
}

/// The live bytes of a site at the end of a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveBytes {
    /// The site.
    pub site: u32,
    /// The number of the moment.
    pub moment: u16,
    /// The live bytes, weighted if the trace is a sample.
    pub bytes: u64,
}

/// Builds a [`LiveBySite`] while [`Sites`] counts the same events.
#[derive(Clone, Debug, Default)]
pub struct LiveBySiteBuilder {
    ends: Ends,
    /// Live bytes by the [`key`] of site and moment. Keys are distinct.
    values: Vec<(u64, u64)>,
}

impl LiveBySiteBuilder {
    /// Handles an event that `sites`, created with [`Sites::with_changes`], has not counted yet.
    #[inline]
    pub fn before(&mut self, event: &ObjectEvent, sites: &mut Sites) {
        if self.ends.are_before(event) {
            self.end(sites);
            sites.forget_changes();
        }
        self.ends.note(event);
    }

    /// Returns the live bytes after `sites` has counted the same events.
    #[must_use]
    pub fn finish(&self, sites: &Sites) -> LiveBySite {
        let mut whole = self.clone();
        if whole.ends.has_events() {
            whole.end(sites);
        }
        whole.values.sort_unstable_by_key(|(key, _)| *key);
        let value = |(key, bytes)| {
            let (site, moment) = parts(key);
            LiveBytes { site, moment, bytes }
        };
        LiveBySite { moments: whole.ends.finish(), values: whole.values.into_iter().map(value).collect() }
    }

    /// Ends the current moment.
    #[cold]
    fn end(&mut self, sites: &Sites) {
        let moment = self.ends.number();
        self.values.extend(sites.changes().map(|(site, live)| (key(site, moment), live)));
        self.ends.end(0);
        while let Some(now) = self.ends.join(self.values.len() > MOST) {
            for (value, _) in &mut self.values {
                let (site, moment) = parts(*value);
                *value = key(site, now.get(usize::from(moment)).copied().unwrap_or(moment));
            }
            // A stable sort preserves the order of values with equal keys, of which the last one remains.
            self.values.sort_by_key(|(key, _)| *key);
            self.values.dedup_by(|value, before| {
                let same = value.0 == before.0;
                if same {
                    *before = *value;
                }
                same
            });
        }
    }
}
