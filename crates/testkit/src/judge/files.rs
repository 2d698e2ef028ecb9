//! Reading the files of a run line by line, as far as whoever wrote them got.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use anyhow::Context as _;
use serde::de::DeserializeOwned;

use crate::journal::{Line, second_opening};

/// How much is read at a time.
const BUFFER: usize = 1 << 20;

/// Calls for each line, and counts those that are halves: what a writer left that was killed.
pub(super) fn each_line(path: &Path, mut take: impl FnMut(&[u8]) -> bool) -> anyhow::Result<u64> {
    let name = || path.display().to_string();
    let file = File::open(path).with_context(|| format!("cannot read {}", name()))?;
    let mut reader = BufReader::with_capacity(BUFFER, file);
    let (mut line, mut number, mut halves) = (Vec::new(), 0_u64, 0);
    loop {
        line.clear();
        let length = reader.read_until(b'\n', &mut line);
        if length.with_context(|| format!("cannot read {}", name()))? == 0 {
            return Ok(halves);
        }
        number += 1;
        let Some((b'\n', text)) = line.split_last() else {
            return Ok(halves + 1);
        };
        if take(text) {
            continue;
        }
        // Several processes may write one file: the next one goes on where a killed one stopped.
        let rest = second_opening(text).map(|start| &text[start..]);
        if !rest.is_some_and(&mut take) {
            anyhow::bail!("{}:{number} is not a line of such a file", name());
        }
        halves += 1;
    }
}

/// Calls for each line of a kind.
pub(super) fn each<T: DeserializeOwned>(
    path: &Path,
    mut take: impl FnMut(Line<T>),
) -> anyhow::Result<u64> {
    each_line(path, |text| serde_json::from_slice(text).map(&mut take).is_ok())
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Event {
        n: u64,
    }

    fn read(text: &str) -> anyhow::Result<(Vec<u64>, u64)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j.jsonl");
        std::fs::write(&path, text).unwrap();
        let mut numbers = Vec::new();
        let halves = each(&path, |line: Line<Event>| numbers.push(line.event.n))?;
        Ok((numbers, halves))
    }

    const LINE: &str = "{\"seq\":1,\"mono_ns\":1,\"n\":7}";

    #[test]
    fn halves_are_passed_over_at_the_end_and_before_the_line_of_another_writer() {
        let text = format!("{LINE}\n{{\"seq\":2,\"mo{LINE}\n{{\"seq\":3,\"mono_ns\":3,\"n\":");
        assert_eq!(read(&text).unwrap(), (vec![7, 7], 2));
    }

    #[test]
    fn what_is_no_line_is_an_error() {
        for text in [format!("{LINE}\nnonsense\n"), "{\"seq\":1,\"mono_ns\":1}\n".to_owned()] {
            assert!(read(&text).is_err(), "{text}");
        }
    }
}
