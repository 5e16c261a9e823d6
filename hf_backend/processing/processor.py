"""vLLM's multimodal processor, built on `alone(item)`.

Takes a prompt of token ids and parsed items; gives per-item fields and prompt updates, both fit for vLLM's processor
cache. Every field is handed on per item, exactly as the item alone has it: how items join is the encoding room's business.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from transformers import BatchFeature

from hf_backend.errors import RequestError
from hf_backend.placeholders.edits import apply_edit, dropped, headed
from hf_backend.placeholders.seams import IsText, core_span, splice_merging
from hf_backend.placeholders.splice import Target, splice
from hf_backend.placeholders.touching import splice_touching
from hf_backend.placeholders.wraps import unwrapped
from hf_backend.probe.oracle import is_text_of
from hf_backend.probe.woven import Weave
from hf_backend.processing.embeddings import item_of_embeddings
from hf_backend.processing.info import ProcessingInfo
from hf_backend.processing.new_items import process_new
from hf_backend.processing.refusals import check_counts, refuse_empty
from hf_backend.processing.woven import Pair, asked_option, unwoven, without, woven
from hf_backend.records import EMBEDS, EXPANSION, NUM_EMBEDS, Item, Splicing, may_make_positions, wire_name
from hf_backend.upstream import (
    BaseMultiModalProcessor,
    MultiModalDataItems,
    MultiModalFieldConfig,
    MultiModalInput,
    MultiModalKwargsItems,
    PlaceholderFeaturesInfo,
    ProcessorInputs,
    PromptReplacement,
    PromptUpdate,
    PromptUpdateDetails,
    ResolvedPromptUpdate,
    TimingContext,
)

MOST_PAIRS = 256
"""Pairs of items whose woven ids are kept: some thousand tokens each."""


class Processor(BaseMultiModalProcessor[ProcessingInfo]):
    """Turns items into fields and prompt updates."""

    def apply(self, inputs: ProcessorInputs, timing_ctx: TimingContext) -> MultiModalInput:
        """Check the request as a whole, then process it. Raises `RequestError` before the cache is touched (C11)."""
        if (option := asked_option(self.info, inputs)) is None:
            return self._apply_alone(inputs, timing_ctx)
        # Items as they are without the option, then the ids of each pair in the place of theirs.
        weave, profile, plain = self.info.weave(option), self.info.profile, without(inputs, option)
        prompt = unwoven(inputs.prompt, weave, profile, inputs.mm_data_items.get_all_counts())
        result = self._apply_alone(dataclasses.replace(plain, prompt=prompt), timing_ctx)
        return woven(result, weave, profile, functools.partial(self._pair_ids, weave, plain, result["mm_hashes"]))

    def _apply_alone(self, inputs: ProcessorInputs, timing_ctx: TimingContext) -> MultiModalInput:
        counts = inputs.mm_data_items.get_all_counts()
        self._find(headed(inputs.prompt, self._heads(counts)), counts)
        for modality, items in inputs.mm_data_items.items():
            if not items.get_passthrough_data():
                refuse_empty(self.info.profile.processor_class, modality, items.get_all())
        return super().apply(inputs, timing_ctx)

    def _pair_ids(
        self, weave: Weave, inputs: ProcessorInputs, hashes: Mapping[str, Sequence[str]], pair: Pair
    ) -> list[int]:
        """The ids of a pair, by its items' hashes: a conversation brings its videos again with every turn."""
        places = list(zip(weave.modalities, pair, strict=True))
        key = tuple(hashes[name][index] for name, index in places)
        if key not in self._woven:
            if len(self._woven) >= MOST_PAIRS:
                self._woven.clear()
            first, second = (inputs.mm_data_items[name].get_all()[index] for name, index in places)
            self._woven[key] = weave.ids(self.info, (first, second), inputs.hf_processor_mm_kwargs)
        return self._woven[key]

    @functools.cached_property
    def _woven(self) -> dict[tuple[str, ...], list[int]]:
        return {}

    def _heads(self, item_counts: Mapping[str, int]) -> list[tuple[int, ...]]:
        """The placeholders that the processor itself puts in front of a prompt with so many items."""
        profiles = self.info.profile.modalities
        return [
            profile.target_ids
            for name, profile in profiles.items()
            if profile.headed
            for _ in range(item_counts.get(name, 0))
        ]

    def _find(self, prompt: Sequence[int], item_counts: Mapping[str, int]) -> list[Target]:
        profiles = self.info.profile.modalities
        return check_counts(
            self.info.profile.processor_class,
            prompt,
            targets={name: profile.target_ids for name, profile in profiles.items()},
            placeholders={name: profile.placeholder for name, profile in profiles.items()},
            item_counts=item_counts,
        )

    def _apply_hf_processor_main(
        self,
        mm_items: MultiModalDataItems,
        hf_kwargs: Mapping[str, object] | None = None,
        *,
        hf_processor_mm_kwargs: Mapping[str, object] | None = None,
    ) -> BatchFeature:
        """At most one HF call for each item that isn't cached; none if all are, none for embeddings."""
        hf_kwargs = hf_kwargs or hf_processor_mm_kwargs or {}
        data: dict[str, object] = {}
        for modality, items in mm_items.items():
            if items.get_count() == 0:
                continue
            processed = self._process(modality, items, hf_kwargs)
            fields = self._fields_by_name(modality, processed)
            fields[NUM_EMBEDS] = [torch.tensor(item.expansion.num_embeds) for item in processed]
            fields[EXPANSION] = [torch.tensor(item.expansion.ids) for item in processed]
            data |= {wire_name(modality, name): values for name, values in fields.items()}
        return BatchFeature(data)

    def _process(self, modality: str, items: Any, hf_kwargs: Mapping[str, object]) -> list[Item]:
        if not items.get_passthrough_data():
            return process_new(self.info, modality, items.get_all(), hf_kwargs)
        return [
            item_of_embeddings(
                given,
                self.info.modality_profile(modality),
                self.info.profile.processor_class,
                hidden_size=self.info.ctx.model_config.get_inputs_embeds_size(),
                rule=self.info.embeddings_rule(modality),
            )
            for given in items.get_all()
        ]

    def _fields_by_name(self, modality: str, items: Sequence[Item]) -> dict[str, list[Any]]:
        """Each field's values in item order. Raises `RequestError` where an item has other fields than the probe saw."""
        names = self.info.modality_profile(modality).layouts.keys()
        for item in items:
            if item.fields.keys() != names and EMBEDS not in item.fields:
                raise RequestError(
                    self.info.profile.processor_class,
                    found=f"the fields {sorted(item.fields)} for one {modality}",
                    expected=f"{sorted(names)}, as for the probe at start-up",
                    do="Leave out mm_processor_kwargs that change which fields the processor returns, or set them at"
                    " start-up.",
                )
        return {name: [item.fields[name] for item in items] for name in items[0].fields}

    def _get_mm_fields_config(
        self, hf_inputs: BatchFeature, hf_processor_mm_kwargs: Mapping[str, object]
    ) -> Mapping[str, MultiModalFieldConfig]:
        """Every field batched: item k's value is entry k of a list."""
        return {
            wire: MultiModalFieldConfig.batched(
                modality, keep_on_cpu=name in (NUM_EMBEDS, EXPANSION) or all(map(may_make_positions, values))
            )
            for wire, values in hf_inputs.items()
            for modality, _, name in [wire.partition(".")]
        }

    @functools.cached_property
    def _is_text(self) -> IsText:
        return is_text_of(self.info.get_tokenizer())

    def _get_prompt_updates(
        self,
        mm_items: MultiModalDataItems,
        hf_processor_mm_kwargs: Mapping[str, object],
        out_mm_kwargs: MultiModalKwargsItems,
    ) -> Sequence[PromptUpdate]:
        """Each item's placeholder becomes its expansion."""
        updates: list[PromptUpdate] = []
        for modality, items in out_mm_kwargs.items():
            profile = self.info.modality_profile(modality)
            expansions = [item[wire_name(modality, EXPANSION)].data.tolist() for item in items]
            details = [
                PromptUpdateDetails.select_token_ids(expansion, sorted(profile.embed_ids)) for expansion in expansions
            ]
            updates.append(
                PromptReplacement(modality, target=list(profile.target_ids), replacement=details.__getitem__)
            )
        return updates

    def _apply_prompt_updates(
        self, token_ids: list[int], mm_prompt_updates: Mapping[str, Sequence[Sequence[ResolvedPromptUpdate]]]
    ) -> tuple[list[int], Mapping[str, list[PlaceholderFeaturesInfo]]]:
        """Splice the items' expansions into the prompt, and say where each one lies."""
        expansions = {
            modality: [alternatives[0].content.full for alternatives in items]
            for modality, items in mm_prompt_updates.items()
        }
        profiles = {modality: self.info.modality_profile(modality) for modality in expansions}
        # A processor makes its edit once, whatever the items are.
        ways = [profile.splicing for profile in profiles.values()]
        edit = next((way.edit for way in ways if way.edit is not None), None)
        if edit is not None:
            token_ids = dropped(token_ids, edit)
        counts = {modality: len(items) for modality, items in expansions.items()}
        token_ids = headed(token_ids, self._heads(counts))
        found = self._find(token_ids, counts)
        rules = {modality: profile.wraps for modality, profile in profiles.items() if profile.wraps is not None}
        expansions = unwrapped(token_ids, found, expansions, rules)
        new_ids, placed = self._splice(token_ids, found, expansions, ways)
        if edit is not None and placed:
            _, start, tokens = placed[-1]
            new_ids = apply_edit(new_ids, start + len(tokens), edit, self.info.get_tokenizer(), self._is_text)
        placeholders: dict[str, list[PlaceholderFeaturesInfo]] = {modality: [] for modality in expansions}
        for target, start, tokens in placed:
            embed_ids = torch.tensor(sorted(profiles[target.modality].embed_ids))
            placeholders[target.modality].append(
                PlaceholderFeaturesInfo(
                    modality=target.modality,
                    item_idx=target.index,
                    start_idx=start,
                    tokens=tokens,
                    is_embed=torch.isin(torch.tensor(tokens), embed_ids),
                )
            )
        return new_ids, {modality: items for modality, items in placeholders.items() if items}

    def _splice(
        self,
        prompt: list[int],
        found: Sequence[Target],
        expansions: Mapping[str, Sequence[Sequence[int]]],
        ways: Sequence[Splicing],
    ) -> tuple[list[int], list[tuple[Target, int, list[int]]]]:
        """The prompt's ids, and each target with where its expansion starts in them and what is left of it."""
        tokenizer: Any = self.info.get_tokenizer()
        if any(way.merges_text for way in ways):
            new_ids, placed = splice_merging(prompt, found, expansions, tokenizer, self._is_text)
            return new_ids, [(target, start, self._core(target, expansions)) for target, start in placed]
        if (rule := next((way.touching for way in ways if way.touching is not None), None)) is not None:
            return splice_touching(prompt, found, expansions, rule, tokenizer, self._is_text)
        new_ids, placed = splice(prompt, found, expansions)
        return new_ids, [(target, start, list(expansions[target.modality][target.index])) for target, start in placed]

    def _core(self, target: Target, expansions: Mapping[str, Sequence[Sequence[int]]]) -> list[int]:
        tokens = expansions[target.modality][target.index]
        first, end = core_span(tokens, self._is_text)
        return list(tokens[first:end])
