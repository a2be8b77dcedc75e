"""make: the graph is right, nothing runs without a reason, and content decides, not the clock."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import time

import nbformat
import pytest

from esfp import params, run
from tests.conftest import ENVIRONMENT, REPO

MAKEFILE = (REPO / "Makefile").read_text()


def imports(source: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "esfp":
            names = [alias.name for alias in node.names]
            found |= set(names) if node.module == "esfp" else {node.module.split(".")[1]}
        if isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("esfp.")}
    return {name for name in found if (REPO / "esfp" / f"{name}.py").exists()}


def closure(names: set[str]) -> set[str]:
    reached: set[str] = set()
    while names - reached:
        name = (names - reached).pop()
        reached.add(name)
        names = names | imports((REPO / "esfp" / f"{name}.py").read_text())
    return reached


@pytest.mark.parametrize("stage", params.STAGES)
def test_a_stage_depends_on_every_module_it_uses(stage):
    cells = nbformat.read(REPO / f"notebooks/{run.notebook_name(stage)}.ipynb", as_version=4).cells
    source = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    listed = re.search(rf"^modules_{stage} := ((?:.*\\\n)*.*)$", MAKEFILE, re.M).group(1)
    for group in ("every", "calling"):
        names = re.search(rf"^{group} := (.*)$", MAKEFILE, re.M).group(1)
        listed = listed.replace(f"$({group})", names)
    listed = set(listed.replace("\\", " ").split())
    assert closure(imports(source) | {"run"}) == listed


def test_help_is_the_default():
    done = subprocess.run(["make"], cwd=REPO, capture_output=True, text=True)
    assert done.returncode == 0
    assert "make all" in done.stdout and "make smoke" in done.stdout


@pytest.mark.parametrize("path", ["params/none.yaml", "/tmp/mine.yaml"])
def test_a_wrong_params_path_is_one_line(path):
    done = subprocess.run(
        ["make", "all", f"PARAMS={path}"], cwd=REPO, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert f"PARAMS={path}" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    "path", ["params/local.yaml", "./params/local.yaml", "{}/params/local.yaml"]
)
def test_a_params_path_may_be_given_in_any_way(path):
    command = ["make", "-n", "-o", ".venv/installed", "plan", f"PARAMS={path.format(REPO)}"]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True)
    assert done.stdout.endswith("-m esfp.plan --params params/local.yaml\n"), done.stderr


@pytest.mark.parametrize("goal", ["smoke", "mine"])
def test_a_goal_with_a_params_file_of_its_own_takes_no_other(goal):
    given = [goal, "PARAMS=params/local.yaml", "MODEL=m", "BASE_URL=http://here"]
    done = subprocess.run(["make", *given], cwd=REPO, capture_output=True, text=True)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "make all PARAMS=params/local.yaml runs that one" in done.stderr


@pytest.mark.parametrize(
    ("given", "line"),
    [
        (["RUN_A=published"], "make diff needs two runs: RUN_A=published RUN_B=mine"),
        (["RUN_A=no-run", "RUN_B=published"], "outputs/no-run/results.json: not there"),
    ],
)
def test_a_difference_without_two_runs_is_one_line(given, line):
    command = ["make", "-s", "-o", ".venv/installed", f"PY={sys.executable}", "diff", *given]
    done = subprocess.run(command, cwd=REPO, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 2 and line in done.stderr
    assert len([x for x in done.stderr.splitlines() if "***" not in x or line in x]) == 1


@pytest.fixture
def project(workspace, server):
    """The workspace with a Makefile, and notebooks of its own to touch."""
    for name in ("Makefile", "requirements.lock", "nodeps.lock"):
        shutil.copy(REPO / name, workspace.root)
    (workspace.root / "notebooks").unlink()
    shutil.copytree(REPO / "notebooks", workspace.root / "notebooks")
    (workspace.root / "esfp").symlink_to(REPO / "esfp")
    workspace.path = workspace.params("tiny", server.base_url)

    def make(*arguments):
        return subprocess.run(
            ["make", "-o", ".venv/installed", f"PY={sys.executable}", *arguments],
            cwd=workspace.root,
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=1200,
        )

    workspace.make = make
    return workspace


def stages_run(done) -> list[str]:
    assert done.returncode == 0, done.stderr
    return [line.split(": ")[1] for line in done.stderr.splitlines() if line.startswith("tiny: ")]


def test_only_what_a_change_reaches_runs_again(project, server):
    goal = ["all", f"PARAMS={project.path}"]
    first = stages_run(project.make("-j2", *goal))
    assert sorted(first) == sorted(params.STAGES)
    assert first[0] == "generate" and first[-3:] == ["score", "bootstrap", "figures"]
    assert (project.root / "outputs/tiny/report.pdf").stat().st_size > 0
    asked = sum(server.calls())

    start = time.monotonic()
    assert stages_run(project.make(*goal)) == []
    assert time.monotonic() - start < 5  # the bar, 1 s, is measured by hand on a quiet machine
    assert project.make("-q", *goal).returncode == 0

    os.utime(project.root / "notebooks/4_score.ipynb")
    os.utime(project.root / project.path)
    assert stages_run(project.make(*goal)) == []

    path = project.root / project.path
    path.write_text(path.read_text() + "score: {weights: {ar: 0.3, scd: 0.4}}\n")
    assert stages_run(project.make(*goal)) == ["score", "bootstrap", "figures"]
    assert sum(server.calls()) == asked
    results = json.loads((project.root / "outputs/tiny/results.json").read_text())
    assert results["score.delta_ar.steady"] == pytest.approx(0.75)

    path.write_text(path.read_text() + "prices: {steady: {input: 1, output: 2}}\n")
    assert stages_run(project.make(*goal)) == ["generate"]  # its closing table, and nothing after
    executed = project.root / "outputs/tiny/notebooks/1_generate.ipynb"
    assert "cost" in executed.read_text() and sum(server.calls()) == asked

    (project.root / "esfp").unlink()
    shutil.copytree(REPO / "esfp", project.root / "esfp")
    with (project.root / "esfp/pace.py").open("a") as file:
        file.write("# how calls are made has changed, and what they brought has not\n")
    assert stages_run(project.make(*goal)) == ["generate", "judge"]
    assert stages_run(project.make(*goal)) == [] and sum(server.calls()) == asked


def test_mine_is_one_command_from_a_server_to_a_row(project, server):
    shutil.copy(REPO / "params/published.yaml", project.root / "params")
    published = project.root / "outputs/published"
    published.mkdir(parents=True)
    for name in ("released.csv", "printed.yaml"):
        shutil.copy(REPO / "outputs/published" / name, published)
    # the environment counts as there: make itself passes no -o on to the make that it starts
    project.make(".make/requirements.lock.sum", ".make/nodeps.lock.sum")
    (project.root / ".venv").mkdir()
    (project.root / ".venv/installed").touch()
    asked = ["--model", "my/steady $x", "--base-url", server.base_url]
    run_name = project.run("esfp.mine", "params", *asked).stdout.strip()
    path = project.root / "params" / f"{run_name}.yaml"
    path.write_text(path.read_text() + "\ncorpus: {items: items.csv}\n")

    command = ["mine", "MODEL=my/steady $$x", f"BASE_URL={server.base_url}"]
    done = project.make(*command)
    assert done.returncode == 0, done.stderr
    assert "has been edited and is used as it is" in done.stderr
    assert server.calls() == [1] * 20
    lines = [line for line in done.stdout.splitlines() if line.startswith(("→  ", "*  "))]
    assert len(lines) == 9 and sum("my/steady $x" in line for line in lines) == 1
    assert "→ 4 items, judged by combined, embedding" in done.stdout
    assert (project.root / f"outputs/{run_name}/report.html").exists()

    again = project.make(*command)
    assert again.stdout.splitlines()[-len(lines) :] == done.stdout.splitlines()[-len(lines) :]
    assert "generate" not in again.stderr and server.calls() == [1] * 20
