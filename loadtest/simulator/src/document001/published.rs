// SPDX-License-Identifier: Apache-2.0
//! Tables 4 and 5 of document 001.

/// Mean, median, 90th, 95th and 99th percentile, in seconds.
pub type Row = [f64; 5];

/// What the columns of a [`Row`] are.
pub const COLUMNS: [&str; 5] = ["mean", "median", "p90", "p95", "p99"];

/// One run: durations and waits of both priorities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rows {
    /// Table 4, priority high.
    pub high_duration: Row,
    /// Table 4, priority low.
    pub low_duration: Row,
    /// Table 5, priority high.
    pub high_wait: Row,
    /// Table 5, priority low.
    pub low_wait: Row,
}

impl Rows {
    /// Each with its name.
    #[must_use]
    pub fn named(&self) -> [(&'static str, Row); 4] {
        [
            ("high duration", self.high_duration),
            ("low duration", self.low_duration),
            ("high wait", self.high_wait),
            ("low wait", self.low_wait),
        ]
    }
}

/// Of the requests, those that connected to the first server tried (section 7.4.3).
pub const FIRST_CONNECTED: f64 = 0.9815;
/// Those that failed by the connection time-out (section 7.4.3).
pub const CONNECT_TIMEOUTS: f64 = 0.0011;

/// Production.
pub const PRODUCTION: Rows = Rows {
    high_duration: [2.65, 0.27, 3.48, 12.56, 46.29],
    low_duration: [7.63, 0.26, 9.77, 32.51, 168.13],
    high_wait: [0.08, 5.0e-5, 1.2e-4, 0.24, 1.87],
    low_wait: [2.88, 4.0e-5, 1.93, 9.76, 80.99],
};

/// Baseline, baseline.
pub const BASELINE_BASELINE: Rows = Rows {
    high_duration: [2.06, 0.22, 2.81, 8.47, 38.31],
    low_duration: [14.13, 0.27, 36.17, 100.47, 216.22],
    high_wait: [0.08, 6.0e-5, 1.9e-4, 0.20, 1.94],
    low_wait: [7.13, 6.0e-5, 14.84, 50.12, 138.50],
};

/// Breaker, baseline.
pub const BREAKER_BASELINE: Rows = Rows {
    high_duration: [1.90, 0.23, 2.78, 8.24, 33.88],
    low_duration: [5.27, 0.25, 11.02, 24.73, 79.26],
    high_wait: [0.07, 6.0e-5, 1.1e-4, 0.09, 1.55],
    low_wait: [1.88, 5.0e-5, 2.74, 9.66, 39.78],
};

/// DAGOR, baseline.
pub const DAGOR_BASELINE: Rows = Rows {
    high_duration: [1.74, 0.21, 2.37, 7.32, 31.83],
    low_duration: [5.39, 0.24, 10.35, 24.19, 92.22],
    high_wait: [0.06, 6.0e-5, 1.1e-4, 0.06, 1.45],
    low_wait: [2.02, 6.0e-5, 2.34, 9.42, 44.99],
};

/// Baseline, dynamic.
pub const BASELINE_DYNAMIC: Rows = Rows {
    high_duration: [2.01, 0.19, 2.72, 9.14, 37.43],
    low_duration: [5.34, 0.22, 8.94, 25.97, 101.51],
    high_wait: [0.06, 6.0e-5, 1.1e-4, 0.09, 1.47],
    low_wait: [1.98, 5.0e-5, 0.88, 7.84, 53.49],
};

/// Breaker, dynamic.
pub const BREAKER_DYNAMIC: Rows = Rows {
    high_duration: [1.88, 0.18, 2.46, 8.27, 34.97],
    low_duration: [3.32, 0.21, 5.16, 12.74, 56.61],
    high_wait: [0.05, 6.0e-5, 1.0e-4, 0.06, 1.25],
    low_wait: [0.82, 4.0e-5, 0.10, 2.45, 18.02],
};

/// DAGOR, dynamic.
pub const DAGOR_DYNAMIC: Rows = Rows {
    high_duration: [1.95, 0.20, 2.56, 8.41, 35.98],
    low_duration: [3.41, 0.22, 5.59, 13.91, 56.54],
    high_wait: [0.06, 6.0e-5, 1.0e-4, 0.06, 1.27],
    low_wait: [0.89, 5.0e-5, 0.16, 2.98, 19.67],
};
