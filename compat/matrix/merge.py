"""From results to what people read: a table, and what became worse.

Takes results by pair, what is stored of earlier runs and what is expected; gives Markdown and texts. Pure.
"""

from collections.abc import Iterator, Mapping, Sequence

from compat.matrix.data import expected
from compat.matrix.records import CellResult, Outcome, Pair

LETTERS: Mapping[Outcome, str] = {Outcome.RIGHT: "R", Outcome.WRONG: "W", Outcome.FAILS: "F"}
NOT_RUN = "-"
REFUSED = "p"
"""Put beside the letter of a pair that pip would not install."""


def mark(result: CellResult | None) -> str:
    """A cell as letters: "R", "Wp", "-"; with the number of families that are right where not all are."""
    if result is None:
        return NOT_RUN
    letter = LETTERS[result.outcome] + (REFUSED if result.pip else "")
    if result.outcome is Outcome.RIGHT or not result.families:
        return letter
    right = sum(family.outcome is Outcome.RIGHT for family in result.families)
    return f"{letter} {right}/{len(result.families)}"


def markdown(results: Mapping[Pair, CellResult], vllm: Sequence[str], transformers: Sequence[str]) -> str:
    """A table: a row for each vLLM, newest first, a column for each transformers."""
    rows = [["vLLM \\ transformers", *transformers], ["---"] * (len(transformers) + 1)]
    for version in reversed(vllm):
        rows.append([version, *(mark(results.get(Pair(version, other))) for other in transformers)])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    legend = (
        f"R every family right, W an answer was wrong, F an engine did not start (families right / run), {NOT_RUN} not run;"
        f" {REFUSED}: pip would not install the pair, by the requirements of the two."
    )
    return "\n".join([*lines, "", legend])


def column(result: CellResult) -> str:
    """A table of one pair: a row for each family, those that are right first."""
    order = list(Outcome)
    ordered = sorted(result.families, key=lambda family: (order.index(family.outcome), family.family))
    lines = ["| family | | cases right | largest difference | first problem |", "| --- | --- | --- | --- | --- |"]
    for family in ordered:
        difference = "" if family.difference is None else f"{family.difference:.0e}"
        problem = (family.problem or "").replace("|", "\\|").replace("\n", " ")[:160]
        counts = f"{family.right}/{family.judged}"
        lines.append(f"| {family.family} | {LETTERS[family.outcome]} | {counts} | {difference} | {problem} |")
    right = sum(family.outcome is Outcome.RIGHT for family in ordered)
    return "\n".join([*lines, "", f"{right} of {len(ordered)} families right."])


def problems(results: Mapping[Pair, CellResult]) -> Iterator[str]:
    """A line for everything that isn't right."""
    for pair, result in results.items():
        if result.problem is not None:
            yield f"{pair}: {result.problem}"
        for family in result.families:
            if family.outcome is not Outcome.RIGHT:
                yield f"{pair}: {family.family}: {family.right}/{family.judged} right; {family.problem}"


def regressions(results: Mapping[Pair, CellResult], before: Mapping[Pair, CellResult]) -> Iterator[str]:
    """What was right in `before` and isn't in `results`; pairs and families that weren't run now say nothing."""
    for pair, result in results.items():
        old = before.get(pair)
        if old is None:
            continue
        now = {family.family: family for family in result.families}
        for family in old.families:
            if family.outcome is not Outcome.RIGHT:
                continue
            found = now.get(family.family)
            if found is None and result.problem is not None:
                yield f"{pair}: {family.family} was right, and now the run ends: {result.problem}"
            elif found is not None and found.outcome is not Outcome.RIGHT:
                yield f"{pair}: {family.family} was right, and now {found.outcome.value}: {found.problem}"


def surprises(results: Mapping[Pair, CellResult], core: Sequence[str]) -> Iterator[tuple[bool, str]]:
    """Pairs whose core families are better or worse than `compat.matrix.data` expects; with whether it is worse."""
    order = list(Outcome)
    for pair, result in results.items():
        found = [family.outcome for family in result.families if family.family in core]
        if not found and result.problem is None:
            continue
        outcome = Outcome.FAILS if result.problem is not None else max(found, key=order.index)
        wanted, reason = expected(pair)
        if outcome is not wanted:
            worse = order.index(outcome) > order.index(wanted)
            advice = "" if worse else "; take the line out of compat/matrix/data.py"
            because = f" ({reason})" if reason else ""
            yield worse, f"{pair}: {outcome.value}, expected {wanted.value}{because}{advice}"
