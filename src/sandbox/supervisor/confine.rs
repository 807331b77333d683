//! Confines a thread, and what it starts, by Landlock: as far as the kernel goes, and saying how far that was.

use std::io;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, LandlockStatus, PathBeneath, PathFd, PathFdError, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};

use super::Confinement;

/// The newest interface whose rights are asked for; an older kernel gives what it has.
const NEWEST: ABI = ABI::V7;

/// Confines the calling thread for good. Returns what was achieved, in words.
pub(super) fn this_thread(confinement: &Confinement) -> io::Result<Vec<String>> {
    let everything = AccessFs::from_all(NEWEST);
    let mut ruleset = Ruleset::default().handle_access(everything).map_err(refused)?;
    if confinement.no_network {
        ruleset = ruleset
            .handle_access(AccessNet::from_all(NEWEST))
            .map_err(refused)?;
    }
    if confinement.own_signals {
        ruleset = ruleset.scope(Scope::Signal).map_err(refused)?;
    }
    let mut ruleset = ruleset.create().map_err(refused)?;

    let system = PathFd::new("/").map_err(refused)?;
    ruleset = ruleset
        .add_rule(PathBeneath::new(system, AccessFs::from_read(NEWEST)))
        .map_err(refused)?;
    for directory in &confinement.writable {
        let directory = PathFd::new(directory).map_err(refused)?;
        ruleset = ruleset
            .add_rule(PathBeneath::new(directory, everything))
            .map_err(refused)?;
    }
    for directory in ["/tmp", "/dev"] {
        // A minimal system may lack either.
        match PathFd::new(directory) {
            Ok(directory) => {
                ruleset = ruleset
                    .add_rule(PathBeneath::new(directory, everything))
                    .map_err(refused)?;
            }
            Err(PathFdError::OpenCall { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(refused(error)),
        }
    }
    let status = ruleset.restrict_self().map_err(refused)?;
    let abi = match status.landlock {
        LandlockStatus::Available { effective_abi, .. } if status.ruleset != RulesetStatus::NotEnforced => {
            effective_abi
        }
        _ => ABI::Unsupported,
    };
    let mut words = words(confinement, abi, rustix::process::geteuid().is_root());
    if status.no_new_privs {
        words.push("no new privileges: `sudo` does not work".to_owned());
    }
    Ok(words)
}

fn words(confinement: &Confinement, abi: ABI, root: bool) -> Vec<String> {
    let mut words = Vec::new();
    if abi == ABI::Unsupported {
        words.push("not confined: the kernel offers no Landlock".to_owned());
    } else {
        words.push("Landlock: writes only to its own files, /tmp and /dev".to_owned());
        // The kernel lets root look into any process.
        if !root {
            words.push("Landlock: other attempts and evalwave itself cannot be looked into".to_owned());
        }
        if confinement.own_signals && abi >= ABI::V6 {
            words.push("Landlock: signals reach its own processes only".to_owned());
        }
    }
    if confinement.no_network {
        words.push(match abi >= ABI::V4 {
            true => "Landlock: no TCP".to_owned(),
            false => "`network: none` is not kept: the kernel cannot refuse connections".to_owned(),
        });
    }
    words
}

fn refused(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::other(format!("cannot confine the command: {error}"))
}

#[cfg(test)]
mod tests {
    use landlock::ABI;

    use super::{Confinement, words};

    #[test]
    fn what_the_kernel_does_not_offer_is_said() {
        let confinement = Confinement {
            writable: Vec::new(),
            own_signals: true,
            no_network: true,
        };
        assert_eq!(
            words(&confinement, ABI::Unsupported, false),
            [
                "not confined: the kernel offers no Landlock",
                "`network: none` is not kept: the kernel cannot refuse connections",
            ]
        );
        let old = words(&confinement, ABI::V4, false);
        assert!(old.contains(&"Landlock: no TCP".to_owned()), "{old:?}");
        assert!(!old.iter().any(|word| word.contains("signals")), "{old:?}");
        assert!(
            words(&confinement, ABI::V6, false)
                .iter()
                .any(|word| word.contains("signals"))
        );
    }

    #[test]
    fn root_is_not_promised_more_than_the_kernel_keeps() {
        let confinement = Confinement {
            writable: Vec::new(),
            own_signals: false,
            no_network: false,
        };
        assert_eq!(
            words(&confinement, ABI::V7, true),
            ["Landlock: writes only to its own files, /tmp and /dev"]
        );
    }
}
