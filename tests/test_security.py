"""Files and names of strangers: nothing that is read runs code, and no name is taken for markup."""

import io
import itertools
import json
import pickle
import random
import re
import shlex
import shutil
import sqlite3
import zipfile
from contextlib import closing
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import h5py
import numpy as np
import pytest
from made_up_sweep import make_up, misname
from markdown_it import MarkdownIt
from matplotlib.cbook import is_math_text
from matplotlib.text import Text
from rich.console import Console
from strangers import kinds_of
from watch import FOREIGN, watched

import bisac
from bisac.algos.search import Choice, Range
from bisac.cli.arguments import from_file
from bisac.cli.train import parse_train
from bisac.collect.data_files import read_dataset
from bisac.collect.dataset import Dataset
from bisac.display.sweep import show_findings
from bisac.plotting import statistics
from bisac.plotting.learning_curve import draw_learning_curve
from bisac.policies.card import Facts, written
from bisac.policies.export.standalone import Policy as NumpyPolicy
from bisac.report import figures, html
from bisac.report.analyse import analyse
from bisac.report.data import read_sweep
from bisac.report.page import render_page
from bisac.report.tables import to_latex
from bisac.report.tuning import write_tuning_page
from bisac.runs.folder import RunFolder
from bisac.runs.log import read_log
from bisac.runs.settings import Settings
from bisac.storage import pack_arrays
from bisac.sweeps.contestants import Contestant
from bisac.tuning.record import Tuning, enrol
from bisac.tuning.study import STUDY, Study
from bisac.types import Spec

CLASSIC = Path(__file__).parent / "data" / "classic" / "sac"
SCRIPT = """</script><script>window.hurt=1</script><img src=x onerror='window.hurt=1'>"&{{table}}%{x}$\\foo$`[/]|"""
"""A name that is a script wherever it is not escaped, and an error where it is taken for mathematics or markup."""


class Payload:
    """What a pickle runs when it is loaded."""

    def __init__(self, mark):
        self.code = f"{FOREIGN} = open({str(mark)!r}, 'w')"

    def __reduce__(self):
        return exec, (self.code,)


def hostile_files(folder, mark):
    """Files of every kind that bisac reads, by name; each would leave `mark` where what is in it were run."""
    program = Payload(mark).code
    pickled = pickle.dumps(Payload(mark))
    objects = np.array([Payload(mark)] * 4, object)
    files = dict.fromkeys(("raw.npz", "raw.hdf5", "study.db", "raw.safetensors", "raw.json", "raw.toml"), pickled)
    with io.BytesIO() as content:
        np.savez(content, observation=objects, program=objects)
        files["objects.npz"] = content.getvalue()
    with io.BytesIO() as content:
        header = f"{{'descr': exec({program!r}), 'fortran_order': False, 'shape': (1,)}}".encode()
        with zipfile.ZipFile(content, "w") as archive:
            array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
            for name in ("observation.npy", "program.npy"):
                archive.writestr(name, array)
        files["header.npz"] = content.getvalue()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    with h5py.File(folder / "objects.hdf5", "w") as file:
        file["observation"] = np.array([pickled] * 4, h5py.opaque_dtype(f"V{len(pickled)}"))
    with h5py.File(folder / "references.hdf5", "w") as file:
        words = file.create_dataset("words", data=[program] * 4, dtype=h5py.string_dtype())
        file["observation"] = np.array([words.ref] * 4, h5py.ref_dtype)
    (folder / f"{FOREIGN}.py").write_text(program)  # for ids and algorithms that name a module
    return program


@pytest.fixture(scope="module")
def search(tmp_path_factory):
    """The folder of a search with names that are scripts: two trials are complete, one failed."""
    space = {"critic_lr": Range(1e-4, 1e-2, log=True), "spread": Choice(("std", SCRIPT))}
    folder = tmp_path_factory.mktemp("search")
    enrol(Tuning(SCRIPT, Contestant("bisac"), Settings(steps=100), space), folder, ["bisac", SCRIPT])
    study = Study(folder, space)
    for score in (1.0, 2.0):
        study.complete(study.ask().number, score)
    study.fail(study.ask().number, SCRIPT)
    write_tuning_page(folder)  # what is imported at the first time is no stranger's
    return folder


