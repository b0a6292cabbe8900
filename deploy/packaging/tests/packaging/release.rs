// SPDX-License-Identifier: Apache-2.0
//! A release as whoever downloads it sees it: its sums and signature, its packages, and its own guide, followed word by
//! word with nothing but its files.

pub(crate) mod arm64;
mod machine;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use weir_packaging::digest;

use self::machine::Machine;
use crate::Test;
use crate::envoy;
use crate::guide;
use crate::needs::{self, ENVOY, Need, RELEASE, SYSTEMD_ANALYZE};

pub(crate) const TESTS: &[Test] = &[
    (
        "every_file_of_a_release_has_its_sum_and_its_provenance",
        &[RELEASE],
        every_file_has_its_sum,
    ),
    (
        "the_signature_of_a_release_is_good_for_its_sums_alone",
        &[RELEASE, Need::Program("ssh-keygen")],
        the_signature_is_good,
    ),
    (
        "static_programs_of_a_release_run_where_nothing_else_is",
        &[RELEASE, Need::UserNamespace],
        || static_programs_run(&Machine::own()),
    ),
    (
        "debian_packages_of_a_release_have_programs_settings_and_manuals",
        &[RELEASE],
        || debian_packages_are_whole(&Machine::own()),
    ),
    (
        "systemd_knows_every_word_of_the_units_in_debian_packages",
        &[RELEASE, SYSTEMD_ANALYZE],
        systemd_knows_the_units,
    ),
    (
        "manual_pages_of_a_release_are_set_without_a_warning",
        &[RELEASE, Need::Program("man")],
        manual_pages_are_good,
    ),
    (
        "envoy_takes_the_dynamic_module_of_a_release",
        &[RELEASE, ENVOY],
        envoy_takes_the_dynamic_module,
    ),
    (
        "a_service_gets_weir_from_the_files_of_a_release_as_its_guide_says",
        &[RELEASE, ENVOY, Need::UserNamespace],
        the_guide_is_true,
    ),
];

/// Files of a release that say of the others what they are.
const SUMS: &str = "SHA256SUMS";
const SIGNATURE: &str = "SHA256SUMS.sig";
const PROVENANCE: &str = "provenance.json";
fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    names.collect()
}

/// The one file whose name begins and ends so.
fn file(begins: &str, ends: &str) -> PathBuf {
    let names = names(&RELEASE.path());
    let mut found = names
        .iter()
        .filter(|name| name.starts_with(begins) && name.ends_with(ends));
    let name = found.next().unwrap_or_else(|| panic!("{begins}…{ends}"));
    assert_eq!(found.next(), None, "{begins}…{ends}");
    RELEASE.path().join(name)
}

/// The archive with a machine's static programs.
fn archive(machine: &Machine) -> PathBuf {
    file("weir-", &format!("-{}-linux-musl.tar.gz", machine.arch))
}

fn unpack(archive: &Path, into: &Path) {
    fs::create_dir_all(into).unwrap();
    let mut tar = Command::new("tar");
    needs::succeed(tar.arg("-xf").arg(archive).arg("-C").arg(into));
}

/// The folder that it has.
fn unpacked(machine: &Machine, into: &Path) -> PathBuf {
    unpack(&archive(machine), into);
    let names = names(into);
    assert_eq!(names.len(), 1, "{names:?}");
    into.join(names.first().unwrap())
}

fn package(name: &str, machine: &Machine) -> PathBuf {
    file(name, &format!("_{}.deb", machine.debian()))
}

fn installed(name: &str, machine: &Machine, into: &Path) {
    let mut dpkg = Command::new("dpkg-deb");
    needs::succeed(dpkg.arg("-x").arg(package(name, machine)).arg(into));
}

fn every_file_has_its_sum() {
    let folder = RELEASE.path();
    let sums = fs::read_to_string(folder.join(SUMS)).unwrap();
    let line = |line: &str| {
        let (sum, name) = line.split_once("  ").unwrap();
        (name.to_owned(), sum.to_owned())
    };
    let sums: Vec<(String, String)> = sums.lines().map(line).collect();
    for (name, sum) in &sums {
        let own = digest(&fs::read(folder.join(name)).unwrap());
        assert_eq!(&own, &format!("sha256:{sum}"), "{name}");
    }
    let summed: BTreeSet<_> = sums.iter().map(|(name, _)| name.clone()).collect();
    let mut there = names(&folder);
    assert!(there.remove(SUMS) && there.remove(SIGNATURE));
    assert_eq!(summed, there);

    let provenance = fs::read(folder.join(PROVENANCE)).unwrap();
    let provenance: Value = serde_json::from_slice(&provenance).unwrap();
    let subjects = provenance["subject"].as_array().unwrap().iter();
    let said: BTreeSet<_> = subjects
        .map(|subject| {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            (text(&subject["name"]), text(&subject["digest"]["sha256"]))
        })
        .collect();
    let expected = sums.into_iter().filter(|(name, _)| name != PROVENANCE);
    assert_eq!(said, expected.collect());
}

