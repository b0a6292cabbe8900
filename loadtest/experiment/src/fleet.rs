// SPDX-License-Identifier: Apache-2.0
//! What a weir-control costs that tells a whole fleet, and how soon everybody is back.
//!
//! ```text
//!  this process                                               its child
//!  EMULATED hosts ──/metrics, /cache──> weir-control ──tables──> EMULATED sidecars
//!       └── plan, figures                (real)      <──reports──┘
//! ```
//! The sidecars speak by the filter's own code ([`weir_filter::stream`]), each on a connection of its own.

pub(crate) mod connection;
mod crowd;
pub(crate) mod hosts;
pub(crate) mod page;
mod plan;
mod record;
mod result;
mod run;
mod sidecar;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Result;
use weir_stage::open_files;

use self::plan::Plan;
pub use self::result::Told;
use crate::Experiment;
use crate::driver::GIVEN;

/// Measures a weir-control before many EMULATED sidecars and hosts.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    plan: Plan,
    /// weir-control
    #[arg(long, value_name = "FILE", help_heading = GIVEN)]
    control: PathBuf,
}

/// The flags of the sidecars' process.
#[derive(clap::Args)]
pub struct Sidecars {
    /// Where weir-control listens
    #[arg(long)]
    server: SocketAddr,
    /// How many
    #[arg(long)]
    sidecars: usize,
    /// A host's address a line
    #[arg(long, value_name = "FILE")]
    hosts: PathBuf,
    /// Requests that each of a sidecar's workers has sent between two reports
    #[arg(long)]
    requests: usize,
    /// `{"pages":"ADDRESS"}` is written to it
    #[arg(long, value_name = "FILE")]
    ports_file: PathBuf,
}

/// Connections of all sidecars or hosts, and room for the rest.
const OPEN_FILES: u64 = 1000;

/// The experiment: one course of events.
pub struct Fleet {
    args: Args,
    folder: PathBuf,
}

impl Experiment for Fleet {
    const NAME: &'static str = "fleet";
    const ROUNDS: &'static str = "fleet.json";
    const TABLE: &'static str = "fleet.txt";
    type Args = Args;
    type Turn = ();
    type Round = Told;

    fn set_up(args: Args, folder: &Path) -> Result<Self> {
        let connections = 2 * args.plan.hosts + args.plan.sidecars;
        open_files::allow(OPEN_FILES + connections as u64)?;
        let folder = folder.to_owned();
        Ok(Self { args, folder })
    }

    fn turns(&self) -> Vec<()> {
        vec![()]
    }

    fn play(&mut self, (): &()) -> Result<Vec<Told>> {
        Ok(vec![run::run(
            &self.args.plan,
            &self.args.control,
            &self.folder,
        )?])
    }

    fn table(&self, rounds: &[Told]) -> String {
        rounds.iter().map(Told::to_string).collect()
    }
}

/// Plays the sidecars until the process is ended.
///
/// # Errors
/// So many files may not be open, or a file cannot be read or written.
pub fn play(sidecars: &Sidecars) -> Result<()> {
    open_files::allow(OPEN_FILES + sidecars.sidecars as u64)?;
    let hosts = std::fs::read_to_string(&sidecars.hosts)?;
    let hosts: Vec<String> = hosts.lines().map(str::to_owned).collect();
    tokio::runtime::Runtime::new()?.block_on(crowd::serve(
        sidecars.server,
        sidecars.sidecars,
        &hosts,
        sidecars.requests,
        &sidecars.ports_file,
    ))
}
