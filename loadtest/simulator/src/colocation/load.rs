// SPDX-License-Identifier: Apache-2.0
//! mcperf's dynamic load: a new rate each interval, anything between two limits as likely as the rest.

/// Requests a second (part 4.2).
pub(super) const LEAST: u64 = 5_000;
/// See [`LEAST`].
pub(super) const MOST: u64 = 100_000;
/// Seconds of load (part 4.3).
pub(super) const SECONDS: f64 = 1800.0;
/// `--qps_seed` of the document's loads (parts 4.3 and 4.4).
pub(super) const SEED: u64 = 42;

/// Of `minstd_rand0`, which is `std::default_random_engine` of GNU's C++ library (ISO/IEC 14882, rand.predef).
const FACTOR: u64 = 16_807;
/// See [`FACTOR`].
const MODULUS: u64 = (1 << 31) - 1;

/// The rate of each interval, as mcperf draws it for `--qps_seed`: GNU's `uniform_int_distribution` over
/// `minstd_rand0`. That it is so was found from `target_qps` of the 35 runs of `aux_memcached_mcperf_intervals`
/// with a load that steps: all of their 7,182 rates are those of one seed, 3274. So the document's are known, too.
pub(super) fn rates(interval_s: f64, seed: u64) -> Vec<f64> {
    let intervals = (SECONDS / interval_s).round() as usize;
    let width = (MODULUS - 2) / (MOST - LEAST + 1);
    let mut state = (seed % MODULUS).max(1);
    let draw = std::iter::repeat_with(|| {
        state = state * FACTOR % MODULUS;
        LEAST + (state - 1) / width
    });
    // What is left over at the end of the engine's range is drawn again.
    let fair = draw.filter(|rate| *rate <= MOST);
    fair.take(intervals).map(|rate| rate as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_that_were_recorded() {
        let rates = rates(2.0, 3274);
        assert_eq!(rates[..5], [7434.0, 67201.0, 85927.0, 63953.0, 31595.0]);
        assert_eq!(rates.len(), 900);
        assert_eq!(rates[899], 6651.0);
    }
}
