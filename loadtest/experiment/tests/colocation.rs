// SPDX-License-Identifier: Apache-2.0
//! The smallest real rounds, on real programs and cgroups, of `colocation` and of `static-plan`.
//!
//! Where a program cannot be had (`WEIR_MEMCACHED`, `WEIR_STRESS_NG`, `WEIR_X264`, `WEIR_ZSTD`, `WEIR_BIN_DIR`, which
//! `cargo xtask test` sets) or no cgroup can be made, the tests are reported as ignored.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use libtest_mimic::{Arguments, Trial};
use tempfile::TempDir;
use weir_experiment::cgroups::{self, Cgroups};
use weir_experiment::colocation::calibration::Calibration;
use weir_experiment::colocation::jobs::{self, Sizes};
use weir_experiment::colocation::plan::Stepping;
use weir_experiment::colocation::programs::Programs;
use weir_experiment::colocation::rounds::{self, Round, Setting, Which};
use weir_experiment::colocation::samples::Sample;
use weir_experiment::colocation::way::Way;
use weir_experiment::static_plan::figures::{ran_once, waits};
use weir_experiment::static_plan::{self, verdict};
use weir_needs::{Lacking, Need, program, provided, skip_test};

/// Of cgroups.
const NAME: &str = "colocation";

type Scenario = (&'static str, fn(&Programs) -> Result<()>);

const SCENARIOS: &[Scenario] = &[
    (
        "without_a_governor_every_job_ends_and_memcached_answers",
        without_a_governor_every_job_ends_and_memcached_answers,
    ),
    (
        "jobs_begin_after_the_load_where_all_is_memcacheds",
        jobs_begin_after_the_load_where_all_is_memcacheds,
    ),
    (
        "governed_jobs_end_memcached_answers_and_its_cores_are_put_back",
        governed_jobs_end_memcached_answers_and_its_cores_are_put_back,
    ),
    (
        "a_job_that_fails_is_named_and_nothing_is_left_behind",
        a_job_that_fails_is_named_and_nothing_is_left_behind,
    ),
    (
        "a_written_plan_is_played_once_and_in_its_order_across_nodes",
        a_written_plan_is_played_once_and_in_its_order_across_nodes,
    ),
    (
        "a_job_of_a_written_plan_that_fails_is_told_and_those_after_it_run",
        a_job_of_a_written_plan_that_fails_is_told_and_those_after_it_run,
    ),
    (
        "who_is_kept_on_a_core_is_there_alone_with_what_it_starts",
        who_is_kept_on_a_core_is_there_alone_with_what_it_starts,
    ),
    (
        "what_is_frozen_in_cgroups_is_gone_with_them",
        what_is_frozen_in_cgroups_is_gone_with_them,
    ),
];

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Loads side by side would be slower than they are told to be.
    arguments.test_threads = Some(1);
    let all = stage();
    let trial = |(name, run): &Scenario| {
        let run = *run;
        let programs = all.as_ref().ok().cloned();
        let absent = programs.is_none();
        if let Err(lacking) = &all {
            skip_test(name, lacking.need, lacking);
        }
        Trial::test(*name, move || {
            let programs = programs.ok_or("there are no programs")?;
            run(&programs).map_err(|error| format!("{error:#}").into())
        })
        .with_ignored_flag(absent)
    };
    let trials = SCENARIOS.iter().map(trial).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn programs() -> Result<Programs, Lacking> {
    Ok(Programs {
        memcached: provided("WEIR_MEMCACHED")?,
        load: program("weir-memcached-load")?,
        stress_ng: provided("WEIR_STRESS_NG")?,
        x264: provided("WEIR_X264")?,
        zstd: provided("WEIR_ZSTD")?,
        governor: program("weir-governor")?,
    })
}

/// The programs, where cgroups can be had as well.
fn stage() -> Result<Programs, Lacking> {
    let programs = programs()?;
    Cgroups::new(NAME).map_err(|why| Lacking::new(Need::Cgroups, format!("{why:#}")))?;
    Ok(programs)
}

/// A load of some hundred requests, and jobs of half a second, so that somebody sees them.
fn run(programs: &Programs, way: Way, folder: &Path) -> Result<Round> {
    let found = Calibration {
        all_cores: 300.0,
        alone_p95_us: 200_000,
        slo_us: 1_000_000,
        sizes: Sizes {
            operations: 1_000,
            frames: 16,
            bytes: 1_000_000,
        },
    };
    let jobs = jobs::make(programs, found.sizes, &folder.join("work"), 1)?;
    let setting = Setting {
        programs,
        found: &found,
        jobs: &jobs,
        patience: Duration::from_secs(120),
    };
    let which = Which {
        repeat: 0,
        stepping: Stepping {
            interval: Duration::from_millis(500),
            length: Duration::from_secs(1),
        },
        seed: 1,
    };
    rounds::run(&setting, way, which, &folder.join("round"))
}

/// No cgroup of this process' rounds stands, and no process runs in the folder.
fn nothing_is_left(folder: &Path) -> Result<()> {
    let mut standing = cgroups::standing(NAME);
    standing.extend(cgroups::standing(static_plan::rounds::NAME));
    ensure!(standing.is_empty(), "{standing:?} still stand");
    for process in fs::read_dir("/proc")?.flatten() {
        if let Ok(place) = fs::read_link(process.path().join("cwd")) {
            let process = process.path();
            ensure!(
                !place.starts_with(folder),
                "{} still runs in {}",
                process.display(),
                place.display()
            );
        }
    }
    Ok(())
}

fn without_a_governor_every_job_ends_and_memcached_answers(programs: &Programs) -> Result<()> {
    let folder = TempDir::new()?;
    let round = run(programs, Way::NoGovernor, folder.path())?;
    is_whole(&round)?;
    // On all cores from the first to the last look.
    let cores = std::thread::available_parallelism()?.get();
    ensure!(
        round
            .samples
            .iter()
            .all(|sample| sample.service >= cores.min(2)),
        "{:?}",
        round.samples
    );
    nothing_is_left(folder.path())
}

/// All jobs ended well (or there would be no round), all requests were answered, and somebody looked.
fn is_whole(round: &Round) -> Result<()> {
    let mut names: Vec<&str> = round.jobs.iter().map(|job| job.name.as_str()).collect();
    names.sort_unstable();
    ensure!(names == ["stress-ng", "x264", "zstd"], "{:?}", round.jobs);
    for part in [&round.light, &round.heavy] {
        ensure!(part.due > 0 && part.answered == part.due, "{part:?}");
        ensure!(part.intervals == 2, "{part:?}");
    }
    ensure!(!round.samples.is_empty(), "nobody looked");
    Ok(())
}

fn jobs_begin_after_the_load_where_all_is_memcacheds(programs: &Programs) -> Result<()> {
    let folder = TempDir::new()?;
    let round = run(programs, Way::AllToMemcached, folder.path())?;
    is_whole(&round)?;
    for job in &round.jobs {
        ensure!(
            job.started_s >= Some(round.load_s),
            "{job:?} began before {} s",
            round.load_s
        );
    }
    nothing_is_left(folder.path())
}

fn governed_jobs_end_memcached_answers_and_its_cores_are_put_back(
    programs: &Programs,
) -> Result<()> {
    for way in [
        Way::Blocks,
        Way::BlocksBeside,
        Way::BlocksApart,
        Way::LatencySlack,
    ] {
        let folder = TempDir::new()?;
        let round = run(programs, way, folder.path())?;
        is_whole(&round)?;
        // The round itself sees that the cores are put back; here, that they were taken away while a job ran.
        let shared = |sample: &Sample| sample.service == 1 && sample.jobs.contains(&2);
        ensure!(round.samples.iter().any(shared), "{:?}", round.samples);
        let both = |sample: &&Sample| sample.jobs.iter().filter(|job| **job == 2).count() > 1;
        let both = round.samples.iter().find(both);
        ensure!(both.is_none(), "two jobs at the one place: {both:?}");
        nothing_is_left(folder.path())?;
    }
    Ok(())
}

fn a_job_that_fails_is_named_and_nothing_is_left_behind(programs: &Programs) -> Result<()> {
    let folder = TempDir::new()?;
    let programs = Programs {
        x264: PathBuf::from("/bin/false"),
        ..programs.clone()
    };
    let refused = run(&programs, Way::NoGovernor, folder.path()).err();
    let refused = refused.context("a failed job makes a round")?.to_string();
    ensure!(refused.contains("x264 ended with Some(1)"), "{refused}");
    nothing_is_left(folder.path())
}

/// Some hundred requests a second, and jobs of tenths of a second.
fn play(
    programs: &Programs,
    way: static_plan::way::Way,
    folder: &Path,
) -> Result<static_plan::rounds::Round> {
    let plan = static_plan::plan::Plan::QUICK;
    let found = static_plan::calibration::Calibration {
        all_cores: 1_000.0,
        alone_p95_us: 200_000,
        slo_us: 1_000_000,
        sizes: [32, 1_000_000, 60, 1_500, 1_500, 4_000],
    };
    let jobs = static_plan::jobs::make(programs, &found.sizes, &folder.join("work"), 1)?;
    let setting = static_plan::rounds::Setting {
        programs,
        plan: &plan,
        found: &found,
        jobs: &jobs,
    };
    static_plan::rounds::run(&setting, way, (0, 1), &folder.join("round"))
}

fn a_written_plan_is_played_once_and_in_its_order_across_nodes(programs: &Programs) -> Result<()> {
    use static_plan::way::Way;
    for (way, across) in [(Way::Across, 2), (Way::Apart, 2), (Way::AtOnce, 0)] {
        let folder = TempDir::new()?;
        let round = play(programs, way, folder.path())?;
        let steps = way.steps();
        ensure!(
            steps.iter().all(|step| ran_once(&round, step)),
            "{:?}",
            round.courses
        );
        let waits = waits(&round);
        ensure!(waits.iter().all(|wait| wait.kept), "{:?}", round.courses);
        ensure!(waits.iter().filter(|wait| wait.across).count() == across);
        let failed = verdict::verdicts(std::slice::from_ref(&round));
        ensure!(!failed.iter().any(|one| one.fails()), "{failed:?}");
        // The round itself sees that memcached's cores are put back; here, that they were taken away.
        let timeline = folder.path().join("round/two/jobs/timeline.jsonl");
        let timeline = fs::read_to_string(timeline)?;
        ensure!(timeline.contains(r#""service":{"cores":"0""#), "{timeline}");
        let answered = |one: &weir_memcached_load::interval::Figures| {
            one.counts.due > 0 && one.counts.answered == one.counts.due
        };
        ensure!(
            !round.intervals.is_empty() && round.intervals.iter().all(answered),
            "{:?}",
            round.intervals
        );
        nothing_is_left(folder.path())?;
    }
    Ok(())
}

fn a_job_of_a_written_plan_that_fails_is_told_and_those_after_it_run(
    programs: &Programs,
) -> Result<()> {
    let folder = TempDir::new()?;
    let programs = Programs {
        x264: PathBuf::from("/bin/false"),
        ..programs.clone()
    };
    let round = play(&programs, static_plan::way::Way::Across, folder.path())?;
    let verdicts = verdict::verdicts(&[round]);
    ensure!(
        verdicts[0].fails() && verdicts[0].claim.ends_with("5 of 6"),
        "{verdicts:?}"
    );
    nothing_is_left(folder.path())
}

fn who_is_kept_on_a_core_is_there_alone_with_what_it_starts(_: &Programs) -> Result<()> {
    let cgroups = Cgroups::new(NAME)?;
    let mut shell = Command::new("sh")
        .args(["-c", "read go; sleep 600 & echo $!; wait"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    cgroups.keep_on(shell.id(), &[1].into())?;
    shell.stdin.take().context("no input")?.write_all(b"\n")?;
    let mut child = String::new();
    BufReader::new(shell.stdout.take().context("no output")?).read_line(&mut child)?;
    for pid in [shell.id().to_string(), child.trim().to_owned()] {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        ensure!(status.contains("\nCpus_allowed_list:\t1\n"), "{status}");
    }
    drop(cgroups);
    shell.wait()?;
    nothing_is_left(Path::new("/nowhere"))
}

fn what_is_frozen_in_cgroups_is_gone_with_them(_: &Programs) -> Result<()> {
    let cgroups = Cgroups::new(NAME)?;
    let mut sleeper = Command::new("sleep").arg("600").spawn()?;
    cgroups.take(sleeper.id())?;
    let mount = Path::new("/sys/fs/cgroup");
    let files = [
        mount
            .join("freezer")
            .join(cgroups.service())
            .join("freezer.state"),
        mount
            .join("unified")
            .join(cgroups.service())
            .join("cgroup.freeze"),
        mount.join(cgroups.service()).join("cgroup.freeze"),
    ];
    let there = files.iter().find(|file| file.exists());
    let file = there.context("nothing can be frozen here")?;
    fs::write(
        file,
        if file.ends_with("freezer.state") {
            "FROZEN"
        } else {
            "1"
        },
    )?;
    drop(cgroups);
    nothing_is_left(Path::new("/nowhere"))?;
    // It is a zombie by now: it can be waited for, and was killed.
    let status = sleeper.wait()?;
    ensure!(status.code().is_none(), "it ended with {status}");
    Ok(())
}
