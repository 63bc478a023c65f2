//! The P² algorithm, which estimates quantiles of a stream in constant memory.
//!
//! Jain and Chlamtac, "The P² Algorithm for Dynamic Calculation of Quantiles and Histograms Without Storing Observations",
//! CACM 28(10), 1985: the histogram of equiprobable cells.

/// The number of cells in the histogram. There is one marker more.
pub(super) const CELLS: usize = 100;

/// Markers that adapt to the observations.
#[derive(Clone, Debug, Default)]
pub(super) struct P2 {
    heights: Vec<f64>,
    /// The number of observations that do not exceed each marker.
    positions: Vec<f64>,
    count: f64,
}

impl P2 {
    pub(super) fn note(&mut self, value: f64) {
        self.count += 1.0;
        if self.heights.len() <= CELLS {
            // The first observations become the first markers.
            let at = self.heights.partition_point(|height| *height <= value);
            self.heights.insert(at, value);
            self.positions.push(self.count);
            return;
        }
        let above = self.heights.partition_point(|height| *height <= value).clamp(1, CELLS);
        if let Some(least) = self.heights.first_mut() {
            *least = least.min(value);
        }
        if let Some(most) = self.heights.last_mut() {
            *most = most.max(value);
        }
        self.positions.iter_mut().skip(above).for_each(|position| *position += 1.0);
        (1..CELLS).for_each(|at| self.adjust(at));
    }

    /// Moves a marker by one position if it deviates from its desired position by one or more and has room to move.
    fn adjust(&mut self, at: usize) {
        let cells = super::law::wide(CELLS as u64);
        let desired = 1.0 + super::law::wide(at as u64) * (self.count - 1.0) / cells;
        let (Some([n0, n1, n2]), Some([q0, q1, q2])) = (around(&self.positions, at), around(&self.heights, at)) else {
            return;
        };
        let off = desired - n1;
        let step = match () {
            () if off >= 1.0 && n2 - n1 > 1.0 => 1.0,
            () if off <= -1.0 && n0 - n1 < -1.0 => -1.0,
            () => return,
        };
        let parabolic = q1
            + step / (n2 - n0) * ((n1 - n0 + step) * (q2 - q1) / (n2 - n1) + (n2 - n1 - step) * (q1 - q0) / (n1 - n0));
        let height = match () {
            () if q0 < parabolic && parabolic < q2 => parabolic,
            () if step > 0.0 => q1 + (q2 - q1) / (n2 - n1),
            () => q1 - (q0 - q1) / (n0 - n1),
        };
        if let (Some(place), Some(position)) = (self.heights.get_mut(at), self.positions.get_mut(at)) {
            *place = height;
            *position += step;
        }
    }

    /// Returns the markers, which are the minimum, equidistant quantiles and the maximum. If there are few
    /// observations, returns all observations.
    pub(super) fn markers(&self) -> &[f64] {
        &self.heights
    }
}

fn around(values: &[f64], at: usize) -> Option<[f64; 3]> {
    values.get(at - 1..=at + 1)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::random::Random;

    #[test]
    fn quantiles_of_a_smooth_distribution() {
        let (mut p2, mut random) = (P2::default(), Random::new(1, 1));
        (0..200_000).for_each(|_| p2.note(random.unit()));
        for (at, marker) in p2.markers().iter().enumerate() {
            let expected = at as f64 / CELLS as f64;
            assert!((marker - expected).abs() < 0.01, "{at}: {marker}");
        }
    }

    /// Regardless of ties and jumps, markers ascend and stay within the range of observations.
    #[test]
    fn markers_ascend() {
        let (mut p2, mut random) = (P2::default(), Random::new(2, 1));
        assert!(p2.markers().is_empty());
        for n in 0..20_000_u64 {
            let value = [28.0, 29.0, 1e9, 0.0][(random.bits() % 4) as usize] * if n % 1000 == 0 { 1e3 } else { 1.0 };
            p2.note(value);
        }
        let markers = p2.markers();
        assert!(markers.is_sorted() && markers[0] == 0.0 && markers[CELLS] == 1e12, "{markers:?}");
    }
}
