//! Leaders: when one is killed, another node leads soon.

use super::MS;
use crate::history::FaultKind;
use crate::judge::book::Book;
use crate::judge::class::Class;
use crate::judge::faults::Spell;
use crate::judge::findings::{Findings, Violation};

pub(super) fn check(book: &Book, found: &mut Findings) {
    let spells = book.faults.all().iter();
    for spell in spells.filter(|spell| spell.kind == FaultKind::Leaderless) {
        let took = (spell.end - spell.begin).saturating_sub(stalled(book, spell));
        if took > 2 * book.ttl() {
            let detail =
                format!("no node led for {} ms after {} was killed", took / MS, { &spell.target });
            let (mono_ns, class) = (spell.begin, Class::Leaderless);
            found.add(Violation { class, detail, mono_ns, tasks: Vec::new(), keys: Vec::new() });
        }
    }
}

/// How much of it the machine did not let processes run; none can lead then.
fn stalled(book: &Book, during: &Spell) -> u64 {
    let stalls = book.faults.all().iter().filter(|spell| spell.kind == FaultKind::Stall);
    let shared =
        |stall: &Spell| stall.end.min(during.end).saturating_sub(stall.begin.max(during.begin));
    stalls.map(shared).sum()
}
