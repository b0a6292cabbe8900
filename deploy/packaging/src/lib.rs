// SPDX-License-Identifier: Apache-2.0
//! OCI images and the other forms of a release: bytes in, files out, nothing of the day or the machine in them.
//!
//! ```text
//! weir_filter.wasm ─> filter::{container, artifact} ─┐
//! weir-control ─────> program::image ────────────────┼─> Image ─> layout::{write, archive} ─> registry
//! Cargo.lock ─> Parts ─> Papers ─────────────────────┤
//!                                                    └─> Layer ─> tar, deb::Package
//! ```
//!
//! The tests of this package are about everything that users install: the images, `envoy-config/`,
//! `deploy/kubernetes`, `deploy/systemd`.

mod authorities;
mod blob;
pub mod deb;
pub mod filter;
mod image;
mod layer;
pub mod layout;
mod notices;
mod papers;
pub mod parts;
pub mod program;
pub mod provenance;
mod sbom;

pub use blob::{Blob, digest};
pub use image::Image;
pub use layer::{Layer, gzip};
pub use papers::Papers;
pub use parts::Parts;
