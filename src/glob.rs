//! Globs on names and on paths, in one dialect: `*`, `?`, `**`, `[…]`, `{a,b}`, `\` before a character taken as it is.

use std::path::Path;

use globset::{Glob, GlobBuilder, GlobMatcher, GlobSet, GlobSetBuilder};

/// A glob that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidGlob {
    /// It is not a glob.
    #[error("cannot use the glob `{glob}`")]
    Syntax {
        /// The text.
        glob: String,
        /// What is wrong with it.
        #[source]
        source: globset::Error,
    },
    /// It names a place that is not below the root.
    #[error("cannot use the glob `{0}`: it has to be relative, without `..`")]
    Outside(String),
}

/// A glob on ids or label values. A `*` also matches `/`, and the text itself always matches.
#[derive(Clone, Debug)]
pub struct IdGlob {
    text: String,
    matcher: GlobMatcher,
}

impl IdGlob {
    /// Whether the whole of `name` matches.
    pub fn matches(&self, name: &str) -> bool {
        self.text == name || self.matcher.is_match(name)
    }

    /// The glob as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Reads a glob on ids or label values.
///
/// # Errors
/// Text that is no glob.
pub fn id_glob(text: &str) -> Result<IdGlob, InvalidGlob> {
    let glob = parse(text, text, false)?;
    Ok(IdGlob {
        text: text.to_owned(),
        matcher: glob.compile_matcher(),
    })
}

/// Reads a glob on paths below a root, with `/` between their parts, which only `**` matches.
///
/// # Errors
/// Text that is no glob, or one that leads out of the root.
pub fn path_glob(text: &str) -> Result<Glob, InvalidGlob> {
    let mut relative = text;
    while let Some(rest) = relative.strip_prefix("./") {
        relative = rest;
    }
    // A drive letter is what an absolute path begins with on Windows.
    let drive = matches!(relative.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    if drive || relative.starts_with('/') || relative.split('/').any(|part| part == "..") {
        return Err(InvalidGlob::Outside(text.to_owned()));
    }
    parse(text, relative, true)
}

/// Several globs on paths. One that matches a directory means all that is in it.
#[derive(Clone, Debug)]
pub struct PathGlobs(GlobSet);

impl PathGlobs {
    /// Reads globs; a `/` at the end of one is a manner of speaking.
    ///
    /// # Errors
    /// The first text that [`path_glob`] refuses.
    pub fn new(texts: &[String]) -> Result<Self, InvalidGlob> {
        let mut set = GlobSetBuilder::new();
        for text in texts {
            set.add(path_glob(text.trim_end_matches('/'))?);
        }
        set.build().map(Self).map_err(|source| InvalidGlob::Syntax {
            glob: source.glob().unwrap_or_default().to_owned(),
            source,
        })
    }

    /// Whether one of them matches the path or a directory above it.
    pub fn match_within(&self, path: &Path) -> bool {
        !self.0.is_empty() && path.ancestors().any(|part| self.0.is_match(part))
    }
}

/// Whether a text would mean something else as a glob than as a plain name.
pub fn is_pattern(text: &str) -> bool {
    text.contains(PATTERN)
}

/// Where in a text the first character is that makes it a pattern.
pub fn pattern_start(text: &str) -> Option<usize> {
    text.find(PATTERN)
}

/// Characters that mean something in a glob wherever they stand. `]`, `}` and `,` do only after others.
const PATTERN: [char; 5] = ['*', '?', '[', '{', '\\'];

fn parse(text: &str, pattern: &str, literal_separator: bool) -> Result<Glob, InvalidGlob> {
    GlobBuilder::new(pattern)
        .literal_separator(literal_separator)
        .backslash_escape(true)
        .empty_alternates(true)
        .build()
        .map_err(|source| InvalidGlob::Syntax {
            glob: text.to_owned(),
            source,
        })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{InvalidGlob, PathGlobs, id_glob, path_glob};

    #[test]
    fn a_star_in_an_id_crosses_slashes_and_an_id_matches_itself() {
        assert!(id_glob("claude*").unwrap().matches("claude/opus"));
        assert!(id_glob("sonnet[1m]").unwrap().matches("sonnet[1m]"));
        assert!(!id_glob("claude").unwrap().matches("claude-2"));
        assert!(matches!(id_glob("a[").unwrap_err(), InvalidGlob::Syntax { .. }));
    }

    #[test]
    fn a_star_in_a_path_stays_in_its_part() {
        let glob = path_glob("./evals/*/PROMPT.md").unwrap().compile_matcher();
        assert!(glob.is_match("evals/a/PROMPT.md"));
        assert!(!glob.is_match("evals/a/b/PROMPT.md"));
    }

    #[test]
    fn a_glob_on_a_directory_means_all_that_is_in_it() {
        let globs = PathGlobs::new(&["build/".to_owned(), "**/*.tmp".to_owned()]).unwrap();
        let matched = |path: &str| globs.match_within(Path::new(path));
        assert!(matched("build") && matched("build/deep/file") && matched("a/b.tmp"));
        assert!(!matched("src/build") && !matched("builds/file"));
        assert!(!PathGlobs::new(&[]).unwrap().match_within(Path::new("a")));
    }

    #[test]
    fn a_path_outside_the_root_is_refused() {
        for glob in ["/etc/*", "../a", "a/../../b", "C:/x"] {
            assert_eq!(
                path_glob(glob).unwrap_err(),
                InvalidGlob::Outside(glob.to_owned())
            );
        }
    }
}
