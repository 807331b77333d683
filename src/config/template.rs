//! Text with placeholders: `{experiment}`, `{eval}`, `{attempt}`, `{runs}`, `{timeout_sec}`, `{<label>}`. It does not
//! know which of them have a value.

mod path;
mod shell;

use std::collections::BTreeMap;
use std::fmt;

use super::CommandLine;
pub use path::{PathGlob, plain, stays_inside};

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
    /// Text for `sh -c`; values are inserted shell-quoted, to suit the quotes that the text puts around them.
    Shell(Template),
    /// A program and its arguments; values are inserted as they are.
    Argv(Vec<Template>),
}

/// The values of placeholders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values(pub BTreeMap<String, String>);

/// A placeholder that has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown placeholder `{{{0}}}`")]
pub struct UnknownPlaceholder(pub String);

/// Why no command can be made of a template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// A placeholder has no value.
    #[error(transparent)]
    Unknown(#[from] UnknownPlaceholder),
    /// A value would not be the same to the shell.
    #[error("cannot quote `{value}` for the `{{{placeholder}}}` {place}\n{instead}")]
    Unquotable {
        /// What it was to be inserted for.
        placeholder: String,
        /// The value.
        value: String,
        /// Where that stands, in words.
        place: &'static str,
        /// What to do instead.
        instead: &'static str,
    },
}

/// Braces that make no placeholder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// `{}`.
    #[error("`{{}}` names no placeholder\nwrite `{{{{}}}}` for two braces")]
    Empty,
    /// `{` without `}`.
    #[error("`{{` has no `}}`\nwrite `{{{{` for a brace")]
    Unclosed,
    /// `}` without `{`.
    #[error("`}}` has no `{{`\nwrite `}}}}` for a brace")]
    Stray,
    /// What is between the braces cannot be a name.
    #[error(
        "`{{{0}}}` is no placeholder: its name has to be letters, digits, `_`, `-` or `.`\nwrite `{{{{` and `}}}}` for braces"
    )]
    Name(String),
}

impl Template {
    /// Takes text apart.
    ///
    /// # Errors
    /// The first brace that is neither doubled nor part of a placeholder or of `${…}`.
    pub fn parse(source: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut rest = source;
        while let Some(at) = rest.find(['{', '}']) {
            text.push_str(&rest[..at]);
            let braces = &rest[at..];
            if text.ends_with('$') && braces.starts_with('{') {
                let end = end_of_group(braces).ok_or(TemplateError::Unclosed)?;
                text.push_str(&braces[..end]);
                rest = &braces[end..];
            } else if braces.starts_with("{{") || braces.starts_with("}}") {
                text.push_str(&braces[..1]);
                rest = &braces[2..];
            } else if braces.starts_with('}') {
                return Err(TemplateError::Stray);
            } else {
                let end = braces.find('}').ok_or(TemplateError::Unclosed)?;
                if !text.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut text)));
                }
                parts.push(Part::Placeholder(name(&braces[1..end])?.to_owned()));
                rest = &braces[end + 1..];
            }
        }
        text.push_str(rest);
        if !text.is_empty() {
            parts.push(Part::Text(text));
        }
        Ok(Self {
            source: source.to_owned(),
            parts,
        })
    }

    /// The text as it was written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The names of its placeholders, in order, as often as they stand there.
    pub fn placeholders(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Placeholder(name) => Some(name.as_str()),
        })
    }

    /// Inserts values as they are.
    ///
    /// # Errors
    /// The first placeholder that has no value.
    pub fn render(&self, values: &Values) -> Result<String, UnknownPlaceholder> {
        self.render_with(|name| values.0.get(name).map(String::as_str))
    }

    /// Inserts what `value` gives for each name.
    ///
    /// # Errors
    /// The first placeholder that it gives nothing for.
    pub fn render_with<'v>(
        &self,
        value: impl Fn(&str) -> Option<&'v str>,
    ) -> Result<String, UnknownPlaceholder> {
        let mut rendered = String::new();
        for part in &self.parts {
            rendered.push_str(match part {
                Part::Text(text) => text,
                Part::Placeholder(name) => value(name).ok_or_else(|| UnknownPlaceholder(name.clone()))?,
            });
        }
        Ok(rendered)
    }

    fn render_for_shell(&self, values: &Values) -> Result<String, CommandError> {
        let mut rendered = String::new();
        let mut quoting = shell::Quoting::default();
        let mut last = ("", "");
        let unquotable = |place: shell::Place, (placeholder, value): (&str, &str)| CommandError::Unquotable {
            placeholder: placeholder.to_owned(),
            value: value.to_owned(),
            place: place.name,
            instead: place.instead,
        };
        for part in &self.parts {
            match part {
                Part::Text(text) => {
                    quoting.read(text).map_err(|place| unquotable(place, last))?;
                    rendered.push_str(text);
                }
                Part::Placeholder(name) => {
                    last = (name, values.get(name)?);
                    let inserted = quoting.insert(last.1);
                    rendered.push_str(&inserted.map_err(|place| unquotable(place, last))?);
                }
            }
        }
        quoting.end().map_err(|place| unquotable(place, last))?;
        Ok(rendered)
    }
}

impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

/// The length of `{…}` at the start, inner groups included.
fn end_of_group(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return Some(at + 1),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn name(text: &str) -> Result<&str, TemplateError> {
    let starts = text.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    match text {
        "" => Err(TemplateError::Empty),
        _ if starts && text.chars().all(goes_on) => Ok(text),
        _ => Err(TemplateError::Name(text.to_owned())),
    }
}

impl CommandTemplate {
    fn templates(&self) -> &[Template] {
        match self {
            Self::Shell(template) => std::slice::from_ref(template),
            Self::Argv(templates) => templates,
        }
    }

    /// The names of its placeholders, in order, as often as they stand there.
    pub fn placeholders(&self) -> impl Iterator<Item = &str> {
        self.templates().iter().flat_map(Template::placeholders)
    }

    /// Whether a placeholder of that name stands in it.
    pub fn uses(&self, name: &str) -> bool {
        self.placeholders().any(|placeholder| placeholder == name)
    }

    /// Inserts values, quoted where a shell is going to read them.
    ///
    /// # Errors
    /// The first placeholder that has no value, or a value that no quotes keep as it is where it would stand.
    pub fn render(&self, values: &Values) -> Result<CommandLine, CommandError> {
        match self {
            Self::Shell(template) => template.render_for_shell(values).map(CommandLine::Shell),
            Self::Argv(templates) => {
                let words = templates.iter().map(|template| template.render(values));
                Ok(CommandLine::Argv(words.collect::<Result<_, _>>()?))
            }
        }
    }
}

impl Values {
    fn get(&self, name: &str) -> Result<&str, UnknownPlaceholder> {
        self.0
            .get(name)
            .map(String::as_str)
            .ok_or_else(|| UnknownPlaceholder(name.to_owned()))
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Values {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Self(
            pairs
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        CommandError, CommandLine, CommandTemplate, Template, TemplateError, UnknownPlaceholder, Values,
    };

    fn render(text: &str) -> String {
        let values = Values::from([("eval", "e 1"), ("timeout_sec", "720")]);
        Template::parse(text).unwrap().render(&values).unwrap()
    }

    fn shell(text: &str, value: &str) -> String {
        let command = CommandTemplate::Shell(Template::parse(text).unwrap());
        match command.render(&Values::from([("eval", value)])).unwrap() {
            CommandLine::Shell(text) => text,
            CommandLine::Argv(argv) => panic!("{argv:?}"),
        }
    }

    #[test]
    fn placeholders_are_replaced_and_doubled_braces_are_braces() {
        assert_eq!(render("a {eval}/{timeout_sec}"), "a e 1/720");
        assert_eq!(render("{{eval}} {{{eval}}}"), "{eval} {e 1}");
        assert_eq!(render("find -exec rm {{}} +"), "find -exec rm {} +");
        assert_eq!(render(""), "");
    }

    #[test]
    fn a_dollar_group_is_left_alone() {
        for text in [
            "${HOME}",
            "${{ github.sha }}",
            "${a:-${b}}",
            "x ${eval} y",
            "$HOME",
        ] {
            assert_eq!(render(text), text);
        }
        assert_eq!(render("${A}{eval}${B}"), "${A}e 1${B}");
    }

    #[test]
    fn braces_that_make_no_placeholder_are_refused() {
        let cases = [
            ("{}", TemplateError::Empty),
            ("a {", TemplateError::Unclosed),
            ("{eval", TemplateError::Unclosed),
            ("${HOME", TemplateError::Unclosed),
            ("a }", TemplateError::Stray),
            ("{eval}}", TemplateError::Stray),
            ("awk '{print $1}'", TemplateError::Name("print $1".to_owned())),
            ("{1..3}", TemplateError::Name("1..3".to_owned())),
            ("{a,b}", TemplateError::Name("a,b".to_owned())),
        ];
        for (text, error) in cases {
            assert_eq!(Template::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn an_error_says_how_a_brace_is_written() {
        assert_eq!(
            TemplateError::Name("a b".to_owned()).to_string(),
            "`{a b}` is no placeholder: its name has to be letters, digits, `_`, `-` or `.`\nwrite `{{` and `}}` for braces"
        );
        assert_eq!(
            TemplateError::Empty.to_string(),
            "`{}` names no placeholder\nwrite `{{}}` for two braces"
        );
    }

    #[test]
    fn a_placeholder_without_a_value_is_named() {
        let command = CommandTemplate::Argv(vec![Template::parse("x{model}").unwrap()]);
        assert!(command.uses("model") && !command.uses("eval"));
        assert_eq!(command.placeholders().collect::<Vec<_>>(), ["model"]);
        assert_eq!(
            command.render(&Values::default()),
            Err(CommandError::Unknown(UnknownPlaceholder("model".to_owned())))
        );
        assert_eq!(
            UnknownPlaceholder("model".to_owned()).to_string(),
            "unknown placeholder `{model}`"
        );
    }

    #[test]
    fn a_list_gets_values_as_they_are() {
        let command = CommandTemplate::Argv(vec![
            Template::parse("run").unwrap(),
            Template::parse("--eval={eval}").unwrap(),
        ]);
        assert_eq!(
            command.render(&Values::from([("eval", "a 'b'")])).unwrap(),
            CommandLine::Argv(vec!["run".to_owned(), "--eval=a 'b'".to_owned()])
        );
    }

    #[test]
    fn a_shell_command_gets_values_quoted_to_suit_the_quotes_around_them() {
        assert_eq!(shell("run {eval}", "plain-1"), "run plain-1");
        assert_eq!(shell("run {eval}", "a b"), "run 'a b'");
        assert_eq!(shell("run \"x {eval}\"", "a b"), "run \"x a b\"");
        assert_eq!(
            shell("run \"{eval}\"", "$(rm) `x` \"\\"),
            "run \"\\$(rm) \\`x\\` \\\"\\\\\""
        );
        assert_eq!(shell("run '{eval}'", "it's"), "run 'it'\\''s'");
        assert_eq!(shell("a \"$(b {eval})\" {eval}", "c d"), "a \"$(b 'c d')\" 'c d'");
        assert_eq!(shell("# don't\nrun {eval}", "a b"), "# don't\nrun 'a b'");
        assert_eq!(shell("echo a#b'{eval}'", "x y"), "echo a#b'x y'");
        assert_eq!(shell("echo \\\" {eval}", "x y"), "echo \\\" 'x y'");
        assert_eq!(shell("# {eval}\ntrue", "a\nrm"), "# a rm\ntrue");
    }

    #[test]
    fn a_shell_reads_back_the_very_value() {
        // The values and the quotes that meet in practice, through a real shell's eyes: shlex reads words as sh does.
        for value in [
            "", "a", "a b", "it's", "\"", "\\", "$x", "`x`", "*", "é", "a\nb", "!",
        ] {
            for text in ["{eval}", "\"{eval}\"", "'{eval}'"] {
                let words = shlex::split(&shell(text, value)).unwrap();
                assert_eq!(words, [value], "{text}");
            }
        }
    }

    proptest! {
        #[test]
        fn doubled_braces_give_back_any_text(text in "[^$]*") {
            let escaped = text.replace('{', "{{").replace('}', "}}");
            prop_assert_eq!(Template::parse(&escaped).unwrap().render(&Values::default()).unwrap(), text);
        }

        #[test]
        fn no_text_panics(text in "[{}$a'\"#\\\\ ]*") {
            if let Ok(template) = Template::parse(&text) {
                prop_assert_eq!(template.source(), &text);
                let _ = CommandTemplate::Shell(template).render(&Values::from([("a", "'x")]));
            }
        }
    }
}
