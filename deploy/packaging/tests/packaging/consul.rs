// SPDX-License-Identifier: Apache-2.0
//! envoy-config/consul: the cluster beside the mesh is one that Envoy takes. The rest is run by the mesh's own tests.

use serde_json::Value;
use tempfile::TempDir;

use crate::Test;
use crate::certificate;
use crate::envoy;
use crate::needs::{self, ENVOY};
use crate::yaml;

pub(crate) const TESTS: &[Test] = &[(
    "envoy_takes_consuls_static_cluster",
    &[ENVOY],
    envoy_takes_the_cluster,
)];

fn envoy_takes_the_cluster() {
    let folder = TempDir::new().unwrap();
    certificate::write(folder.path(), ["ca.pem", "sidecar.pem", "sidecar.key"]);
    let file = needs::root().join("envoy-config/consul/weir-control-cluster.json");
    let text = yaml::read(&file);
    assert!(text.contains("/etc/weir/"));
    let text = text.replace("/etc/weir", folder.path().to_str().unwrap());
    let cluster: Value = serde_json::from_str(&text).unwrap();
    envoy::accepts(&envoy::bootstrap(vec![cluster], Vec::new()));
}
