//! Waves in sandboxes of Vercel, beside their floor (the longest attempt and what one sandbox costs around it): a table,
//! and no verdict. Against the fake Vercel, which is a process of its own and lets commands pass by their duration alone.
//!
//! `wave` is the run from its first start to its last end, and the ratio is its; `whole` is the process, which plans before
//! and writes its reports after. A row is right where its ratio is below 1.03 (474 attempts) or 1.1 (10,000, longest first), its memory below 450 MB, and
//! an attempt takes less than 1.5 ms of evalwave's own processor time and at most 12 requests. The fake takes its share of
//! the same processors. With faults, every attempt is graded and nothing is left; how long it takes is the faults'.
//!
//! `cargo bench --bench vercel`. Needs Linux, and a machine with nothing else to do. Durations have the shape of a real suite's, at a hundredth of their length.

#![cfg_attr(
    target_os = "linux",
    expect(
        clippy::disallowed_methods,
        clippy::unwrap_used,
        clippy::print_stdout,
        reason = "it measures processes by the clock, and the table is what it is for"
    )
)]

#[cfg(target_os = "linux")]
#[path = "../tests/it/support"]
#[expect(dead_code, unused_imports, reason = "the tests use the rest of it")]
mod support {
    pub(crate) mod vercel;
}

#[cfg(target_os = "linux")]
fn main() {
    waves::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod waves {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use base64::Engine as _;
    use camino::{Utf8Path, Utf8PathBuf};
    use serde_json::{Value, json};

    use crate::support::vercel::{
        Faults, Light, LightRule, Limits, Machines, PROJECT, Rule, State, TEAM, TOKEN, Vercel,
    };

    /// As evalwave has it, so that the fake takes no larger share.
    #[global_allocator]
    static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

    const EVALWAVE: &str = env!("CARGO_BIN_EXE_evalwave");
    /// As many open files as the machine lets us have; more than it lets others have, where we may say so.
    const FILES: &str = "ulimit -n 65536 2>/dev/null || ulimit -n $(ulimit -Hn)";
    /// The first argument that makes this program the fake.
    const FAKE: &str = "fake-vercel";
    /// The longest attempt of the suite whose shape this is, at a hundredth.
    const LONGEST: f64 = 8.28;
    const SANDBOX_OVERHEAD_RUNS: usize = 3;

    pub(super) fn main() {
        let arguments: Vec<String> = std::env::args().collect();
        if arguments.get(1).is_some_and(|first| first == FAKE) {
            return fake(arguments[2].parse().unwrap());
        }
        println!(
            "{:<34}{:>9}{:>9}{:>8}{:>9}{:>15}{:>9}{:>13}{:>8}{:>7}",
            "",
            "floor",
            "wave",
            "ratio",
            "whole",
            "requests each",
            "peak MB",
            "CPU ms each",
            "graded",
            "left"
        );
        let overhead = (0..SANDBOX_OVERHEAD_RUNS)
            .map(|_| Wave::new(1, 1, 0.0, 0.0).run(None).wave)
            .fold(f64::INFINITY, f64::min);
        // The first run's durations are the second's predictions: longest first.
        let wave = Wave::new(237, 2, LONGEST, 0.0);
        let first = wave.run(None);
        first.row("474, nothing predicted", overhead);
        wave.run(Some(&first)).row("474, longest first", overhead);
        let faults = Wave::new(237, 2, LONGEST, 0.05);
        faults.run(None).row("474, each fault at 5 %", overhead);
        let many = Wave::new(10_000, 1, LONGEST, 0.0);
        let first = many.run(None);
        first.row("10,000, nothing predicted", overhead);
        many.run(Some(&first)).row("10,000, longest first", overhead);
    }

    /// The fake, until its standard input is closed.
    fn fake(storm: f64) {
        let result = packed();
        let light = Light {
            scale: 1.0,
            rules: vec![LightRule {
                contains: "out=/tmp/.evalwave/packed".to_owned(),
                seconds: 0.0,
                exit: 0,
                stdout: result,
            }],
            ..Light::default()
        };
        let rules = if storm > 0.0 {
            Rule::storm(storm)
        } else {
            Vec::new()
        };
        let state = State::new(Limits::none(), Faults::new(3, rules));
        let vercel = Vercel::start(0, state, Machines::light(light)).unwrap();
        println!("{}", vercel.base_url());
        std::io::stdout().flush().unwrap();
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    }

    /// What packing a result prints: what is left of the disk, and an archive with a result that passed.
    fn packed() -> String {
        let compressed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let mut tar = tar::Builder::new(compressed);
        let result = br#"{"passed": true}"#;
        let mut header = tar::Header::new_gnu();
        header.set_size(result.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, "result.json", &result[..]).unwrap();
        let bytes = tar.into_inner().unwrap().finish().unwrap();
        format!(
            "1000000\n-\n{}\n",
            base64::engine::general_purpose::STANDARD.encode(&bytes)
        )
    }

    /// A suite and the fake that it runs against.
    struct Wave {
        directory: tempfile::TempDir,
        fake: Child,
        base: String,
        attempts: usize,
        longest: f64,
    }

    struct Measured {
        /// Seconds from the first start to the last end.
        wave: f64,
        whole: Duration,
        peak_megabytes: f64,
        cpu: Duration,
        requests: u64,
        left: u64,
        graded: u64,
        attempts: usize,
        longest: f64,
        directory: Utf8PathBuf,
    }

    impl Wave {
        fn new(pairs: usize, runs: usize, longest: f64, storm: f64) -> Self {
            let mut fake = Command::new("sh")
                .args(["-c", &format!("{FILES}; exec \"$@\""), "fake"])
                .arg(std::env::current_exe().unwrap())
                .args([FAKE, &storm.to_string()])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut base = String::new();
            BufReader::new(fake.stdout.take().unwrap())
                .read_line(&mut base)
                .unwrap();
            let base = base.trim().to_owned();
            let directory = tempfile::TempDir::new_in("/dev/shm").unwrap();
            let suite = directory.path().join("suite");
            fs_err::create_dir(&suite).unwrap();
            let attempts = pairs * runs;
            let listed: Vec<Value> = (0..pairs)
                .map(|number| json!({ "experiment": format!("x{}", number % 25), "eval": eval(number, pairs, longest) }))
                .collect();
            // The account's own ramp takes minutes, and hides behind attempts that take as long; at a hundredth of their
            // length it would be all there is to see. What paces a wave here is how many sandboxes may be starting.
            let rate = (attempts * 2 * 20).max(45_000);
            let config = json!({
                "version": 1,
                "suite": { "name": "bench", "pairs": listed },
                "attempt": {
                    "command": "agent", "result": "result.json", "format": "evals",
                    "upload": { "git": false },
                },
                "runs": runs, "strategy": "parallel",
                "retry": { "tries": 5, "budget": "100%" },
                "sandbox": {
                    "kind": "vercel", "source": "upload", "base-url": base,
                    "limits": {
                        "concurrent": 20_000, "vcpus-per-minute": [rate, 1, rate],
                        "requests-per-minute": 10_000_000, "deletes-per-second": 10_000,
                    },
                },
                "baseline": "none",
            });
            fs_err::write(suite.join("evalwave.yml"), config.to_string()).unwrap();
            fs_err::write(suite.join("attempt.txt"), "what every sandbox receives\n").unwrap();
            Self {
                directory,
                fake,
                base,
                attempts,
                longest,
            }
        }

        fn path(&self) -> &Utf8Path {
            Utf8Path::from_path(self.directory.path()).unwrap()
        }

        fn counts(&self) -> Value {
            let address = self.base.trim_start_matches("http://").trim_end_matches("/api");
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            let request =
                format!("GET /fake/counts HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            let text = std::io::read_to_string(&mut stream).unwrap();
            let body = &text[text.find('{').unwrap()..=text.rfind('}').unwrap()];
            serde_json::from_str(body).unwrap()
        }

        /// One run; with another's results as its baseline, longest first.
        fn run(&self, baseline: Option<&Measured>) -> Measured {
            let before = self.counts()["all"].as_u64().unwrap();
            let out = if baseline.is_some() { "second" } else { "first" };
            let mut arguments = format!("{FILES}; exec {EVALWAVE} run -o ../{out} --overwrite --format json");
            if let Some(baseline) = baseline {
                arguments += &format!(" --baseline {}", baseline.directory);
            }
            let log = fs_err::File::create(self.path().join("log")).unwrap();
            let started = Instant::now();
            let mut child = Command::new("sh")
                .args(["-c", &arguments])
                .current_dir(self.path().join("suite"))
                .envs([
                    ("VERCEL_TOKEN", TOKEN),
                    ("VERCEL_TEAM_ID", TEAM),
                    ("VERCEL_PROJECT_ID", PROJECT),
                ])
                .stdout(Stdio::null())
                .stderr(std::fs::File::from(log))
                .spawn()
                .unwrap();
            let (mut peak_megabytes, mut cpu) = (0.0_f64, Duration::ZERO);
            let process = format!("/proc/{}", child.id());
            while child.try_wait().unwrap().is_none() {
                if let Some((megabytes, used)) = used(&process) {
                    peak_megabytes = peak_megabytes.max(megabytes);
                    cpu = cpu.max(used);
                }
                std::thread::park_timeout(Duration::from_millis(5));
            }
            let whole = started.elapsed();
            let counts = self.counts();
            let directory = self.path().join(out);
            let summary = fs_err::read_to_string(directory.join("summary.json"));
            if summary.is_err() {
                let log = fs_err::read_to_string(self.path().join("log")).unwrap();
                println!(
                    "the run has no summary: {}",
                    log.lines().last().unwrap_or_default()
                );
            }
            let summary: Value = summary.map_or(Value::Null, |text| serde_json::from_str(&text).unwrap());
            Measured {
                wave: summary["run"]["wall_seconds"].as_f64().unwrap_or(f64::NAN),
                whole,
                peak_megabytes,
                cpu,
                requests: counts["all"].as_u64().unwrap() - before,
                left: counts["sandboxes"].as_u64().unwrap(),
                graded: summary["totals"]["attempts"]["graded"].as_u64().unwrap_or(0),
                attempts: self.attempts,
                longest: self.longest,
                directory,
            }
        }
    }

    impl Drop for Wave {
        fn drop(&mut self) {
            drop(self.fake.stdin.take());
            let _ = self.fake.wait();
        }
    }

    impl Measured {
        fn row(&self, name: &str, overhead: f64) {
            let floor = self.longest + overhead;
            let whole = self.whole.as_secs_f64();
            println!(
                "{name:<34}{floor:>8.2}s{:>8.2}s{:>8.3}{whole:>8.2}s{:>15.2}{:>9.0}{:>13.2}{:>8}{:>7}",
                self.wave,
                self.wave / floor,
                self.requests as f64 / self.attempts as f64,
                self.peak_megabytes,
                self.cpu.as_secs_f64() * 1_000.0 / self.attempts as f64,
                self.graded,
                self.left,
            );
        }
    }

    /// An eval whose name says how long its attempts take: most a fifth of the longest, few nearly as long.
    fn eval(number: usize, of: usize, longest: f64) -> String {
        // A permutation, so that the long ones are not first.
        let rank = (number * 7_919) % of;
        let share = (rank as f64 + 1.0) / of as f64;
        let seconds = longest * (0.08 + 0.25 * share + 0.67 * share.powi(8));
        format!("e{number}-takes-{seconds:.2}s")
    }

    /// Peak memory in MB, and processor time, of a process.
    fn used(process: &str) -> Option<(f64, Duration)> {
        let status = fs_err::read_to_string(format!("{process}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().ok()?;
        let stat = fs_err::read_to_string(format!("{process}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        // User and system time, in hundredths of a second.
        let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
        Some((kilobytes / 1024.0, Duration::from_millis(ticks * 10)))
    }
}
