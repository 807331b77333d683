//! The page of a run, in a real browser: filters, sorting, keyboard, accessibility, weight.

use std::process::Command;

use crate::support::{evalwave, repository};

/// Where `.ci/run` says that Chromium is.
const CHROMIUM: &str = "EVALWAVE_TEST_CHROMIUM";

#[test]
fn a_browser_shows_the_page_without_a_word_and_a_reader_can_use_it() {
    let Some(chromium) = std::env::var_os(CHROMIUM) else {
        eprintln!("skipped: {CHROMIUM} does not say where Chromium is");
        return;
    };
    let directory = repository().join("tests/browser");
    let ended = Command::new("node")
        .args(["--test", "--test-reporter=tap", "report.test.mjs"])
        .current_dir(&directory)
        .env(CHROMIUM, chromium)
        .env("EVALWAVE", evalwave(&directory).get_program())
        .output()
        .expect("node runs; `npm ci` has been run in tests/browser");
    let told = String::from_utf8_lossy(&ended.stdout);
    assert!(
        ended.status.success(),
        "{told}{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    assert!(told.contains("# fail 0"), "{told}");
    eprintln!("{told}");
}
