"""One modality's encoder: which of two ways of running it gives what the model's own forward gives.

Takes a model, a modality and probe items; gives a function from a bucket of items to embeddings. The features method is
the quick way, the model's own forward up to its text model is the reference. At start both are run: where their rows are
equal the features method serves, else the forward. Where the text model is given features of several levels, the forward
serves, and an item's rows are as many times wider. What neither can give stops the start.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import torch

from hf_backend.encoding.buckets import Dims, bucket, join, padded_size, size_of
from hf_backend.encoding.capture import Captured, CapturedForward
from hf_backend.encoding.extras import Extras, Path, classify
from hf_backend.encoding.features import FeaturesMethod
from hf_backend.encoding.finite import check_finite
from hf_backend.encoding.items import EncoderItem
from hf_backend.encoding.memory import Cost, LiveBytes, budget, chunks
from hf_backend.encoding.ragged import find_padded
from hf_backend.errors import HFBackendError, UnsupportedModelError
from hf_backend.modalities import Modality
from hf_backend.records import ModalityProfile
from hf_backend.upstream import init_logger

if TYPE_CHECKING:
    from hf_backend.records import FieldValue


logger = init_logger("vllm.hf_backend")

TOLERANCE = 1e-2
"""Relative to the largest embedding: two ways of computing the same in bfloat16 differ by rounding."""


@contextlib.contextmanager
def refused_by_model(model: Any, modality: str) -> Iterator[None]:
    """Say what to do where a model's own code fails on two small items (Kimi K2.5's videos in transformers 5.19)."""
    try:
        yield
    except HFBackendError:
        raise
    except Exception as error:
        raise UnsupportedModelError(
            type(model).__name__,
            found=f"that transformers' own code for {modality} items raised {type(error).__name__}: {error}",
            expected="embeddings of two small items",
            do=f"Serve the model without them: --limit-mm-per-prompt '{{\"{modality}\": 0}}'.",
        ) from error


class TokenLookup(Protocol):
    """What token ids stand for without an item."""

    def embeddings(self, ids: torch.Tensor, /) -> torch.Tensor:
        """[tokens, hidden size]."""

    @property
    def per_token(self) -> "Mapping[str, Callable[[torch.Tensor], torch.Tensor]]":
        """Argument of the text model to a function to [tokens, ...]."""


class Encoder:
    """Runs the encoder of one modality."""

    def __init__(
        self,
        model: Any,
        modality: Modality,
        profile: ModalityProfile,
        probes: Sequence[EncoderItem],
        lookup: TokenLookup,
        device: torch.device,
        of_many_lengths: Callable[[], Sequence[EncoderItem]] = list,
    ) -> None:
        self._model = model
        self._modality = modality
        self._profile = profile
        self._lookup = lookup
        self._features = FeaturesMethod.of(model, modality)
        self._forward = CapturedForward.of(model)
        self._extras: Extras | None = None
        self.reference: Captured | None = None
        """What the text model is given for the first probe item alone, and for whom levels were found."""
        self.reference_is_embed = torch.zeros(0, dtype=torch.bool)
        if self._features is None and self._forward is None:
            raise UnsupportedModelError(
                type(model).__name__,
                found=f"no {' or '.join(modality.features_methods)} and no text model apart from the model itself",
                expected="one of them",
                do="This model's encoder can't be called by itself in this transformers release.",
            )
        for item in probes:
            self._hold_to_forward(item, device)
        self._cost: Cost | None = None
        self.padded: Dims | None = None
        """In which dimensions items of several sizes may be padded to share a call; None where they may not."""
        alone, peaks = [], []
        for item in probes:
            with LiveBytes() as counted:
                alone.append(self([item], device))
            peaks.append(counted.peak)
        check_finite(alone, type(model).__name__, modality.name)
        self.joinable = profile.joinable and self._joins(probes, alone, peaks, device)
        """Whether items may share a call: the processor joins them, and the tower keeps them apart (C9)."""
        if self.joinable:
            self.padded = find_padded(
                modality.name,
                probes,
                alone,
                profile.layouts,
                lambda items, fields: self._run(items, device, fields),
                of_many_lengths,
            )

    @property
    def levels(self) -> tuple[Path, ...]:
        """Where the levels behind each embedding are among the text model's arguments."""
        return self._extras.levels if self._extras is not None else ()

    def __call__(self, items: Sequence[EncoderItem], device: torch.device) -> torch.Tensor:
        """Embeddings of one bucket's items, [rows, hidden size * (1 + levels)]."""
        fill = None if self.padded is None else 0.0
        return self._run(items, device, join([item.fields for item in items], self._profile.layouts, fill))

    def _run(
        self, items: Sequence[EncoderItem], device: torch.device, fields: "Mapping[str, FieldValue]"
    ) -> torch.Tensor:
        if self._features is not None:
            rows = self._features(fields, device)
            expected = sum(item.num_embeds for item in items)
            if self._forward is None or len(rows) == expected:
                return rows
            # Whatever the probe items didn't show: an error here would end the engine, and the forward is the reference.
            logger.info_once(
                "hf_backend: %s of %s runs through the model's own forward where the features method gives another number of rows"
                " than there are places.",
                self._modality.name,
                type(self._model).__name__,
            )
        captured, is_embed = self._run_forward(fields, items, device)
        return (self._extras or Extras()).rows(captured, is_embed)

    def groups(self, probes: Sequence[EncoderItem], device: torch.device) -> list[Callable[[], torch.Tensor]]:
        """Calls for groups of probe items that differ in all that may vary: one, several of a size, another size."""
        first, second = probes
        groups = [[first], [first] * 2, [second], [second] * 3] if self.joinable else [[first], [second]]
        return [functools.partial(self, group, device) for group in groups]

    def beside(
        self, item: EncoderItem, other: EncoderItem, other_encoder: "Encoder", device: torch.device
    ) -> torch.Tensor | None:
        """Embeddings of `item`, as the model's own forward makes them in a prompt with `other`, of another modality, behind it;
        None where there is no forward to ask."""
        if self._forward is None:
            return None
        fields = {**other.fields, **item.fields}
        expansion = torch.cat([item.expansion, other.expansion])
        types = torch.cat([self._token_types(item.expansion), other_encoder._token_types(other.expansion)])
        captured = self._forward(fields, expansion, types, device)
        own = types[: len(item.expansion)] != 0
        return captured.embeddings[: len(own)][own.to(captured.embeddings.device)]

    def _hold_to_forward(self, item: EncoderItem, device: torch.device) -> None:
        """Keep the features method only if the forward agrees with it on `item`."""
        if self._forward is None:
            return
        fields = dict(item.fields)
        try:
            captured, is_embed = self._run_forward(fields, [item], device)
        except Exception as error:
            if self._features is None:
                raise
            # Whatever stands in the way of a reference, there is none then.
            self._say("relies on the features method unchecked, because the forward raised", error)
            return
        expansion = item.expansion.to(device)
        self._check_extras(captured, expansion, is_embed)
        self._check_other_tokens(captured.embeddings, expansion, is_embed)
        if self._features is None:
            return
        if self.levels:
            self._say(
                "runs through the model's own forward, because its text model takes", f"{len(self.levels)} levels"
            )
            self._features = None
            return
        try:
            found = self._features(fields, device)
        except (ValueError, TypeError) as error:
            self._say("runs through the model's own forward, because the features method raised", error)
            self._features = None
            return
        expected = captured.embeddings[is_embed]
        if not equal(found, expected):
            shapes = f"{tuple(found.shape)} where the forward has {tuple(expected.shape)}"
            self._say("runs through the model's own forward, because the features method gave", shapes)
            self._features = None

    def _check_extras(self, captured: Captured, expansion: torch.Tensor, is_embed: torch.Tensor) -> None:
        """Everything the text model is given has to be known: levels alike for every probe, the rest by the ids."""
        name = type(self._model).__name__
        extras = classify(captured, is_embed, name)
        if self._extras is None:
            self._extras, self.reference, self.reference_is_embed = extras, captured, is_embed
        for argument in extras.per_token:
            made = self._lookup.per_token.get(argument)
            if made is None or not equal(made(expansion), captured.extras[argument][0]):
                raise UnsupportedModelError(
                    name,
                    found=f"that `{argument}` of its text model doesn't follow from an item's token ids alone",
                    expected="the same as for the ids without the item",
                    do=self._instead(),
                )
        if extras != self._extras:
            raise UnsupportedModelError(
                name,
                found=f"that its text model is given {extras} for one {self._modality.name} and {self._extras} for another",
                expected="the same arguments",
                do=self._instead(),
            )

    def _check_other_tokens(self, embeddings: torch.Tensor, expansion: torch.Tensor, is_embed: torch.Tensor) -> None:
        """The rest of an expansion has to be what its ids are without an item. Ovis2 overwrites the tokens around a picture,
        but its config says which."""
        looked_up = self._lookup.embeddings(expansion)
        changed = ((embeddings - looked_up).abs().amax(-1) > 1e-3 * looked_up.abs().max()) & ~is_embed
        if bool(changed.any()):
            raise UnsupportedModelError(
                type(self._model).__name__,
                found=f"that its forward overwrites the tokens {sorted(set(expansion[changed].tolist()))} of an expansion too",
                expected="that it overwrites nothing but the modality's placeholder token, and markers its config names as"
                f" {' or '.join(self._modality.marker_id_attributes) or 'none are known'}",
                do=self._instead(),
            )

    def _instead(self) -> str:
        return (
            "Answers would be wrong, so the model isn't served with this modality. Serve it without"
            f" {self._modality.name} items: --limit-mm-per-prompt '{{\"{self._modality.name}\": 0}}'."
        )

    def _joins(
        self, probes: Sequence[EncoderItem], alone: Sequence[torch.Tensor], peaks: Sequence[int], device: torch.device
    ) -> bool:
        """Whether an item beside others gives what it gives `alone`, where it took `peaks` bytes."""
        fields = [item.fields for item in probes]
        # Items of two sizes may share no call; the first then stands beside itself.
        apart = len(bucket(fields, self._profile.layouts, joinable=True)) > 1
        chosen = [0, 0] if apart else [0, 1]
        try:
            with LiveBytes() as counted:
                joined = self([probes[index] for index in chosen], device)
        except (ValueError, TypeError, RuntimeError) as error:
            self._say("takes one item a call, because a call with two raised", error)
            return False
        if not equal(joined, torch.cat([alone[index] for index in chosen])):
            self._say("takes one item a call, because a call with two gave", "other embeddings than two calls")
            return False
        sizes = [size_of(one) for one in fields]
        self._cost = Cost.fit(list(zip(sizes, peaks, strict=True)), [sizes[index] for index in chosen], counted.peak)
        return True

    def chunks(self, items: Sequence[EncoderItem], device: torch.device) -> list[list[int]]:
        """Which of a bucket's items share a call, by what was measured and the memory there is now."""
        fields = [item.fields for item in items]
        sizes = [size_of(one) for one in fields] if self.padded is None else [padded_size(fields)] * len(fields)
        return chunks(sizes, self._cost, budget(device)) if len(items) > 1 else [[0]]

    def _say(self, what: str, why: object) -> None:
        reason = f"{type(why).__name__}: {why}" if isinstance(why, Exception) else why
        logger.info("hf_backend: %s of %s %s %s.", self._modality.name, type(self._model).__name__, what, reason)

    @property
    def way(self) -> str:
        """Which of the two ways serves, in words for `hf-backend check`."""
        return "the model's own forward" if self._features is None else "its features method"

    def _run_forward(
        self, fields: "Mapping[str, FieldValue]", items: Sequence[EncoderItem], device: torch.device
    ) -> tuple[Captured, torch.Tensor]:
        """What the text model is given, and which tokens are embeddings, bool [tokens]."""
        assert self._forward is not None
        expansion = torch.cat([item.expansion for item in items])
        types = self._token_types(expansion)
        captured = self._forward(fields, expansion, types, device)
        return captured, (types != 0).to(captured.embeddings.device)

    def _token_types(self, expansion: torch.Tensor) -> torch.Tensor:
        """HF's number of this modality where embeddings go, 0 elsewhere."""
        embed_ids = torch.tensor(sorted(self._profile.embed_ids), device=expansion.device)
        return torch.isin(expansion, embed_ids).int() * self._modality.token_type_id


def equal(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """Equal shapes, and values but for rounding."""
    if found.shape != expected.shape:
        return False
    return bool(torch.all((found - expected).abs() <= expected.abs().max() * TOLERANCE))
