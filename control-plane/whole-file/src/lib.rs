// SPDX-License-Identifier: Apache-2.0
//! Files that are there whole or not at all: written beside their place and moved there at the end.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Writes a file: a reader sees all of it, or what was there before.
///
/// # Errors
/// The folder is missing or cannot be written.
pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let path = path.as_ref();
    let mut part = beside(path)?;
    part.write_all(bytes.as_ref())?;
    part.persist(path)?;
    Ok(())
}

/// In the same folder, with the permissions of any new file; removed when it is dropped.
fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    tempfile::Builder::new()
        .suffix(".part")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder.unwrap_or(Path::new(".")))
}

/// One that is written bit by bit. Dropped before [`WholeFile::finish`] it leaves nothing behind, and a file that
/// was there before stays as it was. What is no regular file is written as it comes: a pipe, or where a symbolic
/// link leads to, which stays a link. `/dev/stdout` is this process's own output, with what else it prints.
#[derive(Debug)]
pub struct WholeFile {
    out: BufWriter<Out>,
    path: PathBuf,
}

#[derive(Debug)]
enum Out {
    Beside(NamedTempFile),
    InPlace(File),
}

impl WholeFile {
    /// Begins.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        let regular = fs::symlink_metadata(path).map_or(true, |data| data.is_file());
        let out = if regular {
            Out::Beside(beside(path)?)
        } else if path == Path::new("/dev/stdout") {
            // Opened anew it would begin at the file's beginning, under what is printed.
            Out::InPlace(io::stdout().as_fd().try_clone_to_owned()?.into())
        } else {
            Out::InPlace(File::create(path)?)
        };
        Ok(Self {
            out: BufWriter::new(out),
            path: path.to_owned(),
        })
    }

    /// Everything has been written.
    ///
    /// # Errors
    /// It cannot be written, or not moved to its place.
    pub fn finish(self) -> io::Result<()> {
        let out = self.out.into_inner();
        match out.map_err(io::IntoInnerError::into_error)? {
            Out::Beside(part) => part.persist(&self.path).map(drop).map_err(Into::into),
            Out::InPlace(_) => Ok(()),
        }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Beside(part) => part.write(bytes),
            Self::InPlace(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Beside(part) => part.flush(),
            Self::InPlace(file) => file.flush(),
        }
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_finished_leaves_the_folder_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.csv");
        let names = || -> Vec<_> {
            let entries = fs::read_dir(folder.path()).unwrap();
            entries.map(|entry| entry.unwrap().file_name()).collect()
        };
        let mut file = WholeFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        assert!(!path.exists());
        drop(file);
        assert!(names().is_empty());
        let mut file = WholeFile::create(&path).unwrap();
        file.write_all(b"whole").unwrap();
        file.finish().unwrap();
        drop(WholeFile::create(&path).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(names(), ["out.csv"]);
    }

    #[test]
    fn a_file_is_replaced_and_everybody_may_read_it_who_may_read_any_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let [written, other] = ["written", "other"].map(|name| folder.path().join(name));
        write(&written, "longer").unwrap();
        write(&written, "short").unwrap();
        fs::write(&other, "").unwrap();
        let mode = |path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(fs::read(&written).unwrap(), b"short");
        assert_eq!(mode(&written), mode(&other));
        assert!(write(folder.path().join("no/folder"), "").is_err());
    }

    #[test]
    fn what_is_no_regular_file_is_written_as_it_comes() {
        let mut file = WholeFile::create(Path::new("/dev/null")).unwrap();
        file.write_all(b"gone").unwrap();
        file.finish().unwrap();
        assert!(fs::metadata("/dev/null").is_ok_and(|data| !data.is_file()));
    }

    #[test]
    fn a_symbolic_link_stays_and_what_it_leads_to_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let [link, to] = ["link", "to"].map(|name| folder.path().join(name));
        std::os::unix::fs::symlink(&to, &link).unwrap();
        for text in ["longer", "short"] {
            let mut file = WholeFile::create(&link).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file.finish().unwrap();
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!(fs::read_to_string(&to).unwrap(), text);
        }
    }
}
