// SPDX-License-Identifier: Apache-2.0
use std::path::Path;
use std::process::Command;

use weir_governor::check::report;
use weir_governor::config;

use crate::kernel::Kernel;

#[test]
fn what_the_machine_offers_is_said_with_drivers_and_ranges() {
    let kernel = Kernel::new(2);
    let report = report(&kernel.root());
    assert!(report.can_govern, "{}", report.text);
    let line = "cores      cpu1: 1 GHz, 1.6 GHz, 2 GHz, 2.6 GHz, acpi-cpufreq, governor schedutil, driver userspace\n";
    assert!(report.text.contains(line), "{}", report.text);
    assert!(report.text.contains("no RAPL"), "{}", report.text);
    let line = "caches     no resctrl is mounted\n";
    assert!(report.text.contains(line), "{}", report.text);
    assert!(report.text.contains("\nuprobes "), "{}", report.text);
    assert!(kernel.is_as_found(0));
}

#[test]
fn what_is_missing_is_said_with_how_to_enable_it() {
    let nothing = Kernel::new(0);
    let said = report(&nothing.root());
    assert!(!said.can_govern);
    assert!(said.text.contains("modprobe acpi-cpufreq"), "{}", said.text);
    let hints = [
        ("intel_pstate", "intel_pstate=passive"),
        ("amd-pstate-epp", "amd_pstate=passive"),
        ("acpi-cpufreq", "modprobe cpufreq_userspace"),
    ];
    for (driver, hint) in hints {
        let kernel = Kernel::new(2);
        kernel.clamp_only();
        kernel.write(0, "scaling_driver", driver);
        kernel.write(1, "scaling_driver", driver);
        let said = report(&kernel.root());
        assert!(said.can_govern, "clamps will do");
        assert_eq!(said.text.matches(hint).count(), 1, "{}", said.text);
    }
    let kernel = Kernel::new(1);
    kernel.read_only(0, "scaling_governor");
    let said = report(&kernel.root());
    assert!(!said.can_govern);
    assert!(
        said.text.contains("policy0/scaling_governor"),
        "{}",
        said.text
    );
}

#[test]
fn the_example_is_good_and_is_for_four_cores() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/cores.yaml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir-governor"));
    let command = command.args(["run", "--check", "--config"]).arg(&example);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*said), (Some(0), ""));
    let shares = config::load(&example).unwrap().shares.unwrap();
    shares.policy(&(0..4).collect()).unwrap();
    let error = shares.policy(&(0..2).collect()).unwrap_err().to_string();
    let reason = "core_policy.blocks.large: the machine has cores 0-1, and no 2-3";
    assert!(error.ends_with(reason), "{error}");
}

#[test]
fn a_machine_without_cpufreq_that_can_divide_its_cores_will_do() {
    let kernel = Kernel::without_processes(0);
    let put = |file: &str, text: &str| {
        let path = kernel.path(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let mounted = "31 24 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
    put("proc/self/mountinfo", mounted);
    put("proc/stat", "cpu 1 1 1 1\n");
    put("sys/fs/cgroup/cgroup.controllers", "memory\n");
    let without = report(&kernel.root());
    assert!(!without.can_govern, "{}", without.text);
    let means =
        "groups     cores: affinity of threads, for there is no cpuset; freezing: cgroup v2 at ";
    assert!(without.text.contains(means), "{}", without.text);
    put("sys/fs/cgroup/cgroup.controllers", "cpuset memory\n");
    let with = report(&kernel.root());
    assert!(with.can_govern, "{}", with.text);
    assert!(with.text.contains("cores: cgroup v2 at "), "{}", with.text);
    let limits = "limits     memory by memory.high; not disk by io.weight: no cgroup v2 with io\n";
    assert!(with.text.contains(limits), "{}", with.text);
    assert!(
        with.text.contains("but cores can be divided\n"),
        "{}",
        with.text
    );
    kernel.add(0, &[0]);
    kernel.read_only(0, "scaling_governor");
    let broken = report(&kernel.root());
    assert!(!broken.can_govern, "{}", broken.text);
}

#[test]
fn what_cannot_be_divided_is_refused_in_one_line_before_anything_is_changed() {
    let job = "jobs: [{ name: a, command: [/bin/true] }, { name: b, command: [/no/such/program] }]";
    let here = "service: { pid: 4711 }";
    let cases = [
        (
            format!("{here}\ncore_policy: {{ blocks: {{}} }}\n{job}"),
            ":4: jobs[1].command: /no/such/program: No such file or directory (os error 2)\n",
        ),
        (
            format!("{here}\ncore_policy: {{ blocks: {{ small: 0 }} }}"),
            ":3: core_policy.blocks.small: 0: in block reserved, too\n",
        ),
        (
            format!("{here}\ncore_policy: {{ blocks: {{ large: 2-9 }} }}"),
            ":3: core_policy.blocks.large: the machine has cores 0-3, and no 4-9\n",
        ),
    ];
    for (division, reason) in cases {
        let kernel = Kernel::new(4);
        let online = kernel.path("sys/devices/system/cpu/online");
        std::fs::write(online, "0-3\n").unwrap();
        let logs = kernel.path("logs");
        let batch = format!("batch: {{ logs: {} }}", logs.display());
        let policy = format!("{{ three_state: {{}} }}\n{division}\n{batch}");
        let config = kernel.config_file(&policy);
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir-governor"));
        let command = command.arg("--root").arg(kernel.path("")).arg("run");
        let output = command.arg("--config").arg(&config).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(64), "{said}");
        let refusal = said.lines().find(|line| line.starts_with("/"));
        let refusal = format!("{}\n", refusal.unwrap_or_default());
        assert!(refusal.starts_with(config.to_str().unwrap()), "{said}");
        assert!(refusal.ends_with(reason), "{said}");
        assert!((0..4).all(|policy| kernel.is_as_found(policy)));
        assert!(!logs.exists() && !kernel.ring().exists());
    }
}
