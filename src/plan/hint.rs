//! Names what a reader may have meant.

/// How alike two names have to be for one to be taken for the other.
const ALIKE: f64 = 0.75;
/// How many names are listed where none is alike.
const LISTED: usize = 5;

/// A second line for a message: the nearest of `names`, else the first few; empty where there are none.
pub(super) fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let wanted = wanted.trim_matches('*');
    let names: std::collections::BTreeSet<&str> = names.into_iter().collect();
    let best = names
        .iter()
        .map(|name| (strsim::jaro_winkler(wanted, name), name))
        .max_by(|(a, _), (b, _)| a.total_cmp(b));
    match best {
        Some((likeness, name)) if likeness >= ALIKE => format!("\nthe nearest is `{name}`"),
        Some(_) => {
            let first: Vec<String> = names
                .iter()
                .take(LISTED)
                .map(|name| format!("`{name}`"))
                .collect();
            let more = if names.len() > LISTED { ", …" } else { "" };
            format!("\nthere is {}{more}", first.join(", "))
        }
        None => String::new(),
    }
}
