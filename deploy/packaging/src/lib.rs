// SPDX-License-Identifier: Apache-2.0
//! OCI images, made without a daemon: bytes in, a folder and a tar out, nothing of the day or the machine in them.
//!
//! ```text
//! weir_filter.wasm ─> filter::{container, artifact} ─┐
//! weir-control ─────> program::image ────────────────┼─> Image ─> layout::{write, archive} ─> registry
//! Cargo.lock ─> Parts ─> Papers ─────────────────────┘
//! ```
//!
//! The tests of this package are about everything that users install: the images, `envoy-config/`,
//! `deploy/kubernetes`, `deploy/systemd`.

mod authorities;
mod blob;
pub mod filter;
mod image;
mod layer;
pub mod layout;
mod notices;
mod papers;
pub mod parts;
pub mod program;
mod sbom;

pub use blob::{Blob, digest};
pub use image::Image;
pub use layer::Layer;
pub use papers::Papers;
pub use parts::Parts;