def test_no_file_runs_code(search, tmp_path, monkeypatch):
    """Every format that is read, with a program in it: each ends in one sentence of ours, and runs nothing."""
    mark, files, count = tmp_path / "mark", tmp_path / "files", itertools.count()
    files.mkdir()
    program = hostile_files(files, mark)
    monkeypatch.syspath_prepend(str(files))
    pickled = (files / "raw.json").read_bytes()

    def resumed(name, content, checkpoints=True):
        broken = shutil.copytree(CLASSIC, tmp_path / f"run-{next(count)}")
        (broken / name).write_bytes(content)
        if not checkpoints:
            shutil.rmtree(RunFolder(broken).checkpoints)
        return lambda: bisac.resume(broken, verbose=False)

    def alone(name, content, read):
        place = tmp_path / f"folder-{next(count)}"
        place.mkdir()
        (place / name).write_bytes(content)
        return lambda: read(place)

    def policy(**changes):
        metadata = {"format": "bisac-policy", "version": 1, "algo": "sac", "settings": {}, "spec": {}} | changes
        return alone("policy.safetensors", pack_arrays({"a": np.zeros(3)}, metadata), bisac.load)

    def database(column):
        broken = shutil.copytree(search, tmp_path / f"search-{column}")
        with closing(sqlite3.connect(broken / STUDY)) as opened, opened:
            assert opened.execute(f"update trial_params set {column} = ?", (pickled,)).rowcount
        return lambda: write_tuning_page(broken)

    config = json.loads(RunFolder(CLASSIC).config.read_text()) | {"algo": "theirs", "algo_module": FOREIGN}
    row = f"step,wall_time,eval_return\n{program},1,2\n".encode()
    sizes = pack_arrays({"a": np.zeros(1)}, {"rows": program, "sizes": [program, program]})
    numpys = ("raw.npz", "objects.npz", "header.npz")
    reads = {
        "policy, a pickle": alone("policy.safetensors", pickled, bisac.load),
        "policy of a stranger's algorithm": policy(algo="theirs", algo_module=FOREIGN),
        "policy whose sizes are a program": policy(spec={"env_id": f"{FOREIGN}:E-v0", "obs_dim": program}),
        "checkpoint's manifest": resumed("checkpoints/step-000000000060/manifest.json", pickled),
        "checkpoint's state": resumed("checkpoints/step-000000000060/state.safetensors", pickled),
        "config.json, a pickle": resumed("config.json", pickled, checkpoints=False),
        "config.json of another's algorithm": resumed("config.json", json.dumps(config).encode(), checkpoints=False),
        "progress.csv": alone("progress.csv", row, lambda folder: read_log(RunFolder(folder))),
        "sweep record": alone("sweep.json", pickled, read_sweep),
        "search record": alone("tune.json", pickled, write_tuning_page),
        "study, a pickle": alone(STUDY, pickled, lambda folder: Study(folder, {})),
        "study's value": database("param_value"),
        "study's distribution": database("distribution_json"),
        "TOML of a run": alone("a.toml", pickled, lambda folder: parse_train(["--config", str(folder / "a.toml")])),
        "JSON of a run": alone("a.json", pickled, lambda folder: parse_train(["--config", str(folder / "a.json")])),
        "TOML of a sweep": alone("a.toml", pickled, lambda folder: from_file(folder / "a.toml")),
        "data set of bisac's": lambda: Dataset.from_bytes(pickled, "demos"),
        "data set of bisac's, sizes": lambda: Dataset.from_bytes(sizes, "demos"),
    }
    for name in (*numpys, "raw.hdf5", "objects.hdf5", "references.hdf5"):
        reads[f"data set {name}"] = partial(read_dataset, str(files / name))
    forms = {f"numpy form {name}": partial(NumpyPolicy, files / name) for name in numpys}
    for what, read in (reads | forms).items():
        with watched() as seen, pytest.raises(ValueError if what in forms else bisac.BisacError) as refused:
            read()
        assert (seen, mark.exists()) == ([], False), what
        assert "\n" not in str(refused.value), what


@pytest.mark.filterwarnings("ignore")  # what a stranger's numbers make NumPy warn of
def test_foreign_files_end_in_our_own_error(tmp_path, monkeypatch):
    """Mutated or forged, of every kind: used, or refused with a sentence. The campaign tries thousands of each."""
    monkeypatch.setattr(statistics, "REPS", 5)
    monkeypatch.setattr(html, "_plotly", str)
    for kind in kinds_of(tmp_path):
        kind.try_out(8, random.Random(kind.name))
        assert kind.problems == [], kind.name
        assert kind.tally["refused"] or kind.path.parent.name == "run", kind.name  # a checkpoint has a copy of a config


