//! A page as one HTML file that asks for nothing: styles, script and data are in it, and its policy allows no more.
//! Whatever comes from outside is encoded by the template, or is data that the script shows as text.

mod svg;

use std::sync::LazyLock;

use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::escape::visible;
use super::view::page::Page;
use super::view::{Line, Span, Tone};

/// Longest name in the text of a page, in characters.
const NAME_LENGTH: usize = 200;
/// Longest excerpt, in characters.
const EXCERPT_LENGTH: usize = 600;

/// As the browser sees it: it hashes what stands between the tags with plain line ends.
static STYLE: LazyLock<String> =
    LazyLock::new(|| include_str!("../../templates/report/report.css").replace("\r\n", "\n"));
static SCRIPT: LazyLock<String> = LazyLock::new(|| {
    concat!(
        include_str!("../../templates/report/words.js"),
        include_str!("../../templates/report/detail.js"),
        include_str!("../../templates/report/filter.js"),
        include_str!("../../templates/report/grid.js"),
        include_str!("../../templates/report/list.js"),
        include_str!("../../templates/report/timeline.js"),
    )
    .replace("\r\n", "\n")
});

#[derive(Template)]
#[template(path = "report.html")]
struct Document<'a> {
    page: &'a Page,
    tone: &'static str,
    style: &'a str,
    script: &'a str,
    /// Hashes of both, for the policy.
    style_hash: String,
    script_hash: String,
    data: String,
}

pub(super) fn render(page: &Page) -> Result<String, HtmlError> {
    let document = Document {
        page,
        tone: match page.view.tone {
            Tone::Neutral => "neutral",
            Tone::Good => "good",
            Tone::Bad => "bad",
        },
        style: &STYLE,
        script: &SCRIPT,
        style_hash: hash(&STYLE),
        script_hash: hash(&SCRIPT),
        data: data(page)?,
    };
    Ok(document.render()?)
}

/// A page that cannot be made; no summary that was read gives one.
#[derive(Debug, thiserror::Error)]
pub enum HtmlError {
    /// The pairs have no form as JSON.
    #[error("cannot write the data of the page")]
    Data(#[from] serde_json::Error),
    /// The template failed.
    #[error("cannot write the page")]
    Template(#[from] askama::Error),
}

/// JSON in which nothing ends the element that it stands in.
fn data(page: &Page) -> Result<String, serde_json::Error> {
    let text = serde_json::to_string(&page.pairs)?;
    let mut data = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            // Only inside of strings, where JSON has another way to write them.
            '<' => data.push_str("\\u003c"),
            '>' => data.push_str("\\u003e"),
            '&' => data.push_str("\\u0026"),
            character => data.push(character),
        }
    }
    Ok(data)
}

fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

/// Our own words; a number stays with its unit.
fn own(text: &str) -> String {
    text.replace(" %", "\u{a0}%").replace(" pp", "\u{a0}pp")
}

fn name(text: &str) -> String {
    visible(text, NAME_LENGTH)
}

fn excerpt(text: &str) -> String {
    visible(text, EXCERPT_LENGTH)
}

/// Whether a page may be linked to.
fn is_page(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// A line as the title of a document, without markup.
pub(super) fn plain(line: &Line) -> String {
    let spans = line.0.iter().map(|span| match span {
        Span::Own(text) => text.clone(),
        Span::Name(text) | Span::Excerpt(text) => name(text),
        Span::Link { text, .. } => (*text).to_owned(),
    });
    spans.collect()
}
