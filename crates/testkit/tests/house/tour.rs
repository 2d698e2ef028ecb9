//! The tour of the README, run as it stands: every line of its `sh` blocks by bash, in an empty
//! directory, against the real binary. The `text` block below a block is what it must print.
//!
//! In a `text` block `…` stands for any text, a line of `…` alone for any lines, and `<name>` for
//! a word that is the same wherever the name stands. A comment before a block says who runs it:
//! `<!-- tour: server -->` is a terminal of its own, and `<!-- tour: ctrl-c -->` before a `text`
//! block presses Ctrl-C there.
//!
//! The README says port 8080, which may be taken here. So `duly` and `curl` are told by their
//! surroundings, not by the lines, to use a free one: see [`Stage`].

mod expected;
mod stage;

use std::process::{Command, Stdio};

use duly_testkit::report;

use self::expected::Names;
use self::stage::{Stage, Terminal};
use crate::markdown::{Block, blocks, section};
use crate::tree::read;

const HEADING: &str = "## A tour of five minutes";

struct Tour {
    stage: Stage,
    server: Option<Terminal>,
    names: Names,
}

impl Tour {
    /// Runs one block; `expected` is the text block below it.
    fn play(&mut self, block: &Block, expected: Option<&Block>) {
        let place = format!("README.md:{}", block.line);
        match block.mark.as_deref() {
            None => {
                let output = self.stage.run(&block.body, &place);
                self.compare(expected, &output, &place);
            }
            Some("server") => {
                let expected = expected.unwrap_or_else(|| panic!("{place}: what does it print?"));
                let server = self.stage.open(&block.body);
                let names = &mut self.names;
                let heard = server.until(|said| expected::matches(&expected.body, said, names));
                if let Err(said) = heard {
                    panic!("{place}: expected\n{}\nbut the server said\n{said}", expected.body);
                }
                self.server = Some(server);
            }
            Some(mark) => panic!("{place}: unknown mark {mark:?}"),
        }
    }

    /// Presses Ctrl-C in the server's terminal.
    fn interrupt(&mut self, expected: &Block) {
        let place = format!("README.md:{}", expected.line);
        let server = self.server.take().unwrap_or_else(|| panic!("{place}: no server runs"));
        let (code, output) = server.interrupt();
        assert_eq!(code, Some(0), "{place}: the server ended with\n{output}");
        self.compare(Some(expected), &output, &place);
    }

    fn compare(&mut self, expected: Option<&Block>, output: &str, place: &str) {
        let Some(expected) = expected else { return };
        let met = expected::matches(&expected.body, output, &mut self.names);
        assert!(met, "{place}: expected\n{}\nbut it printed\n{output}", expected.body);
    }
}

#[test]
fn the_tour_of_the_readme_goes_as_it_says() {
    let Some(stage) = Stage::set() else { return };
    let readme = read("README.md");
    let tour = section(&readme, HEADING);
    let first_line = readme.split(HEADING).next().unwrap_or("").lines().count() + 1;
    let blocks = blocks(tour, first_line);
    let commands = blocks.iter().filter(|block| block.language == "sh").count();
    assert!(commands >= 8, "only {commands} blocks of commands");
    let mut tour = Tour { stage, server: None, names: Names::default() };
    let mut rest = blocks.iter().peekable();
    while let Some(block) = rest.next() {
        match (block.language.as_str(), block.mark.as_deref()) {
            ("sh", _) => tour.play(block, rest.next_if(|next| is_output(next))),
            ("text", Some("ctrl-c")) => tour.interrupt(block),
            (language, _) => panic!("README.md:{}: a stray {language:?} block", block.line),
        }
    }
    assert!(tour.server.is_none(), "the tour ends with Ctrl-C");
}

/// The set-up with keys in docs/security.md: a key pair, a file, a server, a token and a task.
#[test]
fn the_set_up_with_keys_goes_as_it_says() {
    const PLACE: &str = "docs/security.md";
    let Some(stage) = Stage::set() else { return };
    if Command::new("openssl").arg("version").stdout(Stdio::null()).status().is_err() {
        let remedy = "apt-get install openssl";
        return report::skip("openssl is not installed", remedy).expect("CI has openssl");
    }
    let text = read(PLACE);
    let steps = section(&text, "## Five minutes: a server with keys");
    // The blocks belong to the items of a list.
    let lines = steps.lines().map(|line| line.strip_prefix("   ").unwrap_or(line));
    let steps = lines.collect::<Vec<_>>().join("\n");
    let blocks = blocks(&steps, 1);
    let [pair, file, commands] = &blocks[..] else { panic!("{PLACE}: {} blocks", blocks.len()) };
    assert_eq!([&pair.language, &file.language, &commands.language], ["sh", "yaml", "sh"]);
    stage.run(&pair.body, PLACE);
    stage.write("duly.yaml", &file.body);
    let (serve, rest) = commands.body.split_once('\n').unwrap_or_default();
    assert!(serve.starts_with("duly serve "), "{PLACE}: {serve}");
    let server = stage.open(serve);
    let heard = server.until(|said| said.contains("(Ctrl-C stops)"));
    heard.unwrap_or_else(|said| panic!("{PLACE}: the server said\n{said}"));
    let printed = stage.run(rest, PLACE);
    assert!(printed.contains("SUCCESS"), "{PLACE}: {printed}");
}

fn is_output(block: &Block) -> bool {
    block.language == "text" && block.mark.is_none()
}
