// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::pressure;

const UNTRUSTING: &str =
    "control: 'https://control.example:18000', cluster: search, host: '10.0.0.7:8080'";
const GOOD: &str = "control: 'https://control.example:18000', cluster: search, host: '10.0.0.7:8080', authority: ca.pem";

/// With files beside it: a certificate, its key, another's key, and some that are neither.
fn mesh(fields: &str) -> Result<Mesh, String> {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let (certificate, key) = pair();
    write("ca.pem", &certificate);
    write("key.pem", &key);
    write("another.pem", &pair().1);
    write("empty.pem", "-----BEGIN CERTIFICATE-----\n");
    write("other.pem", "nothing\n");
    let text = format!("policy: {{ powersave: {{}} }}\nmesh: {{ {fields} }}\n");
    write("g.yaml", &text);
    let folder = format!("{}/", folder.path().display());
    let config = load(&Path::new(&folder).join("g.yaml"));
    let config = config.map_err(|error| error.to_string().replace(&folder, ""))?;
    Ok(config.mesh.unwrap())
}

#[test]
fn weir_control_is_one_address_and_in_plain_text_on_loopback_alone() {
    let mut found = mesh(GOOD).unwrap();
    assert!(found.trust.authority.take().is_some());
    assert!(found.trust.files[0].take().is_some());
    let wanted = Mesh {
        control: "https://control.example:18000".into(),
        trust: Trust::default(),
        cluster: "search".into(),
        host: "10.0.0.7:8080".into(),
        pressure: pressure::Params::default(),
    };
    assert_eq!(found, wanted);
    let with = |control: &str| {
        mesh(&format!(
            "control: {control:?}, cluster: a, host: '1.1.1.1:1'{}",
            if control.starts_with("https") {
                ", authority: ca.pem"
            } else {
                ""
            }
        ))
    };
    for good in [
        "http://127.0.0.1:18000/",
        "http://[::1]:18000",
        "https://10.0.0.1:1",
    ] {
        let found = with(good).unwrap();
        assert_eq!(found.control, good.trim_end_matches('/'));
    }
    let shape = "is not https://name:port or http://ip:port";
    for bad in [
        "control.example:18000",
        "https://control.example",
        "https://control.example:0",
        "https://control.example:99999",
        "https://a@control.example:1",
        "https://control.example:1/path",
        "https://control.example:1/?q",
        "https://control.example:1#f",
        "grpc://control.example:1",
        "https://:1",
        "",
    ] {
        let error = with(bad).unwrap_err();
        assert!(error.starts_with("g.yaml:2: mesh.control: "), "{error}");
        assert!(error.ends_with(shape), "{error}");
    }
    for bad in ["http://10.0.0.1:1", "http://control.example:1"] {
        let error = with(bad).unwrap_err();
        assert!(
            error.starts_with("g.yaml:2: mesh.control: not loopback: https:// is required"),
            "{error}"
        );
        let fields = format!("control: {bad:?}, cluster: a, host: '1.1.1.1:1', plaintext: true");
        assert_eq!(mesh(&fields).unwrap().control, bad);
    }
}

#[test]
fn files_of_the_mesh_are_read_beside_the_configuration_file() {
    let found = mesh(&format!("{GOOD}, certificate: ca.pem, key: key.pem")).unwrap();
    let (certificate, key) = found.trust.identity.unwrap();
    assert_eq!(found.trust.authority.unwrap(), certificate);
    assert!(key.starts_with(b"-----BEGIN PRIVATE KEY-----"));
}

#[test]
fn what_is_wrong_with_the_mesh_is_told() {
    let good = |more: &str| format!("{GOOD}, {more}");
    let trusting = |authority: &str| format!("{UNTRUSTING}, authority: {authority}");
    let cases = [
        (
            "cluster: a".to_owned(),
            "control: required; weir-control's xDS listener",
        ),
        (
            "control: 'https://a:1', host: '1.1.1.1:1'".into(),
            "cluster: required",
        ),
        (
            "control: 'https://a:1', cluster: a/b, host: '1.1.1.1:1'".into(),
            "cluster: \"a/b\" is not 1 to 255 bytes without a slash",
        ),
        (
            "control: 'https://a:1', cluster: a".into(),
            "host: required; ip:port",
        ),
        (
            "control: 'https://a:1', cluster: a, host: b:1".into(),
            "host: \"b:1\" is not ip:port",
        ),
        (
            trusting("no.pem"),
            "authority: cannot read no.pem: No such file",
        ),
        (
            trusting("other.pem"),
            "authority: other.pem has no CERTIFICATE in PEM",
        ),
        (
            good("certificate: ca.pem, key: ca.pem"),
            "key: ca.pem has no PRIVATE KEY in PEM",
        ),
        (
            good("certificate: ca.pem"),
            "key: required with certificate",
        ),
        (good("key: key.pem"), "certificate: required with key"),
        (UNTRUSTING.into(), "authority: required with https://"),
        (trusting("empty.pem"), "authority: "),
        (
            good("certificate: empty.pem, key: key.pem"),
            "certificate: ",
        ),
        (
            good("certificate: ca.pem, key: another.pem"),
            "certificate: ",
        ),
        (good("delay: 2m"), "delay: 2m is not in 0s to 60s"),
        (good("hold: x"), "hold: \"x\" is not a duration"),
        (good("stale: 1ms"), "stale: 1ms is not in 100ms to 600s"),
        (
            good("plaintext: yes"),
            "plaintext: \"yes\" is not true or false",
        ),
        (
            "control: 'http://127.0.0.1:1', cluster: a, host: '1.1.1.1:1', authority: ca.pem"
                .into(),
            "authority: only an https:// control reads it",
        ),
    ];
    for (fields, reason) in cases {
        let error = mesh(&fields).err().unwrap_or_default();
        let reason = format!("g.yaml:2: mesh.{reason}");
        assert!(error.starts_with(&reason), "{fields}\n{error}\n{reason}");
    }
}
