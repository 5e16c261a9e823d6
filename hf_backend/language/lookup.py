"""What each token id is looked up as, measured on the HF model's own forward.

Takes a model and the number of ids to know; gives embeddings and per-token inputs of any ids as the forward would hand
them to its text model. Most models look ids up in their table and that is all. Gemma4 looks placeholder ids up as the pad
token, Gemma3n sends its end-of-image tokens through a table of their own, and knows no per-layer inputs of ids above a
limit. So the forward is run once over the whole vocabulary; ids for which it gives something else than the table are kept
with what it gives. Not for items (`hf_backend.encoding`).
"""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from hf_backend.encoding.capture import CapturedForward
from hf_backend.encoding.extras import classify
from hf_backend.errors import UnsupportedModelError
from hf_backend.upstream import VocabParallelEmbedding, init_logger

logger = init_logger("vllm.hf_backend")

Plain = Callable[[torch.Tensor], torch.Tensor]
"""From ids, int64 [tokens], to rows, [tokens, ...], by a table of the model."""

IDS_A_CALL = 4096
MOST_EXCEPTIONS = 65536
"""Rows kept beside a table: a model whose forward differs for more ids does something other than look them up."""


class OutOfTableError(IndexError):
    """Ids were looked up that a table doesn't have; on a GPU that would be the end of the process."""

    def __init__(self, size: int) -> None:
        super().__init__(f"token ids must be below {size}")
        self.size = size


@dataclass(slots=True)
class Table:
    """One of the model's tables, with the ids for which the forward gives something else."""

    plain: Plain
    number: torch.Tensor | None = None
    """int64 [ids]: which of `rows` stands for an id, -1 where the table serves."""
    rows: torch.Tensor | None = None
    """[exceptions, ...]."""

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        """Rows of `ids`, [tokens, ...]; without a synchronisation, so that it can be part of a CUDA graph."""
        if self.number is None or self.rows is None:
            return self.plain(ids)
        number = self.number[ids.clamp(0, len(self.number) - 1)]
        excepted = number >= 0
        found = self.plain(ids.masked_fill(excepted, 0))
        excepted = excepted.view(-1, *(1,) * (found.ndim - 1))
        return torch.where(excepted, self.rows[number.clamp(min=0)].to(found.dtype), found)

    def add(self, ids: torch.Tensor, rows: torch.Tensor, size: int) -> None:
        """Let `rows`, [k, ...], stand for `ids`, [k], of a vocabulary of `size`."""
        if not len(ids):
            return
        number = self.number if self.number is not None else torch.full((size,), -1, device=ids.device)
        known = self.rows if self.rows is not None else rows[:0]
        # Gemma4's placeholders and Gemma3n's ids without per-layer inputs all are the one row of the pad token.
        distinct, which = torch.unique(rows.float(), dim=0, return_inverse=True)
        number[ids] = which + len(known)
        self.number, self.rows = number, torch.cat([known, distinct.to(rows.dtype)])

    def add_nothing(self, ids: torch.Tensor, size: int) -> None:
        """Let `ids` be zeros: they are only ever seen under an item's embeddings."""
        row = self.plain(ids.new_zeros(1))
        self.add(ids, row.new_zeros(len(ids), *row.shape[1:]), size)


@dataclass(slots=True)
class Lookup:
    """Embeddings and per-token inputs by token id."""

    size: int
    """Ids below it are known."""
    embeddings: Table
    """To [tokens, hidden size]."""
    per_token: dict[str, Table] = field(default_factory=dict)
    """Argument of the text model to a table of rows [tokens, ...]."""

    @property
    def trivial(self) -> bool:
        """Whether the text model may as well look ids up itself."""
        return not self.per_token and self.embeddings.number is None


def measure_lookup(model: Any, size: int, device: torch.device) -> Lookup:
    """Run `model`'s forward over ids 0 to `size` - 1 without items, and keep what it does beside looking them up.

    Raises `UnsupportedModelError` where an input follows the ids in a way no method of the text model gives.
    """

    def look_up(ids: torch.Tensor) -> torch.Tensor:
        # Asked for each time: LoRA puts another module in its place after the start.
        found: torch.Tensor = model.get_input_embeddings()(ids)
        return found

    lookup = Lookup(size, Table(look_up))
    forward = CapturedForward.of(model)
    if forward is None:
        return _as_the_table_has_them(lookup, model, device)
    name = type(model).__name__
    try:
        with _tables_guarded(model):
            for start in range(0, size, IDS_A_CALL):
                ids = torch.arange(start, min(start + IDS_A_CALL, size), device=device)
                _compare(lookup, forward, ids, name)
    except (ValueError, TypeError, RuntimeError, AttributeError) as error:
        if isinstance(error, UnsupportedModelError):
            raise
        # Whatever a forward without items stumbles over, a table is what there is then.
        logger.info(
            "hf_backend: ids of %s are looked up in its table unchecked, because its forward raised: %s", name, error
        )
        return _as_the_table_has_them(Lookup(size, Table(look_up)), model, device)
    for what, table in {"embeddings": lookup.embeddings, **lookup.per_token}.items():
        if table.number is not None and table.rows is not None:
            logger.info(
                "hf_backend: %s gives %s of %d token ids by %d rows beside its table.",
                *(name, what, int((table.number >= 0).sum()), len(table.rows)),
            )
    return lookup


