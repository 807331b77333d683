//! Templates that name paths in a workspace: where the fixed part ends and a glob begins, and values as file names.

use std::time::Duration;

use camino::Utf8PathBuf;

use super::{Part, Template, UnknownPlaceholder, Values};
use crate::glob::pattern_start;
use crate::model::{AttemptId, PlannedPair, file_name};

/// A path, or a glob over paths, with its placeholders filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathGlob {
    /// The leading directories that are no pattern; the whole path where nothing is one.
    pub base: Utf8PathBuf,
    /// The glob; whatever came from a value matches itself alone.
    pub pattern: String,
    /// As a reader is told: with its values, not escaped.
    pub shown: String,
}

/// Whether a path is neither absolute, on any system, nor leads above where it begins.
pub fn stays_inside(path: &str) -> bool {
    let drive = path.as_bytes().get(1) == Some(&b':') && path.starts_with(|c: char| c.is_ascii_alphabetic());
    let parts = ['/', '\\'];
    !path.trim().is_empty()
        && !path.contains('\0')
        && !path.starts_with(parts)
        && !drive
        && path.split(parts).all(|part| part != "..")
}

/// A path as it is compared with others: without `.`, and with one `/` between its parts.
pub fn plain(path: &str) -> String {
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    parts.collect::<Vec<&str>>().join("/")
}

impl Template {
    /// Fills in a path that may be a glob. Only what the template itself says is a pattern, never a value.
    ///
    /// # Errors
    /// The first placeholder that has no value.
    pub fn render_path(&self, values: &Values) -> Result<PathGlob, UnknownPlaceholder> {
        let shown = self.render(values)?;
        let mut pattern = String::new();
        let mut fixed = String::new();
        let mut in_fixed_part = true;
        for part in &self.parts {
            match part {
                Part::Placeholder(name) => {
                    let value = values.get(name)?;
                    pattern.push_str(&globset::escape(value));
                    if in_fixed_part {
                        fixed.push_str(value);
                    }
                }
                Part::Text(text) => {
                    pattern.push_str(text);
                    if in_fixed_part {
                        let end = pattern_start(text);
                        fixed.push_str(&text[..end.unwrap_or(text.len())]);
                        in_fixed_part = end.is_none();
                    }
                }
            }
        }
        let base = if in_fixed_part {
            fixed.as_str()
        } else {
            // The last part goes on as a pattern.
            fixed.rsplit_once('/').map_or("", |(directories, _)| directories)
        };
        Ok(PathGlob {
            base: Utf8PathBuf::from(plain(base)),
            pattern: plain(&pattern),
            shown,
        })
    }
}

impl Values {
    /// The values of an attempt: who it is, and its pair's labels that have one value. Labels never take the place of
    /// what is built in.
    pub fn of_attempt(pair: &PlannedPair, attempt: &AttemptId, runs: u32, timeout: Duration) -> Self {
        let labels = pair
            .labels
            .0
            .iter()
            .filter_map(|(name, values)| match values.as_slice() {
                [value] => Some((name.clone(), value.clone())),
                _ => None,
            });
        let mut values = Self(labels.collect());
        let built_in = [
            ("experiment", attempt.pair.experiment.to_string()),
            ("eval", attempt.pair.eval.to_string()),
            ("attempt", attempt.index.to_string()),
            ("runs", runs.to_string()),
            ("timeout_sec", whole_seconds(timeout).to_string()),
        ];
        values
            .0
            .extend(built_in.map(|(name, value)| (name.to_owned(), value)));
        values
    }

    /// The same, safe as file names.
    pub fn as_file_names(&self) -> Self {
        Self(
            self.0
                .iter()
                .map(|(name, value)| (name.clone(), file_name(value)))
                .collect(),
        )
    }
}

/// Part of a second is a whole one: a harness must not be told less time than it has.
fn whole_seconds(duration: Duration) -> u64 {
    duration.as_secs() + u64::from(duration.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::{Template, Values};

    fn path(template: &str) -> (String, String) {
        let values = [("eval", "a[1]/*"), ("experiment", "x")];
        let values = Values(
            values
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()))
                .collect(),
        );
        let path = Template::parse(template).unwrap().render_path(&values).unwrap();
        (path.base.into_string(), path.pattern)
    }

    #[test]
    fn a_value_is_never_a_pattern() {
        let (base, pattern) = path("results/{experiment}/{eval}.json");
        assert_eq!(base, "results/x/a[1]/*.json");
        assert!(
            globset::Glob::new(&pattern)
                .unwrap()
                .compile_matcher()
                .is_match("results/x/a[1]/*.json")
        );
        assert!(
            !globset::Glob::new(&pattern)
                .unwrap()
                .compile_matcher()
                .is_match("results/x/a1/b.json")
        );
    }

    #[test]
    fn the_fixed_part_ends_before_the_first_pattern() {
        assert_eq!(path("runs/{experiment}-*/result.json").0, "runs");
        assert_eq!(path("*/result.json").0, "");
        assert_eq!(path("runs/{experiment}/*/result.json").0, "runs/x");
    }

    #[test]
    fn a_path_that_begins_with_a_dot_is_the_one_without() {
        let of = |base: &str, pattern: &str| (base.to_owned(), pattern.to_owned());
        assert_eq!(path("./result.json"), of("result.json", "result.json"));
        assert_eq!(path("./out//./{experiment}/*.json"), of("out/x", "out/x/*.json"));
        assert_eq!(path("./*.json"), of("", "*.json"));
        assert_eq!(path("."), of("", ""));
    }
}
