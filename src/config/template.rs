//! Text with placeholders: `{experiment}`, `{eval}`, `{attempt}`, `{runs}`, `{timeout_sec}`, `{<label>}`.

/// Placeholders that every attempt has a value for; any other name is a label's.
pub const BUILT_IN_PLACEHOLDERS: [&str; 5] = ["experiment", "eval", "attempt", "runs", "timeout_sec"];

/// Text with placeholders, taken apart. `{{` is a brace, `}}` too, and `${…}` is left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    source: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Placeholder(String),
}

/// A command with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandTemplate {
    /// Text for `sh -c`; values are inserted shell-quoted.
    Shell(Template),
    /// A program and its arguments; values are inserted as they are.
    Argv(Vec<Template>),
}

/// The values of placeholders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values(pub std::collections::BTreeMap<String, String>);

/// A placeholder that has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown placeholder `{{{0}}}`")]
pub struct UnknownPlaceholder(pub String);

/// Text that is no template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a placeholder has no end in `{0}`")]
pub struct InvalidTemplate(String);

impl Template {
    /// Takes the text apart.
    ///
    /// # Errors
    /// A brace that is not closed.
    pub fn parse(text: &str) -> Result<Self, InvalidTemplate> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, end) = after
                .split_once('}')
                .ok_or_else(|| InvalidTemplate(text.to_owned()))?;
            parts.push(Part::Text(before.to_owned()));
            parts.push(Part::Placeholder(name.to_owned()));
            rest = end;
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Self {
            source: text.to_owned(),
            parts,
        })
    }

    /// The text as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The names of its placeholders.
    pub fn placeholders(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Placeholder(name) => Some(name.as_str()),
        })
    }

    /// The text with values in place of placeholders.
    ///
    /// # Errors
    /// The first placeholder without a value.
    pub fn render(&self, values: &Values) -> Result<String, UnknownPlaceholder> {
        let mut text = String::new();
        for part in &self.parts {
            text.push_str(match part {
                Part::Text(part) => part,
                Part::Placeholder(name) => values
                    .0
                    .get(name)
                    .ok_or_else(|| UnknownPlaceholder(name.clone()))?,
            });
        }
        Ok(text)
    }
}
