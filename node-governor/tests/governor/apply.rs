// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;

use weir_governor::apply::{self, Apply, Driver};
use weir_governor::frequency::Khz;
use weir_governor::plan::{Plan, Setting};
use weir_governor::restore::restore;
use weir_governor::sensed::Nanos;
use weir_governor::state::Held;

use crate::kernel::Kernel;
use crate::kernel::cpufreq::FOUND;

fn taken(kernel: &Kernel) -> Apply {
    let mut apply = found(kernel, None, None).unwrap();
    apply.take().unwrap();
    apply
}

fn found(
    kernel: &Kernel,
    cores: Option<&[u32]>,
    driver: Option<Driver>,
) -> Result<Apply, apply::Error> {
    let held = Held::take(&kernel.state(), &kernel.root())?;
    Apply::find(&kernel.root(), &held, cores, driver)
}

fn plan(khz: &[u32]) -> Plan {
    let setting = |khz: &u32| Setting {
        frequency: Khz(*khz),
        rung: 0,
    };
    Plan {
        cores: khz.iter().map(setting).collect(),
        sleep: Duration::ZERO,
        ..Plan::default()
    }
}

fn seconds(seconds: f64) -> Nanos {
    Nanos(((100.0 + seconds) * 1e9) as u64)
}

#[test]
fn every_core_gets_its_frequency_and_is_put_back() {
    let kernel = Kernel::new(2);
    let mut apply = taken(&kernel);
    apply.apply(&plan(&[2_000_000, 1_000_000]), seconds(0.0));
    assert_eq!(kernel.speeds(), ["2000000", "1000000"]);
    assert!(kernel.state().join("found.json").exists());
    drop(apply);
    for (file, text) in FOUND
        .into_iter()
        .filter(|(file, _)| *file != "scaling_setspeed")
    {
        assert_eq!(kernel.read(1, file), text, "{file}");
    }
    assert!(!kernel.state().join("found.json").exists());
}

#[test]
fn where_userspace_is_not_offered_both_limits_are_set() {
    let kernel = Kernel::new(1);
    kernel.clamp_only();
    let limits = || ["scaling_min_freq", "scaling_max_freq"].map(|file| kernel.read(0, file));
    let mut apply = taken(&kernel);
    assert!(apply.node().cores[0].range.steps.is_empty());
    for khz in [1_200_000, 2_400_000, 1_000_000, 2_600_000] {
        apply.apply(&plan(&[khz]), seconds(0.0));
        assert_eq!(limits(), [khz.to_string(), khz.to_string()]);
    }
    assert_eq!(kernel.read(0, "scaling_governor"), "powersave");
    drop(apply);
    assert_eq!(limits(), ["1000000", "2600000"]);
}

#[test]
fn a_core_that_was_under_userspace_gets_its_speed_back() {
    let kernel = Kernel::new(1);
    kernel.write(0, "scaling_governor", "userspace");
    kernel.write(0, "scaling_setspeed", "1600000");
    let mut apply = taken(&kernel);
    apply.apply(&plan(&[2_600_000]), seconds(0.0));
    assert_eq!(kernel.speeds(), ["2600000"]);
    drop(apply);
    assert_eq!(kernel.speeds(), ["1600000"]);
}

#[test]
fn what_is_there_already_is_not_written_again() {
    let kernel = Kernel::new(1);
    let mut apply = taken(&kernel);
    apply.apply(&plan(&[2_000_000]), seconds(0.0));
    kernel.write(0, "scaling_setspeed", "untouched");
    apply.apply(&plan(&[2_000_000]), seconds(0.1));
    assert_eq!(kernel.speeds(), ["untouched"]);
    assert_eq!(apply.status(0).writes, 1);
    apply.apply(&plan(&[1_000_000]), seconds(0.2));
    assert_eq!(kernel.speeds(), ["1000000"]);
}

#[test]
fn limits_that_an_administrator_has_set_hold() {
    let kernel = Kernel::new(1);
    kernel.write(0, "scaling_max_freq", "2000000");
    let apply = found(&kernel, None, None).unwrap();
    let range = &apply.node().cores[0].range;
    assert_eq!(range.max, Khz(2_000_000));
    assert_eq!(range.steps, [1_000_000, 1_600_000, 2_000_000].map(Khz));
}

