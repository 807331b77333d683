//! Takes secrets out of text and bytes before they are written anywhere. Knows values, not where they came from.

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};

/// What stands in a secret's place.
pub const MASK: &str = "***";

/// A secret shorter than this would blot out ordinary text, so it is not redacted.
pub const MIN_SECRET: usize = 8;

/// Finds secrets as they are, and base64-, URL- and JSON-encoded, and as names stand in Markdown.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    finder: Option<AhoCorasick>,
    longest: usize,
}

impl Redactor {
    /// Watches for `secrets`; values shorter than [`MIN_SECRET`] bytes are passed over.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut forms: Vec<String> = secrets
            .into_iter()
            .filter(|secret| secret.len() >= MIN_SECRET)
            .flat_map(forms)
            .collect();
        forms.sort_unstable();
        forms.dedup();
        let longest = forms.iter().map(String::len).max().unwrap_or(0);
        let finder = (!forms.is_empty())
            .then(|| {
                AhoCorasick::builder()
                    .match_kind(MatchKind::LeftmostLongest)
                    .build(&forms)
            })
            // The automaton's only errors are sizes that environment variables cannot reach.
            .and_then(Result::ok);
        Self { finder, longest }
    }

    /// Text without secrets.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.finder {
            Some(finder) if finder.is_match(text) => {
                let mut clean = String::with_capacity(text.len());
                finder.replace_all_with(text, &mut clean, |_, _, to| {
                    to.push_str(MASK);
                    true
                });
                Cow::Owned(clean)
            }
            _ => Cow::Borrowed(text),
        }
    }

    /// Bytes without secrets.
    pub fn bytes<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        match &self.finder {
            Some(finder) if finder.is_match(bytes) => {
                let mut clean = Vec::with_capacity(bytes.len());
                finder.replace_all_with_bytes(bytes, &mut clean, |_, _, to| {
                    to.extend_from_slice(MASK.as_bytes());
                    true
                });
                Cow::Owned(clean)
            }
            _ => Cow::Borrowed(bytes),
        }
    }

    /// A stream that finds secrets across its pieces.
    pub fn stream(&self) -> RedactedStream<'_> {
        RedactedStream {
            redactor: self,
            held: Vec::new(),
        }
    }
}

/// Redacts bytes that arrive in pieces.
#[derive(Debug)]
pub struct RedactedStream<'r> {
    redactor: &'r Redactor,
    held: Vec<u8>,
}

impl RedactedStream<'_> {
    /// Takes a piece; gives what can be let go: all but an end that could be a secret's beginning.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        let Some(finder) = &self.redactor.finder else {
            return piece.to_vec();
        };
        self.held.extend_from_slice(piece);
        let keep_from = self.held.len().saturating_sub(self.redactor.longest - 1);
        let mut clean = Vec::with_capacity(self.held.len());
        let mut done = 0;
        for found in finder.find_iter(&self.held) {
            // A match that reaches the end may go on as a longer one in the next piece.
            if found.start() >= keep_from {
                break;
            }
            clean.extend_from_slice(&self.held[done..found.start()]);
            clean.extend_from_slice(MASK.as_bytes());
            done = found.end();
        }
        if done < keep_from {
            clean.extend_from_slice(&self.held[done..keep_from]);
            done = keep_from;
        }
        self.held.drain(..done);
        clean
    }

    /// Gives what was held back.
    pub fn finish(self) -> Vec<u8> {
        self.redactor.bytes(&self.held).into_owned()
    }
}

/// A secret in every form in which it is looked for.
fn forms(secret: &str) -> Vec<String> {
    let json = in_json(secret);
    let mut forms = vec![secret.to_owned(), in_entities(secret), in_json(&json), json];
    forms.extend(
        URL_SETS
            .iter()
            .map(|kept| utf8_percent_encode(secret, kept).to_string()),
    );
    // A form's field has `+` for a space.
    forms.extend(
        FORM_SETS
            .iter()
            .map(|kept| utf8_percent_encode(secret, kept).to_string().replace("%20", "+")),
    );
    forms.extend(in_base64(secret.as_bytes()));
    // A secret of several lines is often printed line by line.
    forms.extend(
        secret
            .lines()
            .map(str::trim)
            .filter(|line| line.len() >= MIN_SECRET)
            .map(str::to_owned),
    );
    forms
}

