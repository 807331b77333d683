//! Holds the source to the order of modules that ARCHITECTURE.md draws.

use std::collections::HashMap;

use camino::{Utf8Path, Utf8PathBuf};

use crate::support::repository;

/// Each module with its line in the drawing, lowest first.
fn layers() -> HashMap<String, usize> {
    let text = fs_err::read_to_string(repository().join("ARCHITECTURE.md")).unwrap();
    let (_, rest) = text.split_once("```layers\n").expect("ARCHITECTURE.md draws the layers");
    let (drawing, _) = rest.split_once("```").unwrap();
    drawing
        .lines()
        .enumerate()
        .flat_map(|(layer, line)| line.split_whitespace().map(move |module| (module.to_owned(), layer)))
        .collect()
}

fn source_files(directory: &Utf8Path) -> Vec<Utf8PathBuf> {
    let mut files = Vec::new();
    for entry in directory.read_dir_utf8().unwrap() {
        let path = entry.unwrap().into_path();
        if path.is_dir() {
            files.extend(source_files(&path));
        } else if path.extension() == Some("rs") {
            files.push(path);
        }
    }
    files
}

/// The modules that a text names after `crate::`, also in braces.
fn used_modules(text: &str) -> Vec<String> {
    let word = |text: &str| text.chars().take_while(|char| char.is_alphanumeric() || *char == '_').collect();
    let mut used: Vec<String> = Vec::new();
    for (at, _) in text.match_indices("crate::") {
        let rest = &text[at + "crate::".len()..];
        let Some(list) = rest.strip_prefix('{') else {
            used.push(word(rest));
            continue;
        };
        let mut depth = 0;
        let mut item = String::new();
        for char in list.chars() {
            match char {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => used.push(word(std::mem::take(&mut item).trim())),
                _ if depth == 0 => item.push(char),
                _ => {}
            }
        }
        used.push(word(item.trim()));
    }
    used.retain(|module| !module.is_empty());
    used
}

#[test]
fn a_module_uses_only_modules_below_it() {
    let layers = layers();
    let source = repository().join("src");
    let mut upward = Vec::new();
    let mut seen = 0;
    for file in source_files(&source) {
        let inside = file.strip_prefix(&source).unwrap();
        let module = inside.components().next().unwrap().as_str().trim_end_matches(".rs").to_owned();
        if module == "main" || module == "lib" {
            continue;
        }
        let layer = layers.get(&module).unwrap_or_else(|| panic!("`{module}` is not in ARCHITECTURE.md"));
        seen += 1;
        for used in used_modules(&fs_err::read_to_string(&file).unwrap()) {
            if used == module {
                continue;
            }
            match layers.get(&used) {
                Some(below) if below < layer => {}
                Some(_) => upward.push(format!("{inside}: {module} -> {used}")),
                None => upward.push(format!("{inside}: {module} -> {used} (not a module)")),
            }
        }
    }
    assert!(seen > 20, "only {seen} files were looked at");
    assert!(upward.is_empty(), "upward uses:\n{}", upward.join("\n"));
}

#[test]
fn every_form_of_a_use_is_seen() {
    let text = "use crate::model::Run; use crate::{report, cli::{self, Run}, store}; crate::plan::build()";
    assert_eq!(used_modules(text), ["model", "report", "cli", "store", "plan"]);
}