#[test]
fn cores_that_change_together_get_the_highest_of_theirs() {
    let kernel = Kernel::new(1);
    kernel.add(0, &[0, 1]);
    let mut apply = taken(&kernel);
    assert_eq!(apply.node().cores.len(), 2);
    apply.apply(&plan(&[1_000_000, 2_600_000]), seconds(0.0));
    assert_eq!(kernel.speeds(), ["2600000"]);
    // One of the two goes.
    kernel.write(0, "affected_cpus", "0");
    apply.look(seconds(1.0));
    assert!(apply.status(0).online && !apply.status(1).online);
    apply.apply(&plan(&[1_000_000, 2_600_000]), seconds(1.0));
    assert_eq!(kernel.speeds(), ["1000000"]);
    drop(apply);
    kernel.write(0, "affected_cpus", "0 1");
    let error = found(&kernel, Some(&[0]), None).unwrap_err().to_string();
    assert_eq!(
        error,
        "cpu0: changes together with cpu1: cores must name both or neither"
    );
}

#[test]
fn cores_that_are_not_named_are_left_alone() {
    let kernel = Kernel::new(2);
    let mut apply = found(&kernel, Some(&[1]), None).unwrap();
    apply.take().unwrap();
    apply.apply(&plan(&[2_600_000]), seconds(0.0));
    assert_eq!(kernel.speeds(), ["schedutil", "2600000"]);
    drop(apply);
    let error = found(&kernel, Some(&[1, 7]), None).unwrap_err().to_string();
    assert!(
        error.starts_with("cpu7: named in cores, but offline"),
        "{error}"
    );
}

#[test]
fn a_machine_without_cpufreq_is_refused_with_the_folder() {
    let kernel = Kernel::new(0);
    let error = found(&kernel, None, None).unwrap_err().to_string();
    assert!(
        error.contains("sys/devices/system/cpu/cpufreq: "),
        "{error}"
    );
    assert!(error.contains("weir-governor check"), "{error}");
}

#[test]
fn a_file_that_cannot_be_written_is_named_and_what_was_taken_before_is_put_back() {
    let kernel = Kernel::new(2);
    kernel.read_only(1, "scaling_setspeed");
    let mut apply = found(&kernel, None, None).unwrap();
    let error = apply.take().unwrap_err().to_string();
    assert!(
        error.starts_with("policy1: ") && error.contains("policy1/scaling_setspeed"),
        "{error}"
    );
    // At once: nothing that is dropped before it holds it up.
    assert!(kernel.is_as_found(0) && kernel.is_as_found(1));
    assert!(!kernel.state().join("found.json").exists());
}

#[test]
fn nothing_is_written_before_what_was_found_is_on_disk() {
    let kernel = Kernel::new(1);
    let mut apply = found(&kernel, None, None).unwrap();
    // No file can be put there.
    std::fs::create_dir_all(kernel.state().join("found.json/x")).unwrap();
    let error = apply.take().unwrap_err().to_string();
    assert!(error.contains("found.json"), "{error}");
    drop(apply);
    assert!(kernel.is_as_found(0));
}

#[test]
fn a_core_that_vanishes_is_dropped_and_taken_again_when_it_is_back() {
    let kernel = Kernel::new(2);
    let mut apply = taken(&kernel);
    apply.apply(&plan(&[2_000_000, 2_000_000]), seconds(0.0));
    kernel.vanish(1);
    apply.look(seconds(1.0));
    assert!(apply.status(0).online && !apply.status(1).online);
    apply.apply(&plan(&[2_600_000, 2_600_000]), seconds(1.0));
    kernel.return_of(1);
    assert_eq!(kernel.speeds(), ["2600000", "2000000"]);
    kernel.write(1, "scaling_governor", "schedutil");
    apply.look(seconds(2.0));
    apply.apply(&plan(&[2_600_000, 2_600_000]), seconds(2.0));
    assert_eq!(kernel.speeds(), ["2600000", "2600000"]);
    assert_eq!(apply.status(1).foreign_writes, 0);
    drop(apply);
    assert!(kernel.is_as_found(0) && kernel.is_as_found(1));
}

#[test]
fn a_core_that_is_gone_at_the_end_is_put_back_later() {
    let kernel = Kernel::new(1);
    let mut apply = taken(&kernel);
    apply.apply(&plan(&[2_000_000]), seconds(0.0));
    kernel.vanish(0);
    drop(apply);
    kernel.return_of(0);
    assert_eq!(kernel.speeds(), ["2000000"]);
    assert!(restore(&kernel.root(), &kernel.state()).unwrap().is_empty());
    assert!(kernel.is_as_found(0));
    // There is nothing more to do, however often it is asked.
    kernel.write(0, "scaling_governor", "performance");
    assert!(restore(&kernel.root(), &kernel.state()).unwrap().is_empty());
    assert_eq!(kernel.read(0, "scaling_governor"), "performance");
}