def _as_the_table_has_them(lookup: Lookup, model: Any, device: torch.device) -> Lookup:
    """Only keep the lookup from reading beyond the table's end."""
    end = int(model.get_input_embeddings().num_embeddings)
    lookup.embeddings.add_nothing(torch.arange(end, max(end, lookup.size), device=device), lookup.size)
    return lookup


def _compare(lookup: Lookup, forward: CapturedForward, ids: torch.Tensor, name: str) -> None:
    """Add the exceptions among `ids` to `lookup`'s tables."""
    try:
        captured = forward({}, ids, torch.zeros_like(ids, dtype=torch.int32), ids.device)
    except OutOfTableError as error:
        # The forward itself has no row for these ids, so that they are only seen under an item's embeddings.
        beyond = ids[ids >= error.size]
        if len(beyond) < len(ids):
            _compare(lookup, forward, ids[ids < error.size], name)
        for table in (lookup.embeddings, *lookup.per_token.values()):
            table.add_nothing(beyond, lookup.size)
        return
    extras = classify(captured, torch.zeros_like(ids, dtype=torch.bool), name)
    _except(lookup.embeddings, ids, captured.embeddings, lookup.size, name)
    for argument in extras.per_token:
        if argument not in lookup.per_token:
            lookup.per_token[argument] = Table(_method(forward, argument, name))
        _except(lookup.per_token[argument], ids, captured.extras[argument][0], lookup.size, name)


def _except(table: Table, ids: torch.Tensor, given: torch.Tensor, size: int, name: str) -> None:
    """Add the ids for which `given`, [ids, ...], isn't what the table has."""
    try:
        found = table.plain(ids)
    except OutOfTableError as error:
        inside = ids < error.size
        if bool(inside.any()):
            _except(table, ids[inside], given[inside], size, name)
        table.add(ids[~inside], given[~inside], size)
        return
    # Not-a-number is nothing to keep; vLLM's dummy weights hold some.
    differs = ((found != given) & ~given.isnan()).flatten(1).any(1)
    table.add(ids[differs], given[differs], size)
    if table.rows is not None and len(table.rows) > MOST_EXCEPTIONS:
        raise UnsupportedModelError(
            name,
            found=f"that its forward gives {len(table.rows)} token ids other embeddings than its table",
            expected=f"at most {MOST_EXCEPTIONS}",
            do="This version can't serve a model that does more with all of its tokens than look them up.",
        )


def _method(forward: CapturedForward, argument: str, name: str) -> Plain:
    """The text model's own method that makes the per-token input `argument` from ids: `get_` and the argument's name."""
    text_model = forward.parent.get_submodule(forward.name)
    method = getattr(text_model, f"get_{argument}", None)
    if method is None:
        raise UnsupportedModelError(
            name,
            found=f"that its text model is given `{argument}` for every token, and has no `get_{argument}`",
            expected="a method that makes them from token ids",
            do="This version can't make them for a token that the model itself generates.",
        )
    # Gemma4's also takes embeddings, to find the ids by; None is what its forward gives.
    others = {
        parameter.name: None
        for parameter in inspect.signature(method).parameters.values()
        if parameter.name != "input_ids" and parameter.default is inspect.Parameter.empty
    }

    def look_up(ids: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = method(input_ids=ids[None], **others)[0]
        return found

    return look_up


@contextmanager
def _tables_guarded(model: torch.nn.Module) -> Iterator[None]:
    """Let every table raise `OutOfTableError` instead of reading beyond its end."""

    def check(module: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        size = module.num_embeddings
        if arguments and arguments[0].numel() and int(arguments[0].max()) >= size:
            raise OutOfTableError(size)

    kinds = (torch.nn.Embedding, VocabParallelEmbedding)
    hooks = [module.register_forward_pre_hook(check) for module in model.modules() if isinstance(module, kinds)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
