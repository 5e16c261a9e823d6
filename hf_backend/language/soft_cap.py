"""Whether logits are capped as the HF model does it.

vLLM's Transformers backend caps logits wherever the text config has a `final_logit_softcapping`. In transformers that is
the business of each class with a head: PaliGemma 2's config has the value of its Gemma 2 text model, and
`PaliGemmaForConditionalGeneration` doesn't cap (transformers 5.10 to 5.24), nor does Gemma 3's.
"""

import inspect
from typing import Any

import transformers


def caps_logits(config: Any) -> bool:
    """Whether the first architecture that `config` names caps its logits; True where transformers doesn't know it.

    Told by whether the class's forward, or that of a class it stands on, speaks of the cap: nothing else declares it.
    """
    names = getattr(config, "architectures", None) or ()
    model_class = getattr(transformers, names[0], None) if names else None
    if model_class is None:
        return True
    return "final_logit_softcapping" in inspect.getsource(model_class.forward)
