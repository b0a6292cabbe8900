// SPDX-License-Identifier: Apache-2.0
//! Tables 4 to 7 of document 001.

/// Mean, median, 90th, 95th and 99th percentile, and the most, in seconds.
pub type Row = [f64; 6];

/// What the columns of a [`Row`] are.
pub const COLUMNS: [&str; 6] = ["mean", "median", "p90", "p95", "p99", "max"];

/// The last of them.
pub const MOST_COLUMN: usize = COLUMNS.len() - 1;

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

/// Production.
pub const PRODUCTION: Rows = Rows {
    high_duration: [2.65, 0.27, 3.48, 12.56, 46.29, 438.59],
    low_duration: [7.63, 0.26, 9.77, 32.51, 168.13, 7201.08],
    high_wait: [0.08, 5.0e-5, 1.2e-4, 0.24, 1.87, 38.22],
    low_wait: [2.88, 4.0e-5, 1.93, 9.76, 80.99, 273.30],
};

/// Baseline, baseline.
pub const BASELINE_BASELINE: Rows = Rows {
    high_duration: [2.06, 0.22, 2.81, 8.47, 38.31, 361.64],
    low_duration: [14.13, 0.27, 36.17, 100.47, 216.22, 8721.52],
    high_wait: [0.08, 6.0e-5, 1.9e-4, 0.20, 1.94, 36.06],
    low_wait: [7.13, 6.0e-5, 14.84, 50.12, 138.50, 242.19],
};

/// Breaker, baseline.
pub const BREAKER_BASELINE: Rows = Rows {
    high_duration: [1.90, 0.23, 2.78, 8.24, 33.88, 361.90],
    low_duration: [5.27, 0.25, 11.02, 24.73, 79.26, 1970.64],
    high_wait: [0.07, 6.0e-5, 1.1e-4, 0.09, 1.55, 42.00],
    low_wait: [1.88, 5.0e-5, 2.74, 9.66, 39.78, 240.17],
};

/// DAGOR, baseline.
pub const DAGOR_BASELINE: Rows = Rows {
    high_duration: [1.74, 0.21, 2.37, 7.32, 31.83, 393.45],
    low_duration: [5.39, 0.24, 10.35, 24.19, 92.22, 790.93],
    high_wait: [0.06, 6.0e-5, 1.1e-4, 0.06, 1.45, 47.41],
    low_wait: [2.02, 6.0e-5, 2.34, 9.42, 44.99, 239.99],
};

/// Baseline, dynamic.
pub const BASELINE_DYNAMIC: Rows = Rows {
    high_duration: [2.01, 0.19, 2.72, 9.14, 37.43, 437.18],
    low_duration: [5.34, 0.22, 8.94, 25.97, 101.51, 1105.56],
    high_wait: [0.06, 6.0e-5, 1.1e-4, 0.09, 1.47, 34.05],
    low_wait: [1.98, 5.0e-5, 0.88, 7.84, 53.49, 239.63],
};

/// Breaker, dynamic.
pub const BREAKER_DYNAMIC: Rows = Rows {
    high_duration: [1.88, 0.18, 2.46, 8.27, 34.97, 442.70],
    low_duration: [3.32, 0.21, 5.16, 12.74, 56.61, 2570.80],
    high_wait: [0.05, 6.0e-5, 1.0e-4, 0.06, 1.25, 25.57],
    low_wait: [0.82, 4.0e-5, 0.10, 2.45, 18.02, 240.00],
};

/// DAGOR, dynamic.
pub const DAGOR_DYNAMIC: Rows = Rows {
    high_duration: [1.95, 0.20, 2.56, 8.41, 35.98, 433.26],
    low_duration: [3.41, 0.22, 5.59, 13.91, 56.54, 930.36],
    high_wait: [0.06, 6.0e-5, 1.0e-4, 0.06, 1.27, 27.72],
    low_wait: [0.89, 5.0e-5, 0.16, 2.98, 19.67, 239.56],
};

