// SPDX-License-Identifier: Apache-2.0
//! weir-control as a container would run it: nobody, without any capability, and nothing that it could write to.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io::Read;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3 as discovery;
use tokio_stream::StreamExt;
use weir_needs::Need;
use weir_tables::{HOST_TABLE_TYPE, decode_host_table};

use crate::program::{page, until};

/// In a mount namespace of its own: the program's file is put beside its configuration, whatever folders are above
/// it; then each mount is made read-only, or the program does not start.
const CAGE: &str = r#"
set -eu
mount --bind "$PROGRAM" "$FOLDER/weir-control"
# Read as a whole first: the list is another one after each change.
mounts=$(cut -d ' ' -f 5 /proc/self/mountinfo)
for at in $mounts; do
    mount -o remount,bind,ro "$(printf '%b' "$at")"
done
exec setpriv --reuid 65532 --regid 65532 --clear-groups --inh-caps=-all --ambient-caps=-all --bounding-set=-all \
    --no-new-privs -- "$FOLDER/weir-control" --config "$FOLDER/c.yaml"
"#;

struct Caged(Child);

impl Drop for Caged {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Caged {
    fn of(&self, file: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{file}", self.0.id())).unwrap()
    }

    /// Files that it has open for writing. Sockets and pipes have no path.
    fn writable(&self) -> Vec<PathBuf> {
        let opened = std::fs::read_dir(format!("/proc/{}/fd", self.0.id())).unwrap();
        let opened = opened.map(|entry| entry.unwrap());
        let writable = opened.filter(|entry| {
            let number = entry.file_name().into_string().unwrap();
            let about = self.of(&format!("fdinfo/{number}"));
            let flags = about.lines().find_map(|line| line.strip_prefix("flags:"));
            let flags = u32::from_str_radix(flags.unwrap().trim(), 8).unwrap();
            // O_WRONLY or O_RDWR.
            flags & 3 != 0
        });
        let files = writable.map(|entry| entry.path().read_link().unwrap());
        files
            .filter(|file| file.is_absolute() && file != Path::new("/dev/null"))
            .collect()
    }

    fn status(&self, field: &str) -> String {
        let status = self.of("status");
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        line.unwrap().trim_start_matches(':').trim().to_owned()
    }
}

/// Why there can be no cage here.
fn missing() -> Option<String> {
    let try_out = Command::new("unshare")
        .args(["--mount", "setpriv", "--reuid", "65532", "--clear-groups"])
        .args(["--bounding-set=-all", "--no-new-privs", "--", "true"])
        .output();
    match try_out {
        Ok(output) if output.status.success() => None,
        Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Some(format!("unshare: {error}")),
    }
}

fn written(folder: &Path, xds: SocketAddr, admin: SocketAddr) {
    let config = format!(
        "xds: {{ listen: \"{xds}\" }}\nadmin: {{ listen: \"{admin}\" }}\n\
         clusters: {{ rules: {{ hosts: [ {{ address: \"127.0.0.1:9\" }} ], scrape: {{}}, cache: {{}} }} }}\n"
    );
    std::fs::write(folder.join("c.yaml"), config).unwrap();
    std::fs::write(folder.join("weir-control"), "").unwrap();
    std::fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
}

/// The hosts of the first table that a sidecar gets.
async fn hosts(xds: SocketAddr) -> usize {
    let address = format!("http://{xds}");
    let client =
        discovery::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient::connect(
            address,
        );
    let asked = discovery::DeltaDiscoveryRequest {
        node: Some(Node {
            id: "sidecar".into(),
            ..Default::default()
        }),
        type_url: HOST_TABLE_TYPE.into(),
        resource_names_subscribe: vec!["rules".into()],
        ..Default::default()
    };
    // A stream that is not ended after its first request.
    let requests = tokio_stream::iter([asked]).chain(tokio_stream::pending());
    let mut client = client.await.unwrap();
    let answers = client.delta_aggregated_resources(requests).await.unwrap();
    let answer = answers.into_inner().message().await;
    let resource = answer.unwrap().unwrap().resources.remove(0);
    let body = resource.resource.unwrap().value;
    let (_, table) = decode_host_table("rules", &body, Default::default()).unwrap();
    table.hosts().len()
}

#[test]
fn weir_control_serves_as_nobody_without_capabilities_on_a_read_only_root() {
    if let Some(why) = missing() {
        return weir_needs::skip(Need::Root, why);
    }
    let folder = tempfile::tempdir().unwrap();
    // Nothing can be written in the cage, so it cannot say which ports it took itself.
    let free = || SocketAddr::from(([127, 0, 0, 1], weir_needs::free_port()));
    let (xds, admin) = (free(), free());
    written(folder.path(), xds, admin);
    let child = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", CAGE])
        .env("PROGRAM", env!("CARGO_BIN_EXE_weir-control"))
        .env("FOLDER", folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut caged = Caged(child);
    until("/ready", || {
        if caged.0.try_wait().unwrap().is_some() {
            let mut said = String::new();
            let mut log = caged.0.stderr.take().unwrap();
            log.read_to_string(&mut said).unwrap();
            panic!("{said}");
        }
        page(admin, "/ready").filter(|answer| answer.contains(" 200 "))
    });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    assert_eq!(runtime.block_on(hosts(xds)), 1);

    // It is in the cage that it should be in.
    for field in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(caged.status(field), "0000000000000000", "{field}");
    }
    assert_eq!(caged.status("NoNewPrivs"), "1");
    for field in ["Uid", "Gid"] {
        assert_eq!(caged.status(field), ["65532"; 4].join("\t"), "{field}");
    }
    assert_eq!(caged.status("Groups"), "");
    // Of several at one place the last hides the others.
    let mounts = caged.of("mountinfo");
    let fields = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>());
    let reached: BTreeMap<_, _> = fields
        .map(|fields| (fields[4].to_owned(), fields[5].to_owned()))
        .collect();
    assert!(reached.contains_key("/"), "{reached:?}");
    for (at, options) in reached {
        assert!(options.split(',').any(|option| option == "ro"), "{at}");
    }
    // Nor does it have a file that was open for writing before. What its process has written tells nothing: the
    // programs that made the cage were in it too, and the times of their files may have been noted.
    assert_eq!(caged.writable(), Vec::<PathBuf>::new());
    let mut names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    names.retain(|entry| {
        !["c.yaml", "weir-control"].contains(&entry.as_ref().unwrap().file_name().to_str().unwrap())
    });
    assert!(names.is_empty(), "{names:?}");
}
