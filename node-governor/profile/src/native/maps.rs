// SPDX-License-Identifier: Apache-2.0
//! Where the files of a process are in its memory (`man 5 proc_pid_maps`), and which function is at an address.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weir_uprobe::Functions;

use crate::Error;
use crate::stacks::Function;

/// Files that are run, and their functions as they are asked for.
pub(super) struct Maps {
    process: NonZeroU32,
    mapped: Vec<Mapped>,
    files: HashMap<PathBuf, Option<Functions>>,
    /// When the mappings were read.
    read: Instant,
}

/// Mappings are read again for an address in none of them, but not more often: a program that has just begun has
/// none yet, and libraries may come later.
const AGAIN: Duration = Duration::from_millis(100);

#[derive(Debug, Eq, PartialEq)]
struct Mapped {
    addresses: Range<u64>,
    offset: u64,
    file: PathBuf,
}

impl Maps {
    pub(super) fn of(process: NonZeroU32) -> Result<Maps, Error> {
        Ok(Maps {
            process,
            mapped: read(process)?,
            files: HashMap::new(),
            read: Instant::now(),
        })
    }

    /// None where it is in no file, or the file does not say.
    pub(super) fn function(&mut self, address: u64) -> Option<Function> {
        if self.at(address).is_none() && self.read.elapsed() > AGAIN {
            self.read = Instant::now();
            // Of a process that has ended they stay what they were.
            if let Ok(mapped) = read(self.process) {
                self.mapped = mapped;
            }
        }
        let here = self.at(address)?;
        let offset = address - here.addresses.start + here.offset;
        let path = self.path(&here.file);
        let known = self.files.entry(path.clone());
        let functions = known.or_insert_with(|| Functions::of(&path).ok());
        let name = functions.as_ref()?.at(offset)?.to_owned();
        Some(Function {
            binary: Some(path),
            name,
        })
    }

    fn at(&self, address: u64) -> Option<&Mapped> {
        let mut mapped = self.mapped.iter();
        mapped.find(|one| one.addresses.contains(&address))
    }

    /// As we see it: the process may have another root.
    fn path(&self, file: &Path) -> PathBuf {
        let inside = PathBuf::from(format!("/proc/{}/root", self.process));
        let inside = inside.join(file.strip_prefix("/").unwrap_or(file));
        let identity = |path: &Path| {
            use std::os::unix::fs::MetadataExt;
            let found = std::fs::metadata(path).ok()?;
            Some((found.dev(), found.ino()))
        };
        match identity(file) {
            Some(ours) if identity(&inside) == Some(ours) => file.to_owned(),
            _ => inside,
        }
    }
}

fn read(process: NonZeroU32) -> Result<Vec<Mapped>, Error> {
    let path = PathBuf::from(format!("/proc/{process}/maps"));
    let text = std::fs::read_to_string(&path).map_err(Error::of(path))?;
    Ok(text.lines().filter_map(mapped).collect())
}

/// Of a line, where it is code of a file.
fn mapped(line: &str) -> Option<Mapped> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let addresses = number(start)?..number(end)?;
    let is_code = words.next()?.contains('x');
    let offset = number(words.next()?)?;
    let (_, file) = line.split_once('/')?;
    is_code.then(|| Mapped {
        addresses,
        offset,
        file: Path::new("/").join(file),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_files_is_mapped() {
        let line = "55d0a000-55d0b000 r-xp 00002000 fd:00 1234                       /usr/bin/a b";
        let expected = Mapped {
            addresses: 0x55d0_a000..0x55d0_b000,
            offset: 0x2000,
            file: "/usr/bin/a b".into(),
        };
        assert_eq!(mapped(line), Some(expected));
        assert_eq!(mapped(&line.replace("r-xp", "r--p")), None);
        assert_eq!(
            mapped("7ffd000-7ffe000 r-xp 00000000 00:00 0   [vdso]"),
            None
        );
        assert_eq!(mapped(""), None);
    }

    #[test]
    fn an_address_in_this_program_is_in_its_function() {
        let process = NonZeroU32::new(std::process::id()).expect("a process has a number");
        let mut maps = Maps::of(process).expect("they can be read");
        let at = an_address_in_this_program_is_in_its_function as fn() as usize as u64;
        let function = maps.function(at).expect("it has a name");
        assert_eq!(function.binary, std::env::current_exe().ok());
        assert!(
            function.written().contains("an_address_in_this_program"),
            "{function:?}"
        );
        assert_eq!(maps.function(1), None);
    }
}