/// The key is beside the folder of the release that `cargo xtask test` makes.
fn the_signature_is_good() {
    let folder = TempDir::new().unwrap();
    let key = fs::read_to_string(RELEASE.path().with_file_name("key.pub")).unwrap();
    let signers = folder.path().join("signers");
    fs::write(&signers, format!("weir {key}")).unwrap();
    let verifies = |sums: &Path| {
        let mut command = Command::new("ssh-keygen");
        command
            .args(["-Y", "verify", "-I", "weir", "-n", "weir-release", "-f"])
            .arg(&signers)
            .arg("-s")
            .arg(RELEASE.path().join(SIGNATURE))
            .stdin(fs::File::open(sums).unwrap());
        command.output().unwrap().status.success()
    };
    let sums = RELEASE.path().join(SUMS);
    assert!(verifies(&sums));
    let mut text = fs::read_to_string(&sums).unwrap();
    text.push('\n');
    let other = folder.path().join(SUMS);
    fs::write(&other, text).unwrap();
    assert!(!verifies(&other));
}

fn static_programs_run(machine: &Machine) {
    let folder = TempDir::new().unwrap();
    let root = unpacked(machine, folder.path());
    for (program, arguments) in [
        ("weirctl", &["--version"][..]),
        (
            "weir-control",
            &["--check", "--config", "/etc/weir-control.yaml"],
        ),
        (
            "weir-governor",
            &["run", "--check", "--config", "/etc/weir-governor.yaml"],
        ),
    ] {
        let mut command = machine.alone(&root, &format!("/bin/{program}"));
        needs::succeed(command.args(arguments));
    }
}

fn debian_packages_are_whole(machine: &Machine) {
    let folder = TempDir::new().unwrap();
    for (name, programs, check) in [
        (
            "weir-control",
            &["weir-control", "weirctl"][..],
            &["--check"][..],
        ),
        ("weir-governor", &["weir-governor"], &["run", "--check"]),
    ] {
        let root = folder.path().join(name);
        installed(name, machine, &root);
        let command = |program: &str| machine.command(&root.join("usr/bin").join(program));
        for program in programs {
            needs::succeed(command(program).arg("--version"));
            for manual in [
                format!("usr/share/man/man1/{program}.1.gz"),
                format!("usr/share/doc/{program}/copyright"),
                format!("usr/share/doc/{program}/NOTICES.txt"),
                format!("usr/share/bash-completion/completions/{program}"),
            ] {
                assert!(root.join(&manual).is_file(), "{manual}");
            }
        }
        let settings = format!("/etc/weir/{name}.yaml");
        let place = root.join(settings.trim_start_matches('/'));
        needs::succeed(command(name).args(check).arg("--config").arg(place));

        let said = |field: &str| {
            let mut command = Command::new("dpkg-deb");
            command.arg(field).arg(package(name, machine));
            String::from_utf8(needs::succeed(&mut command).stdout).unwrap()
        };
        let info = said("--info");
        assert!(info.contains("Depends: libc6 (>= 2."), "{info}");
        assert!(
            info.contains(&format!("Architecture: {}\n", machine.debian())),
            "{info}"
        );
        let mut kept = Command::new("dpkg-deb");
        let kept = needs::succeed(
            kept.arg("--info")
                .arg(package(name, machine))
                .arg("conffiles"),
        );
        assert_eq!(
            String::from_utf8(kept.stdout).unwrap(),
            format!("{settings}\n")
        );
        // Of root's, each.
        let contents = said("--contents");
        let is_roots = |line: &str| line.contains(" root/root ");
        assert!(contents.lines().all(is_roots), "{contents}");
    }
    let control = folder.path().join("weir-control/usr/share/weir");
    for file in ["weir_filter.wasm", "bootstrap.yaml"] {
        assert!(control.join(file).is_file(), "{file}");
    }
}

