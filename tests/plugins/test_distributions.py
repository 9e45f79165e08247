"""Real plugin distributions, built and installed: what the loader makes of each, and what the environment changes."""

from __future__ import annotations

import pytest

LOAD = "from tessiq_core.plugins import plugin_manager; m = plugin_manager(); "
EVERYTHING = LOAD + "m.ask_all(); m.operation_rows(with_torch=False); "


def warning_lines(stderr: str) -> list[str]:
    return stderr.splitlines()


def test_a_working_plugin_offers_everything(inspect):
    report = inspect("working")
    record = report["by"]["tessiq-sample-working"]
    assert (record["name"], record["version"], record["status"], record["reason"]) == ("sample", "2.5", "ok", "")
    assert record["hooks"] == [
        "tessiq_devices",
        "tessiq_emitters",
        "tessiq_library_bindings",
        "tessiq_custom_ops",
        "tessiq_rewrite_patterns",
        "tessiq_passes",
    ]
    offers = {(offer["what"], offer["name"]) for offer in report["offers"] if offer["plugin"] == "sample"}
    assert offers == {
        ("device", "sample/0"),
        ("emitter", "sample/text"),
        ("library", "sample/gemm"),
        ("operation", "sample::twice"),
        ("pattern", "sample.twice"),
        ("pass", "sample-nothing"),
    }


def test_the_order_in_which_hooks_fire(samples):
    code = """
import sample_plugin
from tessiq_core.plugins import load_plugins, hookimpl
from tessiq_core.plugins.hookspecs import HOOKS
fired = []
def spy_on(name, inner):
    def spy():
        fired.append(name)
        return inner()
    return hookimpl(spy)
for name in HOOKS:
    setattr(sample_plugin, name, spy_on(name, getattr(sample_plugin, name)))
m = load_plugins()
assert fired == [], f"loading asked {fired}"
m.ask_all(); m.ask_all(); m.emitters()
assert fired == list(HOOKS), fired
"""
    done = samples.run("working", code=code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("sample", "status", "reason"),
    [
        ("import_error", "broken", "RuntimeError: this module fails on purpose"),
        ("wrong_signature", "broken", "config"),
        ("unknown_hook", "broken", "tessiq_emiters"),
        ("newer_api", "incompatible", "written for plugin API 0.99, this tessiq-core has 0.1; upgrade tessiq-core"),
    ],
)
def test_what_cannot_be_loaded(inspect, samples, sample, status, reason):
    report = inspect(sample, "working")
    record = report["by"][f"tessiq-sample-{sample.replace('_', '-')}"]
    assert record["status"] == status
    assert reason in record["reason"]
    assert record["hooks"] == []
    assert report["by"]["tessiq-sample-working"]["status"] == "ok"
    assert len([offer for offer in report["offers"] if offer["what"] == "emitter"]) == 1

    # Nobody asked for it: one warning line, and the process goes on.
    done = samples.run(sample, code=EVERYTHING + "print('went on')")
    assert (done.returncode, done.stdout) == (0, "went on\n")
    assert len(warning_lines(done.stderr)) == 1
    assert record["name"] in done.stderr
    assert "TessiqPluginWarning" in done.stderr

    # Asked for by name, and in strict mode: raised, with the cause.
    for environ in ({"TESSIQ_PLUGINS": record["name"]}, {"TESSIQ_STRICT_PLUGINS": "1"}):
        done = samples.run(sample, "working", code=LOAD, environ=environ)
        assert done.returncode != 0
        assert f"plugin {record['name']} (" in done.stderr
        assert reason in " ".join(done.stderr.split())


def test_the_cause_of_a_plugin_asked_for_by_name_is_kept(samples):
    done = samples.run("import_error", code=LOAD, environ={"TESSIQ_PLUGINS": "import-error"})
    assert "sample_import_error.py" in done.stderr
    assert "The above exception was the direct cause" in done.stderr
    assert "tessiq_core.errors.External: tessiq: plugin import-error" in done.stderr


