// SPDX-License-Identifier: Apache-2.0
//! A guest that runs.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;
use weir_processes::command::tail;

use crate::cores::{self, CORES, Core};
use crate::image::Image;
pub use crate::line::Answer;
use crate::line::Line;
use crate::monitor::Monitor;
use crate::parts::Parts;
use crate::ssdt;
use crate::transitions::{self, Transitions};

/// QEMU connects at once, or ends with an error.
const CONNECTS_WITHIN: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
const TAIL_LINES: usize = 30;

/// Arguments that are the same for every guest. Processors that QEMU makes up (`max`, `qemu64`) are
/// refused by acpi-cpufreq, and more memory than the files need makes nothing faster.
const MACHINE: &[&str] = &[
    "-accel",
    "tcg",
    "-machine",
    "q35",
    "-cpu",
    "Haswell-noTSX",
    "-m",
    "768",
    "-nodefaults",
    "-display",
    "none",
    "-no-reboot",
];

/// `no_timer_check`: at boot the kernel waits for four ticks within some 60 ms of the processor's
/// clock, which goes on where QEMU gets no core, and panics ("IO-APIC + timer doesn't work!") where
/// it misses them.
const KERNEL: &str = "console=ttyS0 panic=-1 loglevel=4 no_timer_check";

/// A running guest; it is gone when the value is dropped.
pub struct Guest {
    qemu: Qemu,
    line: Line,
    monitor: Monitor,
}

impl Guest {
    /// Boots a guest and waits for its shell.
    ///
    /// # Errors
    /// QEMU or the table's compiler fails, or the guest does not come up: with the end of its log.
    pub fn boot(parts: &Parts, image: Image) -> Result<Self> {
        let folder = TempDir::with_prefix("weir-guest-")?;
        let at = |name: &str| folder.path().join(name);
        let table = ssdt::compile(&parts.iasl, folder.path())?;
        image.write(&at("initrd"))?;
        let (line, monitor) = (at("line"), at("monitor"));
        let listeners = [listen(&line)?, listen(&monitor)?];
        let mut command = Command::new(&parts.qemu);
        command.env("LD_LIBRARY_PATH", parts.libraries());
        if let Some(modules) = parts.qemu_modules() {
            command.env("QEMU_MODULE_DIR", modules);
        }
        for firmware in parts.firmware() {
            command.arg("-L").arg(firmware);
        }
        command
            .args(MACHINE)
            .args(["-smp", &CORES.to_string()])
            .arg("-acpitable")
            .arg(format!("file={}", table.display()))
            .arg("-serial")
            .arg(format!("file:{}", at("console").display()))
            .arg("-chardev")
            .arg(format!("socket,id=line,path={}", line.display()))
            .args([
                "-serial",
                "chardev:line",
                "-serial",
                "null",
                "-serial",
                "null",
            ])
            .arg("-chardev")
            .arg(format!("socket,id=monitor,path={}", monitor.display()))
            .args(["-mon", "chardev=monitor,mode=control"])
            .arg("-kernel")
            .arg(&parts.kernel)
            .arg("-initrd")
            .arg(at("initrd"))
            .args(["-append", KERNEL])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(at("errors"))?);
        let child = command.spawn().context("starting QEMU")?;
        let mut qemu = Qemu { child, folder };
        let (line, monitor) = qemu
            .connect(&listeners)
            .map_err(|error| error.context(qemu.last_words()))?;
        Ok(Self {
            qemu,
            line,
            monitor,
        })
    }

    /// Runs a shell script inside, which ends at its first command that fails.
    ///
    /// # Errors
    /// The guest is gone, or does not answer.
    pub fn run(&mut self, script: &str) -> Result<Answer> {
        self.line
            .run(script)
            .map_err(|error| error.context(self.qemu.last_words()))
    }

    /// Runs a shell script that must end well; returns what it wrote.
    ///
    /// # Errors
    /// It does not, or the guest is gone.
    pub fn sh(&mut self, script: &str) -> Result<String> {
        let Answer { code, output } = self.run(script)?;
        ensure!(
            code == 0,
            "`{script}` ended with {code}; it said:\n{output}"
        );
        Ok(output)
    }

    /// Waits inside until a shell condition holds.
    ///
    /// # Errors
    /// It does not hold within half a minute of the guest's time, or the guest is gone.
    pub fn wait_until(&mut self, condition: &str) -> Result<()> {
        let script = format!(
            "n=0\nuntil {condition}; do n=$((n+1)); [ $n -lt 300 ] || exit 1; usleep 100000; done"
        );
        self.sh(&script)
            .with_context(|| format!("`{condition}` did not come true"))?;
        Ok(())
    }

    /// What the kernel's files say of each core that is online.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn cores(&mut self) -> Result<BTreeMap<usize, Core>> {
        cores::parse(&self.sh(cores::SCRIPT)?)
    }

    /// How often a core has changed its frequency since [`forget_transitions`](Self::forget_transitions).
    ///
    /// # Errors
    /// The kernel keeps no account of it.
    pub fn transitions(&mut self, core: usize) -> Result<Transitions> {
        transitions::parse(&self.sh(&format!("cat {}", transitions::file(core)))?)
    }

    /// Begins the accounts of all cores anew.
    ///
    /// # Errors
    /// The kernel keeps none.
    pub fn forget_transitions(&mut self) -> Result<()> {
        self.sh("for stats in /sys/devices/system/cpu/cpu?/cpufreq/stats; do echo 1 > $stats/reset; done")?;
        Ok(())
    }

    /// What each core's register says of its frequency, from outside. A core that is offline keeps
    /// its last.
    ///
    /// # Errors
    /// The guest is gone, or a register holds no frequency of the table.
    pub fn registers_khz(&mut self) -> Result<[u32; CORES]> {
        let mut all = [0; CORES];
        for (khz, port) in all.iter_mut().zip(ssdt::REGISTERS) {
            let value = self.monitor.read_port(port)?;
            *khz = ssdt::frequency_khz(value)
                .with_context(|| format!("register {port:#x} holds {value}, no P-state"))?;
        }
        Ok(all)
    }
}

fn listen(path: &Path) -> Result<UnixListener> {
    let listener =
        UnixListener::bind(path).with_context(|| format!("listening on {}", path.display()))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// The process and the folder of its files.
struct Qemu {
    child: Child,
    folder: TempDir,
}

impl Qemu {
    fn connect(&mut self, [line, monitor]: &[UnixListener; 2]) -> Result<(Line, Monitor)> {
        let line = self.accept(line)?;
        let monitor = Monitor::new(self.accept(monitor)?)?;
        Ok((Line::new(line)?, monitor))
    }

    fn accept(&mut self, listener: &UnixListener) -> Result<UnixStream> {
        let started = Instant::now();
        loop {
            if let Ok((stream, _)) = listener.accept() {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("QEMU ended with {status}");
            }
            ensure!(started.elapsed() < CONNECTS_WITHIN, "QEMU does not connect");
            sleep(POLL);
        }
    }

    /// The ends of what QEMU and the guest's kernel said, for an error.
    fn last_words(&self) -> String {
        let end = |name: &str| {
            let said = fs::read(self.folder.path().join(name)).unwrap_or_default();
            tail(&String::from_utf8_lossy(&said), TAIL_LINES)
        };
        format!(
            "QEMU said:\n{}\nthe guest's kernel said:\n{}",
            end("errors"),
            end("console")
        )
    }
}

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
