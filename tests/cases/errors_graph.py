"""Wrong cuts, wrong lists of stages, and runs with wrong arguments: rows of ``errors``."""

from __future__ import annotations

_EXPR = "expr = dn.debug_expr(lambda x: dn.cos(dn.sin(x)))(v)\n"
_STAGES = _EXPR + "stages = dn.graph.split(expr, dn.graph.every(1))\n"
_OTHER = "other = dn.graph.split(dn.debug_expr(dn.exp)(v), dn.graph.every(1))\n"
_NAMED = (
    'expr = dn.debug_expr(lambda p, y: dn.sin(p["w"]) + y)({"w": x}, 1.0)\n'
    "stages = dn.graph.split(expr, dn.graph.every(1))\n"
)

ROWS: list[tuple[str, str]] = [
    # Cuts.
    ("a decision that is none", _EXPR + 'dn.graph.split(expr, lambda node: "here")'),
    ("a decision that is no string", _EXPR + "dn.graph.split(expr, lambda node: True)"),
    (
        "a decision without the accumulator",
        _EXPR + 'dn.graph.split(expr, 0, lambda node, count: "none")',
    ),
    ("a decider that is none", _EXPR + 'dn.graph.split(expr, "before")'),
    ("a rule with an accumulator", _EXPR + "dn.graph.split(expr, 0, dn.graph.every(3))"),
    ("a cut without a decider", _EXPR + "dn.graph.split(expr)"),
    ("a cut of a value", "dn.graph.split(v, dn.graph.every(1))"),
    (
        "a cut of a template",
        'dn.graph.split(dn.template((2,), "f32"), dn.graph.every(1))',
    ),
    (
        "a cut of two graphs",
        _EXPR + "dn.graph.split((expr, dn.debug_expr(dn.exp)(v)), dn.graph.every(1))",
    ),
    ("a cut at an unknown op", _EXPR + 'dn.graph.split(expr, dn.graph.ops("sine"))'),
    ("a cut at what computes nothing", _EXPR + 'dn.graph.split(expr, dn.graph.ops("constant"))'),
    (
        "a cut at an unknown mark",
        'expr = dn.debug_expr(lambda x: dn.mark(x, "here"))(v)\n'
        'dn.graph.split(expr, dn.graph.marks("there"))',
    ),
    ("a cut at marks where there are none", _EXPR + "dn.graph.split(expr, dn.graph.marks())"),
    ("a cut into more stages than ops", _EXPR + "dn.graph.split(expr, dn.graph.balanced(3))"),
    ("a cut after no ops", _EXPR + "dn.graph.split(expr, dn.graph.every(0))"),
    ("a cut after half an op", "dn.graph.every(0.5)"),
    # Lists of stages.
    ("stages out of order", _STAGES + "dn.graph.run(stages[::-1], [v])"),
    ("stages of two graphs", _STAGES + _OTHER + "dn.graph.run([stages[0], *other], [v])"),
    ("a stage that is missing", _STAGES + "dn.graph.run(stages[:1], [v])"),
    ("no stages", "dn.graph.run([], [v])"),
    ("one stage in place of a list", _STAGES + "dn.graph.run(stages[0], [v])"),
    ("a function among stages", _STAGES + "dn.graph.run([stages[0], dn.cos], [v])"),
    # Arguments and options of runs.
    ("an argument of another shape", _STAGES + "dn.graph.run(stages, [v[:2]])"),
    (
        "an argument of another type in a container",
        _NAMED + 'dn.graph.run(stages, [{"w": x[:1]}, 1.0])',
    ),
    ("an argument of a run that is missing", _NAMED + 'dn.graph.run(stages, [{"w": x}])'),
    ("an argument that stands alone", _STAGES + "dn.graph.run(stages, v)"),
    ("an argument of a stage that is missing", _STAGES + "dn.graph.compile(stages[1])()"),
    ("an argument of a stage of another dtype", _STAGES + "dn.graph.compile(stages[1])(i)"),
    ("a template for a run", _STAGES + 'dn.graph.run(stages, [dn.template((3,), "f32")])'),
    ("stages in a definition", _STAGES + "dn.jit(lambda x: dn.graph.run(stages, [x]))(v)"),
    (
        "options of a stage that is not there",
        _STAGES + "dn.graph.run(stages, [v], stage_options={2: {}})",
    ),
    ("options of stages in a list", _STAGES + "dn.graph.run(stages, [v], stage_options=[{}])"),
    ("an option that stages do not have", _STAGES + "dn.graph.run(stages, [v], donate=[0])"),
    ("an engine that is none", _STAGES + "dn.graph.run(stages, [v], engine=3)"),
    (
        "an engine that gives nothing",
        _STAGES
        + "class Lazy:\n    def run_each(self, plan, sets):\n        return iter(())\n"
        + "    def __repr__(self):\n        return 'Lazy()'\n"
        + "dn.graph.run(stages, [v], engine=Lazy())",
    ),
    (
        "an error in a stage",
        "expr = dn.debug_expr(lambda x: dn.log(-x))(v)\n"
        'stages = dn.graph.split(expr, dn.graph.ops("log"))\n'
        'with dn.checks("nan"):\n'
        "    dn.graph.run(stages, [v])",
    ),
    # Text forms and pickles.
    ("a graph's text that ends", 'dn.graph.from_text("defn-ir 1\\n(f32) {")'),
    (
        "a stage's text with a source that is not there",
        _STAGES
        + 'dn.graph.Stage.from_text(stages[1].to_text().replace("output 0", "output 0 of"))',
    ),
    (
        "a stage's text with a later source",
        _STAGES
        + 'dn.graph.Stage.from_text(stages[1].to_text().replace("of stage 0", "of stage 1"))',
    ),
    (
        "a text without its captured tensors",
        "expr = dn.debug_expr(lambda y: y * v)(1.0)\ndn.graph.from_text(dn.graph.to_text(expr))",
    ),
    (
        "a captured tensor of another type",
        "expr = dn.debug_expr(lambda y: y * v)(1.0)\n"
        "dn.graph.from_text(dn.graph.to_text(expr), [i])",
    ),
    (
        "a pickled stage with a hook",
        "import pickle\n"
        "expr = dn.debug_expr(lambda x: dn.hook(x, print))(1.0)\n"
        "pickle.dumps(dn.graph.split(expr, dn.graph.every(1)))",
    ),
]
