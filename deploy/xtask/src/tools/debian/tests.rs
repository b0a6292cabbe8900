// SPDX-License-Identifier: Apache-2.0
use super::*;

use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

/// Stand in for apt and dpkg: each package is of version 7.2-1, an archive holds its own name.
const PROGRAMS: [(&str, &str); 4] = [
    (
        "apt-get",
        r#"case "$*" in
          *download-only*) echo qemu > qemu.deb; echo libfdt1 > libfdt1.deb ;;
          *download*) while [ "$1" != download ]; do shift; done; shift; for name; do echo "$name" > "$name.deb"; done ;;
        esac"#,
    ),
    (
        "apt-cache",
        r#"for last; do :; done
        echo "Package: $last"; echo "Version: 7.2-1"
        echo "Depends: libc6 (>= 2), kernel-56 (= 7.2-1), other (= 7.2-2)""#,
    ),
    (
        "dpkg-deb",
        r#"for last; do :; done
        case "$1" in
          -x) mkdir -p "$3"; cp "$2" "$3/" ;;
          -W) printf '%s 7.2-1' "$(cat "$last")" ;;
        esac"#,
    ),
    ("dpkg-query", "exit 1"),
];

struct Fixture {
    folder: TempDir,
    debian: Debian,
}

impl Fixture {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let package = |name: &str, dependencies| Package {
            name: name.into(),
            version: "7.2".into(),
            dependencies,
        };
        let debian = Debian {
            version: "12".into(),
            platform: format!("{OS}-{ARCH}"),
            packages: vec![package("qemu", true), package("kernel", false)],
        };
        let fixture = Self { folder, debian };
        for (name, script) in PROGRAMS {
            fixture.program(name, script);
        }
        fixture
    }

    fn program(&self, name: &str, script: &str) {
        let path = self.folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    fn install(&self) -> Result<PathBuf> {
        let client = Client(Some(self.folder.path().into()));
        install("guest", &self.debian, &client, &self.cache())
    }

    fn record(&self) -> Vec<String> {
        let text = fs::read_to_string(self.cache().join("guest-12/packages")).unwrap();
        text.lines()
            .map(|line| line.rsplit_once(' ').unwrap().0.into())
            .collect()
    }

    fn refusal(&self) -> String {
        let error = format!("{:#}", self.install().unwrap_err());
        let left = fs::read_dir(self.cache()).map_or(0, Iterator::count);
        assert_eq!(left, 0, "a failed installation leaves nothing behind");
        error
    }
}

#[test]
fn packages_are_unpacked_and_recorded_with_what_they_need_and_not_fetched_again() {
    let fixture = Fixture::new();
    let folder = fixture.install().unwrap();
    assert!(folder.join("libfdt1.deb").is_file());
    let expected = ["kernel-56", "kernel", "libfdt1", "qemu"].map(|name| format!("{name} 7.2-1"));
    assert_eq!(fixture.record(), expected);
    fixture.program("apt-get", "exit 1");
    fixture.install().unwrap();
}

#[test]
fn a_version_that_is_not_pinned_is_refused_before_anything_is_downloaded() {
    let mut fixture = Fixture::new();
    fixture.debian.packages[0].version = "8.".into();
    let refused = fixture.refusal();
    assert!(refused.contains("offers qemu 7.2-1"), "{refused}");
}

#[test]
fn other_pins_are_fetched_again() {
    let fixture = Fixture::new();
    let client = Client(Some(fixture.folder.path().into()));
    let record = |qemu: &str| format!("kernel 7.2-1 aa\nqemu {qemu}\n");
    assert!(is_whole(&fixture.debian, &record("7.2-1 aa"), &client));
    assert!(!is_whole(&fixture.debian, &record("7.1-1 aa"), &client));
    assert!(!is_whole(&fixture.debian, "qemu 7.2-1 aa\n", &client));
    // It was the machine's own, and is gone.
    assert!(!is_whole(&fixture.debian, &record("installed"), &client));
    fixture.program("dpkg-query", "printf installed");
    assert!(is_whole(&fixture.debian, &record("installed"), &client));
}

#[test]
fn without_apt_the_missing_program_is_named() {
    let fixture = Fixture::new();
    fs::remove_file(fixture.folder.path().join("apt-get")).unwrap();
    let refused = fixture.refusal();
    assert!(refused.contains("apt-get` is not installed"), "{refused}");
}

#[test]
fn a_machine_of_another_kind_is_refused() {
    let mut fixture = Fixture::new();
    fixture.debian.platform = "plan9-mips".into();
    let refused = fixture.refusal();
    assert!(refused.contains("it is for plan9-mips"), "{refused}");
}

#[test]
fn only_dependencies_of_exactly_its_version_come_with_a_package_that_is_fetched_alone() {
    let shown = "Version: 6.1-2\nDepends: kmod, linux-image-6.1.0-56 (= 6.1-2), x (= 6.1-1)\n";
    assert_eq!(pinned_by(shown, "6.1-2"), ["linux-image-6.1.0-56"]);
    assert!(pinned_by("Version: 1\n", "1").is_empty());
}
