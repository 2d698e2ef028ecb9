//! The back-off of retries on the command line: `fixed,base=5s,cap=1m,jitter=none`.

use duly_client::wire::Backoff;

use super::duration;

/// Parses a strategy and its parameters.
pub(super) fn parse_back_off(text: &str) -> Result<Backoff, String> {
    let mut parts = text.split(',');
    let strategy = parts.next().unwrap_or_default();
    if !matches!(strategy, "none" | "fixed" | "linear" | "exponential") {
        return Err("must begin with none, fixed, linear or exponential, as in \
                    exponential,base=1s,factor=2,cap=1h,jitter=full"
            .to_owned());
    }
    let mut read = Backoff { strategy: Some(strategy.to_owned()), ..Backoff::default() };
    for part in parts {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let seconds = || match duration(value) {
            Ok(wait) => Ok(Some(wait.as_secs_f64())),
            Err(why) => Err(format!("{name}: {why}")),
        };
        match name {
            "base" => read.base_seconds = seconds()?,
            "cap" => read.cap_seconds = seconds()?,
            "factor" => {
                read.factor = Some(value.parse().map_err(|_| "factor: not a number".to_owned())?);
            }
            "jitter" if matches!(value, "none" | "equal" | "full") => {
                read.jitter = Some(value.to_owned());
            }
            "jitter" => return Err("jitter: must be none, equal or full".to_owned()),
            _ => {
                return Err(format!(
                    "`{part}` is unknown; use base=DURATION, factor=N, cap=DURATION or jitter=KIND"
                ));
            }
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strategy_and_its_numbers_are_read() {
        let text = "exponential,base=500ms,factor=1.5,cap=1m,jitter=equal";
        let expected = Backoff {
            strategy: Some("exponential".to_owned()),
            base_seconds: Some(0.5),
            factor: Some(1.5),
            cap_seconds: Some(60.0),
            jitter: Some("equal".to_owned()),
        };
        assert_eq!(parse_back_off(text), Ok(expected));
        let none = Backoff { strategy: Some("none".to_owned()), ..Backoff::default() };
        assert_eq!(parse_back_off("none"), Ok(none));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, words) in [
            ("", "must begin with"),
            ("base=5s", "must begin with"),
            ("fixed,5s", "`5s` is unknown"),
            ("fixed,base=soon", "base: not a duration"),
            ("exponential,factor=x", "factor: not a number"),
            ("linear,jitter=much", "jitter: must be"),
        ] {
            assert!(parse_back_off(text).unwrap_err().contains(words), "{text}");
        }
    }
}
