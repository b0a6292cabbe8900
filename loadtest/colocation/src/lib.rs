// SPDX-License-Identifier: Apache-2.0
//! memcached on all cores of a machine with batch jobs beside it: who has the cores, four ways in one run.
//!
//! ```text
//!  calibration ──> rates, SLO, sizes of jobs ─┐
//!                                             v
//!  memcached in a cgroup <── load (light, then heavy, stepping)      ┐
//!  stress-ng, x264, zstd <── the lab, or weir-governor in a way      ├─ a round: each way once, order drawn
//!  what each has, sampled from the kernel's files                    ┘
//!                                             │
//!  rounds.jsonl, table.md, report.html <── figures, verdicts
//! ```
//! After document 004 (*Cloud Computing Architecture*, semester project report, part 4), whose machine has four
//! cores and whose batch jobs are PARSEC's.

pub mod batch;
pub mod calibration;
pub mod child;
pub mod figures;
pub mod governor;
pub mod jobs;
pub mod load;
pub mod material;
pub mod plan;
pub mod programs;
pub mod quiet;
pub mod report;
pub mod rounds;
pub mod samples;
pub mod table;
pub mod tree;
pub mod verdict;
pub mod way;
