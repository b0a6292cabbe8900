// SPDX-License-Identifier: Apache-2.0
//! OCI images, made without a daemon: bytes in, a folder and a tar out, nothing of the day or the machine in them.
//!
//! ```text
//! weir_filter.wasm ─> filter::{container, artifact} ─┐
//! weir-control ─────> program::image ────────────────┴─> Image ─> layout::{write, archive} ─> registry
//! ```
//!
//! The tests of this package are about everything that users install: the images, `envoy-config/`,
//! `deploy/kubernetes`, `deploy/systemd`.

mod blob;
pub mod filter;
mod image;
mod layer;
pub mod layout;
pub mod program;

pub use blob::{Blob, digest};
pub use image::Image;
pub use layer::Layer;
