//! A private registry: the image is pulled with the credentials that docker's own configuration has, and without them it
//! is said what is missing.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};

use base64::Engine as _;
use evalwave::config::DockerImage;
use evalwave::sandbox::Warm;
use sha2::{Digest as _, Sha256};

use super::{Bench, errored, prepare, run_at};
use crate::support::Suite;

const NAME: &str = "team/private";

/// A registry with one image, for one user.
struct Registry {
    port: u16,
}

/// What it answers on a path, with its type.
type Blob = (String, &'static str, Vec<u8>);

impl Registry {
    fn start(login: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let expected = format!("authorization: Basic {}", encoded(login));
        let blobs = image();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream, &expected, &blobs);
            }
        });
        Self { port }
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn image(&self) -> String {
        format!("{}/{NAME}:1", self.host())
    }

    /// Docker's configuration after `docker login`.
    fn configuration(&self, login: &str) -> String {
        format!(
            r#"{{"auths": {{"{}": {{"auth": "{}"}}}}}}"#,
            self.host(),
            encoded(login)
        )
    }
}

fn encoded(login: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(login)
}

fn digest(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

/// An image of one file, as a registry holds it.
fn image() -> Vec<Blob> {
    const KIND: &str = "application/vnd.docker.distribution.manifest.v2+json";
    let mut layer = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(1);
    header.set_mode(0o644);
    layer.append_data(&mut header, "file", &b"x"[..]).unwrap();
    let layer = layer.into_inner().unwrap();
    let config = serde_json::json!({ "architecture": "amd64", "os": "linux", "config": {},
        "rootfs": { "type": "layers", "diff_ids": [digest(&layer)] } });
    let config = config.to_string().into_bytes();
    let blob = |kind: &str, bytes: &[u8]| {
        serde_json::json!({ "mediaType": format!("application/vnd.docker.{kind}"), "size": bytes.len(),
            "digest": digest(bytes) })
    };
    let manifest = serde_json::json!({ "schemaVersion": 2, "mediaType": KIND,
        "config": blob("container.image.v1+json", &config),
        "layers": [blob("image.rootfs.diff.tar", &layer)] });
    let manifest = manifest.to_string().into_bytes();
    let at = |what: &str| format!("/v2/{NAME}/{what}");
    vec![
        ("/v2/".to_owned(), "application/json", b"{}".to_vec()),
        (at("manifests/1"), KIND, manifest.clone()),
        (at(&format!("manifests/{}", digest(&manifest))), KIND, manifest),
        (
            at(&format!("blobs/{}", digest(&config))),
            "application/octet-stream",
            config,
        ),
        (
            at(&format!("blobs/{}", digest(&layer))),
            "application/octet-stream",
            layer,
        ),
    ]
}

fn answer(mut stream: TcpStream, expected: &str, blobs: &[Blob]) {
    let mut lines = BufReader::new(stream.try_clone().unwrap())
        .lines()
        .map_while(Result::ok);
    let asked = lines.next().unwrap_or_default();
    let headers: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let mut words = asked.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let is_known = headers.iter().any(|header| header.eq_ignore_ascii_case(expected));
    let found = blobs.iter().find(|(at, ..)| at == path);
    let (status, more, body) = match found {
        _ if !is_known => (
            "401 Unauthorized",
            "WWW-Authenticate: Basic realm=\"test\"\r\n".to_owned(),
            &b"{\"errors\": [{\"code\": \"UNAUTHORIZED\", \"message\": \"authentication required\"}]}"[..],
        ),
        Some((_, kind, body)) => {
            let more = format!(
                "Content-Type: {kind}\r\nDocker-Content-Digest: {}\r\n",
                digest(body)
            );
            ("200 OK", more, &body[..])
        }
        None => ("404 Not Found", String::new(), &b"{}"[..]),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n{more}\r\n",
        body.len()
    );
    // The engine may have hung up: that shows in what it says.
    let _ = stream.write_all(head.as_bytes());
    if method != "HEAD" {
        let _ = stream.write_all(body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_image_is_pulled_with_the_credentials_that_docker_has() {
    let Some(mut bench) = Bench::new() else { return };
    let registry = Registry::start("me:pass:word");
    bench.write("lock.txt", "");
    bench.write(".docker/config.json", &registry.configuration("me:pass:word"));
    bench.config.image = DockerImage::Named(registry.image());
    let (prepared, said, _) = prepare(&bench, None).await;
    assert_eq!(prepared, Ok(Warm::Cold(None)), "{said}");
    assert!(said.contains(&format!("pulled {}\n", registry.image())), "{said}");
    let options = None::<bollard::query_parameters::RemoveImageOptions>;
    let removed = bench
        .client()
        .remove_image(&registry.image(), options, None)
        .await;
    removed.unwrap();
}

#[test]
fn a_registry_that_refuses_is_infrastructure_and_it_is_said_what_to_do() {
    let Some(bench) = Bench::new() else { return };
    let registry = Registry::start("me:password");
    for configuration in [registry.configuration("me:wrong"), "{}".to_owned()] {
        let keys = format!(
            "sandbox: {{ kind: docker, network: none, image: '{}' }}\nretry: {{ tries: 1 }}",
            registry.image()
        );
        let suite = Suite::scripted("a/one", "format: exit-code", &keys, "exit 0");
        suite.write("docker/config.json", &configuration);
        run_at(&bench.host, &suite)
            .env("DOCKER_CONFIG", suite.path().join("docker"))
            .assert()
            .code(4);
        let message = errored(&suite);
        let begin = format!("cannot pull the image `{}`", registry.image());
        assert!(message.starts_with(&begin), "{message}");
        assert!(message.contains("`docker login`"), "{message}");
        assert!(!message.contains("wrong"), "{message}");
    }
}