fn systemd_knows_the_units() {
    let folder = TempDir::new().unwrap();
    for package in ["weir-control", "weir-governor"] {
        let root = folder.path().join(package);
        installed(package, &Machine::own(), &root);
        let name = format!("{package}.service");
        let unit = root.join("usr/lib/systemd/system").join(&name);
        let text = fs::read_to_string(&unit).unwrap();
        let documents = text
            .lines()
            .filter_map(|line| line.strip_prefix("Documentation=file:/"));
        let documents: Vec<_> = documents.collect();
        assert!(!documents.is_empty());
        for document in documents {
            assert!(root.join(document).is_file(), "{document}");
        }
        // As it would be once it is installed.
        let program = root.join("usr/bin").join(package);
        let program = program.to_str().unwrap();
        fs::write(&unit, text.replace(&format!("/usr/bin/{package}"), program)).unwrap();
        let mut command = SYSTEMD_ANALYZE.command();
        let output = command.args(["verify", "--man=no"]).arg(&unit).output();
        let said = String::from_utf8(output.unwrap().stderr).unwrap();
        assert!(!said.contains(&name), "{said}");
    }
}

fn manual_pages_are_good() {
    let folder = TempDir::new().unwrap();
    let root = unpacked(&Machine::own(), folder.path()).join("man");
    let pages = names(&root);
    for page in ["weir-control.1", "weir-governor.1", "weirctl.1"] {
        assert!(pages.contains(page), "{pages:?}");
    }
    for page in pages {
        let mut man = Command::new("man");
        man.args(["--warnings", "--encoding=UTF-8", "--local-file"])
            .arg(root.join(&page))
            .env("LC_ALL", "C.UTF-8")
            .env("MANWIDTH", "100");
        let output = needs::succeed(&mut man);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.is_empty(), "{page}: {said}");
        assert!(!output.stdout.is_empty(), "{page}");
    }
}

/// Envoy loads a module that it is to validate, and the module reads its configuration.
fn envoy_takes_the_dynamic_module() {
    let file = file("libweir_native-", ".so");
    let with = |configuration: &str| {
        let filter = json!({ "name": "weir", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.dynamic_modules.v3.DynamicModuleFilter",
            "dynamic_module_config": {
                "module": { "local": { "filename": file } },
                "do_not_close": true,
            },
            "filter_name": "weir",
            "filter_config": {
                "@type": "type.googleapis.com/google.protobuf.StringValue",
                "value": configuration,
            },
        } });
        let router = json!({ "name": "router", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router",
        } });
        let manager = json!({
            "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
            "stat_prefix": "x",
            "route_config": {},
            "http_filters": [filter, router],
        });
        let listener = json!({
            "name": "x",
            "address": { "socket_address": { "address": "127.0.0.1", "port_value": 0 } },
            "filter_chains": [{ "filters": [{ "name": "x", "typed_config": manager }] }],
        });
        envoy::bootstrap(vec![], vec![listener])
    };
    envoy::accepts(&with(r#"{"clusters":{"rules":{}}}"#));
    let refusal = envoy::refusal(&with(r#"{"bogus":1}"#)).expect("no field is called so");
    assert!(refusal.contains("bogus"), "{refusal}");
}

/// With nothing but its files.
fn the_guide_is_true() {
    let folder = TempDir::new().unwrap();
    let (downloads, programs) = (folder.path().join("downloads"), folder.path().join("bin"));
    fs::create_dir(&downloads).unwrap();
    fs::create_dir(&programs).unwrap();
    for file in [archive(&Machine::own()), RELEASE.path().join(SUMS)] {
        fs::copy(&file, downloads.join(file.file_name().unwrap())).unwrap();
    }
    symlink(ENVOY.path(), programs.join("envoy")).unwrap();
    let page = fs::read_to_string(needs::root().join("deploy/RELEASE.md")).unwrap();
    let script = guide::blocks(&page, "Ten minutes");
    assert!(script.contains("weirctl doctor"), "{script}");
    let said = guide::play(&script, &downloads, &programs);
    for expected in [
        "linux-musl.tar.gz: OK",
        "weirctl ",
        "ok: 1 cluster, 2 hosts",
        "x-weir-reason: not_cached",
        "x-weir-host: 127.0.0.1:900",
        "x-weir-reason: known_cached",
        "send (known_cached)",
        "every link holds",
    ] {
        assert!(said.contains(expected), "{expected}:\n{said}");
    }
    println!("{said}");
}
