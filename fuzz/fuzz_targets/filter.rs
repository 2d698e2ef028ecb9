//! Filters of lists: what is read survives its own text.

#![no_main]

use duly_core::filter::Filter;
use duly_core::time::Timestamp;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let now = Timestamp::from_millis(1_900_000_000_000);
    for parse in [Filter::parse, Filter::parse_dead] {
        let _ = parse(text, now);
    }
    if let Ok(filter) = Filter::parse(text, now) {
        assert_eq!(Filter::parse(&filter.to_string(), now), Ok(filter));
    }
});
