//! What a snapshot depends on, in short. Asks the service nothing.

use std::fmt;

use sha2::{Digest as _, Sha256};

use super::create::Repository;
use crate::config::{CommandLine, VercelBase, VercelConfig};
use crate::glob::PathGlobs;
use crate::sandbox::{SandboxError, Setup};

/// Another number where a snapshot holds something else.
const FORMAT: &str = "evalwave.warm/2";

/// Where every machine runs.
const ARCHITECTURE: &str = "linux/x86_64";

/// Files that say which tools are meant; where they are, they are part of the key.
const TOOL_VERSIONS: [&str; 6] = [
    ".node-version",
    ".nvmrc",
    ".python-version",
    ".tool-versions",
    "rust-toolchain",
    "rust-toolchain.toml",
];

/// What a snapshot depends on, in short. Not on the commit, the vCPUs, or any secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(String);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Key {
    /// The key of what `setup` does in this configuration; with a repository, where sandboxes fetch their files from it.
    pub(super) fn of(
        config: &VercelConfig,
        repository: Option<&Repository>,
        setup: &Setup,
    ) -> Result<Self, SandboxError> {
        let command = setup.command.as_ref().ok_or_else(|| {
            SandboxError::new(
                "there is nothing for a snapshot to hold: `attempt.setup` is not there, or not the same for every attempt",
            )
        })?;
        let mut hash = Sha256::new();
        let mut add = |name: &str, value: &[u8]| {
            // Lengths keep neighbours apart.
            hash.update(format!("{name} {}\n", value.len()));
            hash.update(value);
        };
        add("format", FORMAT.as_bytes());
        add("architecture", ARCHITECTURE.as_bytes());
        match &config.base {
            VercelBase::Runtime(name) => add("runtime", name.as_bytes()),
            VercelBase::Image(name) => add("image", name.as_bytes()),
        }
        match repository {
            None => add("source", b"upload"),
            Some(repository) => {
                add("source", b"repository");
                add("repository", address(&repository.url).as_bytes());
                add("directory", repository.directory.as_str().as_bytes());
                add("submodules", &[u8::from(config.submodules)]);
            }
        }
        match &command.line {
            CommandLine::Shell(text) => add("shell", text.as_bytes()),
            CommandLine::Argv(argv) => argv.iter().for_each(|word| add("word", word.as_bytes())),
        }
        for (name, value) in &command.env {
            if !name.starts_with("EVALWAVE_") {
                add("variable", name.as_bytes());
                add("value", value.as_bytes());
            }
        }
        let files = &setup.workspace.files;
        let mut globs = Vec::new();
        for text in config.warm.as_deref().unwrap_or_default() {
            let glob = PathGlobs::new(std::slice::from_ref(text)).map_err(|error| {
                SandboxError::io("cannot use `sandbox.warm.files`", std::io::Error::other(error))
            })?;
            // A key without it would be the same whatever becomes of the file.
            if !files.iter().any(|file| glob.match_within(file.as_std_path())) {
                return Err(SandboxError::new(format!(
                    "`sandbox.warm.files` names `{text}`, and no file of `attempt.upload` is that"
                )));
            }
            globs.push(glob);
        }
        for file in files.iter() {
            let is_named = globs.iter().any(|glob| glob.match_within(file.as_std_path()));
            if is_named || TOOL_VERSIONS.contains(&file.as_str()) {
                let content = fs_err::read(setup.workspace.root.join(file));
                let content = content
                    .map_err(|error| SandboxError::io("cannot read a file of `sandbox.warm.files`", error))?;
                add("file", file.as_str().as_bytes());
                add("content", &content);
            }
        }
        let digest = hash.finalize();
        Ok(Self(
            digest[..8].iter().map(|byte| format!("{byte:02x}")).collect(),
        ))
    }

    /// The sandbox that makes it.
    pub(super) fn builder(&self) -> String {
        format!("evalwave-warm-{self}")
    }
}

/// A repository's address, the same however it is written.
fn address(url: &str) -> &str {
    let url = url.trim_end_matches('/');
    url.strip_suffix(".git").unwrap_or(url)
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn a_repository_has_one_address_with_and_without_its_ending() {
        for url in [
            "https://github.com/o/r.git",
            "https://github.com/o/r",
            "https://github.com/o/r/",
        ] {
            assert_eq!(address(url), "https://github.com/o/r");
        }
    }
}
