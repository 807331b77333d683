//! Bind mounts of containers.

use super::{FromText, Refusal, in_file};

/// `SOURCE:TARGET` or `SOURCE:TARGET:ro`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::config) struct MountText {
    pub(in crate::config) source: String,
    pub(in crate::config) target: String,
    pub(in crate::config) read_only: bool,
}

impl FromText for MountText {
    const EXPECTED: &'static str =
        "a mount as `SOURCE:TARGET` or `SOURCE:TARGET:ro`, with an absolute target";

    fn from_text(text: &str) -> Result<Self, Refusal> {
        let parts: Vec<&str> = text.split(':').collect();
        let (source, target, read_only) = match parts[..] {
            [source, target] | [source, target, "rw"] => (source, target, false),
            [source, target, "ro"] => (source, target, true),
            _ => return Err(Refusal::Unlike),
        };
        if source.trim().is_empty() || !target.starts_with('/') || text.contains(char::is_control) {
            return Err(Refusal::Unlike);
        }
        Ok(Self {
            source: source.to_owned(),
            target: target.to_owned(),
            read_only,
        })
    }
}

in_file!(MountText, { "type": "string", "pattern": "^[^:]+:/[^:]*(:r[ow])?$" });

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::MountText;

    #[test]
    fn a_mount_has_a_source_an_absolute_target_and_maybe_a_mode() {
        let mount = read::<MountText>("cache:/root/.cache:ro").unwrap();
        assert_eq!(
            (mount.source.as_str(), mount.target.as_str(), mount.read_only),
            ("cache", "/root/.cache", true)
        );
        assert!(!read::<MountText>("./a b:/x").unwrap().read_only);
        for wrong in ["", "/x", ":/x", "a:x", "a:/x:rx", "a:/x:ro:z", "a\n:/x"] {
            assert!(read::<MountText>(wrong).is_err(), "{wrong:?}");
        }
    }
}
