//! Whether a sandbox's disk is full, by what a script in it says. Does not run the script.

/// A disk with fewer kilobytes than this is full: hardly a file can be written.
const FULL: u64 = 64;

/// A function of any shell that prints how many kilobytes are left on the fullest of the disks that paths are on; an
/// empty line where that is not known.
pub(super) const LEFT: &str = r#"
left() {
  df -Pk "$@" 2>/dev/null | {
    least=
    while read -r _ _ _ free _; do
      case $free in '' | *[!0-9]*) continue ;; esac
      if [ -z "$least" ] || [ "$free" -lt "$least" ]; then least=$free; fi
    done
    echo "$least"
  }
}
"#;

/// Whether hardly anything fits, in words, by what [`LEFT`] has printed. What is not known says nothing.
pub(super) fn full(left: &str) -> Option<String> {
    let left: u64 = left.trim().parse().ok()?;
    (left < FULL).then(|| format!("no space left on the disk of the sandbox ({left} KB)"))
}

#[cfg(all(test, unix))]
mod tests {
    use super::{LEFT, full};

    #[test]
    fn only_a_disk_that_is_known_to_be_full_is_full() {
        assert!(full("63\n").is_some());
        for left in ["64\n", "30000000\n", "\n", "", "-5\n", "0 x\n"] {
            assert_eq!(full(left), None, "{left:?}");
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the script is for any shell")]
    fn the_fullest_disk_counts_and_what_is_no_number_does_not() {
        let df = "df() { printf '%s\\n' 'Filesystem 1024-blocks Used Available Capacity Mounted on' \
            'overlay 9 1 8 1% /' 'tmpfs 9 9 0 1% /tmp' 'none 0 0 - - /x'; }";
        let script = format!("{df}\n{LEFT}\nleft . /tmp");
        let output = std::process::Command::new("sh").args(["-c", &script]).output();
        assert_eq!(output.unwrap().stdout, b"0\n");
    }
}
