// SPDX-License-Identifier: Apache-2.0
//! A program or a library: its functions, its code, and what can happen in it.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use object::read::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache};
use object::{ReadRef, SegmentFlags, SymbolFlags};
use rustix::fs::OFlags;

use super::entry::{self, Pace};
use super::exits;
use super::name::COLD;
use crate::Error;

const STT_FUNC: u8 = 2;
const STT_GNU_IFUNC: u8 = 10;
const PF_X: u32 = 1;
/// Of our own choice.
const MAX_BYTES: u64 = 2 << 30;

/// A function of the file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Function {
    pub(super) address: u64,
    pub(super) name: String,
    /// In bytes; 0 where the file does not say.
    pub(super) size: u64,
    /// Not the function but what chooses it.
    pub(super) indirect: bool,
}

pub(super) struct Binary<'a> {
    path: &'a Path,
    data: &'a ReadCache<File>,
    file: object::File<'a, &'a ReadCache<File>>,
}

/// A program's owner may put anything in its place: a pipe would be waited for, and of a file with holes each section
/// that is read takes as much memory as it says.
pub(super) fn open(path: &Path) -> Result<ReadCache<File>, Error> {
    let failed = |error: io::Error| refused(path, &error.to_string());
    let mut options = OpenOptions::new();
    options
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32);
    let file = options.open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    match found.len() {
        _ if !found.is_file() => Err(refused(path, "not a file")),
        ..=MAX_BYTES => Ok(ReadCache::new(file)),
        bytes => Err(refused(
            path,
            &format!("{bytes} bytes, and at most {MAX_BYTES} are read"),
        )),
    }
}

fn refused(path: &Path, reason: &str) -> Error {
    Error::Binary {
        binary: path.to_owned(),
        reason: reason.to_owned(),
    }
}

impl<'a> Binary<'a> {
    pub(super) fn parse(path: &'a Path, data: &'a ReadCache<File>) -> Result<Self, Error> {
        let file = object::File::parse(data).map_err(|error| refused(path, &error.to_string()))?;
        Ok(Self { path, data, file })
    }

    pub(super) fn is_stripped(&self) -> bool {
        self.file.symbol_table().is_none() && self.debug_file().is_none()
    }

    pub(super) fn is_go(&self) -> bool {
        self.has(".go.buildinfo") || self.has(".gopclntab")
    }

    /// Whether exceptions or panics may pass through its functions: it throws some itself, or has something to do
    /// when one passes.
    pub(super) fn can_unwind(&self) -> bool {
        let mut symbols = self.file.symbols().chain(self.file.dynamic_symbols());
        let unwinds = |name: &str| name.starts_with("_Unwind_") || name.starts_with("__cxa_throw");
        self.has(".gcc_except_table") || symbols.any(|symbol| symbol.name().is_ok_and(unwinds))
    }

    fn has(&self, section: &str) -> bool {
        let section = self.file.section_by_name(section);
        section.is_some_and(|section| section.size() > 0)
    }

    fn functions(&self) -> BTreeSet<Function> {
        let symbols = self.file.symbols().chain(self.file.dynamic_symbols());
        let defined = symbols.filter(|symbol| symbol.is_definition() && symbol.address() != 0);
        defined
            .filter_map(|symbol| {
                let SymbolFlags::Elf { st_info, .. } = symbol.flags() else {
                    return None;
                };
                let indirect = match st_info & 0xf {
                    STT_FUNC => false,
                    STT_GNU_IFUNC => true,
                    _ => return None,
                };
                Some(Function {
                    address: symbol.address(),
                    name: symbol.name().ok()?.to_owned(),
                    size: symbol.size(),
                    indirect,
                })
            })
            .collect()
    }

    /// With those of its debug symbols, where they are installed: a debug file holds the same addresses and none of the
    /// code.
    pub(super) fn all_functions(&self) -> Result<BTreeSet<Function>, Error> {
        let mut functions = self.functions();
        if let Some(debug) = self.debug_file() {
            let data = open(&debug)?;
            functions.extend(Binary::parse(&debug, &data)?.functions());
        }
        Ok(functions)
    }