/// Of a run that was not published.
pub const NONE: Rows = Rows {
    high_duration: [f64::NAN; 6],
    low_duration: [f64::NAN; 6],
    high_wait: [f64::NAN; 6],
    low_wait: [f64::NAN; 6],
};

/// Table 6 and table 7 of one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Variance of low waits of all servers, in s².
    pub variance: f64,
    /// Of each server.
    pub variances: [f64; 14],
    /// Slowdowns of priority high.
    pub high_slowdown: Row,
    /// Slowdowns of priority low.
    pub low_slowdown: Row,
}

/// In the order of the tables.
pub const SPREADS: [Spread; 7] = [
    Spread {
        variance: 248.13,
        variances: [
            181.27, 212.45, 349.68, 29.13, 442.37, 1028.93, 243.73, 3.88, 103.16, 38.39, 146.63,
            53.05, 42.50, 684.06,
        ],
        high_slowdown: [0.04, 1.80e-4, 0.00, 0.31, 0.87, 1.00],
        low_slowdown: [0.11, 2.10e-4, 0.57, 0.87, 0.99, 1.00],
    },
    Spread {
        variance: 624.39,
        variances: [
            944.92, 10.04, 1688.71, 319.81, 1160.91, 209.35, 71.95, 920.90, 152.67, 409.40, 125.12,
            170.18, 575.71, 848.86,
        ],
        high_slowdown: [0.03, 2.70e-4, 0.00, 0.19, 0.82, 0.99],
        low_slowdown: [0.14, 3.30e-4, 0.71, 0.90, 0.99, 1.00],
    },
    Spread {
        variance: 93.96,
        variances: [
            37.39, 28.48, 104.93, 77.22, 189.85, 37.85, 41.42, 126.80, 177.23, 97.36, 44.66, 52.40,
            129.28, 135.51,
        ],
        high_slowdown: [0.03, 2.30e-4, 0.00, 0.10, 0.79, 0.99],
        low_slowdown: [0.09, 2.50e-4, 0.44, 0.74, 0.96, 1.00],
    },
    Spread {
        variance: 123.41,
        variances: [
            132.03, 13.43, 254.58, 53.71, 214.79, 12.80, 46.25, 179.73, 33.85, 142.55, 63.36,
            53.31, 243.30, 219.83,
        ],
        high_slowdown: [0.02, 2.60e-4, 0.00, 0.06, 0.79, 0.99],
        low_slowdown: [0.09, 2.90e-4, 0.41, 0.73, 0.97, 1.00],
    },
    Spread {
        variance: 121.34,
        variances: [
            182.75, 204.85, 82.75, 99.27, 90.13, 147.86, 151.06, 75.79, 223.03, 146.11, 45.11,
            136.48, 11.48, 99.35,
        ],
        high_slowdown: [0.03, 2.60e-4, 0.00, 0.10, 0.83, 0.99],
        low_slowdown: [0.07, 2.60e-4, 0.26, 0.67, 0.96, 1.00],
    },
    Spread {
        variance: 40.74,
        variances: [
            43.26, 28.99, 45.74, 40.53, 43.15, 31.62, 38.73, 39.10, 45.71, 68.24, 52.76, 40.20,
            15.51, 43.16,
        ],
        high_slowdown: [0.03, 2.60e-4, 0.00, 0.07, 0.83, 1.00],
        low_slowdown: [0.05, 2.30e-4, 0.06, 0.50, 0.93, 1.00],
    },
    Spread {
        variance: 43.78,
        variances: [
            43.79, 32.51, 39.31, 60.08, 42.14, 27.56, 43.19, 42.42, 33.84, 40.82, 28.18, 32.26,
            39.23, 114.86,
        ],
        high_slowdown: [0.02, 2.40e-4, 0.00, 0.07, 0.79, 1.00],
        low_slowdown: [0.06, 2.20e-4, 0.09, 0.54, 0.93, 1.00],
    },
];
