// SPDX-License-Identifier: Apache-2.0
//! Packets of jobs are known by the cgroup of their socket: a program of the kernel's at each of these cgroups, and so
//! at those below it. Whoever ends with it leaves none, for it is attached by a link of this process.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use aya::Ebpf;
use aya::programs::cgroup_skb::CgroupSkbLink;
use aya::programs::{CgroupAttachMode, CgroupSkb, CgroupSkbAttachType, ProgramError};

static OBJECT: &[u8] = aya::include_bytes_aligned!("egress.bpf.o");

/// The program, and where it is.
#[derive(Debug)]
pub(super) struct Marks {
    ebpf: Ebpf,
    cgroups: Vec<Marked>,
}

/// A cgroup that is there or may come.
#[derive(Debug)]
struct Marked {
    folder: PathBuf,
    /// One that was removed and made anew has another number.
    link: Option<(u64, CgroupSkbLink)>,
}

impl Marks {
    /// Loads it for these folders of version 2; no packet is marked yet.
    pub(super) fn load(folders: Vec<PathBuf>) -> io::Result<Self> {
        let mut ebpf = Ebpf::load(OBJECT).map_err(io::Error::other)?;
        // The kernel checks it only until a signal waits for this thread, and it is short.
        program(&mut ebpf).load().map_err(refused)?;
        let cgroups = folders.into_iter();
        let cgroups = cgroups.map(|folder| Marked { folder, link: None });
        Ok(Self {
            ebpf,
            cgroups: cgroups.collect(),
        })
    }

    /// Marks what comes from those that have come since.
    pub(super) fn look(&mut self) -> io::Result<()> {
        let program = program(&mut self.ebpf);
        let mut done = Ok(());
        for cgroup in &mut self.cgroups {
            if let Err(error) = cgroup.look(program) {
                let place = cgroup.folder.display();
                done = Err(io::Error::new(error.kind(), format!("{place}: {error}")));
            }
        }
        done
    }

    /// Marks nothing any more.
    pub(super) fn clear(&mut self) {
        self.cgroups.clear();
    }
}

impl Marked {
    fn look(&mut self, program: &mut CgroupSkb) -> io::Result<()> {
        let folder = match File::open(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.link = None;
                return Ok(());
            }
            folder => folder?,
        };
        let number = folder.metadata()?.ino();
        if self.link.as_ref().is_some_and(|(of, _)| *of == number) {
            return Ok(());
        }
        self.link = None;
        // A link (Linux 5.7) goes beside those of others, whatever the mode, and no other mode is taken with one.
        let mode = CgroupAttachMode::Single;
        let id = program.attach(folder, CgroupSkbAttachType::Egress, mode);
        let link = id.and_then(|id| program.take_link(id));
        self.link = Some((number, link.map_err(refused)?));
        Ok(())
    }
}

fn program(ebpf: &mut Ebpf) -> &mut CgroupSkb {
    let program = ebpf.program_mut("job").expect("of the object");
    program.try_into().expect("of the object")
}

/// With all that the kernel has said.
fn refused(error: ProgramError) -> io::Error {
    io::Error::other(format!("{:#}", anyhow::Error::new(error)))
}
