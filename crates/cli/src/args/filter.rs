//! Filter terms on the command line.

use clap::Args;

/// Selects tasks or dead letters; see docs/filters.md.
#[derive(Debug, Default, Args)]
pub(crate) struct FilterArgs {
    /// Filter terms that must all match: status:FAILED,CANCELLED queue:NAME type:NAME label.KEY:VALUE
    /// since:24h until:INSTANT error:TEXT group:GROUP worker:NAME
    #[arg(value_name = "TERM")]
    pub(crate) terms: Vec<String>,
    /// All terms as one text, such as 'queue:mail error:"timed out" since:24h'
    #[arg(long, value_name = "TERMS", conflicts_with = "terms")]
    pub(crate) filter: Option<String>,
    /// Only tasks in this state, or in one of several, such as failed,cancelled
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,
    /// Only tasks of this queue
    #[arg(long, value_name = "QUEUE")]
    pub(crate) queue: Option<String>,
    /// Only tasks of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) task_type: Option<String>,
}

impl FilterArgs {
    /// The filter as one text.
    pub(crate) fn text(&self) -> String {
        let mut terms: Vec<_> = self.filter.iter().cloned().collect();
        terms.extend(self.terms.iter().map(|term| quoted(term)));
        let flags = [("status", &self.status), ("queue", &self.queue), ("type", &self.task_type)];
        for (key, value) in flags {
            terms.extend(value.iter().map(|value| quoted(&format!("{key}:{value}"))));
        }
        terms.join(" ")
    }

    /// Whether it selects everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.text().trim().is_empty()
    }

    /// The filter as a flag for a shell, with a leading space; empty without a filter.
    pub(crate) fn flag(&self) -> String {
        let text = self.text();
        match text.trim() {
            "" => String::new(),
            _ => format!(" --filter '{}'", text.replace('\'', r"'\''")),
        }
    }
}

/// One argument is one term. The shell has removed the quotes of `error:"timed out"`, so this
/// restores them where a value needs them.
fn quoted(term: &str) -> String {
    let special = |c: char| c.is_whitespace() || c == '"';
    match term.split_once(':') {
        Some((key, value))
            if value.contains(special) && !value.starts_with('"') && !key.contains('"') =>
        {
            format!("{key}:\"{}\"", value.replace('\\', r"\\").replace('"', r#"\""#))
        }
        _ => term.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(terms: &[&str]) -> FilterArgs {
        let terms = terms.iter().map(|&term| term.to_owned()).collect();
        FilterArgs { terms, ..FilterArgs::default() }
    }

    #[test]
    fn flags_are_terms() {
        let short = FilterArgs {
            filter: Some("since:1h".to_owned()),
            status: Some("failed".to_owned()),
            queue: Some("mail".to_owned()),
            task_type: Some("email".to_owned()),
            ..FilterArgs::default()
        };
        assert_eq!(short.text(), "since:1h status:failed queue:mail type:email");
        assert!(!short.is_empty() && args(&[]).is_empty() && args(&[" "]).is_empty());
    }

    #[test]
    fn one_argument_is_one_term() {
        for (terms, text) in [
            (vec![], ""),
            (vec!["queue:mail", "since:24h"], "queue:mail since:24h"),
            (vec!["error:timed out", "type:a"], r#"error:"timed out" type:a"#),
            (vec![r"error:C:\new file"], r#"error:"C:\\new file""#),
            (vec![r#"error:"timed out""#], r#"error:"timed out""#),
            (vec![r#"error:no user "ada""#], r#"error:"no user \"ada\"""#),
            (vec![r#"label."a b":c"#], r#"label."a b":c"#),
            (vec!["mail"], "mail"),
        ] {
            assert_eq!(args(&terms).text(), text);
        }
    }

    #[test]
    fn the_flag_means_the_same_to_a_shell() {
        assert_eq!(args(&[]).flag(), "");
        assert_eq!(args(&["queue:mail"]).flag(), " --filter 'queue:mail'");
        assert_eq!(args(&["error:it's bad"]).flag(), r#" --filter 'error:"it'\''s bad"'"#);
    }
}
