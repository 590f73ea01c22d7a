"""A slow search for the due times of calendar triggers, written from the rules and not from the program.

Reads one trigger a line, {"units": {...}, "zone": "...", "after": SECONDS, "until": SECONDS, "count": N}, and writes for each the seconds of
its next due times as a JSON array. The program is asked for no more than `until`.

It goes through the days, and through the minutes of each day that fits, as zoneinfo has them.
"""
import datetime
import json
import sys
import zoneinfo

UTC = datetime.timezone.utc
DAY = datetime.timedelta(days=1)
DATE_UNITS = ["year", "quarter", "month", "weekOfYear", "weekOfMonth", "weekdayOrdinal", "weekday", "day"]


def sunday_first(day):
    """1 is Sunday."""
    return day.isoweekday() % 7 + 1


def week_of_year(day):
    saturday = day + datetime.timedelta(days=7 - sunday_first(day))
    first = datetime.date(saturday.year, 1, 1)
    return ((saturday - first).days + sunday_first(first) - 1) // 7 + 1


def value(day, unit):
    if unit == "quarter":
        return (day.month + 2) // 3
    if unit == "weekday":
        return sunday_first(day)
    if unit == "weekdayOrdinal":
        return (day.day + 6) // 7
    if unit == "weekOfMonth":
        return (day.day + sunday_first(day.replace(day=1)) + 5) // 7
    if unit == "weekOfYear":
        return week_of_year(day)
    return getattr(day, unit)


def fits(day, units):
    if all(value(day, unit) == wanted for unit, wanted in units.items()):
        return True
    # The first of a month stands for the days that the month before does not have.
    if day.day != 1 or "day" not in units:
        return False
    last = day - DAY
    if period(day, units) is not None and period(day, units) != period(last, units):
        return False
    return units["day"] > last.day and all(
        value(last if unit in ("year", "quarter", "month") else day, unit) == wanted for unit, wanted in units.items() if unit != "day")


def period(day, units):
    """What a trigger is due once in; None where it is due on each day that fits."""
    if "month" in units:
        return None if "day" in units else (day.year, day.month)
    if "quarter" in units:
        return (day.year, value(day, "quarter"))
    return (day.year,) if "year" in units else None


def minutes(day, zone):
    """Each minute that the zone's clocks show on a day, as (UTC seconds, minute of the day), in order."""
    start = datetime.datetime(day.year, day.month, day.day, tzinfo=UTC)
    first = int(start.timestamp()) - 15 * 3600
    for second in range(first, first + 54 * 3600, 60):
        local = datetime.datetime.fromtimestamp(second, zone)
        if local.date() == day:
            yield second, local.hour * 60 + local.minute
        elif local.date() > day:
            return


def times(day, zone, units):
    """The due times on a day that fits, in order."""
    hour, minute, second = units.get("hour"), units.get("minute"), units.get("second")
    if hour is None and minute is None and second is None:
        hour = 0
    if minute is None and second is None:
        minute = 0
    if hour is not None and minute is None:
        minute = 0
    seconds = second or 0
    shown = list(minutes(day, zone))
    wanted = [of_day for of_day in range(1440) if hour in (None, of_day // 60) and minute in (None, of_day % 60)]
    due, times_of = set(), {}
    for at, of_day in shown:
        times_of.setdefault(of_day, []).append(at)
    for of_day in wanted:
        matching = times_of.get(of_day, [])
        # A time of day that exists twice is due the first time only; without an hour it is due in each hour.
        due.update(at + seconds for at in (matching if hour is None else matching[:1]) or gap(day, zone, of_day))
    return sorted(due)


def gap(day, zone, of_day):
    """When a time of day is due that a gap skips: as much later as the gap is long."""
    wanted = datetime.datetime(day.year, day.month, day.day, tzinfo=UTC) + datetime.timedelta(minutes=of_day)
    second = int(wanted.timestamp()) - 30 * 3600
    while True:
        local = datetime.datetime.fromtimestamp(second, zone)
        if local.replace(tzinfo=UTC) > wanted:
            before = datetime.datetime.fromtimestamp(second - 60, zone).replace(tzinfo=UTC)
            return [second - 60 + int((wanted - before).total_seconds())]
        second += 60


def search(question):
    units, zone = question["units"], zoneinfo.ZoneInfo(question["zone"])
    dates = {unit: units[unit] for unit in DATE_UNITS if unit in units}
    # A gap at the end of a day moves its times into the next one.
    day = datetime.datetime.fromtimestamp(question["after"], zone).date() - DAY
    if period(day, dates):
        day = datetime.date(day.year, 1, 1)
    found, done = [], None
    while len(found) < question["count"]:
        here = period(day, dates)
        if fits(day, dates) and (here is None or here != done):
            due = times(day, zone, units)
            if here is not None and due:
                due, done = due[:1], here
            found += [at for at in due if at > question["after"] and at not in found]
        day += DAY
        if day.year > 9990 or datetime.datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() > question["until"]:
            break
    return [at for at in found if at <= question["until"]][: question["count"]]


for line in sys.stdin:
    print(json.dumps(search(json.loads(line))), flush=True)
