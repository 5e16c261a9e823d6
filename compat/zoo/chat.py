"""The chat template of a family, written from its spec.

Takes a spec; gives Jinja text that takes messages whose content is a text or a list of typed parts, as the OpenAI API
sends them. Not for prompts of tests: those come from `Spec.prompt`, which uses the same markers.
"""

from compat.zoo.spec import Spec


def chat_template(spec: Spec) -> str:
    """The Jinja chat template: one placeholder for each part that is no text, in the order of the parts."""
    turns = spec.turns
    parts = "".join(
        f"{{%- elif part['type'] == {modality!r} -%}}{{{{ {placeholder!r} }}}}"
        for modality, placeholder in spec.placeholders.items()
    )
    content = (
        "{%- if message['content'] is string -%}{{ message['content'] }}{%- else -%}"
        "{%- for part in message['content'] -%}"
        "{%- if part['type'] == 'text' -%}{{ part['text'] }}" + parts + "{%- endif -%}"
        "{%- endfor -%}{%- endif -%}"
    )
    return (
        ("{{ bos_token }}" if spec.bos else "")
        + "{%- for message in messages -%}"
        + "{%- if message['role'] == 'assistant' -%}"
        + f"{{{{ {turns.assistant!r} }}}}{content}{{{{ {turns.assistant_end!r} }}}}"
        + "{%- else -%}"
        + f"{{{{ {turns.user!r} }}}}{content}{{{{ {turns.user_end!r} }}}}"
        + "{%- endif -%}{%- endfor -%}"
        + f"{{%- if add_generation_prompt -%}}{{{{ {turns.assistant!r} }}}}{{%- endif -%}}"
    )
