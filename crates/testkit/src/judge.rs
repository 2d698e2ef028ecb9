//! Judges a run of the harness from the files that it leaves: what clients asked and were told,
//! what workers did, what was broken when, and what the server shows in the end.
//!
//! Whatever is unknown is allowed: an answer that did not arrive, an outcome whose worker was killed,
//! a lease that a paused worker starts late. What is left over is a violation. Nothing here talks
//! to a server; a run can be judged again at any time.

mod book;
mod calls;
mod checks;
mod class;
mod execution;
mod faults;
mod figures;
mod files;
mod findings;
mod folder;
mod minima;
mod procs;
mod table;
mod timeline;
mod verdict;
mod witness;
mod workflows;

pub use self::class::Class;
pub use self::faults::Spell;
pub use self::figures::Figures;
pub use self::findings::{Findings, Violation};
pub use self::folder::judge;
pub use self::minima::{Minima, Minimum};
pub use self::verdict::{Decision, Verdict};

use self::book::Book;
use crate::effects::Effect;
use crate::history::{Call, Fault, Run, Shown, ShownWorkflow};
use crate::journal::Line;

/// Takes in the lines of a run, file by file and in any order, and decides.
#[derive(Debug)]
pub struct Judge(Book);

impl Judge {
    /// Knows nothing yet.
    pub fn new(run: Run) -> Self {
        Self(Book::new(run))
    }

    /// A line of the clients.
    pub fn call(&mut self, line: Line<Call>) {
        self.0.call(line);
    }

    /// A line of the workers.
    pub fn effect(&mut self, line: Line<Effect>) {
        self.0.effect(line);
    }

    /// A line of whoever broke things.
    pub fn fault(&mut self, line: Line<Fault>) {
        self.0.fault(line);
    }

    /// A line of what the server shows.
    pub fn shown(&mut self, line: Line<Shown>) {
        self.0.shown(line);
    }

    /// A workflow that the server shows.
    pub fn shown_workflow(&mut self, line: Line<ShownWorkflow>) {
        self.0.shown_workflow(line);
    }

    /// All lines were taken in: tells what is wrong, and how much happened.
    pub fn decide(self) -> (Findings, Figures) {
        let mut book = self.0;
        book.faults.seal();
        book.procs.seal();
        for task in &mut book.tasks {
            task.marks.sort_by_key(|mark| (mark.epoch, mark.at));
        }
        let findings = checks::all(&book);
        let figures = figures::of(&book, &findings);
        (findings, figures)
    }
}
