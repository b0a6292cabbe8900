// SPDX-License-Identifier: Apache-2.0
//! An image: a configuration, layers, and the manifest that names them.

use anyhow::Result;
use serde_json::{Value, json};

use crate::blob::{self, Blob};
use crate::layer::{self, Layer};

/// <https://github.com/opencontainers/image-spec/blob/v1.1.1/media-types.md>
pub(crate) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// A manifest and all that it names.
#[derive(Clone, Debug)]
pub struct Image {
    config: Blob,
    layers: Vec<Blob>,
    annotations: Value,
}

/// Who it is for, in the words of Go's `GOOS` and `GOARCH`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Platform {
    pub(crate) os: &'static str,
    pub(crate) architecture: &'static str,
}

impl Image {
    /// What container runtimes run or mount: one layer of files. `run` is what the image specification calls
    /// `config`.
    pub(crate) fn container(
        platform: Platform,
        run: &Value,
        layer: &Layer,
        annotations: Value,
    ) -> Result<Self> {
        let tar = layer.tar(0)?;
        let config = json!({
            "architecture": platform.architecture,
            "os": platform.os,
            "config": run,
            "rootfs": { "type": "layers", "diff_ids": [blob::digest(&tar)] },
        });
        Ok(Self {
            config: Blob::json(CONFIG, &config),
            layers: vec![Blob::new(LAYER, layer::gzip(&tar)?)],
            annotations,
        })
    }

    /// Anything else.
    pub(crate) fn artifact(config: Blob, layers: Vec<Blob>, annotations: Value) -> Self {
        Self {
            config,
            layers,
            annotations,
        }
    }

    /// By its digest the image is asked for.
    #[must_use]
    pub fn manifest(&self) -> Blob {
        let layers: Vec<_> = self.layers.iter().map(Blob::descriptor).collect();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self.config.descriptor(),
            "layers": layers,
            "annotations": self.annotations,
        });
        Blob::json(MANIFEST, &manifest)
    }

    /// Its configuration and layers.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &Blob> {
        std::iter::once(&self.config).chain(&self.layers)
    }

    pub(crate) fn config(&self) -> &Blob {
        &self.config
    }

    pub(crate) fn layers(&self) -> &[Blob] {
        &self.layers
    }
}
