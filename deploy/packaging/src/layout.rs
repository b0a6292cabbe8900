// SPDX-License-Identifier: Apache-2.0
//! An image on disk: an OCI layout, as a folder and as a tar that docker, podman and containerd load.
//!
//! <https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md>

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::blob::Blob;
use crate::image::{INDEX, Image};
use crate::layer::Layer;

/// Writes the layout into a folder, in place of what was there.
///
/// # Errors
/// The folder cannot be written.
pub fn write(image: &Image, name: &str, folder: &Path) -> Result<()> {
    let context = || format!("writing {}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(context)?;
    }
    for (path, bytes) in files(image, name) {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap_or(folder)).with_context(context)?;
        fs::write(&path, bytes).with_context(context)?;
    }
    Ok(())
}

/// Writes the layout as a tar. It has the file `manifest.json` of `docker save` too, which docker reads where it
/// knows no layouts.
///
/// # Errors
/// The file cannot be written.
pub fn archive(image: &Image, name: &str, file: &Path) -> Result<()> {
    let mut tar = Layer::default();
    for (path, bytes) in files(image, name) {
        tar.add(path, 0o644, bytes)?;
    }
    let layers: Vec<_> = image.layers().iter().map(place).collect();
    let docker = json!([{ "Config": place(image.config()), "RepoTags": [name], "Layers": layers }]);
    tar.add("manifest.json", 0o644, docker.to_string().into_bytes())?;
    fs::write(file, tar.tar(0)?).with_context(|| format!("writing {}", file.display()))
}

fn files(image: &Image, name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let manifest = image.manifest();
    let mut files = vec![
        (
            "oci-layout".into(),
            text(&json!({ "imageLayoutVersion": "1.0.0" })),
        ),
        ("index.json".into(), text(&index(&manifest, name))),
    ];
    for blob in image.parts().chain([&manifest]) {
        let file = (place(blob), blob.bytes().to_vec());
        // An artifact's configuration may also be one of its layers.
        if !files.contains(&file) {
            files.push(file);
        }
    }
    files
}

fn index(manifest: &Blob, name: &str) -> Value {
    let mut named = manifest.descriptor();
    // What podman and skopeo, and what containerd calls it by.
    named["annotations"] = json!({
        "org.opencontainers.image.ref.name": name,
        "io.containerd.image.name": name,
    });
    json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [named] })
}

fn place(blob: &Blob) -> PathBuf {
    Path::new("blobs").join(blob.digest().replace(':', "/"))
}

fn text(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Papers, digest, filter};

    #[test]
    fn every_blob_is_in_the_place_that_its_sum_says() {
        let folder = tempfile::tempdir().unwrap();
        let image = filter::artifact(b"wasm", "1.2.3");
        let layout = folder.path().join("layout");
        fs::create_dir(&layout).unwrap();
        fs::write(layout.join("of-yesterday"), "").unwrap();
        write(&image, "x:1.2.3", &layout).unwrap();
        assert!(!layout.join("of-yesterday").exists());
        let blobs = fs::read_dir(layout.join("blobs/sha256")).unwrap();
        let mut count = 0;
        for blob in blobs.map(Result::unwrap) {
            let name = blob.file_name().into_string().unwrap();
            assert_eq!(
                digest(&fs::read(blob.path()).unwrap()),
                format!("sha256:{name}")
            );
            count += 1;
        }
        // The runtime's configuration, which is there once, the module, the manifest.
        assert_eq!(count, 3);
        let index: Value =
            serde_json::from_slice(&fs::read(layout.join("index.json")).unwrap()).unwrap();
        assert_eq!(index["manifests"][0]["digest"], image.manifest().digest());
    }

    #[test]
    fn the_same_image_is_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        for file in [&one, &other] {
            archive(
                &filter::container(b"wasm", &Papers::default(), "1.2.3").unwrap(),
                "x:1.2.3",
                file,
            )
            .unwrap();
        }
        assert_eq!(fs::read(one).unwrap(), fs::read(other).unwrap());
    }
}
