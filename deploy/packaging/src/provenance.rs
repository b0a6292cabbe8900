// SPDX-License-Identifier: Apache-2.0
//! From what files were made, and how: an in-toto statement with SLSA's predicate, without a time, so that the same
//! build has the same.
//!
//! <https://slsa.dev/spec/v1.0/provenance>, <https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md>

use serde_json::{Value, json};

/// What is said of a build.
#[derive(Clone, Debug)]
pub struct Build {
    /// As a person types it.
    pub command: String,
    /// Git's name of the sources.
    pub commit: String,
    /// There were changes that Git had no name for.
    pub is_changed: bool,
    /// The sum of Cargo.lock, as `sha256:` and hexadecimal.
    pub lock: String,
    /// The release of the compiler.
    pub rust: String,
    /// Git's name of the compiler's sources.
    pub rust_commit: String,
    /// What it was built for.
    pub targets: Vec<String>,
}

/// Of these files, by name and sum.
#[must_use]
pub fn statement(files: &[(String, String)], build: &Build) -> Value {
    let subjects = files
        .iter()
        .map(|(name, digest)| json!({ "name": name, "digest": { "sha256": hex(digest) } }));
    let mut source = json!({ "name": "weir", "digest": { "gitCommit": build.commit } });
    if build.is_changed {
        source["annotations"] = json!({ "changed": true });
    }
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects.collect::<Vec<_>>(),
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": "urn:weir:release:1",
                "externalParameters": { "command": build.command, "targets": build.targets },
                "resolvedDependencies": [
                    source,
                    { "name": "Cargo.lock", "digest": { "sha256": hex(&build.lock) } },
                    {
                        "name": "rust",
                        "digest": { "gitCommit": build.rust_commit },
                        "annotations": { "release": build.rust },
                    },
                ],
            },
            // Nobody attests who ran it: whom to believe is a matter of the signature over SHA256SUMS.
            "runDetails": { "builder": { "id": "urn:weir:xtask" } },
        },
    })
}

fn hex(digest: &str) -> &str {
    digest.trim_start_matches("sha256:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_names_files_sources_and_whether_they_were_changed() {
        let build = |is_changed| Build {
            command: "cargo xtask release".to_owned(),
            commit: "c0ffee".to_owned(),
            is_changed,
            lock: crate::digest(b"lock"),
            rust: "1.95.0".to_owned(),
            rust_commit: "abcd".to_owned(),
            targets: vec!["wasm32-wasip1".to_owned()],
        };
        let files = [("a.tar.gz".to_owned(), crate::digest(b"abc"))];
        let said = statement(&files, &build(false));
        // FIPS 180-2, appendix B.1.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(said["subject"][0]["digest"]["sha256"], abc);
        let source =
            |said: &Value| said["predicate"]["buildDefinition"]["resolvedDependencies"][0].clone();
        assert_eq!(source(&said)["digest"]["gitCommit"], "c0ffee");
        assert_eq!(source(&said)["annotations"], Value::Null);
        let changed = statement(&files, &build(true));
        assert_eq!(source(&changed)["annotations"]["changed"], true);
    }
}
