// SPDX-License-Identifier: Apache-2.0
//! A computer with four cores whose kernel has a real cpufreq, in QEMU, for tests.
//!
//! ```text
//! Parts ──> Image (init, busybox, modules, programs) ──> Guest ── serial line ──> a shell inside
//!   │         ^                                            │
//!   └──> Ssdt: each core's P-states and its register       └──── QEMU's monitor ──> the registers,
//!                                                                                  from outside
//! ```
//! An ACPI table gives each core P-states of its own, whose register is the scratch register of a
//! serial port: a byte that keeps what is written. The kernel's `acpi-cpufreq` drives them as it
//! would real ones, so what a governor writes is seen twice: in the kernel's files, and from outside
//! in the registers. Nothing gets faster or hotter by it: only the control of frequency is real.

mod archive;
mod cores;
mod guest;
mod image;
mod line;
mod monitor;
mod parts;
mod ssdt;
mod transitions;

pub use cores::{CORES, Core};
pub use guest::{Answer, Guest};
pub use image::Image;
pub use parts::Parts;
pub use ssdt::FREQUENCIES_KHZ;
pub use transitions::Transitions;
