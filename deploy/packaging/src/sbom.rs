// SPDX-License-Identifier: Apache-2.0
//! A software bill of materials: CycloneDX 1.6 as JSON, without a time or a serial number, so that the same build has
//! the same. It tells what is in, not which of it uses which.
//!
//! <https://cyclonedx.org/docs/1.6/json/>

use serde_json::{Value, json};

use crate::blob;
use crate::parts::{Part, Parts};

/// A library of the machine that is packed beside a program.
#[derive(Clone, Debug)]
pub(crate) struct Library {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
}

/// Of a program or module with these bytes.
pub(crate) fn write(
    name: &str,
    version: &str,
    bytes: &[u8],
    parts: &Parts,
    libraries: &[Library],
) -> Value {
    let subject = json!({
        "type": "application",
        "bom-ref": name,
        "name": name,
        "version": version,
        "licenses": [{ "license": { "id": "Apache-2.0" } }],
        "hashes": hashes(bytes),
    });
    let standard = json!({
        "type": "library",
        "bom-ref": "rust-std",
        "name": "std",
        "version": parts.rust,
        "licenses": [{ "expression": "MIT OR Apache-2.0" }],
    });
    let crates = parts.crates.iter().map(component);
    let components = crates
        .chain([standard])
        .chain(libraries.iter().map(|library| {
            json!({
                "type": "library",
                "bom-ref": format!("file:{}", library.name),
                "name": library.name,
                "hashes": hashes(&library.bytes),
            })
        }));
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": { "component": subject },
        "components": components.collect::<Vec<_>>(),
    })
}

fn component(part: &Part) -> Value {
    let package = format!("pkg:cargo/{}@{}", part.name, part.version);
    let mut component = json!({
        "type": "library",
        "bom-ref": package,
        "name": part.name,
        "version": part.version,
    });
    if part.licence != "NOASSERTION" {
        component["licenses"] = json!([{ "expression": part.licence }]);
    }
    // Of the workspace's own no registry has any.
    if !part.own {
        component["purl"] = json!(package);
    }
    if let Some(repository) = &part.repository {
        component["externalReferences"] = json!([{ "type": "vcs", "url": repository }]);
    }
    component
}

fn hashes(bytes: &[u8]) -> Value {
    let sum = blob::digest(bytes);
    json!([{ "alg": "SHA-256", "content": sum.trim_start_matches("sha256:") }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_and_packed_is_named_each_by_its_own_reference() {
        let part = |name: &str, own| Part {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            licence: "MIT OR Apache-2.0".to_owned(),
            own,
            ..Part::default()
        };
        let parts = Parts {
            crates: vec![part("bytes", false), part("weir-policy", true)],
            ..Parts::default()
        };
        let libc = Library {
            name: "libc.so.6".to_owned(),
            bytes: b"abc".to_vec(),
        };
        let sbom = write("weir-control", "0.1.0", b"abc", &parts, &[libc]);
        assert_eq!(sbom["bomFormat"], "CycloneDX");
        assert_eq!(sbom["specVersion"], "1.6");
        let subject = &sbom["metadata"]["component"];
        assert_eq!(subject["name"], "weir-control");
        // FIPS 180-2, appendix B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(subject["hashes"][0]["content"], abc);
        let components = sbom["components"].as_array().unwrap();
        let field = |name: &str| -> Vec<_> {
            let fields = components.iter().map(|component| component[name].as_str());
            fields.collect()
        };
        assert_eq!(
            field("bom-ref"),
            [
                Some("pkg:cargo/bytes@1.0.0"),
                Some("pkg:cargo/weir-policy@1.0.0"),
                Some("rust-std"),
                Some("file:libc.so.6")
            ]
        );
        assert_eq!(
            field("purl"),
            [Some("pkg:cargo/bytes@1.0.0"), None, None, None]
        );
        assert_eq!(
            components[0]["licenses"][0]["expression"],
            "MIT OR Apache-2.0"
        );
        assert_eq!(components[3]["hashes"][0]["content"], abc);
    }
}
