//! Draws workflows: as text, for Graphviz, for Mermaid, and as an image.

use std::fmt::Write as _;

use duly_core::state::Status;
use duly_core::workflow::Condition;

use super::picture::{Node, Picture};

/// Tasks of a layer that are drawn as text.
const NAMED: usize = 8;

/// Layers one below the other.
pub(super) fn text(picture: &Picture) -> String {
    let mut out = String::new();
    for (index, layer) in picture.layers().into_iter().enumerate() {
        if index > 0 {
            out.push_str("  ↓\n");
        }
        let named = layer.iter().take(NAMED).map(|node| {
            let node = &picture.nodes[*node];
            format!("{} {}", mark(node.status), node.label)
        });
        let mut line = named.collect::<Vec<_>>().join("   ");
        if layer.len() > NAMED {
            let _ = write!(line, "   and {} more", layer.len() - NAMED);
        }
        let _ = writeln!(out, "{line}");
    }
    out
}

fn mark(status: Option<Status>) -> char {
    match status {
        None | Some(Status::Blocked) => '○',
        Some(Status::Pending) => '◔',
        Some(Status::Running) => '●',
        Some(Status::Success) => '✔',
        Some(Status::Failed) => '✖',
        Some(Status::Cancelled) => '⊘',
    }
}

fn fill(status: Option<Status>) -> &'static str {
    match status {
        None | Some(Status::Blocked) => "#f1f3f5",
        Some(Status::Pending) => "#fff3bf",
        Some(Status::Running) => "#d0ebff",
        Some(Status::Success) => "#d3f9d8",
        Some(Status::Failed) => "#ffe3e3",
        Some(Status::Cancelled) => "#dee2e6",
    }
}

/// What an edge says; nothing of the common case.
fn condition(on: Condition) -> &'static str {
    if on == Condition::Success { "" } else { on.as_str() }
}

/// For `dot -Tsvg`.
pub(super) fn dot(picture: &Picture) -> String {
    let mut out = String::from(
        "digraph workflow {\n  rankdir=LR;\n  node [shape=box, style=\"rounded,filled\"];\n",
    );
    let quote = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    for (index, Node { label, status, .. }) in picture.nodes.iter().enumerate() {
        let _ =
            writeln!(out, "  n{index} [label={}, fillcolor=\"{}\"];", quote(label), fill(*status));
    }
    for (from, to, on) in &picture.edges {
        let style = match condition(*on) {
            "" => String::new(),
            word => format!(" [label=\"{word}\", style=dashed]"),
        };
        let _ = writeln!(out, "  n{from} -> n{to}{style};");
    }
    out + "}\n"
}

/// For Markdown.
pub(super) fn mermaid(picture: &Picture) -> String {
    let mut out = String::from("flowchart LR\n");
    for (index, Node { label, .. }) in picture.nodes.iter().enumerate() {
        let _ = writeln!(out, "    n{index}[\"{}\"]", label.replace('"', "#quot;"));
    }
    for (from, to, on) in &picture.edges {
        let arrow = match condition(*on) {
            "" => "-->".to_owned(),
            word => format!("-. {word} .->"),
        };
        let _ = writeln!(out, "    n{from} {arrow} n{to}");
    }
    for (index, node) in picture.nodes.iter().enumerate().filter(|(_, it)| it.status.is_some()) {
        let _ = writeln!(out, "    style n{index} fill:{}", fill(node.status));
    }
    out
}

const WIDTH: usize = 150;
const HEIGHT: usize = 36;
const GAP: (usize, usize) = (60, 16);
const MARGIN: usize = 12;

/// An image that needs nothing else.
pub(super) fn svg(picture: &Picture) -> String {
    let layers = picture.layers();
    let rows = layers.iter().map(Vec::len).max().unwrap_or(0);
    let size = (
        2 * MARGIN + layers.len() * (WIDTH + GAP.0) - GAP.0.min(layers.len() * GAP.0),
        2 * MARGIN + rows * (HEIGHT + GAP.1) - GAP.1.min(rows * GAP.1),
    );
    let mut places = vec![(0, 0); picture.nodes.len()];
    for (column, layer) in layers.iter().enumerate() {
        let above = (rows - layer.len()) * (HEIGHT + GAP.1) / 2;
        for (row, node) in layer.iter().enumerate() {
            let x = MARGIN + column * (WIDTH + GAP.0);
            places[*node] = (x, MARGIN + above + row * (HEIGHT + GAP.1));
        }
    }
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" \
         height=\"{1}\" font-family=\"sans-serif\" font-size=\"13\">\n",
        size.0, size.1
    );
    for (from, to, on) in &picture.edges {
        let (x, y) = (places[*from].0 + WIDTH, places[*from].1 + HEIGHT / 2);
        let (end, target) = (places[*to].0, places[*to].1 + HEIGHT / 2);
        let middle = usize::midpoint(x, end);
        let dash = if *on == Condition::Success { "" } else { " stroke-dasharray=\"5 4\"" };
        let _ = writeln!(
            out,
            "  <path d=\"M{x} {y} C{middle} {y} {middle} {target} {end} {target}\" fill=\"none\" \
             stroke=\"#868e96\"{dash}/>"
        );
        if !condition(*on).is_empty() {
            let (x, y) = (middle, usize::midpoint(y, target).saturating_sub(4));
            let word = condition(*on);
            let _ = writeln!(
                out,
                "  <text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" font-size=\"11\" \
                 fill=\"#868e96\">{word}</text>"
            );
        }
    }
    for (Node { label, status, .. }, (x, y)) in picture.nodes.iter().zip(&places) {
        let color = fill(*status);
        let _ = writeln!(
            out,
            "  <rect x=\"{x}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"6\" \
             fill=\"{color}\" stroke=\"#868e96\"/>"
        );
        let (x, y) = (x + WIDTH / 2, y + HEIGHT / 2 + 5);
        let label = escape(&shorten(label));
        let _ = writeln!(out, "  <text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{label}</text>");
    }
    out + "</svg>\n"
}

fn shorten(label: &str) -> String {
    const CHARS: usize = 20;
    match label.char_indices().nth(CHARS) {
        Some((end, _)) => format!("{}…", &label[..end]),
        None => label.to_owned(),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture() -> Picture {
        let body = br#"{"tasks":{"pay":{"type":"echo"},"ship":{"type":"echo","dependsOn":["pay"]},
            "refund":{"type":"echo","dependsOn":[{"task":"pay","on":"failure"}]}}}"#;
        Picture::of_spec(&duly_api::check_workflow(body).unwrap())
    }

    #[test]
    fn layers_follow_the_edges() {
        assert_eq!(text(&picture()), "○ pay\n  ↓\n○ ship   ○ refund\n");
    }

    #[test]
    fn other_programs_can_read_it() {
        let dot = dot(&picture());
        assert!(dot.contains("n0 -> n1;") && dot.contains("n0 -> n2 [label=\"failure\""), "{dot}");
        let mermaid = mermaid(&picture());
        assert!(mermaid.starts_with("flowchart LR\n    n0[\"pay\"]\n"), "{mermaid}");
        assert!(mermaid.contains("n0 -. failure .-> n2"), "{mermaid}");
        let svg = svg(&picture());
        assert_eq!((svg.matches("<rect").count(), svg.matches("<path").count()), (3, 2));
        assert!(svg.ends_with("</svg>\n"));
    }
}