def test_a_blocked_plugin_is_not_imported(inspect, samples):
    report = inspect("import_error", environ={"TESSIQ_DISABLE_PLUGINS": "import-error"})
    record = report["by"]["tessiq-sample-import-error"]
    assert (record["status"], record["reason"]) == ("blocked", "disabled by TESSIQ_DISABLE_PLUGINS")
    done = samples.run(
        "import_error",
        code=LOAD + "import sys; assert 'sample_import_error' not in sys.modules",
        environ={"TESSIQ_DISABLE_PLUGINS": "*", "TESSIQ_STRICT_PLUGINS": "1"},
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_allow_list_blocks_the_rest(inspect):
    report = inspect("working", "import_error", environ={"TESSIQ_PLUGINS": "sample", "TESSIQ_DISABLE_PLUGINS": ""})
    statuses = {name: record["status"] for name, record in report["by"].items()}
    assert statuses.pop("tessiq-sample-working") == "ok"
    assert set(statuses.values()) == {"blocked"}


def test_a_plugin_asked_for_that_is_not_installed(samples):
    done = samples.run("working", code=LOAD, environ={"TESSIQ_PLUGINS": "sampel"})
    assert done.returncode != 0
    assert "NotFound: tessiq: TESSIQ_PLUGINS asks for the plugin 'sampel', which is not installed; did you mean " in (
        done.stderr
    )


def test_two_plugins_of_one_name(inspect, samples):
    for order in (("duel_first", "duel_second"), ("duel_second", "duel_first")):
        report = inspect(*order)
        first, second = (report["by"][f"tessiq-sample-duel-{which}"] for which in ("first", "second"))
        assert (first["status"], first["note"]) == ("ok", "the first one answers")
        assert second["status"] == "broken"
        assert "tessiq-sample-duel-first has a plugin of this name too" in second["reason"]
        assert [(c["hook"], c["key"], c["winner"], c["loser"]) for c in report["conflicts"]] == [
            ("entry point", "duel", "tessiq-sample-duel-first", "tessiq-sample-duel-second")
        ]
    done = samples.run("duel_first", "duel_second", code=LOAD)
    assert len(warning_lines(done.stderr)) == 1
    # The distribution's name picks the other one.
    report = inspect(*order, environ={"TESSIQ_DISABLE_PLUGINS": "cpuref,cuda,ops-contrib,tessiq_sample_duel_first"})
    assert report["by"]["tessiq-sample-duel-second"]["note"] == "the second one answers"
    # The name is satisfied by the winner; the loser's distribution is not.
    assert samples.run(*order, code=LOAD, environ={"TESSIQ_PLUGINS": "duel"}).returncode == 0
    done = samples.run(*order, code=LOAD, environ={"TESSIQ_PLUGINS": "duel,tessiq-sample-duel-second"})
    assert "cannot be loaded: tessiq-sample-duel-first has a plugin of this name too" in done.stderr


def test_a_hook_that_fails_is_isolated(inspect, samples):
    report = inspect("failing_hook", "working")
    record = report["by"]["tessiq-sample-failing-hook"]
    assert record["status"] == "broken"
    assert record["reason"] == "tessiq_emitters failed: ZeroDivisionError: a hook that fails on purpose"
    assert record["note"] == "still here"
    assert record["hooks"] == ["tessiq_devices", "tessiq_emitters"]
    assert ("emitter", "sample/text") in {(offer["what"], offer["name"]) for offer in report["offers"]}

    done = samples.run("failing_hook", code=EVERYTHING + "m.emitters(); m.emitters(); print('went on')")
    assert done.stdout == "went on\n"
    assert len(warning_lines(done.stderr)) == 1

    done = samples.run("failing_hook", code=EVERYTHING, environ={"TESSIQ_STRICT_PLUGINS": "1"})
    assert done.returncode != 0
    assert "tessiq_emitters failed: ZeroDivisionError" in done.stderr


def test_two_answers_for_one_thing(inspect):
    for order in (("working", "rival"), ("rival", "working")):
        report = inspect(*order)
        assert {(c["hook"], c["key"]): (c["winner"], c["loser"], c["reason"]) for c in report["conflicts"]} == {
            ("tessiq_emitters", "sample/text"): ("rival", "sample", "priority 20 is above 10"),
            ("tessiq_devices", "sample/0"): ("rival", "sample", "equal priority; 'rival' sorts before 'sample'"),
        }
        used = {(o["what"], o["name"]): o["plugin"] for o in report["offers"]}
        assert used["emitter", "sample/text"] == "rival"
        assert used["library", "sample/gemm"] == "sample"


def test_a_bad_operation_disables_itself_only(samples):
    code = EVERYTHING + "print([row.name for row in m.operation_rows(with_torch=False)])"
    done = samples.run("bad_operation", code=code)
    assert done.stdout == "['sample_bad_good']\n"
    assert len(warning_lines(done.stderr)) == 1
    assert "sample_bad::bad: the expression reads `$y`, which is no argument of the schema (x)" in done.stderr
    done = samples.run("bad_operation", code=code, environ={"TESSIQ_STRICT_PLUGINS": "1"})
    assert done.returncode != 0


def test_loading_every_plugin_imports_no_torch(samples):
    code = EVERYTHING + "import sys; assert 'torch' not in sys.modules; assert all(r.status == 'ok' for r in m.records)"
    done = samples.run("working", code=code, environ={"TESSIQ_DISABLE_PLUGINS": "", "TESSIQ_STRICT_PLUGINS": "1"})
    assert (done.returncode, done.stderr) == (0, "")
