// SPDX-License-Identifier: Apache-2.0
//! The part of WASI that proxy-wasm-cpp-host offers, with its error numbers.

use wasmtime::{Caller, Linker};

use crate::abi::{LogLevel, Status};
use crate::guest::Guest;
use crate::state::State;

const SUCCESS: u32 = 0;
const EBADF: u32 = 8;
const EFAULT: u32 = 21;
const EINVAL: u32 = 28;
const ENOENT: u32 = 44;
const ENOSYS: u32 = 52;
const ENOTSUP: u32 = 58;

/// Envoy refuses to fill more at once.
const RANDOM_LIMIT: u32 = 64 * 1024;

impl From<Status> for Fault {
    fn from(_: Status) -> Self {
        Self(EFAULT)
    }
}

/// An error number; a bad pointer becomes one by itself.
struct Fault(u32);

macro_rules! wasi_function {
    ($linker:expr, $name:literal = $function:path, $($argument:ident: $kind:ty),*) => {
        for module in ["wasi_snapshot_preview1", "wasi_unstable"] {
            $linker.func_wrap(module, $name, |caller: Caller<'_, State>, $($argument: $kind),*| -> u32 {
                let guest = &mut Guest(caller);
                guest.state().count($name);
                $function(guest, $($argument),*).map_or_else(|fault| fault.0, |()| SUCCESS)
            })?;
        }
    };
}

macro_rules! wasi_refusal {
    ($linker:expr, $name:literal, $errno:expr, $($argument:ident: $kind:ty),*) => {
        for module in ["wasi_snapshot_preview1", "wasi_unstable"] {
            $linker.func_wrap(module, $name, |mut caller: Caller<'_, State>, $(_: $kind),*| -> u32 {
                caller.data_mut().count($name);
                $errno
            })?;
        }
    };
}

pub(super) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    wasi_function!(linker, "fd_write" = fd_write, fd: u32, parts: u32, count: u32, written: u32);
    wasi_function!(linker, "fd_fdstat_get" = fd_fdstat_get, fd: u32, stat: u32);
    wasi_function!(linker, "environ_sizes_get" = environ_sizes_get, count: u32, size: u32);
    wasi_function!(linker, "environ_get" = environ_get, pointers: u32, text: u32);
    wasi_function!(linker, "args_sizes_get" = args_sizes_get, count: u32, size: u32);
    wasi_function!(linker, "clock_time_get" = clock_time_get, clock: u32, precision: u64, time: u32);
    wasi_function!(linker, "random_get" = random_get, at: u32, size: u32);
    for module in ["wasi_snapshot_preview1", "wasi_unstable"] {
        linker.func_wrap(module, "proc_exit", |code: u32| -> wasmtime::Result<()> {
            Err(wasmtime::Error::msg(format!(
                "the module called proc_exit({code})"
            )))
        })?;
    }
    wasi_refusal!(linker, "args_get", SUCCESS, pointers: u32, text: u32);
    wasi_refusal!(linker, "sched_yield", SUCCESS,);
    wasi_refusal!(linker, "fd_close", SUCCESS, fd: u32);
    wasi_refusal!(linker, "fd_seek", SUCCESS, fd: u32, offset: i64, whence: u32, at: u32);
    wasi_refusal!(linker, "fd_read", ENOSYS, fd: u32, parts: u32, count: u32, read: u32);
    wasi_refusal!(linker, "fd_fdstat_set_flags", ENOSYS, fd: u32, flags: u32);
    wasi_refusal!(linker, "fd_prestat_get", EBADF, fd: u32, at: u32);
    wasi_refusal!(linker, "fd_prestat_dir_name", ENOSYS, fd: u32, at: u32, size: u32);
    wasi_refusal!(linker, "poll_oneoff", ENOSYS, events: u32, out: u32, count: u32, done: u32);
    wasi_refusal!(linker, "path_open", ENOENT, fd: u32, flags: u32, path: u32, size: u32,
        open: u32, base: u64, inheriting: u64, fd_flags: u32, opened: u32);
    Ok(())
}

/// Standard output becomes a log line of level info, standard error one of level error.
fn fd_write(guest: &mut Guest, fd: u32, parts: u32, count: u32, written: u32) -> Result<(), Fault> {
    let level = match fd {
        1 => LogLevel::Info,
        2 => LogLevel::Error,
        _ => return Err(Fault(EBADF)),
    };
    let mut text = Vec::new();
    for part in guest.read(parts, count.saturating_mul(8))?.chunks_exact(8) {
        let number =
            |at: usize| u32::from_le_bytes([part[at], part[at + 1], part[at + 2], part[at + 3]]);
        text.extend(guest.read(number(0), number(4))?);
    }
    guest.write_u32(written, text.len() as u32)?;
    if !text.is_empty() {
        guest
            .state()
            .log(level, text.strip_suffix(b"\n").unwrap_or(&text));
    }
    Ok(())
}

fn fd_fdstat_get(guest: &mut Guest, fd: u32, stat: u32) -> Result<(), Fault> {
    if fd != 1 && fd != 2 {
        return Err(Fault(EBADF));
    }
    // 24 bytes, all zero but the right to write (64) in the second word.
    let mut bytes = [0; 24];
    bytes[8] = 64;
    Ok(guest.write(stat, &bytes)?)
}

fn environment(guest: &mut Guest) -> Vec<Vec<u8>> {
    let pairs = &guest.state().settings.environment;
    pairs
        .iter()
        .map(|(name, value)| format!("{name}={value}\0").into_bytes())
        .collect()
}

fn environ_sizes_get(guest: &mut Guest, count: u32, size: u32) -> Result<(), Fault> {
    let texts = environment(guest);
    guest.write_u32(count, texts.len() as u32)?;
    Ok(guest.write_u32(size, texts.iter().map(Vec::len).sum::<usize>() as u32)?)
}

fn environ_get(guest: &mut Guest, mut pointers: u32, mut text: u32) -> Result<(), Fault> {
    for entry in environment(guest) {
        guest.write_u32(pointers, text)?;
        guest.write(text, &entry)?;
        pointers += 4;
        text += entry.len() as u32;
    }
    Ok(())
}

fn args_sizes_get(guest: &mut Guest, count: u32, size: u32) -> Result<(), Fault> {
    guest.write_u32(count, 0)?;
    Ok(guest.write_u32(size, 0)?)
}

fn clock_time_get(guest: &mut Guest, clock: u32, _precision: u64, time: u32) -> Result<(), Fault> {
    let now = match clock {
        0 => guest.state().host.clock.wall_nanos(),
        1 => guest.state().host.clock.monotonic_nanos(),
        _ => return Err(Fault(ENOTSUP)),
    };
    Ok(guest.write_u64(time, now)?)
}

fn random_get(guest: &mut Guest, at: u32, size: u32) -> Result<(), Fault> {
    if size > RANDOM_LIMIT {
        return Err(Fault(EINVAL));
    }
    let mut bytes = vec![0; size as usize];
    guest.state().random.fill(&mut bytes);
    Ok(guest.write(at, &bytes)?)
}
