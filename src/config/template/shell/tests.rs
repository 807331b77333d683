//! What real shells make of commands with values in them.

#![expect(clippy::unwrap_used, reason = "the helpers of tests fail as tests do")]

use std::process::Stdio;

use proptest::prelude::*;

use crate::config::CommandLine;
use crate::config::template::{CommandError, CommandTemplate, Template, Values};

/// Shells that take a script as `sh` does; only the first one has to be there.
const SHELLS: [&[&str]; 4] = [
    &["sh", "-c"],
    &["bash", "--posix", "-c"],
    &["dash", "-c"],
    &["busybox", "sh", "-c"],
];

/// Commands that print the value and a line end. Each has other things around it.
const PRINTING: [&str; 24] = [
    "printf '%s\\n' {v}",
    "printf '%s\\n' \"{v}\"",
    "printf '%s\\n' '{v}'",
    "cat <<END\n{v}\nEND",
    "cat <<-END\n\t{v}\n\tEND",
    "cat <<END | cat; : {v}\n{v}\nEND",
    "cat <<END1 >/dev/null <<'END2' 3<<END3; cat <<END4\n{v}\nEND1\n'\nEND2\nit's {v}\nEND3\n{v}\nEND4",
    "cat <<\\END >/dev/null\ndon't $(\nEND\nprintf '%s\\n' {v}",
    "cat <<\"a b\" >/dev/null\n`\n a b\na b\nprintf '%s\\n' {v}",
    "cat <<END >/dev/null\n# it's \"\n\\`\nEND\nprintf '%s\\n' {v}",
    "cat <<END\n$(printf '%s' {v})\nEND",
    "cat <<END\n$(printf '%s' \"{v}\")\nEND",
    "cat <<END\n\\\n{v}\nEND",
    ": $((1<<2 + $#)) \"$(( (1 << 2) ))\"\nprintf '%s\\n' {v}",
    "# don't <<END\nprintf '%s\\n' {v}",
    ": # don't `\nprintf '%s\\n' {v} # {v}",
    ": \\\n# don't\nprintf '%s\\n' {v}",
    ": $(:)# it''s\nprintf '%s\\n' {v}",
    ": >/dev/null;# don't\nprintf '%s\\n' {v}",
    ": ${HOME#'it is'} \"${HOME:-\"it's\"}\"; printf '%s\\n' {v}",
    "(: $( (:) && (:)# don't\n)); printf '%s\\n' \"$(printf '%s' {v})\"",
    ": `# '`; printf '%s\\n' \"`printf ''`{v}\"`# '`",
    "case x in a) ;; (*) printf '%s\\n' {v} ;; esac",
    "if :; then printf '%s\\n' \\\n  {v} <&0; fi",
];

/// The same for values that have no quotes, brackets or `#`.
const PRINTING_NESTED: [&str; 2] = [
    "printf '%s\\n' \"$(cat <<END\n{v}\nEND\n)\"",
    "v=$(\ncat <<END\n${HOME:+}{v}\nEND\n) # it's\nprintf '%s\\n' \"$v\"",
];

fn render(text: &str, value: &str) -> Result<String, CommandError> {
    let command = CommandTemplate::Shell(Template::parse(text).unwrap());
    match command.render(&Values::from([("v", value)]))? {
        CommandLine::Shell(text) => Ok(text),
        CommandLine::Argv(words) => panic!("{words:?}"),
    }
}

/// Runs a script with every shell that there is here. Gives the first words and what was printed.
fn run(script: &str) -> Vec<(&'static [&'static str], String)> {
    let outputs = SHELLS.iter().filter_map(|words| {
        #[expect(clippy::disallowed_methods, reason = "the quotes are for any shell")]
        let mut command = std::process::Command::new(words[0]);
        command.args(&words[1..]).arg(script);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", "/");
        let output = command.stdin(Stdio::null()).output().ok()?;
        Some((*words, String::from_utf8_lossy(&output.stdout).into_owned()))
    });
    let outputs: Vec<_> = outputs.collect();
    assert!(!outputs.is_empty(), "there is no shell");
    outputs
}

