//! Expressions in plain English. Said from the values that match, so that two spellings of the same
//! times read the same.

use super::field::{Field, Item};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const ORDINALS: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];
/// Times of day that are told one by one; more are told by hours and minutes.
const TIMES: usize = 6;

/// A sentence without its full stop.
pub(super) fn describe([second, minute, hour, day, month, weekday]: &[Field; 6]) -> String {
    let mut parts = vec![times(second, minute, hour)];
    parts.extend(days(day, weekday));
    parts.extend(months(month));
    let text = parts.join(", ");
    let first = text.chars().next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(text.chars().skip(1)).collect()
}

/// What the values of a field amount to.
enum Shape {
    /// Every value.
    All,
    /// Every n-th value, from the first one.
    Every(usize),
    /// These.
    Some(Vec<usize>),
}

fn shape(field: &Field, count: usize) -> Shape {
    let mask = field.mask();
    let values: Vec<usize> = (0..count).filter(|value| mask >> value & 1 == 1).collect();
    let step = values.get(1).copied().unwrap_or(count);
    let stepped: Vec<usize> = (0..count).step_by(step.max(1)).collect();
    match values.len() {
        all if all == count => Shape::All,
        more if more > 2 && values == stepped => Shape::Every(step),
        _ => Shape::Some(values),
    }
}

fn times(second: &Field, minute: &Field, hour: &Field) -> String {
    let [second, minute] = [second, minute].map(|field| shape(field, 60));
    let hour = shape(hour, 24);
    if let (Shape::Some(seconds), Shape::Some(minutes), Shape::Some(hours)) =
        (&second, &minute, &hour)
        && seconds.len() * minutes.len() * hours.len() <= TIMES
    {
        return format!("at {}", list(&clock_times(seconds, minutes, hours)));
    }
    let on_minute = is_zero(&second);
    let on_hour = on_minute && is_zero(&minute);
    let parts = [
        second_phrase(&second),
        minute_phrase(&minute, &second, on_hour),
        hour_phrase(&hour, &minute, on_hour),
    ];
    parts.into_iter().flatten().reduce(join).unwrap_or_default()
}

fn join(text: String, part: String) -> String {
    let comma = if part.starts_with("every") { "," } else { "" };
    format!("{text}{comma} {part}")
}

fn is_zero(shape: &Shape) -> bool {
    matches!(shape, Shape::Some(values) if *values == [0])
}

fn second_phrase(second: &Shape) -> Option<String> {
    match second {
        Shape::All => Some("every second".to_owned()),
        Shape::Every(step) => Some(each(*step, 60, "second", "minute")),
        Shape::Some(_) if is_zero(second) => None,
        Shape::Some(values) => Some(format!("at {} {}", plural("second", values), numbers(values))),
    }
}

fn minute_phrase(minute: &Shape, second: &Shape, on_hour: bool) -> Option<String> {
    match (minute, second) {
        (Shape::All, Shape::Some(_)) if is_zero(second) => Some("every minute".to_owned()),
        (Shape::All, Shape::Some(_)) => Some("of every minute".to_owned()),
        (Shape::All, _) => None,
        (Shape::Every(step), _) => Some(each(*step, 60, "minute", "hour")),
        (Shape::Some(_), _) if on_hour => None,
        (Shape::Some(values), _) => {
            Some(format!("at {} {}", plural("minute", values), numbers(values)))
        }
    }
}

fn hour_phrase(hour: &Shape, minute: &Shape, on_hour: bool) -> Option<String> {
    match (hour, minute) {
        (Shape::All, _) if on_hour => Some("every hour".to_owned()),
        (Shape::All, Shape::Some(_)) => Some("of every hour".to_owned()),
        (Shape::All, _) => None,
        (Shape::Every(step), _) => Some(each(*step, 24, "hour", "day")),
        (Shape::Some(values), _) if on_hour => {
            Some(format!("at {}", list(&clock_times(&[0], &[0], values))))
        }
        (Shape::Some(values), _) => {
            Some(format!("during {} {}", plural("hour", values), numbers(values)))
        }
    }
}

/// `every 15 minutes`, and what it is counted from where it does not go round evenly.
fn each(step: usize, count: usize, unit: &str, whole: &str) -> String {
    let from = if count.is_multiple_of(step) { String::new() } else { format!(" of each {whole}") };
    format!("every {step} {unit}s{from}")
}

