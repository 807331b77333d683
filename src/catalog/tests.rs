use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use proptest::prelude::*;
use tempfile::TempDir;

use super::entries::{Syntax, read};
use super::{CatalogError, Leash, pairs};
use crate::config::{
    ChangedConfig, CommandLine, Discovery, IdPart, ListedId, OneOrMany, PairFilter, SuiteConfig, SuiteSource,
};
use crate::model::Pair;

pub(super) struct Dir(TempDir);

impl Dir {
    pub(super) fn new(files: &[(&str, &str)]) -> Self {
        let dir = Self(TempDir::new().unwrap());
        for (file, text) in files {
            dir.write(file, text);
        }
        dir
    }

    pub(super) fn root(&self) -> &Utf8Path {
        Utf8Path::from_path(self.0.path()).unwrap()
    }

    pub(super) fn write(&self, file: &str, text: &str) {
        let path = self.root().join(file);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }
}

/// The message with its causes, as a command prints it.
pub(super) fn message(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

fn shown(pairs: &[Pair]) -> Vec<String> {
    let labels = |pair: &Pair| {
        let labels = pair.labels.0.iter();
        labels
            .map(|(name, values)| format!(" {name}={}", values.join("|")))
            .collect::<String>()
    };
    pairs
        .iter()
        .map(|pair| format!("{}{}", pair.id, labels(pair)))
        .collect()
}

fn suite(source: SuiteSource) -> SuiteConfig {
    SuiteConfig {
        name: "suite".to_owned(),
        source,
        is_given: false,
        include: Vec::new(),
        exclude: Vec::new(),
        changed: ChangedConfig::default(),
    }
}

fn listed(dir: &Dir, source: SuiteSource) -> Result<Vec<String>, String> {
    pairs(&suite(source), dir.root(), &mut "".as_bytes(), &Leash::default())
        .map(|pairs| shown(&pairs))
        .map_err(|error| message(&error))
}

fn json(text: &str) -> Result<Vec<String>, String> {
    read(text, "`pairs.json`", Syntax::Json)
        .map(|pairs| shown(&pairs))
        .map_err(|error| message(&error))
}

fn yaml(text: &str) -> Result<Vec<String>, String> {
    read(text, "`pairs.yml`", Syntax::Any)
        .map(|pairs| shown(&pairs))
        .map_err(|error| message(&error))
}

fn glob(glob: &str, id: IdPart) -> Discovery {
    let glob = glob.to_owned();
    Discovery::Glob { glob, id }
}

fn evals(dir: &Dir, evals: Discovery) -> Result<Vec<String>, String> {
    let experiments = None;
    listed(dir, SuiteSource::Discover { evals, experiments })
}

const JSON: &str = r#"[{"experiment": "a", "eval_id": "x", "suite": "s"}, {"eval": "y", "experiment": "b", "tags": ["t", "u"]}]"#;
const YAML: &str =
    "- {experiment: a, eval_id: x, suite: s}\n- eval: y\n  experiment: b\n  tags:\n    - t\n    - u\n";
const BOTH: [&str; 2] = ["a × x suite=s", "b × y tags=t|u"];

#[test]
fn every_source_of_explicit_pairs_gives_the_same_pairs() {
    let dir = Dir::new(&[("p.json", JSON), ("sub/p.yml", YAML)]);
    let wanted = Ok(BOTH.map(str::to_owned).to_vec());
    assert_eq!(listed(&dir, SuiteSource::File("p.json".into())), wanted);
    assert_eq!(listed(&dir, SuiteSource::File("sub/p.yml".into())), wanted);
    assert_eq!(listed(&dir, SuiteSource::File(dir.root().join("p.json"))), wanted);
    for text in [
        JSON,
        YAML,
        "[{experiment: a, eval: x, suite: s}, {eval: y, experiment: b, tags: [t, u]}]",
    ] {
        let pairs = pairs(
            &suite(SuiteSource::Stdin),
            dir.root(),
            &mut text.as_bytes(),
            &Leash::default(),
        )
        .unwrap();
        assert_eq!(Ok(shown(&pairs)), wanted, "{text}");
    }
    let (origin, text) = ("EVAL_PAIRS".to_owned(), JSON.to_owned());
    assert_eq!(listed(&dir, SuiteSource::Json { origin, text }), wanted);
    let entry = |fields: &[(&str, &[&str])]| {
        let values = |values: &[&str]| OneOrMany(values.iter().map(|value| (*value).to_owned()).collect());
        let fields = fields.iter();
        fields
            .map(|(key, these)| ((*key).to_owned(), values(these)))
            .collect()
    };
    let inline = vec![
        entry(&[("experiment", &["a"]), ("eval_id", &["x"]), ("suite", &["s"])]),
        entry(&[("experiment", &["b"]), ("eval", &["y"]), ("tags", &["t", "u"])]),
    ];
    assert_eq!(listed(&dir, SuiteSource::Inline(inline)), wanted);
}

#[cfg(unix)]
#[test]
fn a_command_prints_pairs_in_the_root_and_may_say_a_lot_besides() {
    let dir = Dir::new(&[("p.json", JSON)]);
    let shell = |text: &str| listed(&dir, SuiteSource::Command(CommandLine::Shell(text.to_owned())));
    let wanted = Ok(BOTH.map(str::to_owned).to_vec());
    assert_eq!(
        shell("i=0; while [ $i -lt 20000 ]; do echo chatter >&2; i=$((i+1)); done; cat p.json"),
        wanted
    );
    let argv = CommandLine::Argv(vec!["cat".to_owned(), "p.json".to_owned()]);
    assert_eq!(listed(&dir, SuiteSource::Command(argv)), wanted);

    assert_eq!(
        shell("echo one >&2; printf 'no\\033[1m such file\\n' >&2; exit 3"),
        Err(
            "cannot get the pairs from `echo one >&2; printf 'no\\033[1m such file\\n' >&2; exit 3`: \
             it ended with exit code 3\none\nno [1m such file"
                .to_owned()
        )
    );
    assert_eq!(
        shell("echo hello"),
        Err(
            "cannot read the pairs in the output of `echo hello`: expected value at line 1 column 1"
                .to_owned()
        )
    );
    assert_eq!(
        shell("yes"),
        Err("cannot read the pairs in the output of `yes`: they are larger than 64 MiB".to_owned())
    );
    let missing = CommandLine::Argv(vec!["/no/such/program".to_owned()]);
    assert!(
        listed(&dir, SuiteSource::Command(missing))
            .unwrap_err()
            .starts_with("cannot start `/no/such/program`")
    );
}

#[test]
fn scalars_are_labels_as_they_are_written_and_null_is_not_set() {
    let wanted = Ok(vec!["a × 005 hard=true n=3 version=1.10".to_owned()]);
    assert_eq!(
        yaml("- {experiment: a, eval: 005, version: 1.10, hard: true, n: 3, gone: ~, empty: '', none: []}"),
        wanted
    );
    assert_eq!(
        json(
            r#"[{"experiment": "a", "eval": "005", "version": 1.10, "hard": true, "n": 3, "gone": null, "empty": ""}]"#
        ),
        wanted
    );
    assert_eq!(
        yaml("- &one {experiment: a, eval: x}\n- {experiment: b, eval: y, tags: [&t t, *t]}"),
        Ok(vec!["a × x".to_owned(), "b × y tags=t".to_owned()])
    );
}

#[test]
fn what_is_no_list_of_pairs_is_told_with_place_and_expectation() {
    let error = |text: &str| json(text).unwrap_err();
    assert_eq!(
        error("[\n{\"eval\": \"x\",}]"),
        "cannot read the pairs in `pairs.json`, entry 1: trailing comma at line 2 column 14"
    );
    assert_eq!(
        error(r#"[{"eval":"x","experiment":"a"}, "b"]"#),
        "cannot read the pairs in `pairs.json`, entry 2: invalid type: string \"b\", expected a map at line 1 column 35"
    );
    assert_eq!(
        error(r#"{"pairs": []}"#),
        "cannot read the pairs in `pairs.json`: invalid type: map, expected a list of pairs, each with `eval` and \
         `experiment` at line 1 column 0"
    );
    assert_eq!(
        error("[] x"),
        "cannot read the pairs in `pairs.json`: trailing characters at line 1 column 4"
    );
    assert_eq!(
        error(" "),
        "cannot read the pairs in `pairs.json`: there is nothing in it: expected a list of pairs"
    );
    assert_eq!(
        yaml("- eval: x\n  experiment: a\n- eval: [\n").unwrap_err(),
        "cannot read the pairs in `pairs.yml`, entry 2: did not find expected node content at line 4 column 1, \
         while parsing a flow node"
    );
    assert!(yaml("hello").unwrap_err().contains("expected a list of pairs"));
    let dir = Dir::new(&[]);
    fs_err::write(dir.root().join("p.json"), b"[\n\xff]").unwrap();
    assert_eq!(
        listed(&dir, SuiteSource::File("p.json".into())).unwrap_err(),
        "cannot read the pairs in `p.json`: line 2 is not UTF-8 text"
    );
    assert!(
        listed(&dir, SuiteSource::File("q.json".into()))
            .unwrap_err()
            .contains("q.json")
    );
}

#[test]
fn an_entry_that_is_no_pair_is_told_with_number_key_and_expectation() {
    let error = |entry: &str| {
        let text = format!(r#"[{{"eval":"first","experiment":"a"}}, {entry}]"#);
        let message = json(&text).unwrap_err();
        let entry = "cannot use entry 2 of the pairs in `pairs.json`: ";
        message.strip_prefix(entry).unwrap_or(&message).to_owned()
    };
    assert_eq!(
        error(r#"{"evals":"x","experiment":"a"}"#),
        "`eval` is missing: expected `eval`, `experiment` and any labels\nthe nearest key there is `evals`"
    );
    assert_eq!(
        error(r#"{"eval":null,"experiment":"a"}"#),
        "`eval` is missing: expected `eval`, `experiment` and any labels"
    );
    assert_eq!(
        error(r#"{"eval":" ","experiment":"a"}"#),
        "`eval` is no id: an id must not be empty"
    );
    assert_eq!(
        error(r#"{"eval":["x"],"experiment":"a"}"#),
        "`eval` is a list: expected one id"
    );
    assert_eq!(
        error(r#"{"eval":"x","experiment":"a","k":{"v":1}}"#),
        "`k` is a map: expected a string or a list of strings"
    );
    assert_eq!(
        error(r#"{"eval":"x","experiment":"a","k":[["v"]]}"#),
        "`k` is a list that does not hold text alone: expected a string or a list of strings"
    );
    assert_eq!(
        error(r#"{"eval":"x","eval_id":"x","experiment":"a"}"#),
        "`eval` and `eval_id` mean the same: expected one of them"
    );
    assert_eq!(
        error(r#"{"eval":"x","experiment":"a","eval":"y"}"#),
        "`eval` is there twice"
    );
    assert_eq!(
        error(r#"{"eval":"x","experiment":"a","runs":3}"#),
        "`runs` cannot be a label: it is a placeholder of every attempt"
    );
    assert_eq!(
        error(r#"{"eval":"x","experiment":"a","k":"a\nb"}"#),
        "the label `k` has a control character in it: expected one line of text"
    );
    assert_eq!(
        error(r#"{"eval":"first","experiment":"a","k":"v"}"#),
        "the pair `a × first` is already entry 1"
    );
}

#[test]
fn pairs_that_would_share_a_directory_are_refused() {
    let dir = Dir::new(&[]);
    let error = |text: String| {
        let origin = "--pairs-json".to_owned();
        listed(&dir, SuiteSource::Json { origin, text }).unwrap_err()
    };
    assert_eq!(
        error(r#"[{"experiment":"a__b","eval":"c"},{"experiment":"a","eval":"b__c"}]"#.to_owned()),
        "cannot keep the pairs `a__b × c` and `a × b__c` apart on disk: their directories would be `a__b__c` and \
         `a__b__c`\nrename one of their ids; letter case does not count"
    );
    assert!(
        error(r#"[{"experiment":"a","eval":"c"},{"experiment":"A","eval":"c"}]"#.to_owned())
            .contains("`a × c` and `A × c`")
    );
    let long = format!(r#"[{{"experiment":"a","eval":"{}"}}]"#, "é".repeat(40));
    assert!(error(long).contains("would have 243 bytes, more than 200"));
}

#[test]
fn discovery_pairs_every_experiment_with_every_eval_and_joins_their_labels() {
    let dir = Dir::new(&[
        (
            "evals/build/PROMPT.md",
            "---\nsuite: bench\ntags: [x]\n---\nDo it.",
        ),
        ("evals/ask/PROMPT.md", "no front matter\n---\na: b\n---\n"),
        ("evals/ask/deeper/PROMPT.md", "not matched"),
        ("evals/README.md", ""),
        ("experiments/opus.v2.ts", ""),
        ("experiments/base.ts", ""),
    ]);
    let source = SuiteSource::Discover {
        evals: glob("evals/*/PROMPT.md", IdPart::Dir),
        experiments: Some(glob("./experiments/*.ts", IdPart::Stem)),
    };
    assert_eq!(
        listed(&dir, source).unwrap(),
        [
            "base × ask",
            "base × build suite=bench tags=x",
            "opus.v2 × ask",
            "opus.v2 × build suite=bench tags=x"
        ]
    );
    let labels =
        |name: &str, value: &str| BTreeMap::from([(name.to_owned(), OneOrMany(vec![value.to_owned()]))]);
    let one = |id: &str, labels| ListedId {
        id: id.to_owned(),
        labels,
    };
    let source = SuiteSource::Discover {
        evals: Discovery::List(vec![
            one("z", labels("suite", "bench")),
            one("y", BTreeMap::new()),
        ]),
        experiments: Some(Discovery::List(vec![one("e", labels("suite", "mine"))])),
    };
    assert_eq!(
        listed(&dir, source).unwrap(),
        ["e × z suite=bench|mine", "e × y suite=mine"]
    );
    assert_eq!(
        evals(&dir, glob("evals/{ask,none}/**/PROMPT.md", IdPart::Dir)),
        Ok(vec!["default × ask".to_owned(), "default × deeper".to_owned()])
    );
    assert_eq!(evals(&dir, glob("nowhere/*.md", IdPart::Stem)), Ok(Vec::new()));
}

#[test]
fn files_that_give_no_usable_id_are_named() {
    let dir = Dir::new(&[
        ("a/x/PROMPT.md", ""),
        ("b/x/PROMPT.md", ""),
        ("c/bad/PROMPT.md", "---\na: b\nc: [d\n---\n"),
        ("PROMPT.md", ""),
    ]);
    let error = |text: &str| evals(&dir, glob(text, IdPart::Dir)).unwrap_err();
    assert_eq!(
        error("{a,b}/*/PROMPT.md"),
        "cannot tell two of `suite.evals` apart: `a/x/PROMPT.md` and `b/x/PROMPT.md` both have the id `x`"
    );
    assert_eq!(
        error("c/*/PROMPT.md"),
        "cannot read the front matter of `c/bad/PROMPT.md`, line 4: did not find expected ',' or ']'"
    );
    assert_eq!(
        error("*.md"),
        "cannot name `PROMPT.md` after its directory: it lies in the root\nset `suite.evals.id` to `stem` to take \
         the file's name"
    );
    assert_eq!(
        error("a/*"),
        "cannot use `suite.evals`: the glob `a/*` matches directories and no file\nname a file in each, for instance \
         `a/*/PROMPT.md`"
    );
    assert_eq!(
        error("../*.md"),
        "cannot use `suite.evals`: cannot use the glob `../*.md`: it has to be relative, without `..`"
    );
    assert!(error("a/[").contains("unclosed character class"));
    let twice = ["x", "y", "x"].map(|id| ListedId {
        id: id.to_owned(),
        labels: BTreeMap::new(),
    });
    assert_eq!(
        evals(&dir, Discovery::List(twice.to_vec())).unwrap_err(),
        "cannot tell two of `suite.evals` apart: entry 1 and entry 3 both have the id `x`"
    );
}

#[cfg(unix)]
#[test]
fn links_are_followed_below_the_root_and_never_in_a_circle() {
    use std::os::unix::fs::symlink;
    let outside = Dir::new(&[("far/PROMPT.md", "")]);
    let dir = Dir::new(&[
        ("evals/a/PROMPT.md", ""),
        ("shared/b/PROMPT.md", ""),
        ("evals/node_modules/c/PROMPT.md", ""),
    ]);
    let link = |to: &Utf8Path, at: &str| symlink(to, dir.root().join(at)).unwrap();
    link("../shared/b".into(), "evals/linked");
    link("../evals".into(), "evals/circle");
    link(&outside.root().join("far"), "evals/outside");
    link("nowhere".into(), "evals/dangling");
    assert_eq!(
        evals(&dir, glob("evals/**/PROMPT.md", IdPart::Dir)),
        Ok(vec!["default × a".to_owned(), "default × linked".to_owned()])
    );
}

#[test]
fn include_and_exclude_filter_by_experiment_eval_and_label() {
    let text = r#"[{"experiment":"claude","eval":"build-1","suite":"bench"},{"experiment":"claude","eval":"ask-1"},
        {"experiment":"gpt","eval":"build-1"},{"experiment":"claude","eval":"build-2","suite":["old","regression"]}]"#;
    let mut suite = suite(SuiteSource::Json {
        origin: "--pairs-json".to_owned(),
        text: text.to_owned(),
    });
    suite.include = vec![PairFilter {
        experiment: Some("cl*".to_owned()),
        eval: Some("build-*".to_owned()),
        labels: BTreeMap::new(),
    }];
    suite.exclude = vec![PairFilter {
        labels: BTreeMap::from([("suite".to_owned(), "reg*".to_owned())]),
        ..PairFilter::default()
    }];
    let root = Utf8PathBuf::from(".");
    let kept = pairs(&suite, &root, &mut "".as_bytes(), &Leash::default()).unwrap();
    assert_eq!(shown(&kept), ["claude × build-1 suite=bench"]);
    suite.include[0].eval = Some("[".to_owned());
    let error = pairs(&suite, &root, &mut "".as_bytes(), &Leash::default()).unwrap_err();
    assert!(matches!(
        error,
        CatalogError::Glob {
            key: "suite.include",
            ..
        }
    ));
}

#[test]
fn an_anchor_that_is_there_twice_is_refused() {
    let text = "- { experiment: &v a, eval: &v b }\n- { experiment: &w c, eval: *v }\n";
    let said = yaml(text).unwrap_err();
    assert!(said.contains("the anchor `&v` is there twice"), "{said}");
    let apart = text.replacen("&v", "&u", 1);
    assert_eq!(yaml(&apart).unwrap(), ["a × b", "c × b"]);
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = pairs(&suite(SuiteSource::Stdin), ".".into(), &mut bytes.as_slice(), &Leash::default());
    }

    #[test]
    fn no_text_of_json_or_yaml_marks_panics(
        text in "([-:,?&*!|>'\"%@`{}\\[\\] \n]|eval|experiment|a|<<|1e9|~|\\\\u00){0,40}",
    ) {
        let _ = json(&text);
        let _ = yaml(&text);
    }

    #[test]
    fn any_ids_and_labels_survive_json_and_yaml(
        experiment in "[^\\s\\p{Cc}]{1,8}",
        eval in "[^\\s\\p{Cc}]{1,8}",
        label in proptest::collection::vec("[^\\s\\p{Cc}]{1,5}", 1..4),
    ) {
        let entries = serde_json::json!([{"experiment": experiment, "eval": eval, "label": label}]);
        let wanted = read(&entries.to_string(), "", Syntax::Json).unwrap();
        prop_assert_eq!(wanted[0].id.experiment.as_str(), experiment);
        prop_assert_eq!(wanted[0].id.eval.as_str(), eval);
        prop_assert!(label.iter().all(|value| wanted[0].labels.has("label", value)));
        let text = serde_yaml::to_string(&entries).unwrap();
        prop_assert_eq!(read(&text, "", Syntax::Any).unwrap(), wanted);
    }
}
