// SPDX-License-Identifier: Apache-2.0
//! A program of the JVM: its stacks by the flight recorder that it has, its calls by the agent of weir-events, both
//! told by `jcmd`, and both for a while that the JVM itself keeps to.

mod recording;
mod tools;

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::num::NonZeroU32;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use weir_events::Reader;
use weir_events::layout::{RETIRED, STATE};

use crate::Error;
use crate::calls::{self, Counter, LOOK};
use crate::choice::Candidate;
use crate::stacks::Stacks;
use tools::Tools;

/// The recorder's own name for what it records for us.
const RECORDING: &str = "weir-profile";
/// Frames of a stack: the recorder keeps 64 by default, and a search engine has more.
const DEPTH: &str = "256";
/// The JVM ends by itself what nobody ends.
const GRACE: Duration = Duration::from_secs(30);
/// Of the agent: the ring that is written, while one is.
const ACTIVE: &str = "weir.events.ring=";

/// A running one.
#[derive(Debug)]
pub(crate) struct Jvm {
    process: NonZeroU32,
    user: u32,
    group: u32,
    tools: Tools,
}

impl Jvm {
    /// None where the process runs no JVM.
    pub(crate) fn find(process: NonZeroU32) -> Result<Option<Jvm>, Error> {
        let folder = PathBuf::from(format!("/proc/{process}"));
        let found = fs::metadata(&folder).map_err(|_| Error::Gone(process.get()))?;
        let maps = folder.join("maps");
        let text = fs::read_to_string(&maps).map_err(Error::of(&maps))?;
        if !text.lines().any(|line| line.ends_with("/libjvm.so")) {
            return Ok(None);
        }
        Ok(Some(Jvm {
            process,
            user: found.uid(),
            group: found.gid(),
            tools: Tools::of(process),
        }))
    }

    /// Records for so long.
    pub(crate) fn sample(&self, time: Duration) -> Result<Stacks, Error> {
        let place = Place::new(self)?;
        let seen = place.inside.join(OF_JVM).join(RECORDED);
        // Refused once something is recorded: then the stacks are as deep as was said before.
        let _ = self.jcmd(&["JFR.configure", &format!("stackdepth={DEPTH}")]);
        let limit = (time + GRACE).as_secs();
        self.jcmd(&[
            "JFR.start",
            &format!("name={RECORDING}"),
            "settings=profile",
            &format!("duration={limit}s"),
            "maxsize=64m",
            &format!("filename={}", seen.display()),
        ])?;
        std::thread::sleep(time);
        let stopped = self.jcmd(&[
            "JFR.stop",
            &format!("name={RECORDING}"),
            &format!("filename={}", seen.display()),
        ])?;
        let ours = place.folder.path().join(OF_JVM).join(RECORDED);
        if !ours.exists() {
            return Err(Error::Tool {
                command: "jcmd JFR.stop".into(),
                reason: stopped,
            });
        }
        self.tools.recorded(&ours, DEPTH)
    }

    /// Observes each candidate's calls for so long, and returns how many events were lost.
    pub(crate) fn observe(
        &self,
        agent: &Path,
        candidates: &mut [Candidate],
        time: Duration,
    ) -> Result<u64, Error> {
        let place = Place::new(self)?;
        let jar = fs::read(agent).map_err(Error::of(agent))?;
        let jar = place.put("agent.jar", &jar)?;
        let path = place.folder.path().join("events");
        let (mut reader, _) = Reader::create_or_adopt(&path, calls::geometry(), Some(self.group))?;
        let ring = place.inside.join("events");
        let mut arguments = format!("ring={}", ring.display());
        for (id, candidate) in candidates.iter().enumerate() {
            arguments += &format!(",hot={id}:{}", candidate.function().name);
        }
        // Methods are woven before the first call is seen.
        arguments += &format!(",for={}", time.as_secs().max(1) + 1);
        // A JVM that runs takes no more than 1,024 characters.
        let file = place.put("arguments", arguments.as_bytes())?;
        let (jar, file) = (jar.to_string_lossy(), format!("@{}", file.display()));
        self.jcmd(&["JVMTI.agent_load", &jar, &file])?;
        let properties = self.jcmd(&["VM.system_properties"])?;
        let active = properties
            .lines()
            .find_map(|line| line.strip_prefix(ACTIVE));
        // As a file of properties has it.
        let active = active.map(|ring| ring.replace('\\', ""));
        match active {
            Some(other) if Path::new(&other) != ring => return Err(Error::Observed(other)),
            Some(_) => {}
            None => return Err(Error::Inactive),
        }
        let mut counter = Counter::new();
        counter.watch(&mut reader, time, || ())?;
        wait_for_its_end(&path);
        let lost = counter.lost;
        for (candidate, calls) in candidates.iter_mut().zip(counter.calls()) {
            candidate.calls = Some(calls);
        }
        Ok(lost)
    }

    fn jcmd(&self, arguments: &[&str]) -> Result<String, Error> {
        self.tools.jcmd(self.process, arguments)
    }
}

/// The agent says in the ring that the methods are as they were; one that saw no call has no ring to say it in.
fn wait_for_its_end(path: &Path) {
    let end = Instant::now() + Duration::from_secs(3);
    while Instant::now() < end {
        let mut word = [0; 8];
        let read = File::open(path).and_then(|file| file.read_exact_at(&mut word, STATE));
        if read.is_err() || u64::from_le_bytes(word) == RETIRED {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

/// A folder that the JVM sees as well as we do, gone at the end.
struct Place {
    /// Ours alone may put files here; in it is one for the JVM.
    folder: TempDir,
    /// Its path for the JVM, which may have another root.
    inside: PathBuf,
}

/// What the JVM may write in, and what it does.
const OF_JVM: &str = "jvm";
const RECORDED: &str = "recording.jfr";

impl Place {
    fn new(jvm: &Jvm) -> Result<Place, Error> {
        let root = PathBuf::from(format!("/proc/{}/root", jvm.process));
        let temporary = root.join("tmp");
        // Its absolute target would be looked up from our root.
        let found = fs::symlink_metadata(&temporary).map_err(Error::of(&temporary))?;
        if !found.is_dir() {
            let error = std::io::Error::other("no directory, or one by a link");
            return Err(Error::File {
                path: temporary,
                error,
            });
        }
        let folder = tempfile::Builder::new()
            .prefix("weir-profile-")
            .permissions(Permissions::from_mode(0o755))
            .tempdir_in(&temporary)
            .map_err(Error::of(&temporary))?;
        let name = folder.path().file_name().unwrap_or_default();
        let inside = Path::new("/tmp").join(name);
        let of_jvm = folder.path().join(OF_JVM);
        fs::create_dir(&of_jvm).map_err(Error::of(&of_jvm))?;
        chown(&of_jvm, Some(jvm.user), Some(jvm.group)).map_err(Error::of(&of_jvm))?;
        Ok(Place { folder, inside })
    }

    /// Puts a file there that the JVM may read; its path for the JVM. Not where the JVM writes: whoever it runs as
    /// could say where a file of that name is.
    fn put(&self, name: &str, contents: &[u8]) -> Result<PathBuf, Error> {
        let path = self.folder.path().join(name);
        let write = || {
            let mut file = File::options().write(true).create_new(true).open(&path)?;
            file.write_all(contents)?;
            // Whatever the umask.
            file.set_permissions(Permissions::from_mode(0o644))
        };
        write().map_err(Error::of(&path))?;
        Ok(self.inside.join(name))
    }
}