fn clock_times(seconds: &[usize], minutes: &[usize], hours: &[usize]) -> Vec<String> {
    let mut times = Vec::new();
    for hour in hours {
        for minute in minutes {
            for second in seconds {
                let end = if seconds == [0] { String::new() } else { format!(":{second:02}") };
                times.push(format!("{hour:02}:{minute:02}{end}"));
            }
        }
    }
    times
}

fn days(day: &Field, weekday: &Field) -> Option<String> {
    match (day.is_any, weekday.is_any) {
        (true, true) => None,
        (false, true) => Some(month_days(day)),
        (true, false) => Some(weekdays(weekday)),
        (false, false) => Some(format!("{} or {}", month_days(day), weekdays(weekday))),
    }
}

fn month_days(field: &Field) -> String {
    let mask = field.mask();
    let plain: Vec<usize> = (1..=31).filter(|day| mask >> day & 1 == 1).collect();
    let mut parts = Vec::new();
    if plain.len() == 31 {
        parts.push("every day".to_owned());
    } else if !plain.is_empty() {
        parts.push(format!("on {} {} of the month", plural("day", &plain), numbers(&plain)));
    }
    parts.extend(field.items.iter().filter_map(|item| match item {
        Item::LastDay => Some("on the last day of the month".to_owned()),
        Item::LastWorkday => Some("on the last weekday of the month".to_owned()),
        Item::Nearest(day) => Some(format!("on the weekday nearest day {day} of the month")),
        Item::Span { .. } | Item::Nth(..) | Item::LastOf(_) => None,
    }));
    list(&parts)
}

fn weekdays(field: &Field) -> String {
    let mask = field.mask();
    let is_on = |day: usize| mask >> day & 1 == 1 || (day == 0 && mask >> 7 & 1 == 1);
    // The week begins on Monday, so that a weekend is not torn apart.
    let plain: Vec<usize> = (1..=7).filter(|day| is_on(day % 7)).collect();
    let mut parts = Vec::new();
    match runs(&plain).as_slice() {
        [] => {}
        [(1, 7)] => parts.push("every day".to_owned()),
        [(first, last)] if last - first > 1 => {
            parts.push(format!("{} through {}", WEEKDAYS[first % 7], WEEKDAYS[last % 7]));
        }
        _ => {
            let names: Vec<_> = plain.iter().map(|day| WEEKDAYS[day % 7].to_owned()).collect();
            parts.push(format!("on {}", list(&names)));
        }
    }
    let name = |day: &u8| WEEKDAYS[usize::from(*day) % 7];
    parts.extend(field.items.iter().filter_map(|item| match item {
        Item::Nth(day, n) => {
            let ordinal = ORDINALS[usize::from(*n) - 1];
            Some(format!("on the {ordinal} {} of the month", name(day)))
        }
        Item::LastOf(day) => Some(format!("on the last {} of the month", name(day))),
        Item::Span { .. } | Item::LastDay | Item::LastWorkday | Item::Nearest(_) => None,
    }));
    list(&parts)
}

fn months(field: &Field) -> Option<String> {
    let mask = field.mask();
    let months: Vec<usize> = (1..=12).filter(|month| mask >> month & 1 == 1).collect();
    if months.len() == 12 {
        return None;
    }
    let name = |month: usize| MONTHS[month - 1];
    let parts: Vec<_> = runs(&months)
        .into_iter()
        .flat_map(|(first, last)| match last - first {
            0 => vec![name(first).to_owned()],
            1 => vec![name(first).to_owned(), name(last).to_owned()],
            _ => vec![format!("{} through {}", name(first), name(last))],
        })
        .collect();
    Some(format!("in {}", list(&parts)))
}

/// Values that follow each other, as their first and last.
fn runs(values: &[usize]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for value in values {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *value => *last = *value,
            _ => runs.push((*value, *value)),
        }
    }
    runs
}

fn numbers(values: &[usize]) -> String {
    let parts: Vec<_> = runs(values)
        .into_iter()
        .flat_map(|(first, last)| match last - first {
            0 => vec![first.to_string()],
            1 => vec![first.to_string(), last.to_string()],
            _ => vec![format!("{first} to {last}")],
        })
        .collect();
    list(&parts)
}

fn plural(word: &str, values: &[usize]) -> String {
    if values.len() == 1 { word.to_owned() } else { format!("{word}s") }
}

fn list(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [only] => only.clone(),
        [front @ .., last] => format!("{} and {last}", front.join(", ")),
    }
}
