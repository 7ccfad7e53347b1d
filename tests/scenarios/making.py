"""Makes the run of a scenario: simulated in virtual time, a trace of calls, or on a real device."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import patterns
import real
from commands import ScenarioError, call
from scenario import HERE, TOP, Scenario

__all__ = ["ScenarioError", "call", "make", "runs_of"]

RUN, CALLS = "run.replay.parquet", "run.calls.parquet"
LOAD = "run.load.parquet"
MAX_REQUESTS = 200_000


def runs_of(scenario: Scenario, made: Path) -> list[Path]:
    """The files that a diagnosis is given: with `--repeat`, several."""
    if scenario.of_calls:
        return [made / CALLS]
    return sorted(made.glob("run.replay.parquet")) or sorted(made.glob("run.*.replay.parquet"))


def make(scenario: Scenario, out: Path) -> Path:
    """The directory with its run, which is made unless it is there."""
    code = [(HERE / name).read_text() for name in ("patterns.py",) if scenario.of_calls]
    code += [(HERE / name).read_text() for name in ("real.py",) if scenario.on]
    device = _device_text(scenario)
    made = out / f"{scenario.name}-{scenario.made_of(device, *code)}"
    if made.is_dir():
        return made
    for old in out.glob(f"{scenario.name}-????????????"):
        shutil.rmtree(old)
    being_made = out / f".{scenario.name}.being-made"
    shutil.rmtree(being_made, ignore_errors=True)
    being_made.mkdir(parents=True)
    try:
        _make_in(being_made, scenario, device)
    except (subprocess.SubprocessError, OSError) as error:
        raise ScenarioError(str(error)) from error
    being_made.rename(made)
    return made


def _make_in(place: Path, scenario: Scenario, device: str) -> None:
    if scenario.of_calls:
        name = scenario.calls.get("natural")
        if name:
            (place / CALLS).symlink_to(TOP / f"loads/{name}.calls.parquet")
        else:
            patterns.write(place / CALLS, scenario.seed, dict(scenario.calls))
        return
    words = shlex.split(scenario.replay)
    load = _load(place, scenario)
    if scenario.program and "\n" in scenario.program:
        (place / "run.toml").write_text(scenario.program)
        program = str(place / "run.toml")
    else:
        program = scenario.program
    if load is None:
        command = ["workload", "run", program]
    else:
        command = ["replay", str(load), *(["--program", program] if program else [])]
    command += ["--output", str(place / RUN), *words]
    if scenario.on:
        real.run(command, dict(scenario.on), place)
        return
    (place / "device.toml").write_text(device)
    call(*command, "--simulate", place / "device.toml", "--virtual-time", "--seed", scenario.seed, may_exit=(0, 4))


def _load(place: Path, scenario: Scenario) -> Path | None:
    words = shlex.split(scenario.load)
    if not words:
        return None
    if words[0] == "natural":
        return TOP / f"loads/{words[1]}.load.parquet"
    load = place / LOAD
    seed = [] if "--seed" in words else ["--seed", scenario.seed]
    call("generate", words[0], load, *words[1:], *seed, "--requests", MAX_REQUESTS)
    return load


def _device_text(scenario: Scenario) -> str:
    """The device, with the laws of the scenario."""
    if scenario.of_calls or scenario.on:
        return ""
    own = tomllib.loads((HERE / "devices.toml").read_text())["device"]
    presets = TOP / "crates/replay/src/engine/simulate/presets"
    text = own[scenario.device] if scenario.device in own else (presets / f"{scenario.device}.toml").read_text()
    # Keys of the device itself precede its tables: a scenario may replace them.
    plain, _, tables = scenario.laws.partition("[")
    replaced = {line.split("=")[0].strip() for line in plain.splitlines() if "=" in line}
    lines = [line for line in text.splitlines() if line.split("=")[0].strip() not in replaced]
    return "\n".join([plain.strip(), *lines, ("[" + tables if tables else "")]) + "\n"
