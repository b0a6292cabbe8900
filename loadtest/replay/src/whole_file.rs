// SPDX-License-Identifier: Apache-2.0
//! A file that is there whole or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Writes beside its place and moves there at the end. Dropped before that it leaves nothing behind, and a
/// file that was there before stays as it was. What is no regular file is written as it comes: a pipe, or
/// where a symbolic link leads to, which stays a link. `/dev/stdout` is this process's own output, with what
/// else it prints.
#[derive(Debug)]
pub struct WholeFile {
    out: BufWriter<File>,
    path: PathBuf,
    /// Where it is written; none: in its place.
    part: Option<PathBuf>,
}

impl WholeFile {
    /// Begins.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path) -> io::Result<Self> {
        let regular = fs::symlink_metadata(path).map_or(true, |data| data.is_file());
        let part = regular.then(|| {
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(format!(".{}.part", std::process::id()));
            path.with_file_name(name)
        });
        let out = match &part {
            Some(part) => File::create(part)?,
            // Opened anew it would begin at the file's beginning, under what is printed.
            None if path == Path::new("/dev/stdout") => {
                io::stdout().as_fd().try_clone_to_owned()?.into()
            }
            None => File::create(path)?,
        };
        Ok(Self {
            out: BufWriter::new(out),
            path: path.to_owned(),
            part,
        })
    }

    /// Everything has been written.
    ///
    /// # Errors
    /// It cannot be written, or not moved to its place.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()?;
        if let Some(part) = &self.part {
            fs::rename(part, &self.path)?;
            self.part = None;
        }
        Ok(())
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

impl Drop for WholeFile {
    fn drop(&mut self) {
        if let Some(part) = &self.part {
            // Nobody is left to be told that it could not be removed.
            let _ = fs::remove_file(part);
        }
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
