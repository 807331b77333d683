//! The supervisor's command line, written by evalwave and read by the supervisor. It carries no secrets: those are in
//! the environment, which the command inherits as it is.

use std::ffi::OsString;
use std::path::PathBuf;

use super::MARK;

/// What a supervisor is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Invocation {
    /// How the command is confined; `None`: not at all.
    pub confinement: Option<Confinement>,
    /// Whether what the command leaves behind lives until the link is closed.
    pub keep: bool,
    /// The soft limit on open files that the command gets; `None`: the supervisor's own.
    pub open_files: Option<u64>,
    /// The program and its arguments.
    pub argv: Vec<OsString>,
}

/// What the kernel is asked to refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Confinement {
    /// Directories that may be written to, besides `/tmp` and `/dev`.
    pub writable: Vec<PathBuf>,
    /// Whether signals reach the command's own processes only.
    pub own_signals: bool,
    /// Whether network connections are refused.
    pub no_network: bool,
}

impl Invocation {
    /// Every argument after the program's name.
    pub(crate) fn to_arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec![MARK.into()];
        if self.keep {
            arguments.push("keep".into());
        }
        if let Some(open_files) = self.open_files {
            arguments.extend(["open-files".into(), open_files.to_string().into()]);
        }
        if let Some(confinement) = &self.confinement {
            arguments.push("confine".into());
            if confinement.own_signals {
                arguments.push("own-signals".into());
            }
            if confinement.no_network {
                arguments.push("no-network".into());
            }
            for directory in &confinement.writable {
                arguments.extend(["writable".into(), directory.into()]);
            }
        }
        arguments.push("--".into());
        arguments.extend(self.argv.iter().cloned());
        arguments
    }

    /// Reads the arguments after the mark.
    pub(super) fn parse(mut arguments: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut invocation = Self {
            confinement: None,
            keep: false,
            open_files: None,
            argv: Vec::new(),
        };
        loop {
            let word = arguments.next().ok_or("no command was given")?;
            let word = word
                .to_str()
                .ok_or_else(|| format!("cannot read `{}`", word.display()))?;
            match word {
                "--" => break,
                "keep" => invocation.keep = true,
                "open-files" => {
                    let number = value(&mut arguments, word)?;
                    let number = number.to_str().and_then(|number| number.parse().ok());
                    invocation.open_files = Some(number.ok_or("cannot read the number of `open-files`")?);
                }
                "confine" => {
                    invocation.confinement = Some(Confinement {
                        writable: Vec::new(),
                        own_signals: false,
                        no_network: false,
                    });
                }
                _ => {
                    let confinement = invocation.confinement.as_mut();
                    let confinement =
                        confinement.ok_or_else(|| format!("`{word}` is not known before `confine`"))?;
                    match word {
                        "own-signals" => confinement.own_signals = true,
                        "no-network" => confinement.no_network = true,
                        "writable" => confinement.writable.push(value(&mut arguments, word)?.into()),
                        _ => return Err(format!("`{word}` is not known")),
                    }
                }
            }
        }
        invocation.argv = arguments.collect();
        Ok(invocation)
    }
}

fn value(arguments: &mut impl Iterator<Item = OsString>, word: &str) -> Result<OsString, String> {
    arguments.next().ok_or_else(|| format!("`{word}` needs a value"))
}

#[cfg(test)]
mod tests {
    use super::{Confinement, Invocation};

    fn read_back(invocation: &Invocation) -> Result<Invocation, String> {
        Invocation::parse(invocation.to_arguments().into_iter().skip(1))
    }

    #[test]
    fn an_invocation_is_read_as_it_was_written() {
        let plain = Invocation {
            confinement: None,
            keep: false,
            open_files: None,
            argv: vec!["keep".into(), "--".into(), "confine".into()],
        };
        let full = Invocation {
            confinement: Some(Confinement {
                writable: vec!["/a b".into(), "--".into()],
                own_signals: true,
                no_network: true,
            }),
            keep: true,
            open_files: Some(1024),
            argv: vec!["sh".into(), "-c".into(), String::new().into()],
        };
        assert_eq!(read_back(&plain), Ok(plain));
        assert_eq!(read_back(&full), Ok(full));
    }

    #[test]
    fn unknown_words_are_refused() {
        let words = |words: &[&str]| Invocation::parse(words.iter().map(Into::into));
        assert_eq!(words(&[]).unwrap_err(), "no command was given");
        assert_eq!(
            words(&["own-signals"]).unwrap_err(),
            "`own-signals` is not known before `confine`"
        );
        assert_eq!(words(&["confine", "x"]).unwrap_err(), "`x` is not known");
        assert_eq!(words(&["open-files"]).unwrap_err(), "`open-files` needs a value");
    }
}
