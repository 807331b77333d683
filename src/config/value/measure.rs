//! Durations, sizes, shares and dates.

use std::time::Duration;

use super::{FromText, Refusal, in_file};

/// A duration above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) struct Span(pub(in crate::config) Duration);

/// A duration above zero, written as whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) struct Seconds(pub(in crate::config) Duration);

/// A number of bytes above zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) struct Size(pub(in crate::config) u64);

/// A share, as a fraction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::config) struct Percent(pub(in crate::config) f64);

/// Percentage points, as a fraction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::config) struct Points(pub(in crate::config) f64);

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config) struct Day(pub(in crate::config) jiff::civil::Date);

/// Longer than any run: what is above it is a slip.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 60 * 60);
const LARGEST: u64 = bytesize::TB;

impl FromText for Span {
    const EXPECTED: &'static str = "a duration such as `12m`, `90s` or `1h30m`";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        let mut total = Duration::ZERO;
        let mut rest = text;
        let mut units = ["d", "h", "m", "s", "ms"].into_iter();
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, after) = rest.split_at(digits);
            let letters = after.bytes().take_while(u8::is_ascii_alphabetic).count();
            let (unit, after) = after.split_at(letters);
            // Units come from large to small, each once, so that `1h30m` has one reading and one spelling.
            if number.is_empty() || !units.any(|known| known == unit) {
                return Err(Refusal::Unlike);
            }
            let milliseconds = match unit {
                "d" => 86_400_000,
                "h" => 3_600_000,
                "m" => 60_000,
                "s" => 1_000,
                _ => 1,
            };
            let part = number
                .parse::<u64>()
                .ok()
                .and_then(|number| number.checked_mul(milliseconds))
                .map(Duration::from_millis);
            total = part
                .and_then(|part| total.checked_add(part))
                .ok_or_else(too_long)?;
            rest = after;
        }
        match total {
            _ if text.is_empty() => Err(Refusal::Unlike),
            Duration::ZERO => Err(Refusal::expected("a duration above zero")),
            _ if total > LONGEST => Err(too_long()),
            _ => Ok(Self(total)),
        }
    }
}

fn too_long() -> Refusal {
    Refusal::expected("a duration of at most 30 days")
}

impl FromText for Seconds {
    const EXPECTED: &'static str = "a whole number of seconds from 1 to 2592000 (30 days)";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        let digits = text.chars().all(|c| c.is_ascii_digit());
        let seconds = if digits { text.parse().ok() } else { None };
        match seconds.map(Duration::from_secs) {
            Some(span) if span > Duration::ZERO && span <= LONGEST => Ok(Self(span)),
            _ => Err(Refusal::Unlike),
        }
    }
}

impl FromText for Size {
    const EXPECTED: &'static str = "a size such as `200MB`, `1.5GB` or `64MiB`";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        let (number, unit) = text.split_at(
            text.find(|c: char| !c.is_ascii_digit() && c != '.')
                .unwrap_or(text.len()),
        );
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        let known = ["b", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib"];
        let unit = unit.trim_start_matches(' ').to_ascii_lowercase();
        if whole.is_empty() || decimals.is_empty() || !known.contains(&unit.as_str()) {
            return Err(Refusal::Unlike);
        }
        match text.parse::<bytesize::ByteSize>() {
            Ok(size) if size.0 == 0 => Err(Refusal::expected("a size above zero")),
            Ok(size) if size.0 > LARGEST => Err(Refusal::expected("a size of at most 1 TB")),
            Ok(size) => Ok(Self(size.0)),
            Err(_) => Err(Refusal::Unlike),
        }
    }
}

impl FromText for Percent {
    const EXPECTED: &'static str = "a share from `0%` to `100%`, with at most two decimals";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        hundredths(text, "%").map(Self).ok_or(Refusal::Unlike)
    }
}

impl FromText for Points {
    const EXPECTED: &'static str = "percentage points from `0pp` to `100pp`, with at most two decimals";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        hundredths(text, "pp").map(Self).ok_or(Refusal::Unlike)
    }
}

/// Reads `12.5` before `suffix` as 0.125; nothing is rounded.
pub(super) fn hundredths(text: &str, suffix: &str) -> Option<f64> {
    let number = text.strip_suffix(suffix)?.trim_end_matches(' ');
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |text: &str, most: usize| {
        (1..=most).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
    };
    if !digits(whole, 3) || !digits(decimals, 2) {
        return None;
    }
    let hundredths: u32 = format!("{whole}{decimals:0<2}").parse().ok()?;
    (hundredths <= 10_000).then(|| f64::from(hundredths) / 10_000.0)
}

impl FromText for Day {
    const EXPECTED: &'static str = "a date such as `2027-01-31`";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        text.parse().map(Self).map_err(|_| Refusal::Unlike)
    }
}

in_file!(Span, {
    "type": "string",
    "description": "A duration: `90s`, `12m`, `1h30m`.",
    "pattern": "^(?=.)([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$"
});
in_file!(Size, {
    "type": "string",
    "description": "A size: `200MB`, `1.5GB`, `64MiB`.",
    "pattern": "^[0-9]+(\\.[0-9]+)? *([kKmMgGtT][iI]?)?[bB]$"
});
in_file!(Percent, { "type": "string", "pattern": "^[0-9]{1,3}(\\.[0-9]{1,2})? *%$" });
in_file!(Points, { "type": "string", "pattern": "^[0-9]{1,3}(\\.[0-9]{1,2})? *pp$" });
in_file!(Day, { "type": "string", "format": "date" });
