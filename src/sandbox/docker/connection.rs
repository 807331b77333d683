//! How an engine is reached, and what its errors mean.

use std::io;

use bollard::errors::Error;
use bollard::{API_DEFAULT_VERSION, Docker};
use camino::{Utf8Path, Utf8PathBuf};

use crate::model::ErrorClass;
use crate::sandbox::SandboxError;

/// Where an engine is, where nothing is said.
#[cfg(unix)]
const DEFAULT_HOST: &str = "unix:///var/run/docker.sock";
#[cfg(windows)]
const DEFAULT_HOST: &str = "npipe:////./pipe/docker_engine";

/// Seconds until an answer begins. The phases of an attempt have limits of their own, which are shorter.
const PATIENCE: u64 = 3600;

/// An engine, as the environment tells of it.
#[derive(Clone, Debug, Default)]
pub struct DockerEngine {
    /// `DOCKER_HOST`; `None` is where an engine is by default.
    pub host: Option<String>,
    /// Whether a connection over TCP is a secure one: `DOCKER_TLS_VERIFY`.
    pub tls: bool,
    /// Where the keys for that are: `DOCKER_CERT_PATH`, or the directory of docker's own configuration.
    pub certificates: Option<Utf8PathBuf>,
    /// The directory of docker's own configuration: `DOCKER_CONFIG`, or `.docker` in the home.
    pub configuration: Option<Utf8PathBuf>,
    /// Where programs are found that keep credentials.
    pub path: Option<String>,
}

impl DockerEngine {
    /// Its address.
    pub fn host(&self) -> &str {
        self.host.as_deref().unwrap_or(DEFAULT_HOST)
    }

    /// Whether it is on this machine.
    pub fn is_here(&self) -> bool {
        self.host().starts_with("unix://") || self.host().starts_with("npipe://")
    }

    /// Whether it is spoken to over TLS.
    fn is_secure(&self) -> bool {
        let scheme = self.host().split_once("://").map(|(scheme, _)| scheme);
        match scheme {
            Some("https") => true,
            Some("tcp") => self.tls,
            _ => false,
        }
    }

    /// A connection. Nothing is asked of the engine yet, but that it is there.
    pub(super) fn connect(&self) -> Result<Docker, SandboxError> {
        let host = self.host();
        let connected = match host.split_once("://").map(|(scheme, _)| scheme) {
            #[cfg(unix)]
            Some("unix") => Docker::connect_with_unix(host, PATIENCE, API_DEFAULT_VERSION),
            #[cfg(windows)]
            Some("npipe") => Docker::connect_with_named_pipe(host, PATIENCE, API_DEFAULT_VERSION),
            Some("tcp" | "http") if !self.tls => {
                Docker::connect_with_http(host, PATIENCE, API_DEFAULT_VERSION)
            }
            Some("tcp" | "https") => {
                let directory = self.certificates.as_deref().unwrap_or(Utf8Path::new(""));
                let file = |name: &str| directory.join(name).into_std_path_buf();
                let (key, cert, ca) = (file("key.pem"), file("cert.pem"), file("ca.pem"));
                Docker::connect_with_ssl(host, &key, &cert, &ca, PATIENCE, API_DEFAULT_VERSION)
            }
            _ => {
                return Err(SandboxError::new(format!(
                    "cannot use the Docker engine at `{host}`: expected an address that begins with `unix://`, `tcp://` or `npipe://`\n\
                     change `DOCKER_HOST`"
                )));
            }
        };
        connected.map_err(|error| self.unreachable(error))
    }

    /// Lets a connection, and all that were cloned from it, speak a version which the engine knows.
    pub(super) async fn negotiate(&self, docker: &Docker) -> Result<(), SandboxError> {
        let negotiated = docker.clone().negotiate_version().await;
        negotiated.map(drop).map_err(|error| self.unreachable(error))
    }

    fn unreachable(&self, error: Error) -> SandboxError {
        let (host, said) = (self.host(), root_cause(&error));
        let from = match &self.host {
            Some(_) => "`DOCKER_HOST` says so",
            None => "`DOCKER_HOST` is not set",
        };
        let (what, to_do) = match io_kind(&error) {
            Some(io::ErrorKind::PermissionDenied) => (
                "this user may not use",
                "run as a user of the group `docker`, or set `DOCKER_HOST` to an engine of your own",
            ),
            Some(io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => (
                "nothing answers as",
                "start it, or set `DOCKER_HOST` to where one is; `sandbox.kind: local` needs none",
            ),
            _ if self.is_secure() => (
                "cannot speak to",
                "see that it runs, and that `DOCKER_CERT_PATH` has the `ca.pem`, `cert.pem` and `key.pem` that are for it",
            ),
            _ if said.contains("HTTPS server") => (
                "cannot speak to",
                "it speaks to nobody without TLS: set `DOCKER_TLS_VERIFY` to 1, and `DOCKER_CERT_PATH` to the directory of its certificates",
            ),
            _ => (
                "cannot speak to",
                "see that it runs, and that `DOCKER_HOST` names it",
            ),
        };
        SandboxError::new(format!(
            "{what} the Docker engine at `{host}` ({from}): {said}\n{to_do}"
        ))
    }
}

/// What the engine could not do. A full disk, and a container that is not there any more, are told apart.
pub(super) fn failed(message: impl Into<String>, error: Error) -> SandboxError {
    let text = root_cause(&error);
    let class = match &error {
        _ if text.contains("no space left on device") => Some(ErrorClass::OutOfDisk),
        Error::DockerResponseServerError {
            status_code: 404 | 409,
            message,
        } if message.contains("No such container") || message.contains("is not running") => {
            Some(ErrorClass::SandboxLost)
        }
        Error::DockerResponseServerError { .. } => None,
        _ if io_kind(&error).is_some() => Some(ErrorClass::SandboxLost),
        _ => None,
    };
    let mut message: String = message.into();
    if let Some(to_do) = to_do(&text) {
        message.push('\n');
        message.push_str(to_do);
    }
    SandboxError {
        class,
        message,
        source: Some(io::Error::other(text).into()),
    }
}

/// What to do about something in the configuration that the engine does not take, told by the engine's words.
fn to_do(said: &str) -> Option<&'static str> {
    let any = |parts: &[&str]| parts.iter().any(|part| said.contains(part));
    if said.contains("executable file not found") {
        Some("the image needs `sh`, `sleep` and `date`")
    } else if any(&[
        "unable to find user",
        "unable to find group",
        "no matching entries in passwd file",
    ]) {
        Some("set `sandbox.user` to a user that the image has, or to a number")
    } else if said.contains("network") && said.contains("not found") {
        Some("set `sandbox.network` to `bridge`, to `none`, or to a network of `docker network ls`")
    } else {
        None
    }
}

/// Whether the engine says that there is no such thing.
pub(super) fn is_absent(error: &Error) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code: 404, .. })
}

/// The innermost error, which says it without a library's words around it.
fn root_cause(error: &Error) -> String {
    if let Error::DockerResponseServerError { message, .. } = error {
        return message.trim().to_owned();
    }
    if let Error::SocketNotFoundError(path) = error {
        return format!("there is no `{path}`");
    }
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

fn io_kind(error: &Error) -> Option<io::ErrorKind> {
    if let Error::SocketNotFoundError(_) = error {
        return Some(io::ErrorKind::NotFound);
    }
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error.kind());
        }
        cause = error.source();
    }
    None
}
