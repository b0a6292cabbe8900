// SPDX-License-Identifier: Apache-2.0
//! The filter as an image, in the two variants of the Wasm image specification.
//!
//! <https://github.com/solo-io/wasm/tree/master/spec>. Istio and Envoy Gateway try `compat` first and `oci` then;
//! registries that refuse media types they do not know take `compat` alone.

use anyhow::Result;
use serde_json::{Value, json};

use crate::blob::Blob;
use crate::image::{Image, Platform};
use crate::layer::Layer;
use crate::papers::Papers;
use crate::parts::Parts;

/// `spec-compat.md`: the only name that is looked for.
const FILE: &str = "plugin.wasm";
/// `spec.md`
const RUNTIME: &str = "application/vnd.module.wasm.config.v1+json";
const MODULE: &str = "application/vnd.module.wasm.content.layer.v1+wasm";
/// As container tools call such modules; nobody runs the image.
const PLATFORM: Platform = Platform {
    os: "wasip1",
    architecture: "wasm",
};

/// What accompanies the module.
#[must_use]
pub fn papers(module: &[u8], parts: &Parts, version: &str) -> Papers {
    Papers::of("weir_filter.wasm", version, module, parts, &[])
}

/// The variant `compat`: an ordinary image whose one layer has the module, and its papers beside it.
///
/// # Errors
/// It could not be packed.
pub fn container(module: &[u8], papers: &Papers, version: &str) -> Result<Image> {
    let mut layer = Layer::default();
    layer.add(FILE, 0o644, module.to_vec())?;
    papers.add("", &mut layer)?;
    Image::container(PLATFORM, &json!({}), &layer, annotations(version))
}

/// The variant `oci`: the module itself as a layer, beside what its runtime is told.
#[must_use]
pub fn artifact(module: &[u8], version: &str) -> Image {
    let runtime = json!({
        "type": "envoy_proxy",
        "abiVersions": ["v0.2.1"],
        "config": { "rootIds": ["weir"] },
    });
    let runtime = Blob::json(RUNTIME, &runtime).titled("runtime-config.json");
    let module = Blob::new(MODULE, module.to_vec()).titled(FILE);
    // Both runtimes want exactly two layers, of which one is the module.
    Image::artifact(runtime.clone(), vec![runtime, module], annotations(version))
}

fn annotations(version: &str) -> Value {
    json!({
        "org.opencontainers.image.title": "weir_filter.wasm",
        "org.opencontainers.image.description": "Weir's proxy-wasm filter: names the upstream host of every request",
        "org.opencontainers.image.licenses": "Apache-2.0",
        "org.opencontainers.image.version": version,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(image: &Image) -> Value {
        serde_json::from_slice(image.manifest().bytes()).unwrap()
    }

    #[test]
    fn the_container_has_one_compressed_layer_and_its_sum_without_compression() {
        let image = container(b"\0asm", &Papers::default(), "1.2.3").unwrap();
        let manifest = manifest(&image);
        let layers = manifest["layers"].as_array().unwrap();
        assert_eq!(layers.len(), 1);
        assert_eq!(
            layers[0]["mediaType"],
            "application/vnd.oci.image.layer.v1.tar+gzip"
        );
        let config: Value = serde_json::from_slice(image.config().bytes()).unwrap();
        assert_ne!(config["rootfs"]["diff_ids"][0], layers[0]["digest"]);
    }

    #[test]
    fn the_artifact_has_two_layers_and_the_module_as_it_is() {
        let image = artifact(b"\0asm", "1.2.3");
        let manifest = manifest(&image);
        let layers = manifest["layers"].as_array().unwrap();
        assert_eq!(layers.len(), 2);
        assert_eq!(layers[1]["digest"], crate::digest(b"\0asm"));
        assert_eq!(layers[1]["mediaType"], MODULE);
        assert_eq!(manifest["config"]["mediaType"], RUNTIME);
    }
}
