"""The report of an experiment: one HTML page that needs nothing else, and the PNGs in it."""

import base64
import html
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onboard.analysis.ab.experiment import ProtocolResult
from onboard.analysis.ab.pictures import draw_episodes, draw_intervals
from onboard.analysis.ab.verdict import Verdict, overall

STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}td,th{padding:.2em .8em;text-align:right}
td:first-child,th:first-child,td:last-child,th:last-child{text-align:left}tr{border-bottom:1px solid #ddd}
.keep{color:#1f5a96}.drop{color:#b05f10}.undecided{color:#777}img{max-width:100%}
pre{background:#f5f5f5;padding:1em;overflow-x:auto}"""

RULE = (
    "Change = (drop - keep) / keep of the means over blocks: what dropping the residual costs. Its 95 % "
    "interval decides: drop when its upper end is at most 10 %, keep when its lower end is above 20 %, else "
    "undecided. Smaller is better for every metric; a fall or a safety stop counts as twice the worst "
    "seen. A drop is withheld while dropping surely raises the action rate by more than 10 %."
)


def write_report(
    results: Sequence[ProtocolResult], facts: Mapping[str, Any], notes: Sequence[str], out: Path
) -> Path:
    """Write `report.html` and its pictures into a folder; the page's path.

    Args:
        results: by protocol.
        facts: about the experiment, shown as they are: policy, residual, seed, schedule.
        notes: sentences that the reader must know.
        out: folder, made where it is missing.
    """
    out.mkdir(parents=True, exist_ok=True)
    word = overall([result.word for result in results])
    title = f"{facts.get('policy', '')}: {word}"
    parts = [f"<h1>{html.escape(title)}</h1>", f"<p>{html.escape(RULE)}</p>"]
    parts += [f"<p>{html.escape(note)}</p>" for note in notes]
    for result in results:
        parts.append(_protocol(result, out))
    parts.append(f"<h2>Experiment</h2><pre>{html.escape(json.dumps(facts, indent=1, default=str))}</pre>")
    page = f'<!doctype html><meta charset="utf-8"><title>{html.escape(title)}</title><style>{STYLE}</style>'
    path = out / "report.html"
    path.write_text(page + "\n".join(parts), encoding="utf-8")
    return path


def number(value: float, form: str) -> str:
    """A number for a table; what is not finite is a dash."""
    return format(value, form) if math.isfinite(value) else "-"


def cells(verdict: Verdict) -> list[str]:
    """One row of a table of verdicts."""
    low, high = verdict.ci_percent
    return [
        verdict.metric,
        number(verdict.keep, ".4g"),
        number(verdict.drop, ".4g"),
        number(verdict.change_percent, "+.1f"),
        f"{number(low, '+.1f')} to {number(high, '+.1f')}",
        verdict.word,
        str(verdict.episodes),
        str(verdict.aborted),
        verdict.why,
    ]


HEADS = ("metric", "keep", "drop", "change %", "95 % interval", "verdict", "episodes", "aborted", "remark")


def _protocol(result: ProtocolResult, out: Path) -> str:
    name = "".join(letter if letter.isalnum() else "_" for letter in result.name)
    intervals = draw_intervals(result, out / f"{name}.png")
    episodes = draw_episodes(result, out / f"{name}_episodes.png")
    head = "".join(f"<th>{html.escape(text)}" for text in HEADS)
    rows = "".join(
        f'<tr class="{verdict.word}">' + "".join(f"<td>{html.escape(text)}" for text in cells(verdict))
        for verdict in result.verdicts
    )
    falls = ", ".join(f"{count} in {arm}" for arm, count in result.falls.items())
    images = "".join(
        f'<p><img alt="{html.escape(path.stem)}" src="data:image/png;base64,'
        f'{base64.b64encode(path.read_bytes()).decode()}">'
        for path in (intervals, episodes)
    )
    stops = html.escape(json.dumps(result.stops))
    return (
        f"<h2>{html.escape(result.name)}: {result.word}</h2><p>{html.escape(result.why)}</p>"
        f"<p>Falls: {falls}. Safety stops: {stops}.</p><table><tr>{head}</tr>{rows}</table>{images}"
    )
