// SPDX-License-Identifier: Apache-2.0
//! Images as registries' clients and meshes see them.

use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use weir_packaging::program::{self, User};
use weir_packaging::{Image, Papers, Parts, digest, filter, layout};

use crate::Test;
use crate::needs::{self, CRANE, FILTER, Need, PROGRAMS};
use crate::registry::Registry;

pub(crate) const TESTS: &[Test] = &[
    (
        "both_variants_of_the_filter_come_back_from_a_registry_as_they_were",
        &[CRANE, FILTER],
        both_variants_come_back,
    ),
    (
        "a_client_of_registries_finds_the_archives_valid",
        &[CRANE, FILTER],
        archives_are_valid,
    ),
    (
        "images_of_programs_have_all_that_they_need_to_run",
        &[PROGRAMS, Need::UserNamespace],
        the_programs_run,
    ),
];

/// Of the filter, with names.
pub(crate) fn variants(module: &[u8]) -> [(&'static str, Image); 2] {
    [
        (
            "compat",
            filter::container(module, &Papers::default(), "0.1.0").unwrap(),
        ),
        ("oci", filter::artifact(module, "0.1.0")),
    ]
}

fn both_variants_come_back() {
    let folder = TempDir::new().unwrap();
    let registry = Registry::start();
    let module = fs::read(FILTER.path()).unwrap();
    let [(compat, container), (oci, artifact)] = variants(&module);

    let reference = registry.push(&container, compat, folder.path());
    let tar = folder.path().join("files.tar");
    needs::succeed(CRANE.command().arg("export").arg(&reference).arg(&tar));
    needs::succeed(
        Command::new("tar")
            .arg("-xf")
            .arg(&tar)
            .arg("-C")
            .arg(folder.path()),
    );
    let back = fs::read(folder.path().join("plugin.wasm")).unwrap();
    assert!(back == module, "compat: other bytes came back");

    let reference = registry.push(&artifact, oci, folder.path());
    let blob = format!("{}@{}", reference.trim_end_matches(":1"), digest(&module));
    let back = needs::succeed(CRANE.command().arg("blob").arg(blob)).stdout;
    assert!(back == module, "oci: other bytes came back");
}

fn archives_are_valid() {
    let folder = TempDir::new().unwrap();
    let module = fs::read(FILTER.path()).unwrap();
    let image = filter::container(&module, &Papers::default(), "0.1.0").unwrap();
    let file = folder.path().join("filter.tar");
    layout::archive(&image, "weir-filter:0.1.0", &file).unwrap();
    needs::succeed(CRANE.command().args(["validate", "--tarball"]).arg(&file));
    // One byte of the layer is another: the client has to notice.
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, bytes).unwrap();
    let output = CRANE
        .command()
        .args(["validate", "--tarball"])
        .arg(&file)
        .output()
        .unwrap();
    assert!(!output.status.success(), "a broken archive was found valid");
}

/// In a root that holds nothing but the image's files, each program starts and finds a configuration good.
fn the_programs_run() {
    let config = |file: &str| fs::read_to_string(needs::root().join(file)).unwrap();
    // Without `ca`: the authorities are the image's.
    let secure = "clusters: { feeds: { consul: { address: \"https://consul.example\", connect: false } } }\n";
    let cases = [
        (
            "weir-control",
            config("deploy/systemd/weir-control.yaml"),
            &["--check"][..],
        ),
        ("weir-control", secure.to_owned(), &["--check"]),
        (
            "weir-governor",
            config("deploy/kubernetes/governor/weir-governor.yaml"),
            &["run", "--check"],
        ),
    ];
    for (name, config, flags) in cases {
        let folder = TempDir::new().unwrap();
        let program = PROGRAMS.path().join(name);
        let libraries = program::libraries(&program).unwrap();
        let papers = program::papers(&program, &libraries, &Parts::default(), "0.1.0").unwrap();
        let image = program::image(&program, ARCH, User::Nobody, &papers, "0.1.0").unwrap();
        let (layout_folder, root) = (folder.path().join("layout"), folder.path().join("root"));
        layout::write(&image, name, &layout_folder).unwrap();
        fs::create_dir(&root).unwrap();
        needs::succeed(
            Command::new("tar")
                .arg("-xzf")
                .arg(layer_of(&layout_folder))
                .arg("-C")
                .arg(&root),
        );
        for (paper, _) in papers.files() {
            assert!(root.join("usr/share/doc").join(name).join(paper).is_file());
        }
        fs::write(root.join("config.yaml"), config).unwrap();
        needs::succeed(
            Command::new("unshare")
                .args(["--user", "--map-root-user", "--root"])
                .arg(&root)
                .arg(format!("/usr/bin/{name}"))
                .args(flags)
                .args(["--config", "/config.yaml"]),
        );
    }
}

/// The configuration of the only image in a layout.
pub(crate) fn config_of(layout: &Path) -> Value {
    let read = |path: &Path| -> Value { serde_json::from_slice(&fs::read(path).unwrap()).unwrap() };
    let blob = |descriptor: &Value| {
        let digest = descriptor["digest"].as_str().unwrap();
        read(&layout.join("blobs").join(digest.replace(':', "/")))
    };
    let index = read(&layout.join("index.json"));
    blob(&blob(&index["manifests"][0])["config"])
}

/// The largest blob.
pub(crate) fn layer_of(layout: &Path) -> PathBuf {
    let blobs = fs::read_dir(layout.join("blobs/sha256")).unwrap();
    let size = |path: &PathBuf| fs::metadata(path).unwrap().len();
    blobs
        .map(|blob| blob.unwrap().path())
        .max_by_key(size)
        .unwrap()
}