/// What URL encoders leave alone besides letters and digits differs: nothing; RFC 3986's unreserved characters, with or
/// without the slash; those of `encodeURIComponent`; those of `encodeURI`.
const URL_SETS: [&AsciiSet; 5] = [NON_ALPHANUMERIC, UNRESERVED, PATH, COMPONENT, URI];
const FORM_SETS: [&AsciiSet; 2] = [UNRESERVED, FORM];
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
const PATH: &AsciiSet = &UNRESERVED.remove(b'/');
const COMPONENT: &AsciiSet = &UNRESERVED
    .remove(b'!')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');
const URI: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');
const FORM: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'*');

/// With every ASCII character that is neither letter nor digit as a numeric entity.
fn in_entities(text: &str) -> String {
    let is_plain = |character: char| !character.is_ascii() || character.is_ascii_alphanumeric();
    let encoded = text.chars().map(|character| match is_plain(character) {
        true => character.to_string(),
        false => format!("&#{};", u32::from(character)),
    });
    encoded.collect()
}

/// The text between the quotes.
fn in_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// The characters that encode nothing but the secret, wherever in the encoded bytes it begins: a `user:secret` is
/// encoded as a whole. Padding, and characters shared with a neighbour, may stay.
fn in_base64(secret: &[u8]) -> Vec<String> {
    let mut forms = Vec::new();
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(secret);
        // Three bytes are four characters, so that many of them are the secret's alone.
        let (from, to) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
        for encoded in [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
            forms.push(encoded[from..to].to_owned());
        }
    }
    forms
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, proptest};

    use super::{MASK, Redactor};

    const SECRET: &str = "s3cr3t/\"value\"+with=signs";

    #[test]
    fn every_form_of_a_secret_is_masked() {
        let redactor = Redactor::new([SECRET]);
        for form in super::forms(SECRET) {
            // A form may begin or end inside of a longer one.
            assert!(!redactor.text(&format!("a {form} b")).contains(&form));
        }
        assert_eq!(redactor.text("nothing here"), "nothing here");
    }

    #[test]
    fn a_secret_is_masked_as_programs_print_it() {
        use base64::Engine as _;
        use base64::engine::general_purpose::STANDARD;

        let secret = "s3cr3t-/\"va lue\"+'(w_i.t~h)=$igns!*";
        let redactor = Redactor::new([secret]);
        let printed = [
            // Python's quote, with the slash kept and without, and quote_plus.
            "s3cr3t-/%22va%20lue%22%2B%27%28w_i.t~h%29%3D%24igns%21%2A",
            "s3cr3t-%2F%22va%20lue%22%2B%27%28w_i.t~h%29%3D%24igns%21%2A",
            "s3cr3t-%2F%22va+lue%22%2B%27%28w_i.t~h%29%3D%24igns%21%2A",
            // JavaScript's encodeURIComponent, encodeURI and URLSearchParams.
            "s3cr3t-%2F%22va%20lue%22%2B'(w_i.t~h)%3D%24igns!*",
            "s3cr3t-/%22va%20lue%22+'(w_i.t~h)=$igns!*",
            "s3cr3t-%2F%22va+lue%22%2B%27%28w_i.t%7Eh%29%3D%24igns%21*",
            // JSON inside of JSON.
            r#"s3cr3t-/\\\"va lue\\\"+'(w_i.t~h)=$igns!*"#,
            // A name in a comment of ours.
            "s3cr3t&#45;&#47;&#34;va&#32;lue&#34;&#43;&#39;&#40;w&#95;i&#46;t&#126;h&#41;&#61;&#36;igns&#33;&#42;",
        ];
        for form in printed {
            assert_eq!(redactor.text(form), MASK);
        }
        for around in ["", "u", "us", "user:"] {
            let header = STANDARD.encode(format!("{around}{secret}{around}"));
            let clean = redactor.text(&header);
            assert!(clean.contains(MASK), "{header} became {clean}");
        }
    }

    #[test]
    fn short_values_are_left_alone() {
        assert_eq!(Redactor::new(["1", ""]).text("1 of 1"), "1 of 1");
    }

    proptest! {
        #[test]
        fn a_secret_split_anywhere_is_still_found(cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..6), around in "[a-z3/\"]{0,40}".prop_map(|text| text)) {
            let redactor = Redactor::new([SECRET, "s3cr3t/\"v"]);
            let whole = format!("{around}{SECRET}{around}{SECRET}");
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len())).collect();
            cuts.extend([0, whole.len()]);
            cuts.sort_unstable();
            let mut stream = redactor.stream();
            let mut clean = Vec::new();
            for ends in cuts.windows(2) {
                clean.extend(stream.push(&whole.as_bytes()[ends[0]..ends[1]]));
            }
            clean.extend(stream.finish());
            assert_eq!(String::from_utf8(clean).unwrap(), redactor.text(&whole));
        }
    }
}
