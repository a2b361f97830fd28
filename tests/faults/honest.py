from __future__ import annotations


def why_honest(ref, kind, at, *, gap):
    item = ref.frames.items[at]
    return "undetectable", f"{kind} {ref.name} {at} gap={gap} {item[:200]!r}"
