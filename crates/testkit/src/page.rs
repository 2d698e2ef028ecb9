//! Parts of pages that are made from results, so that no figure is typed by hand.

use anyhow::Context as _;

/// The page with this text between the marks `<!-- name: begin -->` and `<!-- name: end -->`.
pub fn filled(page: &str, name: &str, text: &str) -> anyhow::Result<String> {
    let (begin, end) = (format!("<!-- {name}: begin -->"), format!("<!-- {name}: end -->"));
    let (before, rest) =
        page.split_once(&begin).with_context(|| format!("the page has no {begin}"))?;
    let (_, after) = rest.split_once(&end).with_context(|| format!("the page has no {end}"))?;
    Ok(format!("{before}{begin}\n\n{}\n\n{end}{after}", text.trim()))
}

/// 1234567 as 1,234,567.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let page = "a\n<!-- x: begin -->\nold\n<!-- x: end -->\nz\n";
        let expected = "a\n<!-- x: begin -->\n\nnew\n\n<!-- x: end -->\nz\n";
        assert_eq!(filled(page, "x", "new\n").ok().as_deref(), Some(expected));
        assert_eq!(filled(expected, "x", "new").ok().as_deref(), Some(expected));
        assert!(filled(page, "y", "new").is_err());
    }

    #[test]
    fn digits_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text);
        }
    }
}
