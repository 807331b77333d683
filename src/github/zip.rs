//! Files out of a zip archive in memory, within limits. Writes nothing, so that no name in it can lead anywhere.

use std::io::{Cursor, Read as _};

use camino::Utf8PathBuf;

/// Limits of an archive from outside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Most bytes of the one file.
    pub(super) file: u64,
    /// Most files.
    pub(super) entries: usize,
    /// Most bytes of the one file for each byte that it takes in the archive.
    pub(super) ratio: u64,
}

/// An archive that the file cannot be read from.
#[derive(Debug, thiserror::Error)]
pub enum BadZip {
    /// It is none, or a broken one.
    #[error("it is no zip archive that can be read")]
    Broken(#[source] zip::result::ZipError),
    /// It ends too early, or what is in it does not match its own checksum.
    #[error("`{name}` in it is broken")]
    BrokenEntry {
        /// The file.
        name: String,
        /// How.
        #[source]
        cause: std::io::Error,
    },
    /// The file is not in it.
    #[error("there is no `{0}` in it")]
    Missing(String),
    /// It holds more files than any of ours.
    #[error("it holds more than {0} files")]
    TooMany(usize),
    /// The file is beyond the cap, whatever the archive says of its size.
    #[error("`{name}` in it is larger than {limit} MiB")]
    TooLarge {
        /// The file.
        name: String,
        /// The cap.
        limit: u64,
    },
    /// The file is packed more tightly than any of ours can be.
    #[error("`{name}` in it is packed more than {ratio} times")]
    Bomb {
        /// The file.
        name: String,
        /// The cap.
        ratio: u64,
    },
}

/// Reads the file called exactly `name`.
pub(super) fn read(archive: &[u8], name: &str, limits: Limits) -> Result<Vec<u8>, BadZip> {
    if claimed_entries(archive) > limits.entries {
        return Err(BadZip::TooMany(limits.entries));
    }
    let mut zip = zip::ZipArchive::new(Cursor::new(archive)).map_err(BadZip::Broken)?;
    if zip.len() > limits.entries {
        return Err(BadZip::TooMany(limits.entries));
    }
    let mut entry = match zip.by_name(name) {
        Ok(entry) => entry,
        Err(zip::result::ZipError::FileNotFound) => return Err(BadZip::Missing(name.to_owned())),
        Err(error) => return Err(BadZip::Broken(error)),
    };
    let packed = entry.compressed_size().min(archive.len() as u64).max(1);
    // A small file may be packed however tightly.
    let fair = packed.saturating_mul(limits.ratio).max(1 << 20);
    let cap = limits.file.min(fair);
    let mut bytes = Vec::new();
    let mut bounded = entry.by_ref().take(cap + 1);
    bounded
        .read_to_end(&mut bytes)
        .map_err(|cause| BadZip::BrokenEntry {
            name: name.to_owned(),
            cause,
        })?;
    if bytes.len() as u64 <= cap {
        return Ok(bytes);
    }
    let name = name.to_owned();
    Err(match cap < limits.file {
        true => BadZip::Bomb {
            name,
            ratio: limits.ratio,
        },
        false => BadZip::TooLarge {
            name,
            limit: limits.file >> 20,
        },
    })
}

/// Reads every file whose name stays below the archive's root, each with its name. `limits.file` is for all of them
/// together.
pub(super) fn read_all(archive: &[u8], limits: Limits) -> Result<Vec<(Utf8PathBuf, Vec<u8>)>, BadZip> {
    if claimed_entries(archive) > limits.entries {
        return Err(BadZip::TooMany(limits.entries));
    }
    let mut zip = zip::ZipArchive::new(Cursor::new(archive)).map_err(BadZip::Broken)?;
    if zip.len() > limits.entries {
        return Err(BadZip::TooMany(limits.entries));
    }
    let (mut files, mut left) = (Vec::new(), limits.file);
    for at in 0..zip.len() {
        let mut entry = zip.by_index(at).map_err(BadZip::Broken)?;
        let name = entry
            .enclosed_name()
            .and_then(|name| Utf8PathBuf::try_from(name).ok());
        let Some(name) = name.filter(|_| entry.is_file() && !entry.is_symlink()) else {
            continue;
        };
        let mut bytes = Vec::new();
        let read = entry.by_ref().take(left + 1).read_to_end(&mut bytes);
        read.map_err(|cause| BadZip::BrokenEntry {
            name: name.to_string(),
            cause,
        })?;
        left = left
            .checked_sub(bytes.len() as u64)
            .ok_or_else(|| BadZip::TooLarge {
                name: name.to_string(),
                limit: limits.file >> 20,
            })?;
        files.push((name, bytes));
    }
    Ok(files)
}

/// How many files the archive says it holds: looked at before a reader makes room for them.
fn claimed_entries(archive: &[u8]) -> usize {
    const END: &[u8] = b"PK\x05\x06";
    let tail = &archive[archive.len().saturating_sub(66_000)..];
    let end = tail.windows(END.len()).rposition(|bytes| bytes == END);
    match end.and_then(|at| tail.get(at + 10..at + 12)) {
        Some(&[low, high]) => usize::from(u16::from_le_bytes([low, high])),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::{BadZip, Limits, claimed_entries, read};

    const LIMITS: Limits = Limits {
        file: 2 << 20,
        entries: 3,
        ratio: 200,
    };

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, bytes) in files {
            zip.start_file(*name, zip::write::SimpleFileOptions::default())
                .unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    /// Bytes that cannot be packed.
    fn noise(length: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (state >> 16) as u8
        };
        std::iter::repeat_with(next).take(length).collect()
    }

    #[test]
    fn a_file_is_read_up_to_its_cap_and_no_byte_beyond() {
        let bytes = noise(2 << 20);
        assert_eq!(read(&archive(&[("a", &bytes)]), "a", LIMITS).unwrap(), bytes);
        let bytes = noise((2 << 20) + 1);
        let error = read(&archive(&[("a", &bytes)]), "a", LIMITS).unwrap_err();
        assert_eq!(error.to_string(), "`a` in it is larger than 2 MiB");
    }

    #[test]
    fn a_size_that_is_not_true_does_not_help() {
        let mut bomb = archive(&[("a", &vec![0; 4 << 20])]);
        // The size as the header and the directory state it: 100 bytes.
        let size = (4_u32 << 20).to_le_bytes();
        let places: Vec<usize> = bomb
            .windows(4)
            .enumerate()
            .filter(|(_, window)| *window == size)
            .map(|(at, _)| at)
            .collect();
        assert!(!places.is_empty());
        for at in places {
            bomb[at..at + 4].copy_from_slice(&100_u32.to_le_bytes());
        }
        let error = read(&bomb, "a", LIMITS).unwrap_err();
        assert!(
            matches!(error, BadZip::Bomb { .. } | BadZip::BrokenEntry { .. }),
            "{error}"
        );
    }

    #[test]
    fn the_number_of_files_is_looked_at_before_they_are() {
        let files: [(&str, &[u8]); 4] = [("a", b"1"), ("b", b"2"), ("c", b"3"), ("d", b"4")];
        let four = archive(&files);
        assert_eq!(claimed_entries(&four), 4);
        assert!(matches!(read(&four, "a", LIMITS), Err(BadZip::TooMany(3))));
        assert_eq!(read(&archive(&files[..3]), "a", LIMITS).unwrap(), b"1");
    }

    #[test]
    fn all_files_are_read_and_none_that_leads_elsewhere() {
        let files: [(&str, &[u8]); 4] = [("a/b", b"1"), ("../c", b"2"), ("/d", b"3"), ("e", b"4")];
        let limits = Limits { entries: 9, ..LIMITS };
        let read = super::read_all(&archive(&files), limits).unwrap();
        let names: Vec<&str> = read.iter().map(|(name, _)| name.as_str()).collect();
        assert!(names.contains(&"a/b") && names.contains(&"e"), "{names:?}");
        assert!(
            names
                .iter()
                .all(|name| !name.contains("..") && !name.starts_with('/')),
            "{names:?}"
        );
        let large = noise(1 << 20);
        let error =
            super::read_all(&archive(&[("a", &large), ("b", &large), ("c", b"x")]), LIMITS).unwrap_err();
        assert_eq!(error.to_string(), "`c` in it is larger than 2 MiB");
    }

    #[test]
    fn no_archive_panics() {
        use proptest::prelude::*;

        let whole = archive(&[("a/b", b"1111111111111111111111111111"), ("c", &noise(600))]);
        let damage = (
            0..whole.len(),
            0..16_usize,
            proptest::collection::vec(any::<u8>(), 0..16),
        );
        proptest!(|((at, taken, put) in damage)| {
            let end = (at + taken).min(whole.len());
            let bytes = [&whole[..at], &put, &whole[end..]].concat();
            let _ = read(&bytes, "c", LIMITS);
            let _ = super::read_all(&bytes, LIMITS);
        });
    }
}
