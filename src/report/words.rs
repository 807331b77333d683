//! Numbers in words, the same in every rendering: one decimal, a real minus sign, and never a rate out of nothing.

use console::measure_text_width;

use crate::model::comparison::ComparisonVerdict;
use crate::plan::amount;

/// Decimals of a small difference at most.
const MOST_DECIMALS: i32 = 6;

/// `207 of 237` as `87.3 %`; `None` of none. All and none are 100.0 and 0.0, and nothing else is.
pub fn rate(passed: usize, of: usize) -> Option<String> {
    let tenths = match (passed, of) {
        (_, 0) => return None,
        (passed, of) if passed == of => 1000.0,
        (0, _) => 0.0,
        (passed, of) => (passed as f64 / of as f64 * 1000.0).round().clamp(1.0, 999.0),
    };
    Some(format!("{:.1} %", tenths / 10.0))
}

/// A difference of rates, as a fraction, in percentage points: `−1.7 pp`. One that is too small for a decimal has more of
/// them: only no difference is `±0.0 pp`.
pub fn points(delta: f64) -> String {
    let rounded = |decimals: i32| (delta * 100.0 * 10_f64.powi(decimals)).round() / 10_f64.powi(decimals);
    // Of the rates of any suite there is, the smallest difference is far more than that.
    let decimals = (1..=MOST_DECIMALS)
        .find(|decimals| rounded(*decimals) != 0.0)
        .unwrap_or(1);
    signed(rounded(decimals), decimals as usize, "pp")
}

/// Seconds as `4.2s`, `42s`, `28m10s` or `2h05m`.
pub fn duration(seconds: f64) -> String {
    if seconds < 9.95 {
        return format!("{:.1}s", seconds.max(0.0));
    }
    // A number that is no time at all saturates here, and a report is no place to fail over it.
    let whole = seconds.round() as u64;
    let (minutes, seconds) = (whole / 60, whole % 60);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m{seconds:02}s"),
        (hours, minutes) => format!("{hours}h{minutes:02}m"),
    }
}

/// How much more or less than `before`, in whole per cent: `−39 %`.
pub(super) fn relative(before: f64, now: f64) -> Option<String> {
    let change = (now / before - 1.0) * 100.0;
    (before > 0.0 && change.is_finite()).then(|| signed(change.round(), 0, "%"))
}

/// `p = 0.45`.
pub(super) fn p_value(p: f64) -> String {
    let number = p_number(p);
    let equals = if number.starts_with('<') { "" } else { "= " };
    format!("p {equals}{number}")
}

/// A p-value alone: two decimals where it is large, the document's four where it is small.
pub(super) fn p_number(p: f64) -> String {
    match p {
        p if p < 0.0001 => "< 0.0001".to_owned(),
        p if p < 0.1 => ((p * 10_000.0).round() / 10_000.0).to_string(),
        p => format!("{p:.2}"),
    }
}

/// How long ago, in the largest unit that leaves a number to read.
pub(super) fn age(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        0..120 => format!("{whole} s old"),
        120..7200 => format!("{} min old", whole / 60),
        7200..172_800 => format!("{} h old", whole / 3600),
        _ => format!("{} days old", whole / 86_400),
    }
}

/// A count of tokens, with at most three digits before its unit.
pub(super) fn tokens(count: u64) -> String {
    let scaled = |unit: u64, name: &str| format!("{:.1} {name} tokens", count as f64 / unit as f64);
    match count {
        0..10_000 => format!("{count} tokens"),
        10_000..1_000_000 => scaled(1000, "k"),
        _ => scaled(1_000_000, "M"),
    }
}

/// A comparison's verdict, alone.
pub(super) fn verdict(verdict: ComparisonVerdict) -> &'static str {
    match verdict {
        ComparisonVerdict::Regressed => "regressed",
        ComparisonVerdict::Improved => "improved",
        ComparisonVerdict::Mixed => "mixed",
        ComparisonVerdict::WithinNoise => "within noise",
        ComparisonVerdict::Unchanged => "unchanged",
        ComparisonVerdict::Inconclusive => "inconclusive",
    }
}

/// Columns that a text takes on a terminal.
pub(super) fn width(text: &str) -> usize {
    measure_text_width(text)
}

/// The text with spaces after it, so many columns wide.
pub(super) fn padded(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(width(text));
    format!("{text}{}", " ".repeat(missing))
}

/// USD, with as many digits as a small amount needs to be more than nothing.
pub(super) fn dollars(usd: f64) -> String {
    match usd > 0.0 && usd < 0.005 {
        true => format!("${}", amount(usd)),
        false => format!("${usd:.2}"),
    }
}

/// `1 pair`, `2 pairs`.
pub(super) fn count(number: usize, singular: &str, plural: &str) -> String {
    format!("{number} {}", if number == 1 { singular } else { plural })
}

fn signed(value: f64, decimals: usize, unit: &str) -> String {
    let sign = match value {
        value if value < 0.0 => "−",
        value if value > 0.0 => "+",
        _ => "±",
    };
    format!("{sign}{:.decimals$} {unit}", value.abs())
}

#[cfg(test)]
mod tests {
    use super::{age, duration, p_value, points, rate, relative, tokens};

    #[test]
    fn rates_have_one_decimal_and_no_rate_comes_from_nothing() {
        assert_eq!(rate(207, 237).as_deref(), Some("87.3 %"));
        assert_eq!(rate(0, 0), None);
        assert_eq!(rate(9999, 10_000).as_deref(), Some("99.9 %"));
        assert_eq!(rate(1, 10_000).as_deref(), Some("0.1 %"));
        assert_eq!(rate(5, 5).as_deref(), Some("100.0 %"));
        assert_eq!(rate(0, 5).as_deref(), Some("0.0 %"));
    }

    #[test]
    fn differences_carry_their_sign() {
        assert_eq!(points(-0.0169), "−1.7 pp");
        assert_eq!(points(0.1 + 0.2), "+30.0 pp");
        assert_eq!(points(0.3 - (0.1 + 0.2)), "±0.0 pp");
        assert_eq!(points(4999.0 / 5000.0 - 1.0), "−0.02 pp");
        assert_eq!(points(1.0 / 100_000.0), "+0.001 pp");
        assert_eq!(relative(1690.0, 1032.0).as_deref(), Some("−39 %"));
        assert_eq!(relative(0.0, 1.0), None);
    }

    #[test]
    fn times_are_read_at_a_glance() {
        let times = [0.0, 4.21, 9.96, 59.6, 1690.0, 3599.7, 7500.0, f64::NAN].map(duration);
        assert_eq!(
            times,
            ["0.0s", "4.2s", "10s", "1m00s", "28m10s", "1h00m", "2h05m", "0s"]
        );
        let ages = [30.0, 600.0, 7300.0, 900_000.0].map(age);
        assert_eq!(ages, ["30 s old", "10 min old", "2 h old", "10 days old"]);
    }

    #[test]
    fn small_numbers_keep_what_matters() {
        assert_eq!(
            [0.4545, 0.0496, 0.00001, 1.0].map(p_value),
            ["p = 0.45", "p = 0.0496", "p < 0.0001", "p = 1.00"]
        );
        assert_eq!(
            [900, 12_345, 12_345_678].map(tokens),
            ["900 tokens", "12.3 k tokens", "12.3 M tokens"]
        );
    }
}
