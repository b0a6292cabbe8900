// SPDX-License-Identifier: Apache-2.0
use super::*;

#[tokio::test]
async fn a_pod_has_its_environment_and_its_service_account() {
    let account = tempfile::tempdir().unwrap();
    std::fs::write(account.path().join("ca.crt"), "authority").unwrap();
    let at = |host: &'static str| {
        pod(account.path(), move |name| {
            let port = name == "KUBERNETES_SERVICE_PORT";
            Some(if port { "6443" } else { host }.to_owned())
        })
        .unwrap()
    };
    let api = at("10.0.0.1");
    assert_eq!(api.server.url, "https://10.0.0.1:6443");
    assert_eq!(api.server.ca.as_deref(), Some(&b"authority"[..]));
    assert_eq!(at("fd00::1").server.url, "https://[fd00::1]:6443");
    // The token is read when it is shown, and no sooner.
    let bearer = api.bearer.unwrap();
    let error = token(&bearer).await.unwrap_err();
    assert!(error.detail.contains("No such file"), "{error}");
    std::fs::write(account.path().join("token"), "secret\n").unwrap();
    let shown = token(&bearer).await.unwrap();
    assert_eq!(shown, "Bearer secret");
    assert!(shown.is_sensitive());
    std::fs::write(account.path().join("token"), "two words").unwrap();
    assert!(token(&bearer).await.is_err());
}

#[test]
fn whoever_is_in_no_pod_is_told_what_to_write() {
    let nowhere = tempfile::tempdir().unwrap();
    let error = pod(nowhere.path(), |_| None).unwrap_err();
    assert_eq!(
        error.detail,
        "KUBERNETES_SERVICE_HOST is not set: outside of a pod write kubernetes.kubeconfig"
    );
    let error = pod(nowhere.path(), |_| Some("1".into())).unwrap_err();
    assert!(error.detail.starts_with("cannot read "), "{error}");
}