#[test]
fn another_program_is_noticed_and_met_ever_more_seldom() {
    let kernel = Kernel::new(1);
    let mut apply = taken(&kernel);
    let fast = plan(&[2_600_000]);
    apply.apply(&fast, seconds(0.0));
    let mut now = 0.0;
    for (nth, rest) in [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
        .into_iter()
        .enumerate()
    {
        kernel.write(0, "scaling_setspeed", "1600000");
        apply.look(seconds(now));
        let status = apply.status(0);
        assert_eq!(status.foreign_writes, nth as u64 + 1);
        assert!(!status.governed);
        apply.apply(&fast, seconds(now + rest - 0.01));
        assert_eq!(kernel.speeds(), ["1600000"], "theirs for {rest} s");
        now += rest;
        apply.apply(&fast, seconds(now));
        assert_eq!(kernel.speeds(), ["2600000"]);
    }
    // A minute of peace, and the next one is met as the first was.
    apply.look(seconds(now + 61.0));
    kernel.write(0, "scaling_governor", "schedutil");
    apply.look(seconds(now + 62.0));
    apply.apply(&fast, seconds(now + 63.0));
    assert_eq!(kernel.speeds(), ["2600000"]);
}

#[test]
fn of_a_limit_that_another_program_moved_the_other_is_put_back() {
    let kernel = Kernel::new(1);
    kernel.clamp_only();
    let mut apply = taken(&kernel);
    apply.apply(&plan(&[2_400_000]), seconds(0.0));
    kernel.write(0, "scaling_max_freq", "1600000");
    apply.look(seconds(1.0));
    assert_eq!(apply.status(0).foreign_writes, 1);
    assert_eq!(kernel.read(0, "scaling_max_freq"), "1600000");
    assert_eq!(
        kernel.read(0, "scaling_min_freq"),
        "1000000",
        "no core is kept fast"
    );
}

#[test]
fn limits_of_the_kernel_are_no_other_program() {
    let kernel = Kernel::new(1);
    let mut apply = taken(&kernel);
    apply.apply(&plan(&[2_600_000]), seconds(0.0));
    // Hot: the kernel allows no more, and sets that.
    kernel.write(0, "scaling_max_freq", "1600000");
    kernel.write(0, "scaling_setspeed", "1600000");
    apply.look(seconds(1.0));
    assert_eq!(apply.status(0).foreign_writes, 0);
    assert!(apply.status(0).governed);
}

#[test]
fn a_limit_for_heat_is_not_put_back_as_if_it_had_been_found() {
    // The cores' own device, that of all, and the firmware.
    for by in [Some("cpufreq-cpu0"), Some("Processor"), None] {
        let kernel = Kernel::new(1);
        kernel.clamp_only();
        kernel.write(0, "scaling_max_freq", "1400000");
        match by {
            Some(kind) => kernel.cooling(3, kind, 2),
            None => kernel.write(0, "bios_limit", "1400000"),
        }
        let mut apply = taken(&kernel);
        assert_eq!(apply.node().cores[0].range.max, Khz(2_600_000));
        apply.apply(&plan(&[2_600_000]), seconds(0.0));
        drop(apply);
        assert_eq!(kernel.read(0, "scaling_max_freq"), "2600000", "{by:?}");
    }
}

#[test]
fn a_limit_is_an_administrators_where_nothing_cools_these_cores() {
    let kernel = Kernel::new(1);
    kernel.clamp_only();
    kernel.write(0, "scaling_max_freq", "1400000");
    kernel.write(0, "bios_limit", "2600000");
    for (number, kind, state) in [(0, "Processor", 0), (1, "cpufreq-cpu4", 3), (2, "Fan", 1)] {
        kernel.cooling(number, kind, state);
    }
    let mut apply = taken(&kernel);
    assert_eq!(apply.node().cores[0].range.max, Khz(1_400_000));
    apply.apply(&plan(&[1_200_000]), seconds(0.0));
    drop(apply);
    assert_eq!(kernel.read(0, "scaling_max_freq"), "1400000");
}

/// 2.4 GHz is written, and then 1.6 by another program.
fn limited_by_another() -> (Kernel, Apply) {
    let kernel = Kernel::new(1);
    kernel.clamp_only();
    let mut apply = taken(&kernel);
    apply.apply(&plan(&[2_400_000]), seconds(0.0));
    kernel.write(0, "scaling_max_freq", "1600000");
    (kernel, apply)
}

fn limits(kernel: &Kernel) -> [String; 2] {
    ["scaling_min_freq", "scaling_max_freq"].map(|file| kernel.read(0, file))
}

#[test]
fn a_limit_that_another_program_set_meanwhile_is_what_is_put_back() {
    for looked in [true, false] {
        let (kernel, mut apply) = limited_by_another();
        if looked {
            apply.look(seconds(1.0));
            // On disk before ours is there again: a governor that is killed now leaves that.
            apply.apply(&plan(&[2_400_000]), seconds(2.0));
            assert_eq!(kernel.read(0, "scaling_max_freq"), "2400000");
            let record = std::fs::read_to_string(kernel.state().join("found.json")).unwrap();
            assert!(record.contains("1600000"), "{record}");
        }
        assert_eq!(apply.end(), 0);
        assert_eq!(limits(&kernel), ["1000000", "1600000"], "looked: {looked}");
    }
}

#[test]
fn a_limit_that_is_set_again_while_the_governor_rests_is_what_is_put_back() {
    for ends_resting in [true, false] {
        let (kernel, mut apply) = limited_by_another();
        apply.look(seconds(1.0));
        kernel.write(0, "scaling_max_freq", "1400000");
        if !ends_resting {
            apply.look(seconds(1.5));
            apply.apply(&plan(&[2_400_000]), seconds(2.0));
            assert_eq!(kernel.read(0, "scaling_max_freq"), "2400000");
        }
        assert_eq!(apply.end(), 0);
        assert_eq!(limits(&kernel), ["1000000", "1400000"], "{ends_resting}");
    }
}

#[test]
fn nothing_is_written_over_anothers_limit_before_that_is_on_disk() {
    let kernel = Kernel::new(1);
    kernel.clamp_only();
    let mut apply = taken(&kernel);
    apply.apply(&plan(&[2_400_000]), seconds(0.0));
    kernel.write(0, "scaling_max_freq", "1600000");
    // Where the next record would be written.
    let partial = kernel.state().join("found.json.partial");
    std::fs::create_dir(&partial).unwrap();
    apply.look(seconds(1.0));
    apply.apply(&plan(&[2_400_000]), seconds(2.0));
    assert_eq!(kernel.read(0, "scaling_max_freq"), "1600000");
    std::fs::remove_dir(&partial).unwrap();
    apply.look(seconds(3.0));
    apply.apply(&plan(&[2_400_000]), seconds(3.0));
    assert_eq!(kernel.read(0, "scaling_max_freq"), "2400000");
}

#[test]
fn after_a_failed_write_the_core_is_as_found_for_a_while() {
    let kernel = Kernel::new(1);
    let speed = kernel.policy(0).join("scaling_setspeed");
    // Takes no write.
    kernel.link(0, "scaling_setspeed", "/dev/full");
    let mut apply = taken(&kernel);
    apply.apply(&plan(&[2_600_000]), seconds(0.0));
    assert_eq!(apply.status(0).write_errors, 1);
    assert!(kernel.is_as_found(0));
    apply.apply(&plan(&[2_600_000]), seconds(0.9));
    assert_eq!(apply.status(0).write_errors, 1);
    apply.apply(&plan(&[2_600_000]), seconds(1.0));
    assert_eq!(apply.status(0).write_errors, 2);
    std::fs::remove_file(&speed).unwrap();
    kernel.write(0, "scaling_setspeed", "<unsupported>");
    apply.apply(&plan(&[2_600_000]), seconds(3.0));
    assert_eq!(kernel.speeds(), ["2600000"]);
}

#[test]
fn a_second_governor_is_refused_with_the_process_of_the_first() {
    let kernel = Kernel::new(1);
    let _first = taken(&kernel);
    let error = found(&kernel, None, None).unwrap_err().to_string();
    let holder = format!("held by process {}", std::process::id());
    assert!(error.contains(&holder), "{error}");
    let error = restore(&kernel.root(), &kernel.state()).unwrap_err();
    assert!(error.to_string().contains(&holder));
    assert_eq!(kernel.read(0, "scaling_governor"), "userspace");
}

#[test]
fn what_cannot_be_put_back_is_counted_and_the_rest_is_put_back() {
    let kernel = Kernel::new(3);
    let mut apply = taken(&kernel);
    kernel.read_only(1, "scaling_governor");
    assert_eq!(apply.end(), 1);
    assert!(kernel.is_as_found(0) && kernel.is_as_found(2));
    drop(apply);
    let left = restore(&kernel.root(), &kernel.state()).unwrap();
    assert!(left[0].to_string().starts_with("policy1: "), "{left:?}");
}

#[test]
fn a_limit_that_cannot_be_put_back_does_not_keep_the_other() {
    let kernel = Kernel::new(1);
    kernel.clamp_only();
    let mut apply = taken(&kernel);
    apply.apply(&plan(&[2_400_000]), seconds(0.0));
    kernel.read_only(0, "scaling_max_freq");
    assert_eq!(apply.end(), 1);
    assert_eq!(kernel.read(0, "scaling_min_freq"), "1000000");
}

#[test]
fn a_core_that_cannot_be_looked_at_is_governed_as_before() {
    let kernel = Kernel::new(1);
    let mut apply = taken(&kernel);
    apply.apply(&plan(&[2_600_000]), seconds(0.0));
    // Neither a file nor away, as where no more files can be opened.
    kernel.read_only(0, "affected_cpus");
    apply.look(seconds(1.0));
    assert!(apply.status(0).online && apply.status(0).governed);
    apply.apply(&plan(&[1_000_000]), seconds(1.0));
    assert_eq!(kernel.speeds(), ["1000000"]);
}

#[test]
fn what_a_former_run_left_of_a_core_that_was_off_is_put_back_when_it_is_back() {
    let kernel = Kernel::new(2);
    let mut first = taken(&kernel);
    kernel.vanish(1);
    assert_eq!(first.end(), 1);
    drop(first);
    let mut second = taken(&kernel);
    second.look(seconds(1.0));
    kernel.return_of(1);
    assert!(!kernel.is_as_found(1));
    second.look(seconds(2.0));
    assert!(kernel.is_as_found(1));
    assert_eq!(kernel.read(0, "scaling_governor"), "userspace");
    assert_eq!(second.end(), 0);
}

#[test]
fn what_a_former_run_left_is_put_back_at_the_end_too() {
    let kernel = Kernel::new(2);
    let mut first = taken(&kernel);
    kernel.vanish(1);
    assert_eq!(first.end(), 1);
    drop(first);
    let mut second = taken(&kernel);
    kernel.return_of(1);
    assert_eq!(second.end(), 0);
    assert!(kernel.is_as_found(0) && kernel.is_as_found(1));
}

#[test]
fn a_driver_that_rounds_is_no_other_program() {
    let kernel = Kernel::new(1);
    std::fs::remove_file(kernel.policy(0).join("scaling_available_frequencies")).unwrap();
    // An attribute that shows another number than was written: its lowest nine bits, in sixteens.
    kernel.link(0, "scaling_setspeed", "/proc/self/coredump_filter");
    let mut apply = taken(&kernel);
    apply.apply(&plan(&[2_000_000]), seconds(0.0));
    assert_eq!(kernel.speeds(), ["00000080"]);
    apply.look(seconds(1.0));
    assert_eq!(apply.status(0).foreign_writes, 0);
    kernel.write(0, "scaling_setspeed", "51");
    apply.look(seconds(2.0));
    assert_eq!(apply.status(0).foreign_writes, 1);
}

#[test]
fn limits_that_the_kernel_lowers_together_are_no_other_program() {
    let kernel = Kernel::new(1);
    kernel.clamp_only();
    let mut apply = taken(&kernel);
    apply.apply(&plan(&[2_600_000]), seconds(0.0));
    kernel.write(0, "scaling_max_freq", "1800000");
    kernel.write(0, "scaling_min_freq", "1800000");
    apply.look(seconds(1.0));
    assert_eq!(apply.status(0).foreign_writes, 0);
    assert!(apply.status(0).governed);
}

#[test]
fn of_two_limits_of_which_one_failed_none_stays() {
    use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
    use std::os::fd::AsRawFd;
    let kernel = Kernel::new(1);
    kernel.clamp_only();
    // Takes writes until it is sealed, also through files that are open.
    let upper = memfd_create("upper", MemfdFlags::ALLOW_SEALING).unwrap();
    let path = format!("/proc/self/fd/{}", upper.as_raw_fd());
    kernel.link(0, "scaling_max_freq", &path);
    kernel.write(0, "scaling_max_freq", "2600000");
    let mut apply = taken(&kernel);
    apply.apply(&plan(&[2_400_000]), seconds(0.0));
    fcntl_add_seals(&upper, SealFlags::WRITE).unwrap();
    apply.apply(&plan(&[1_600_000]), seconds(0.1));
    assert_eq!(kernel.read(0, "scaling_min_freq"), "1000000");
    assert_eq!(apply.status(0).write_errors, 1);
    assert_eq!(apply.status(0).foreign_writes, 0);
}
