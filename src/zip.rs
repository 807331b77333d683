//! Files out of a zip archive in memory, within limits. Writes nothing to disk, so that no name in it can lead anywhere.

use std::io::{Cursor, Read as _, Write as _};

use ::zip::{CompressionMethod, ZipArchive};

/// Limits of an archive from outside.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Most bytes of one file.
    pub file: u64,
    /// Most bytes of all files that are read, together.
    pub total: u64,
    /// Most files.
    pub entries: usize,
    /// Most bytes of a file for each byte that it takes in the archive.
    pub ratio: u64,
}

/// An archive that the file cannot be read from.
#[derive(Debug, thiserror::Error)]
pub enum BadZip {
    /// It is none, or a broken one.
    #[error("it is no zip archive that can be read")]
    Broken(#[source] ::zip::result::ZipError),
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
    /// All files that are read are beyond the cap together.
    #[error("what is read from it is larger than {0} MiB")]
    TooLargeTogether(u64),
    /// The file is packed by a method that is not read here.
    #[error("`{name}` in it is packed by method {method}, which is not read")]
    Method {
        /// The file.
        name: String,
        /// As the archive names it.
        method: String,
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

/// Whether bytes begin as an archive does.
pub fn is_zip(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"PK\x05\x06")
}

/// Reads the file called exactly `name`.
///
/// # Errors
/// What is wrong with the archive or the file.
pub fn read(archive: &[u8], name: &str, limits: Limits) -> Result<Vec<u8>, BadZip> {
    Archive::open(archive, limits)?.read(name)
}

/// An archive in memory.
pub struct Archive<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    limits: Limits,
    /// Bytes that may still be read.
    left: u64,
}

impl<'a> Archive<'a> {
    /// Reads the directory of an archive.
    ///
    /// # Errors
    /// It is none, or one with too many files.
    pub fn open(archive: &'a [u8], limits: Limits) -> Result<Self, BadZip> {
        if claimed_entries(archive) > limits.entries {
            return Err(BadZip::TooMany(limits.entries));
        }
        let zip = ZipArchive::new(Cursor::new(archive)).map_err(BadZip::Broken)?;
        if zip.len() > limits.entries {
            return Err(BadZip::TooMany(limits.entries));
        }
        Ok(Self {
            zip,
            limits,
            left: limits.total,
        })
    }

    /// The names of its files, in their order.
    pub fn names(&self) -> Vec<String> {
        self.zip
            .file_names()
            .filter_map(|name| Some(name.ok()?.into_owned()))
            .collect()
    }

    /// Reads the file called exactly `name`.
    ///
    /// # Errors
    /// There is none, it is broken, or it is beyond a limit, whatever the archive says of its size.
    pub fn read(&mut self, name: &str) -> Result<Vec<u8>, BadZip> {
        let index = self
            .zip
            .index_for_name(name)
            .ok_or_else(|| BadZip::Missing(name.to_owned()))?;
        let (method, crc) = {
            let entry = self.zip.by_index_raw(index).map_err(BadZip::Broken)?;
            (entry.compression(), entry.crc32())
        };
        let (limits, left) = (self.limits, self.left);
        let most = limits.file.min(left);
        let mut bytes = Vec::new();
        let broken = |cause| BadZip::BrokenEntry {
            name: name.to_owned(),
            cause,
        };
        let cap = |packed: u64| {
            // A small file may be packed however tightly.
            let fair = packed.max(1).saturating_mul(limits.ratio).max(1 << 20);
            most.min(fair)
        };
        let cap = if method == ZSTANDARD {
            let mut entry = self.zip.by_index_raw(index).map_err(BadZip::Broken)?;
            let cap = cap(entry.compressed_size());
            let mut unpacked = ruzstd::decoding::StreamingDecoder::new(&mut entry)
                .map_err(|error| broken(std::io::Error::other(error)))?
                .take(cap + 1);
            unpacked.read_to_end(&mut bytes).map_err(broken)?;
            if bytes.len() as u64 <= cap && crc32fast::hash(&bytes) != crc {
                return Err(broken(std::io::Error::other("its checksum is another one")));
            }
            cap
        } else if matches!(method, CompressionMethod::Stored | CompressionMethod::Deflated) {
            let mut entry = self.zip.by_index(index).map_err(BadZip::Broken)?;
            let cap = cap(entry.compressed_size());
            entry
                .by_ref()
                .take(cap + 1)
                .read_to_end(&mut bytes)
                .map_err(broken)?;
            cap
        } else {
            return Err(BadZip::Method {
                name: name.to_owned(),
                method: method.to_string(),
            });
        };
        if bytes.len() as u64 <= cap {
            self.left -= bytes.len() as u64;
            return Ok(bytes);
        }
        let name = name.to_owned();
        Err(if cap == limits.file {
            BadZip::TooLarge {
                name,
                limit: limits.file >> 20,
            }
        } else if cap == left {
            BadZip::TooLargeTogether(limits.total >> 20)
        } else {
            BadZip::Bomb {
                name,
                ratio: limits.ratio,
            }
        })
    }