fn reads_back(texts: &[&str], value: &str) {
    let mut script = String::new();
    for text in texts {
        script += &render(text, value).unwrap();
        script += "\n";
    }
    let expected = format!("{value}\n").repeat(texts.len());
    for (shell, printed) in run(&script) {
        assert_eq!(printed, expected, "{shell:?} with {value:?}");
    }
}

#[test]
fn every_shell_reads_back_what_would_harm_it() {
    for value in [
        "x$(echo no)",
        "`echo no`",
        "it's",
        "\"; echo no; \"",
        "'; echo no; '",
        "\\",
        "\\\\$(echo no)",
        "$HOME",
        "${HOME}",
        "a b  c",
        "*",
        "#",
        "~",
        "é ☃",
        "-n",
    ] {
        reads_back(&PRINTING, value);
    }
    for value in ["a b  c", "$HOME", "${HOME}", "`echo no`", "\\", "*", "~ ☃"] {
        reads_back(&PRINTING_NESTED, value);
    }
}

/// Why a value cannot be inserted.
fn refused(text: &str, value: &str) -> String {
    render(text, value).unwrap_err().to_string()
}

#[test]
fn where_no_quotes_do_only_a_plain_value_goes_in() {
    for (text, place) in [
        ("cat <<'END'\n{v}\nEND", "in a here-document whose word is quoted"),
        (
            "cat <<E\"N\"D\n{v}\nEND",
            "in a here-document whose word is quoted",
        ),
        ("echo $(({v} / 60))", "within `$((…))`"),
        ("echo \"$((1 + (2 + {v})))\"", "within `$((…))`"),
        ("echo `echo {v}`", "within backticks"),
        ("echo \"`echo '{v}'`\"", "within backticks"),
        ("echo \\{v}", "after a `\\`"),
        (
            "echo $(cat <<END\n{v}\nEND\n)",
            "in a here-document within `$(…)`",
        ),
        ("echo \"${HOME:-\\}{v}}}\"", "within `${…}`"),
    ] {
        for value in ["$(echo no)", "'", "a b)"] {
            let said = refused(text, value);
            let expected = format!("cannot quote `{value}` for the `{{v}}` {place}\n");
            assert!(said.starts_with(&expected), "{text}: {said}");
        }
        let plain = "a-1.b_c/d:e@f+g=h,i";
        assert_eq!(
            render(text, plain),
            Ok(text.replace("{v}", plain).replace("}}", "}"))
        );
    }
    assert_eq!(
        refused("cat <<'END'\n{v}\nEND", "a b"),
        "cannot quote `a b` for the `{v}` in a here-document whose word is quoted\nwrite the word after `<<` without quotes"
    );
    assert_eq!(
        refused("echo `echo {v}`", "a b"),
        "cannot quote `a b` for the `{v}` within backticks\nset a variable to it at the beginning of the command, and use that here"
    );
}

#[test]
fn after_what_shells_do_not_agree_on_only_a_plain_value_goes_in() {
    for text in [
        "echo $(case x in x) echo {v} ;; esac)",
        "echo \"$(case x in x) echo y ;; esac) {v}\"",
        "((1<<2)); echo {v}",
        "echo $((echo 1) | cat); echo {v}",
        "echo $'\\'' {v}",
        "cat <<$END\n$END\necho {v}",
        "echo \"${HOME:-it's}\" {v}",
        "cat <<END $(echo\n1)\nEND\necho {v}",
        "x=$(cat <<END)\nEND\necho {v}",
        "cat <<END\n$(echo\nEND\n) {v}",
        "cat <<END\n\\\nEND\n{v}\nEND",
    ] {
        let said = refused(text, "a b");
        assert!(
            said.contains(" after what not every shell reads alike\n"),
            "{text}: {said}"
        );
        assert!(render(text, "a-1").is_ok(), "{text}");
    }
}