class Page(HTMLParser):
    """What a browser makes of a page: the elements that can run something, what can be clicked, and the words."""

    def __init__(self, page):
        super().__init__()
        self.harm, self.scripts, self.words, self._inside = [], [], "", ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self._inside = tag
        if tag == "script":
            self.scripts.append("")
        elif tag in ("img", "iframe", "object", "embed", "a", "base", "form") or any(n[:2] == "on" for n, _ in attrs):
            self.harm.append(tag)

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside == "script":
            self.scripts[-1] += data
        elif self._inside != "style":
            self.words += data


def test_names_that_are_scripts_are_words_in_a_report(tmp_path, monkeypatch):
    monkeypatch.setattr(statistics, "REPS", 10)
    drawn = []
    monkeypatch.setattr(figures, "rendered", lambda figure: drawn.extend(figure.findobj(Text)) or {})
    sweep = make_up(tmp_path, ("sac", "bisac"), ("Hopper-v5",), 2, 4)
    record = json.loads((misname(sweep, "Hopper-v5", "bisac", SCRIPT, SCRIPT) / "sweep.json").read_text())
    record["contestants"][0]["settings"] = []
    record |= {"hyperparameters": {SCRIPT: SCRIPT}, "commands": [["bisac", SCRIPT]]}
    record["provenance"] |= {"versions": {SCRIPT: SCRIPT}, "platform": SCRIPT}
    (sweep / "sweep.json").write_text(json.dumps(record))
    analysis = analyse(read_sweep(sweep), None)
    page = Page(render_page(analysis, SCRIPT))
    assert (page.harm, len(page.scripts)) == ([], 3)
    assert page.words.count(SCRIPT) >= 15  # the title twice, chip, heading, verdicts, table, and how it was made
    traces = [trace for chart in json.loads(page.scripts[1]) for trace in chart["traces"]]
    shown = [text for trace in traces for text in (trace.get("name", ""), trace.get("hovertemplate", ""))]
    assert sum("hurt" in text for text in shown) >= 8
    assert not any(part in text for text in shown for part in ("<img", "<script", "$"))  # plotly.js reads them
    figures.draw_figures(analysis)
    named = [text.get_text() for text in drawn if "hurt" in text.get_text()]
    assert named
    assert not any(map(is_math_text, named))  # which it is none of: drawing would fail
    draw_learning_curve([], SCRIPT)
    latex = to_latex(analysis)
    assert r"\$\textbackslash{}foo\$" in latex
    with io.StringIO() as terminal:
        show_findings(analysis, Console(file=terminal, width=1000))
        assert SCRIPT in terminal.getvalue()


def test_names_that_are_scripts_are_words_on_the_page_of_a_search(search):
    page = Page((search / "tune.html").read_text())
    assert (page.harm, len(page.scripts)) == ([], 3)
    assert page.words.count(SCRIPT) >= 4  # the task, the choice twice, why a trial failed
    assert "<img" not in json.dumps([(chart["traces"], chart["layout"]) for chart in json.loads(page.scripts[1])])


def test_names_that_are_scripts_are_words_in_a_card():
    config = {"command": ["bisac", SCRIPT], "versions": {"bisac": SCRIPT}, "platform": SCRIPT, "run": {"seed": SCRIPT}}
    facts = Facts(SCRIPT, SCRIPT, (SCRIPT,), 3, (SCRIPT, "ok"), 1, SCRIPT, {"spread": SCRIPT}, 5, None, [], None,
                  config, {"onnx": "policy.onnx", "stablehlo": "policy.stablehlo"}, SCRIPT)  # fmt: skip
    page = Page(MarkdownIt("commonmark", {"html": True}).enable("table").render(written(facts).split("---\n", 2)[2]))
    assert (page.harm, page.scripts) == ([], [])
    assert page.words.count(SCRIPT) == 10
    assert shlex.join(["bisac", SCRIPT]) in page.words  # the command, as one would type it
    for block in re.findall(r"(?s)```python\n(.*?)\n```", written(facts)):
        compile(block, "card", "exec")


@pytest.mark.parametrize("name", ["two\nlines", "\x1b]0;title\x07", "right\u202eleft"])
def test_names_that_would_write_into_a_terminal_are_refused(name, tmp_path):
    with pytest.raises(ValueError, match="an environment is not called"):
        Spec.from_json({"env_id": name, "obs_dim": 3, "action_low": [-1], "action_high": [1]})
    sweep = make_up(tmp_path, ("sac",), ("Hopper-v5",), 1, 2)
    path = sweep / "sweep.json"
    path.write_text(path.read_text().replace("Hopper-v5", json.dumps(name)[1:-1]))
    with pytest.raises(bisac.BisacError, match=r"sweep\.json is damaged"):
        read_sweep(sweep)
