//! A verdict on a terminal.

use std::fmt::{self, Display};

use super::verdict::{Decision, Verdict};

impl Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(problem) = &self.problem {
            return writeln!(f, "UNKNOWN: {problem}");
        }
        let (seed, version) = (self.seed.unwrap_or(0), self.version.as_deref().unwrap_or("?"));
        writeln!(f, "seed {seed}, version {version}")?;
        for (name, value) in self.rows() {
            writeln!(f, "  {name:<26}{value}")?;
        }
        for minimum in &self.minima {
            let word = if minimum.met { "met" } else { "MISSED" };
            let (name, wanted, got) = (minimum.name, minimum.wanted, minimum.got);
            writeln!(f, "  at least {wanted} {name}: {got}, {word}")?;
        }
        for (class, count) in &self.violations {
            writeln!(f, "  {count} x {}: {}", class.name(), class.sentence())?;
        }
        let word = match self.verdict {
            Decision::Valid => "VALID",
            Decision::Violated => "VIOLATED",
            Decision::Unknown => "UNKNOWN: not enough happened to prove anything",
        };
        writeln!(f, "{word}")?;
        self.first.first().map_or(Ok(()), |witness| write!(f, "\nfirst violation\n{witness}"))
    }
}

impl Verdict {
    fn rows(&self) -> Vec<(&'static str, String)> {
        let it = &self.figures;
        let workers = it.kills - it.server_kills;
        let (late, latest) = (it.lateness_p50_ms, it.lateness_p99_ms);
        vec![
            ("acknowledged tasks", it.acked.to_string()),
            ("shown tasks", it.tasks.to_string()),
            ("acknowledged workflows", {
                let (failed, cancelled) = (it.workflows_failed, it.workflows_cancelled);
                format!("{}, {failed} failed, {cancelled} cancelled", it.workflows)
            }),
            ("submits acknowledged", format!("{} %", it.submits_ok_percent)),
            ("unknown answers", format!("{}, and {} none", it.unknown_answers, it.unanswered)),
            ("executions", it.executions.to_string()),
            ("of tasks with a delay", it.delayed_starts.to_string()),
            ("tasks executed again", it.tasks_executed_again.to_string()),
            ("executed again, unnoted", it.followed_unnoted.to_string()),
            ("lease losses", it.lease_losses.to_string()),
            ("refused outcomes", it.refusals.to_string()),
            ("lateness", format!("{late} ms, 99 % below {latest} ms, {} early", it.early_starts)),
            ("faults", format!("{}, {} % while work ran", it.faults, it.in_flight_percent)),
            ("kills", format!("{} of servers, {workers} of workers", it.server_kills)),
            ("kills of the leader", {
                format!("{}, {} ms without one", it.leader_kills, it.leaderless_ms)
            }),
            ("database", {
                format!("{} restarts, {} terminations", it.database_restarts, it.terminations)
            }),
            ("pauses, restarts", format!("{}, {}", it.pauses, it.restarts)),
            ("cuts, holds, delays", format!("{}, {}, {}", it.cuts, it.holds, it.delays)),
            ("resets, disk full, aborts", {
                format!("{}, {}, {}", it.resets, it.disk_full, it.aborts)
            }),
            ("half lines", self.half_lines.to_string()),
        ]
    }
}