#[test]
fn no_value_ends_a_here_document() {
    let as_end = "in a here-document that such a line ends\nwrite another word after `<<`";
    for text in [
        "cat <<END\n{v}\nEND",
        "cat <<'END'\n{v}\nEND",
        "cat <<-END\n\t\t{v}\nEND",
        "cat <<END\nE{v}",
    ] {
        let value = if text.ends_with("E{v}") { "ND" } else { "END" };
        let said = refused(text, value);
        assert_eq!(said, format!("cannot quote `{value}` for the `{{v}}` {as_end}"));
    }
    // To bash `)` ends both there, the document and the substitution.
    let said = refused("echo \"$(cat <<END\n{v}; x)\nEND\n)\"", "END");
    assert!(said.contains(as_end), "{said}");
    assert!(render("cat <<END\n{v} \nEND", "END").is_ok());
    let said = refused("cat <<{v}\nx\nEND", "END");
    assert!(said.contains(" in the word after `<<`\n"), "{said}");
}

#[test]
fn no_value_is_cut_by_a_here_document_whose_end_it_begins_as() {
    let as_cut = "in a here-document whose end begins as such a line does: some shells lose a part of it\nwrite another word after `<<`";
    for (text, value) in [
        ("cat <<END\n{v}\nEND", "Eé"),
        ("cat <<END\n{v}\nEND", "E𐅠)q*r"),
        ("cat <<END\nfirst\n{v}\nEND", "END☃"),
        ("cat <<END\nE{v}\nEND", "é"),
        ("cat <<'END'\n{v}é\nEND", "EN"),
        ("cat <<-END\n\t{v}\nEND", "Eé"),
        ("cat <<END\nfirst\\\n{v}\nEND", "Eé"),
        ("cat <<É\n{v}\nÉ", "éx"),
        ("cat <<Éa\n{v}\nÉa", "Èx"),
        ("cat <<END; cat <<OTHER\nx\nEND\n{v}\nOTHER", "Oé"),
    ] {
        let said = refused(text, value);
        assert_eq!(said, format!("cannot quote `{value}` for the `{{v}}` {as_cut}"));
    }
    for value in ["éE", "e\u{301}", " Eé", "Ea é"] {
        reads_back(&["cat <<END\n{v}\nEND"], value);
    }
    reads_back(&["cat <<OTHER\n{v}\nOTHER"], "ENDé☃");
    reads_back(&["cat <<É\n{v}\nÉ"], "☃");
}

/// Pieces of commands; `{v}` is the value.
const PIECES: [&str; 36] = [
    "{v}", "{v}", "{v}", " ", " ", "\n", "\n", "'", "\"", "`", "$(", ")", "(", "${x:-", "}}", "$((", "))",
    "<<E", "<<-E", "<<'E'", "<<\\E", "\nE\n", "\n\tE\n", "#", "\\", "\\\n", "$", "<", ";", "|", "&", "case ",
    " in ", "esac", "a", ": ",
];

/// Values that print `no` wherever they are not quoted.
const HARMFUL: [&str; 8] = [
    "$(echo no >&9)",
    "`echo no >&9`",
    ";echo no >&9;",
    "';echo no >&9;'",
    "\";echo no >&9;\"",
    "\\\";echo no >&9;\\\"",
    ")\necho no >&9;(",
    "a[$(echo no >&9)]",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_shell_reads_back_any_id(value in "([ -~]|\\PC){1,12}") {
        // Some of the here-documents are no place for it.
        let texts: Vec<_> = PRINTING.into_iter().filter(|text| render(text, &value).is_ok()).collect();
        prop_assert!(texts.len() == PRINTING.len() || value.starts_with('E') && !value.is_ascii());
        reads_back(&texts, &value);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn nothing_of_a_value_ever_runs(
        pieces in proptest::collection::vec(proptest::sample::select(&PIECES[..]), 1..14),
        harm in proptest::sample::select(&HARMFUL[..]),
    ) {
        let text = pieces.concat();
        if let Ok(template) = Template::parse(&text)
            && let Ok(CommandLine::Shell(line)) =
                CommandTemplate::Shell(template).render(&Values::from([("v", harm)]))
        {
            for (shell, printed) in run(&format!("exec 9>&1 >/dev/null 2>&1\n{line}")) {
                prop_assert_eq!(printed, "", "{:?}: {:?}", shell, line);
            }
        }
    }
}
