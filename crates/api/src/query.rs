//! The values of query parameters. Names that a route does not take never get here: see
//! [`crate::route_table`].

use axum::extract::Query;
use axum::http::Uri;
use duly_core::filter::{self, BadFilter};
use duly_core::time::Timestamp;

use crate::app::App;
use crate::error::{ApiError, Code};

/// The value of each of `names`, in that order. The names must be those of the OpenAPI document.
pub(crate) fn read<const N: usize>(
    uri: &Uri,
    names: [&'static str; N],
) -> Result<[Option<String>; N], ApiError> {
    let mut values = [const { None }; N];
    for (name, value) in pairs(uri)? {
        if let Some(at) = names.iter().position(|known| *known == name) {
            values[at] = Some(value);
        }
    }
    Ok(values)
}

/// The parameters of a query, as they come.
pub(crate) fn pairs(uri: &Uri) -> Result<Vec<(String, String)>, ApiError> {
    if uri.query().is_none_or(str::is_empty) {
        return Ok(Vec::new());
    }
    let Query(pairs) = Query::try_from_uri(uri).map_err(|_| invalid("the query cannot be read"))?;
    Ok(pairs)
}

/// How many items a page may have: what the parameter `limit` says, or the default.
pub(crate) fn limit(text: Option<String>, default: u32, most: u32) -> Result<u32, ApiError> {
    whole("limit", text, default, most)
}

/// A parameter that is a whole number from 1 on, or the default.
pub(crate) fn whole(
    name: &str,
    text: Option<String>,
    default: u32,
    most: u32,
) -> Result<u32, ApiError> {
    let Some(text) = text else { return Ok(default) };
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| invalid(format!("`{name}` must be a whole number from 1 to {most}")))
}

/// The filter of a list: what the parameter `filter` says. Times ago refer to the store's clock,
/// by which tasks are due and fail.
pub(crate) async fn filter<F: Default>(
    app: &App,
    text: &str,
    parse: fn(&str, Timestamp) -> Result<F, BadFilter>,
) -> Result<F, ApiError> {
    if text.is_empty() {
        return Ok(F::default());
    }
    let filter = parse(text, app.engine.now().await?);
    filter.map_err(|bad| invalid(format!("`filter`: {bad}")))
}

/// The instant that the parameter `since` means, by the store's clock.
pub(crate) async fn since(app: &App, text: Option<String>) -> Result<Option<Timestamp>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    let since = filter::instant(&text, app.engine.now().await?);
    let rule = "`since` must be an instant or a time ago, such as 24h";
    since.map(Some).ok_or_else(|| invalid(rule))
}

/// A refusal that says what the parameter should be.
pub(crate) fn invalid(detail: impl Into<std::borrow::Cow<'static, str>>) -> ApiError {
    ApiError::new(Code::InvalidParameter, detail)
}
