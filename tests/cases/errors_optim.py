"""Errors of optimizers."""

from __future__ import annotations

ROWS: list[tuple[str, str]] = [
    (
        "a state for parameters of another shape",
        'o = dn.optim.adam(0.1)\no.update({"w": v}, o.init({"w": x}), None)',
    ),
    (
        "a state for other parameters",
        'o = dn.optim.adam(0.1)\no.update({"a": {"w": v}}, o.init({"a": {}}), None)',
    ),
    (
        "updates for parameters of another shape",
        'dn.optim.apply_updates({"w": v}, {"w": v[:2]})',
    ),
    (
        "a state of another chain",
        "o = dn.optim.chain(dn.optim.sgd(0.1))\no.update(v, dn.optim.sgd(0.1).init(v), v)",
    ),
    ("a chain with what is no transformation", "dn.optim.chain(dn.optim.sgd(0.1), dn.optim.sgd)"),
    ("a state that is none", "dn.optim.chain(dn.optim.sgd(0.1)).update(v, None, v)"),
    (
        "a mask without a bool for a leaf",
        'dn.optim.masked(dn.optim.sgd(0.1), {"w": True}).init({"w": v, "b": {"c": v}})',
    ),
    ("decay without the parameters", "o = dn.optim.adamw(0.1)\no.update(v, o.init(v), None)"),
    ("a decay of averages of one", "dn.optim.adam(0.1, b1=1.0)"),
    ("a decay of averages that is no number", "dn.optim.lion(0.1, b2='slow')"),
    ("a negative decay of weights", "dn.optim.adamw(0.1, weight_decay=-1e-4)"),
    ("a limit of zero", "dn.optim.clip(0.0)"),
    ("a norm that is NaN", "dn.optim.clip_by_global_norm(float('nan'))"),
    ("a schedule that is a number", "dn.optim.scale_by_schedule(0.1)"),
    ("no gradients to accumulate", "dn.optim.accumulate(dn.optim.sgd(0.1), 0)"),
    ("half a gradient to accumulate", "dn.optim.accumulate(dn.optim.sgd(0.1), 0.5)"),
    ("a schedule without steps", "dn.optim.linear_schedule(1.0, 0.0, 0)"),
    (
        "a warmup that takes all steps",
        "dn.optim.warmup_cosine_decay_schedule(0.0, 1.0, 10, 10)",
    ),
    ("a rate that does not decay", "dn.optim.exponential_decay(1.0, 10, 0.0)"),
    ("a negative factor", "dn.optim.piecewise_constant_schedule(1.0, {10: -0.1})"),
    ("schedules without boundaries", "dn.optim.join_schedules([lambda n: 1.0] * 2, [])"),
    ("boundaries that descend", "dn.optim.join_schedules([lambda n: 1.0] * 3, [5, 3])"),
    ("an optimizer with another library's name", "dn.optim.nadam(0.1)"),
    ("an option of an optimizer with another name", "dn.optim.adam(0.1, beta1=0.9)"),
    ("quasi-Newton steps without a function", "dn.optim.lbfgs(0.1)"),
    ("quasi-Newton steps that remember none", "dn.optim.lbfgs(dn.sum, history=0)"),
    (
        "quasi-Newton steps without parameters",
        "steps = dn.optim.lbfgs(dn.sum)\nsteps.update(v, steps.init(v))",
    ),
    (
        "the state of another optimizer",
        "steps = dn.optim.lbfgs(dn.sum)\nsteps.update(v, dn.optim.adam(0.1).init(v), v)",
    ),
    (
        "the state of quasi-Newton steps of another model",
        "steps = dn.optim.lbfgs(dn.sum)\nsteps.update(v, steps.init(v[:2]), v)",
    ),
    (
        "gradients of another model for quasi-Newton steps",
        "steps = dn.optim.lbfgs(dn.sum)\nsteps.update((v, v), steps.init(v), v)",
    ),
    (
        "gradients of another shape for quasi-Newton steps",
        "steps = dn.optim.lbfgs(dn.sum)\nsteps.update(v[:2], steps.init(v), v)",
    ),
    (
        "quasi-Newton steps for several numbers",
        "steps = dn.optim.lbfgs(dn.exp)\nsteps.update(v, steps.init(v), v)",
    ),
    (
        "an optimizer with a line search, as in another library",
        "dn.optim.scale_by_zoom_linesearch()",
    ),
]
