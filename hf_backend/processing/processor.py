"""vLLM's multimodal processor, built on `alone(item)`.

Takes a prompt of token ids and parsed items; gives per-item fields and prompt updates, both fit for vLLM's processor
cache. Every field is handed on per item, exactly as the item alone has it: how items join is the encoding room's business.
"""

from collections.abc import Mapping, Sequence

import torch
from transformers import BatchFeature

from hf_backend.errors import RequestError
from hf_backend.placeholders.splice import Target, splice
from hf_backend.processing.info import ProcessingInfo
from hf_backend.processing.refusals import check_counts
from hf_backend.records import Item, num_embeds_field
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


def _expansion_field(modality: str) -> str:
    """Field that carries an item's expansion from the HF call to the prompt updates; it never leaves this room."""
    return f"{modality}_expansion"


class Processor(BaseMultiModalProcessor[ProcessingInfo]):
    """Turns items into fields and prompt updates."""

    def apply(self, inputs: ProcessorInputs, timing_ctx: TimingContext) -> MultiModalInput:
        """Check the request as a whole, then process it. Raises `RequestError` before the cache is touched (C11)."""
        for modality, items in inputs.mm_data_items.items():
            if items.get_passthrough_data():
                raise RequestError(
                    self.info.profile.processor_class,
                    found=f"pre-computed {modality} embeddings",
                    expected=f"{modality} items for the HF processor",
                    do="Embeddings as input are not part of this version; send the items themselves.",
                )
        self._find(inputs.prompt, inputs.mm_data_items.get_all_counts())
        return super().apply(inputs, timing_ctx)

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
        """One HF call for each item that isn't cached; none if all are."""
        hf_kwargs = hf_kwargs or hf_processor_mm_kwargs or {}
        data: dict[str, object] = {}
        for modality, items in mm_items.items():
            alone = self.info.alone(modality)
            processed = [alone(item, hf_kwargs) for item in items.get_all()]
            if not processed:
                continue
            data.update(self._fields_by_name(modality, processed))
            data[num_embeds_field(modality)] = [torch.tensor(item.expansion.num_embeds) for item in processed]
            data[_expansion_field(modality)] = [torch.tensor(item.expansion.ids) for item in processed]
        return BatchFeature(data)

    def _fields_by_name(self, modality: str, items: Sequence[Item]) -> dict[str, object]:
        """Each field's values in item order. Raises `RequestError` where an item has other fields than the probe saw."""
        profile = self.info.modality_profile(modality)
        names = profile.layouts.keys() if profile.joinable else items[0].fields.keys()
        for item in items:
            if item.fields.keys() != names:
                raise RequestError(
                    self.info.profile.processor_class,
                    found=f"the fields {sorted(item.fields)} for one {modality}",
                    expected=f"{sorted(names)}, as for the probe at start-up",
                    do="Leave out mm_processor_kwargs that change which fields the processor returns, or set them at start-up.",
                )
        return {name: [item.fields[name] for item in items] for name in names}

    def _get_mm_fields_config(
        self, hf_inputs: BatchFeature, hf_processor_mm_kwargs: Mapping[str, object]
    ) -> Mapping[str, MultiModalFieldConfig]:
        """Every field batched: item k's value is entry k of a list."""
        config: dict[str, MultiModalFieldConfig] = {}
        for modality in self.info.profile.modalities:
            own = (num_embeds_field(modality), _expansion_field(modality))
            if own[0] not in hf_inputs:
                continue
            config |= {name: MultiModalFieldConfig.batched(modality, keep_on_cpu=True) for name in own}
            config |= {name: MultiModalFieldConfig.batched(modality) for name in hf_inputs if name not in config}
        return config

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
            # Popped: the updates made of them are cached beside the item, and the model has no use for them.
            expansions = [item.pop(_expansion_field(modality)).data.tolist() for item in items]
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
        contents = {
            modality: [alternatives[0].content for alternatives in items]
            for modality, items in mm_prompt_updates.items()
        }
        found = self._find(token_ids, {modality: len(items) for modality, items in contents.items()})
        expansions = {modality: [content.full for content in items] for modality, items in contents.items()}
        new_ids, placed = splice(token_ids, found, expansions)
        placeholders: dict[str, list[PlaceholderFeaturesInfo]] = {modality: [] for modality in contents}
        for target, start in placed:
            content = contents[target.modality][target.index]
            placeholders[target.modality].append(
                PlaceholderFeaturesInfo(
                    modality=target.modality,
                    item_idx=target.index,
                    start_idx=start,
                    tokens=content.full,
                    is_embed=None if content.is_embed is None else content.is_embed(content.full),
                )
            )
        return new_ids, {modality: items for modality, items in placeholders.items() if items}