    /// The archive with every file's bytes put through `change`.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn map(mut self, change: impl Fn(Vec<u8>) -> Vec<u8>) -> Result<Vec<u8>, BadZip> {
        let mut to = ::zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options =
            ::zip::write::SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        for name in self.names() {
            if name.ends_with('/') {
                continue;
            }
            let bytes = change(self.read(&name)?);
            to.start_file(&*name, options).map_err(BadZip::Broken)?;
            to.write_all(&bytes)
                .map_err(|cause| BadZip::BrokenEntry { name, cause })?;
        }
        Ok(to.finish().map_err(BadZip::Broken)?.into_inner())
    }
}

/// Zstandard, by its number: the library that reads archives does not unpack it without a compiler for C.
#[expect(deprecated, reason = "a method that is left out has no other name")]
const ZSTANDARD: CompressionMethod = CompressionMethod::Unsupported(93);

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

    use proptest::prelude::*;

    use super::{Archive, BadZip, Limits, claimed_entries, read};

    const LIMITS: Limits = Limits {
        file: 2 << 20,
        total: 3 << 20,
        entries: 3,
        ratio: 200,
    };

    fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut zip = ::zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        for (name, bytes) in files {
            zip.start_file(*name, ::zip::write::SimpleFileOptions::default())
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
    fn all_that_is_read_is_counted_together() {
        let bytes = noise(1 << 20);
        let four = archive(&[("a", &bytes), ("b", &bytes), ("c", &bytes)]);
        let mut four = Archive::open(&four, LIMITS).unwrap();
        for name in ["a", "b", "c"] {
            four.read(name).unwrap();
        }
        let error = four.read("a").unwrap_err();
        assert_eq!(error.to_string(), "what is read from it is larger than 3 MiB");
    }

    #[test]
    fn every_file_goes_through_the_change() {
        let before = archive(&[("a", b"secret"), ("b/c", b"nothing")]);
        let opened = Archive::open(&before, LIMITS).unwrap();
        let change = |bytes: Vec<u8>| {
            String::from_utf8(bytes)
                .unwrap()
                .replace("secret", "***")
                .into_bytes()
        };
        let after = opened.map(change).unwrap();
        assert_eq!(read(&after, "a", LIMITS).unwrap(), b"***");
        assert_eq!(read(&after, "b/c", LIMITS).unwrap(), b"nothing");
    }

    proptest! {
        /// A changed byte may make an archive unreadable, and never makes it more than its limits.
        #[test]
        fn no_damaged_archive_panics_or_grows(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut bytes = archive(&[("a", &[7; 2_000]), ("b", b"text")]);
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(mut opened) = Archive::open(&bytes, LIMITS) {
                for name in opened.names() {
                    let read = opened.read(&name).map(|bytes| bytes.len() as u64);
                    prop_assert!(read.is_err() || read.is_ok_and(|length| length <= LIMITS.file));
                }
            }
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Archive::open(&[&b"PK\x03\x04"[..], &bytes].concat(), LIMITS);
            let _ = Archive::open(&[&bytes[..], &b"PK\x05\x06"[..], &bytes].concat(), LIMITS);
        }
    }
}
