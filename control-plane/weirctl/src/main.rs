// SPDX-License-Identifier: Apache-2.0
//! Shows what Weir does and why, and finds the link that is broken.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{CommandFactory, Parser};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use weirctl::capture::{self, Asked};
use weirctl::collect::{Collected, collect};
use weirctl::commands::{Diff, Explanation, Filter, Hosts, Levels, Sidecars, Status};
use weirctl::consul::{self, Applied};
use weirctl::control::{self, Question};
use weirctl::doctor::Diagnosis;
use weirctl::flags::consul::ConsulCommand;
use weirctl::flags::{self, Command, Flags};
use weirctl::leading::{choose, leading};
use weirctl::page::Address;
use weirctl::screen::{Format, show};

/// `EX_USAGE` of sysexits.h: what was given is wrong, and trying again does not help.
const BAD_USAGE: u8 = 64;
/// As many as weir-control keeps.
const MOST_RECEIPTS: usize = 4096;
/// Receipts come with reports, a few times a second.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let flags = match Flags::try_parse() {
        Ok(flags) => flags,
        Err(error) => {
            // Nothing can be done if the output is closed.
            let _ = error.print();
            let code = if error.use_stderr() { BAD_USAGE } else { 0 };
            return ExitCode::from(code);
        }
    };
    match run(&flags).await {
        Ok(code) => code,
        Err(error) => {
            anstream::eprintln!("weirctl: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(flags: &Flags) -> Result<ExitCode> {
    let format = flags.output;
    match &flags.command {
        Command::Status => {
            let chosen = choose(&flags.control).await?;
            show(&Status::of(&chosen.tables), format)?;
            if let Some(doubt) = chosen.doubt {
                anyhow::bail!(doubt);
            }
        }
        Command::Hosts(of) => {
            let tables = leading(&flags.control).await?.tables;
            show(&Hosts::of(&tables, of.cluster.as_deref())?, format)?;
        }
        Command::Levels(of) => {
            let tables = leading(&flags.control).await?.tables;
            show(&Levels::of(&tables, of.cluster.as_deref())?, format)?;
        }
        Command::Sidecars => {
            let tables = control::tables(first(flags)?).await?;
            show(&Sidecars::of(&tables), format)?;
        }
        Command::Explain(asked) => {
            let question = Question {
                cluster: &asked.cluster,
                key: &asked.key,
                key_separator: asked.key_separator,
                priority: asked.priority.as_deref(),
                user: asked.user.as_deref(),
                zone: asked.zone.as_deref(),
            };
            let control = leading(&flags.control).await?.address;
            let said = control::explain(control, &question).await?;
            show(&Explanation::from(said), format)?;
        }
        Command::Tail(asked) => {
            let control = leading(&flags.control).await?.address;
            tail(control, asked, format).await?;
        }
        Command::Shadow(of) => {
            let control = leading(&flags.control).await?.address;
            show(&control::shadow(control, &of.cluster).await?, format)?;
        }
        Command::Diff(asked) => show(&diff(flags, asked.after).await?, format)?,
        Command::Doctor(asked) => {
            let diagnosis = Diagnosis::of(&flags.control, &asked.envoy).await;
            show(&diagnosis, format)?;
            if diagnosis.is_broken() {
                return Ok(ExitCode::FAILURE);
            }
        }
        Command::Consul(asked) => return consul(&asked.command, format).await,
        Command::Collect(asked) => show(&collected(asked).await?, format)?,
        Command::Capture(asked) => {
            let captured = capture::capture(&Asked {
                logs: asked.logs.clone(),
                cluster: asked.cluster.clone(),
                cores: asked.cores,
                fetch: asked.fetch,
                keep_names: asked.keep_names,
            })?;
            let file = asked.out.display();
            capture::save(&captured.requests, &asked.out).with_context(|| file.to_string())?;
            show(&captured.report, format)?;
        }
        Command::Completions(asked) => {
            let mut command = Flags::command();
            clap_complete::generate(asked.shell, &mut command, "weirctl", &mut std::io::stdout());
        }
        Command::Man(asked) => clap_mangen::generate_to(Flags::command(), &asked.folder)
            .with_context(|| format!("writing manual pages to {}", asked.folder.display()))?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn consul(asked: &ConsulCommand, format: Format) -> Result<ExitCode> {
    let variable = |name: &str| std::env::var(name).ok();
    let is_bad = match asked {
        ConsulCommand::Check(asked) => {
            let diagnosis = consul::check(asked, variable).await?;
            show(&diagnosis, format)?;
            diagnosis.is_broken()
        }
        ConsulCommand::Apply(asked) => shown(&consul::apply(asked, variable).await?, format)?,
        ConsulCommand::Service(asked) => {
            // For Consul, whatever the form.
            anstream::println!("{:#}", consul::service(asked));
            false
        }
        ConsulCommand::Remove(asked) => shown(&consul::remove(asked, variable).await?, format)?,
    };
    Ok(match is_bad {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

/// Whether something is bad.
fn shown(applied: &Applied, format: Format) -> Result<bool> {
    show(applied, format)?;
    Ok(applied.is_bad())
}

async fn collected(asked: &flags::Collect) -> Result<Collected> {
    let listener = TcpListener::bind(asked.listen).await;
    let listener = listener.with_context(|| format!("--listen {}", asked.listen))?;
    // After that: where the port is taken no file is left behind.
    let name = asked.out.display();
    let file = File::create_new(&asked.out).with_context(|| name.to_string())?;
    let address = listener.local_addr()?;
    anstream::eprintln!("weirctl: takes access logs at {address} and writes them to {name}");
    let mut stop = signal(SignalKind::terminate())?;
    let end = async {
        tokio::select! {
            () = tokio::time::sleep(asked.lasts.unwrap_or(Duration::MAX)) => {}
            _ = stop.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    };
    collect(listener, &mut BufWriter::new(file), asked.requests, end).await
}

/// Each replica knows the sidecars that are connected to it.
fn first(flags: &Flags) -> Result<&Address> {
    flags.control.first().context("name one: --control ip:port")
}

/// Shows receipts until it is stopped, or all that there are.
async fn tail(control: &Address, asked: &flags::Tail, format: Format) -> Result<()> {
    let filter = Filter {
        cluster: asked.cluster.clone(),
        proxy: asked.proxy.clone(),
        host: asked.host.clone(),
        key: asked.key.clone(),
    };
    let mut to = anstream::stdout();
    let (mut after, mut first) = (0, true);
    loop {
        let all = control::receipts(control, after, MOST_RECEIPTS).await?;
        after = all.last().map_or(after, |(_, receipt)| receipt.number);
        let shown: Vec<_> = all.into_iter().filter(|(_, it)| filter.shows(it)).collect();
        let skipped = match std::mem::take(&mut first) {
            true => shown.len().saturating_sub(asked.last),
            false => 0,
        };
        for (line, receipt) in shown.iter().skip(skipped) {
            match format {
                Format::Table => writeln!(to, "{receipt}")?,
                Format::Json => writeln!(to, "{line}")?,
            }
        }
        to.flush()?;
        if asked.once {
            return Ok(());
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

async fn diff(flags: &Flags, after: Option<std::time::Duration>) -> Result<Diff> {
    match (&*flags.control, after) {
        ([_], Some(after)) => {
            let before = leading(&flags.control).await?.tables;
            tokio::time::sleep(after).await;
            let now = leading(&flags.control).await?.tables;
            let later = format!("{after:?} later");
            Ok(Diff::of(("now", &before), (&later, &now)))
        }
        ([one, other], None) => {
            let (was, is) = (control::tables(one).await?, control::tables(other).await?);
            Ok(Diff::of(
                (&one.to_string(), &was),
                (&other.to_string(), &is),
            ))
        }
        (controls, _) => {
            ensure!(
                controls.len() <= 2,
                "two are compared; {} are named",
                controls.len()
            );
            anyhow::bail!("name two weir-controls (--control A,B), or one and --after TIME")
        }
    }
}
