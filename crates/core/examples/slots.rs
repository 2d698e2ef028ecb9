//! Prints the slots of cron expressions, for a comparison with another implementation.
//!
//! Reads lines `zone<TAB>expression<TAB>from<TAB>until` from the standard input, the two instants in
//! seconds since 1970. Writes for each line one line of slots from `from` up to before `until`, in seconds
//! since 1970, the first as it is and every other as its distance from the one before.

use std::io::{self, BufRead, BufWriter, Error, Write};

use duly_core::schedule::{Rule, ScheduleDraft};
use duly_core::time::Timestamp;

fn main() -> io::Result<()> {
    let mut output = BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let line = line?;
        let slots = slots(&line).map_err(|why| Error::other(format!("{line}: {why}")))?;
        let mut before = 0;
        for slot in slots {
            let second = slot.millis() / 1000;
            write!(output, "{} ", second - before)?;
            before = second;
        }
        writeln!(output)?;
    }
    output.flush()
}

fn slots(line: &str) -> Result<Vec<Timestamp>, String> {
    let [zone, expression, from, until] = line.split('\t').collect::<Vec<_>>()[..] else {
        return Err("not four columns".to_owned());
    };
    let instant = |text: &str| {
        let second: i64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
        Ok::<_, String>(Timestamp::clamped(second.saturating_mul(1000) - 1))
    };
    let (after, until) = (instant(from)?, instant(until)?);
    Ok(rule(zone, expression)?.slots(after, until, usize::MAX))
}

fn rule(zone: &str, expression: &str) -> Result<Rule, String> {
    let draft = ScheduleDraft {
        cron: Some(expression.to_owned()),
        time_zone: Some(zone.to_owned()),
        ..ScheduleDraft::default()
    };
    draft.read().map_err(|errors| format!("{errors:?}"))
}
