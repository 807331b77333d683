//! Texts of attempts, each held once, within what a page may weigh.

use std::collections::HashMap;

use crate::report::escape::visible;

/// What texts may weigh on a page however small, in bytes.
const ROOM: usize = 200 << 10;
/// What they may weigh besides for each pair.
const ROOM_PER_PAIR: usize = 400;
/// Longest text, in characters.
const LONGEST: usize = 2000;
/// Stands for a text that has no room.
const LEFT_OUT: &str = "(too much for this page: it is in the attempt's files)";

/// Texts by number.
#[derive(Debug)]
pub(super) struct Texts {
    pub(super) all: Vec<String>,
    numbers: HashMap<String, usize>,
    room: usize,
}

impl Texts {
    pub(super) fn new(pairs: usize) -> Self {
        Self {
            all: Vec::new(),
            numbers: HashMap::new(),
            room: ROOM + ROOM_PER_PAIR * pairs,
        }
    }

    /// The number of a text.
    pub(super) fn add(&mut self, text: &str) -> usize {
        let mut shown = visible(text.trim(), LONGEST);
        if let Some(number) = self.numbers.get(&shown) {
            return *number;
        }
        let weight = weight(&shown);
        if weight > self.room {
            LEFT_OUT.clone_into(&mut shown);
            if let Some(number) = self.numbers.get(&shown) {
                return *number;
            }
        } else {
            self.room -= weight;
        }
        self.all.push(shown.clone());
        self.numbers.insert(shown, self.all.len() - 1);
        self.all.len() - 1
    }
}

/// About as many bytes as the text takes in a page.
fn weight(text: &str) -> usize {
    let escaped = text.bytes().filter(|byte| b"<>&\"\\\n\t".contains(byte)).count();
    text.len() + 5 * escaped + 4
}

#[cfg(test)]
mod tests {
    use super::{LEFT_OUT, ROOM, Texts};

    #[test]
    fn a_text_is_held_once_and_all_together_stay_within_their_room() {
        let mut texts = Texts::new(0);
        assert_eq!((texts.add("a"), texts.add("b"), texts.add(" a ")), (0, 1, 0));
        for number in 0..1000 {
            texts.add(&format!("{number}{}", "<".repeat(1999)));
        }
        let last = texts.add(&format!("last {}", "<".repeat(1990)));
        assert_eq!(texts.all[last], LEFT_OUT);
        assert!(texts.all.iter().map(|text| text.len() * 6).sum::<usize>() < ROOM + 1000);
        assert_eq!(texts.all.iter().filter(|text| *text == LEFT_OUT).count(), 1);
    }
}