    /// What distributions install beside a stripped program: `/usr/lib/debug/.build-id/ab/cdef.debug`.
    fn debug_file(&self) -> Option<PathBuf> {
        let id = self.file.build_id().ok()??;
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let (first, rest) = id.split_at_checked(1)?;
        let (first, rest): (String, String) = (hex(first), hex(rest));
        let path = PathBuf::from(format!("/usr/lib/debug/.build-id/{first}/{rest}.debug"));
        Some(path).filter(|path| path.exists() && path != self.path)
    }

    pub(super) fn first_instruction(&self) -> Result<u64, Error> {
        let offset = self.offset(self.file.entry());
        offset.ok_or_else(|| refused(self.path, "it has no first instruction"))
    }

    /// Parts of the file that are run: where in memory, and from where to where in the file.
    fn code(&self) -> impl Iterator<Item = (u64, Range<u64>)> + '_ {
        self.file.segments().filter_map(|segment| {
            let SegmentFlags::Elf { p_flags } = segment.flags() else {
                return None;
            };
            let (offset, length) = segment.file_range();
            let within = offset..offset.checked_add(length)?;
            (p_flags & PF_X != 0).then_some((segment.address(), within))
        })
    }

    /// From an address in memory, before the file is moved anywhere.
    pub(super) fn offset(&self, address: u64) -> Option<u64> {
        self.code().find_map(|(start, file)| {
            let offset = file.start.checked_add(address.checked_sub(start)?)?;
            file.contains(&offset).then_some(offset)
        })
    }

    fn bytes(&self, range: Range<u64>) -> Option<&'a [u8]> {
        let mut code = self.code();
        let (_, within) = code.find(|(_, file)| file.contains(&range.start))?;
        let length = range.end.min(within.end).checked_sub(range.start)?;
        self.data.read_bytes_at(range.start, length).ok()
    }

    /// The offset of the instruction to watch for a function that starts at `offset`.
    pub(super) fn entry(&self, offset: u64) -> Option<(u64, Pace)> {
        let bytes = self.bytes(offset..offset.checked_add(entry::LOOKED_AT)?)?;
        let (skip, pace) = entry::look(bytes, self.file.architecture());
        Some((offset + skip, pace))
    }

    /// The offsets of the instructions that leave the function that starts at `offset`.
    pub(super) fn exits(
        &self,
        functions: &BTreeSet<Function>,
        offset: u64,
    ) -> Result<Vec<u64>, String> {
        if self.file.architecture() != object::Architecture::X86_64 {
            return Err("its returns can be told on x86-64 only".into());
        }
        let place = |one: &Function| {
            let start = self.offset(one.address)?;
            Some(start..start.checked_add(one.size)?)
        };
        let mut here = functions
            .iter()
            .filter(|one| self.offset(one.address) == Some(offset));
        let whole = here.find(|one| one.size > 0);
        let whole = whole.ok_or("where it ends is not known")?;
        let cold = format!("{}{COLD}", whole.name);
        let parts = functions
            .iter()
            .filter(|one| *one == whole || one.name.starts_with(&cold));
        let parts = parts.filter_map(place).collect::<Vec<_>>();
        let mut exits = Vec::new();
        for part in &parts {
            let code = self
                .bytes(part.clone())
                .ok_or("not all of it is in the file")?;
            exits.extend(exits::find(code, part.start, &parts)?);
        }
        Ok(exits)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn what_is_no_file_or_has_no_end_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = |path: &Path| open(path).err().unwrap().to_string();
        let pipe = folder.path().join("pipe");
        assert!(
            Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        assert!(refusal(&pipe).contains("not a file"));
        assert!(refusal(folder.path()).contains("not a file"));
        let holes = folder.path().join("holes");
        File::create(&holes)
            .unwrap()
            .set_len(MAX_BYTES + 1)
            .unwrap();
        assert!(refusal(&holes).contains("at most"));
        File::create(&holes).unwrap().set_len(MAX_BYTES).unwrap();
        assert!(open(&holes).is_ok());
    }
}
