// SPDX-License-Identifier: Apache-2.0
//! What document 004 measured.

/// The jobs, in the order of its tables.
pub const JOBS: [&str; 6] = [
    "dedup",
    "blackscholes",
    "ferret",
    "freqmine",
    "canneal",
    "fft",
];

/// Part 3: seconds of each job, mean of three runs.
pub const PART3_S: [f64; 6] = [22.33, 80.33, 287.33, 71.67, 161.33, 80.0];
/// Part 3: how far each job's three runs are apart, their standard deviation. Times are whole seconds there: three of
/// which one is a second longer give 0.47, and two seconds longer 0.94.
pub const PART3_APART_S: [f64; 6] = [0.94, 0.47, 0.94, 0.47, 1.25, 4.90];
/// Part 3: seconds until all had ended, and how far those are apart.
pub const PART3_TOTAL_S: f64 = 325.0;
/// See [`PART3_TOTAL_S`].
pub const PART3_TOTAL_APART_S: f64 = 1.41;
/// Part 3: share of memcached's intervals with a p95 above 2 ms, by run.
pub const PART3_VIOLATIONS: [f64; 3] = [0.0; 3];
/// The same where all jobs were created at once.
pub const PART3_NAIVE_S: f64 = 423.0;

/// A row of part 4.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part4 {
    /// Seconds from one step of the load to the next.
    pub interval_s: f64,
    /// Seconds of each job, in the order of [`JOBS`]; mean of three runs.
    pub jobs_s: Option<[f64; 6]>,
    /// How far they are apart in the three runs: their standard deviation.
    pub apart_s: Option<[f64; 6]>,
    /// Seconds until all had ended, and how far those are apart.
    pub total_s: Option<(f64, f64)>,
    /// Share of the intervals with a p95 above 1.5 ms, by run.
    pub violations: &'static [f64],
}

/// At 10, 6 and 5 s.
pub const PART4: [Part4; 3] = [
    Part4 {
        interval_s: 10.0,
        jobs_s: Some([166.3, 403.0, 962.3, 481.7, 728.3, 208.3]),
        apart_s: Some([27.9, 99.8, 48.1, 24.9, 66.4, 5.4]),
        total_s: Some((1569.8, 25.4)),
        violations: &[0.0333, 0.0266, 0.0167],
    },
    Part4 {
        interval_s: 6.0,
        jobs_s: Some([171.7, 397.3, 936.3, 493.3, 790.0, 210.0]),
        apart_s: Some([11.9, 76.5, 34.7, 5.0, 98.5, 2.2]),
        total_s: Some((1571.3, 9.0)),
        violations: &[0.0267, 0.03, 0.0267],
    },
    Part4 {
        interval_s: 5.0,
        jobs_s: None,
        apart_s: None,
        total_s: None,
        violations: &[0.0305],
    },
];

impl Part4 {
    /// Mean of the runs.
    #[must_use]
    pub fn violation(&self) -> f64 {
        self.violations.iter().sum::<f64>() / self.violations.len() as f64
    }
}
