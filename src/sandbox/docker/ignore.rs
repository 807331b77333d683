//! What of a directory is sent to the engine for a build: all but what `.dockerignore` leaves out.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use globset::{GlobBuilder, GlobMatcher};

use crate::model::layout::{OUTPUT_ROOT, SANDBOXES_FILE};

/// A line of `.dockerignore`.
struct Rule {
    path: GlobMatcher,
    /// Whether it takes back what an earlier line left out.
    keeps: bool,
}

/// The files and links below `root`, sorted, but for those of runs. The Dockerfile is always among them.
pub(super) fn context_files(root: &Utf8Path, dockerfile: &Utf8Path) -> io::Result<Vec<Utf8PathBuf>> {
    let rules = match fs_err::read_to_string(root.join(".dockerignore")) {
        Ok(text) => parse(&text)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut files = Vec::new();
    let mut waiting = vec![Utf8PathBuf::new()];
    while let Some(directory) = waiting.pop() {
        for entry in fs_err::read_dir(root.join(&directory))? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                return Err(io::Error::other(format!(
                    "the name of {} is not UTF-8",
                    entry.path().display()
                )));
            };
            let path = directory.join(name);
            let kind = entry.file_type()?;
            if kind.is_dir() {
                // No sandbox receives earlier results.
                let is_run = root.join(&path).join(SANDBOXES_FILE).exists();
                if !is_run && path.file_name() != Some(OUTPUT_ROOT) {
                    waiting.push(path);
                }
            } else if (kind.is_file() || kind.is_symlink())
                && (path == dockerfile || path == ".dockerignore" || !is_ignored(&rules, &path))
            {
                files.push(path);
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}

fn parse(text: &str) -> io::Result<Vec<Rule>> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (pattern, keeps) = match line.strip_prefix('!') {
                Some(pattern) => (pattern.trim(), true),
                None => (line, false),
            };
            let pattern = pattern.trim_matches('/').trim_start_matches("./");
            let glob = GlobBuilder::new(pattern).literal_separator(true).build();
            let glob = glob.map_err(|error| io::Error::other(format!("`.dockerignore`: {error}")))?;
            Ok(Rule {
                path: glob.compile_matcher(),
                keeps,
            })
        })
        .collect()
}

/// The last rule that matches the path, or a directory above it, decides.
fn is_ignored(rules: &[Rule], path: &Utf8Path) -> bool {
    let matches = |rule: &&Rule| {
        path.ancestors()
            .any(|part| part != "" && rule.path.is_match(part))
    };
    rules.iter().rfind(matches).is_some_and(|rule| !rule.keeps)
}

#[cfg(test)]
mod tests {
    use camino::Utf8Path;

    use super::context_files;

    #[test]
    fn a_build_gets_what_dockerignore_does_not_leave_out() {
        let directory = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(directory.path()).unwrap();
        for file in [
            "Dockerfile",
            "a.log",
            "keep.log",
            "src/b.log",
            "src/main",
            "node_modules/x/y",
            "docs/in/z.md",
            "evalwave-out/x/summary.json",
            "out/sandboxes.jsonl",
            "out/summary.json",
        ] {
            fs_err::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs_err::write(root.join(file), "").unwrap();
        }
        let listed = |rules: &str| {
            fs_err::write(root.join(".dockerignore"), rules).unwrap();
            let files = context_files(root, Utf8Path::new("Dockerfile")).unwrap();
            files.into_iter().map(String::from).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            listed("# all of it\n*.log\n!keep.log\n/node_modules/\n**/*.md\n"),
            ".dockerignore Dockerfile keep.log src/b.log src/main"
        );
        assert_eq!(listed("*\n!src\n"), ".dockerignore Dockerfile src/b.log src/main");
    }
}
