"""Whether strides give every element a place of its own."""

from __future__ import annotations

from collections.abc import Sequence

from tessiq_core.ir.extent import Extent, mul, provably_equal


def never_overlaps(shape: Sequence[Extent], strides: Sequence[Extent]) -> bool:
    """True when no two indices provably share an element: what a written value needs.

    Holds for an empty value; for dense strides in any order of the dimensions, symbolic ones too; and, where all is
    known, for strides with gaps, if each steps over all that the smaller ones reach.
    """
    if any(extent == 0 for extent in shape):
        return True
    moving = [(extent, stride) for extent, stride in zip(shape, strides, strict=True) if extent != 1]
    return _dense(moving) or _nested(moving)


def _dense(moving: Sequence[tuple[Extent, Extent]]) -> bool:
    left = list(moving)
    step: Extent = 1
    while left:
        following = next((item for item in left if provably_equal(item[1], step)), None)
        if following is None:
            return False
        left.remove(following)
        step = mul(step, following[0])
    return True


def _nested(moving: Sequence[tuple[Extent, Extent]]) -> bool:
    known: list[tuple[int, int]] = []
    for extent, stride in moving:
        if not isinstance(extent, int) or not isinstance(stride, int) or stride <= 0:
            return False
        known.append((stride, extent))
    reach = 0
    for stride, extent in sorted(known):
        if stride <= reach:
            return False
        reach += stride * (extent - 1)
    return True
