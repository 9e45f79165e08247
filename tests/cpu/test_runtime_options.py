"""Options: what is accepted, and what a refusal says."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from tessiq_core.errors import InvalidArgument, Unsupported
from tessiq_core.runtime.options import OPTION_NAMES, Options, parse_options


def test_every_option_is_read() -> None:
    given = {
        "device": "cpu",
        "rewrites": ["a", "b"],
        "graphs": "off",
        "emitter": "cpp",
        "adopt": False,
        "residency": False,
        "emulate_eager_rounding": False,
        "verify": True,
    }
    assert set(given) == set(OPTION_NAMES)
    options = parse_options(given, "max-autotune")
    assert options == Options("cpu", ("a", "b"), "off", "cpp", False, False, False, True, "max-autotune")


def test_nothing_given_means_the_defaults() -> None:
    assert parse_options() == parse_options({}, None) == parse_options({"emitter": None}, "default") == Options()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("device", 0, "a device as 'gpu', 'gpu:1' or 'cpu'"),
        ("rewrites", "gelu", "a list of names"),
        ("rewrites", ["a", 1], "a list of names"),
        ("graphs", "yes", "one of 'auto', 'on', 'off'"),
        ("graphs", True, "one of 'auto', 'on', 'off'"),
        ("emitter", "", "the name of an emitter"),
        ("adopt", 1, "True or False"),
        ("verify", "on", "True or False"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_by_name(name: str, value: object, expected: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_options({name: value})
    assert f"option {name!r} takes {expected}" in str(caught.value)
    assert repr(value) in str(caught.value)


def test_an_unknown_option_is_refused_with_the_valid_ones() -> None:
    with pytest.raises(InvalidArgument) as caught:
        parse_options({"adpot": False})
    message = str(caught.value)
    assert "there is no option 'adpot'; did you mean 'adopt'?" in message
    assert "?;" not in message
    assert all(name in message for name in OPTION_NAMES)


def test_a_name_that_is_no_text_is_refused_with_the_valid_ones() -> None:
    with pytest.raises(InvalidArgument, match="there is no option 1; the options are device, "):
        parse_options({1: 2})  # type: ignore[dict-item]


def test_an_unknown_mode_is_refused_with_the_valid_ones() -> None:
    with pytest.raises(InvalidArgument, match=r"no mode 'reduce-overheads'; did you mean 'reduce-overhead'\?"):
        parse_options(None, "reduce-overheads")


def test_options_that_are_no_mapping_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="options must be a mapping"):
        parse_options(["adopt"])  # type: ignore[arg-type]


def test_residency_is_refused_until_something_keeps_copies() -> None:
    with pytest.raises(Unsupported, match="residency"):
        parse_options({"residency": True})


def test_every_field_shows_in_the_key() -> None:
    changes = dict(Options("gpu", ("a",), "off", "cpp", False, True, False, True, "max-autotune").__dict__)
    assert set(changes) == {field.name for field in fields(Options)}
    keys = {replace(Options(), **{name: value}).key() for name, value in changes.items()}
    assert len(keys | {Options().key()}) == len(changes) + 1
