"""The table on the terminal, the ratios, and which rows are empty."""

from . import ours
from .peers import DELAYED, IDLE, PEERS

COLUMNS = ("submit single", "submit bulk", "drain", *IDLE, *DELAYED)
HEADS = ("single/s", "bulk/s", "drain/s", "idle p50", "p99", "max ms", "late p50", "p99", "max ms", "early")


def with_ratios(rows):
    """Adds ours / theirs: more is better for a rate, less is better for a time."""
    mine = {(row["peer"], row["figure"]): row["value"] for row in rows if row["peer"] in ours.NAMES_OF_OURS}
    on_postgres = {peer.name for peer in PEERS if peer.store == "postgres"}
    for row in rows:
        if row["peer"] in ours.NAMES_OF_OURS or row["figure"] == "early" or row["value"] <= 0:
            continue
        like = ours.PEER_POSTGRES if row["peer"] in on_postgres else ours.PEER
        if (like, row["figure"]) in mine:
            row["ratio"] = round(mine[like, row["figure"]] / row["value"], 3)
            row["besideOurs"] = like
    return rows


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
        "Ours / theirs, on PostgreSQL where theirs is (a rate: more is better for us; a time: less is)\n"
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
