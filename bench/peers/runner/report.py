"""The table on the terminal, the ratios, and which rows are empty."""

from . import ours
from .peers import DELAYED, IDLE, PEERS

COLUMNS = ("submit single", "submit bulk", "drain", *IDLE, *DELAYED)
HEADS = ("single/s", "bulk/s", "drain/s", "idle p50", "p99", "max ms", "late p50", "p99", "max ms", "early")


def with_ratios(rows):
    """Adds ours / theirs: more is better for a rate, less is better for a time."""
    mine = {(row["peer"], row["figure"]): row["value"] for row in rows if row["peer"] in ours.NAMES_OF_OURS}
    stores = {peer.name: peer.store for peer in PEERS}
    for row in rows:
        if row["peer"] in ours.NAMES_OF_OURS:
            continue
        store = stores[row["peer"]]
        row["besideOurs"] = like = ours.PEER_POSTGRES if store == "postgres" else ours.PEER
        figure = alike(row["figure"], store)
        if (like, figure) in mine and row["value"] > 0:
            row["ratio"] = round(mine[like, figure] / row["value"], 3)
    return rows


def alike(figure, store):
    """Our figure that crosses a socket where theirs does; None where we have none."""
    if figure == "early" or (store == "sqlite" and figure == "submit single"):
        return None
    if store == "redis" and figure in IDLE + DELAYED:
        return None
    return figure if store == "sqlite" or figure not in ("submit bulk", "drain") else f"{figure} over HTTP"


def missing(rows, peers, names_of_ours):
    """Figures that should be there and are not."""
    there = {(row["peer"], row["figure"]) for row in rows}
    wanted = [(peer.name, figure) for peer in peers for figure in peer.figures()]
    wanted += [(name, figure) for name in names_of_ours for figure in ours.FIGURES]
    return [f"{peer}: {figure}" for peer, figure in wanted if (peer, figure) not in there]


def tables(rows):
    names = list(dict.fromkeys(row["peer"] for row in rows))
    return "\n\n".join((
        "Measured (best round; – is what the peer does not have)\n" + table(rows, names, "value"),
        "Ours / theirs: in process beside SQLite, over HTTP beside the others, on PostgreSQL where theirs is\n"
        "(a rate: more is better for us; a time: less is)\n"
        + table(rows, [name for name in names if name not in ours.NAMES_OF_OURS], "ratio"),
    ))


def table(rows, names, key):
    cells = {(row["peer"], row["figure"]): row.get(key) for row in rows}
    lines = [["peer", *HEADS]]
    for name in names:
        lines.append([name, *(number(cells.get((name, column))) for column in COLUMNS)])
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:]))])
        for line in lines
    )


def number(value):
    if value is None:
        return "–"
    if float(value).is_integer() or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:,.2f}" if abs(value) < 10 else f"{value:,.1f}"
