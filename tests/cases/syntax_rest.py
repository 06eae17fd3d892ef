"""Expressions, functions, and statements that bind names or handle exceptions."""

from __future__ import annotations

from cases.construct import Construct

NEVER = "there is nothing that a tensor could not decide"

REST = [
    Construct(
        "raise",
        """
        if n != 2:
            raise ValueError(n)
        return x
        """,
        "an exception would be raised while tracing, whatever the value is",
        (
            """
            if x > 1:
                raise ValueError(n)
            return x
            """,
            "TraceError: defn: `raise` under a condition on a tensor; use dn.hook to look at values "
            "while they run\n  at user.py:2",
        ),
    ),
    Construct(
        "assert",
        """
        assert n == 2 and not n == 3, "two"
        return x
        """,
        "a failure would have to stop the program",
        (
            """
            assert x > 1
            return x
            """,
            "TraceError: defn: `assert` on a tensor; use dn.hook to look at values while they run, "
            "or dn.checks to find NaNs\n  at user.py:2",
        ),
    ),
    Construct(
        "and, or",
        "return x * (n and 3) + (0 or n) + (n == 2 and n or 5)",
        ("return (x > 1 and x < 9) + (x < -1 or n == 3 or x > 6) * 2", "logical_and"),
        (
            "return x > 1 and (y := x) > 2 and y < 9",
            "TraceError: defn: `:=` in what a condition on a tensor decides; bind the name in a "
            "statement before\n  at user.py:2",
        ),
    ),
    Construct(
        "not",
        "return x if not n == 3 else -x",
        ("return (not x > 1) + (not x) * 2", "logical_not"),
        NEVER,
    ),
    Construct(
        "chained comparison",
        "return x * (1 < n < 3) + (n is not None is not False)",
        ("return (0 < x < 9) + (x == x != 2) * 2", "logical_and"),
        (
            "return 1 < x in (2.0, 3.0)",
            "TraceError: bool: the tensor bool is being traced and has no values yet in `return 1 < x "
            "in (2.0, 3.0)`; use dn.cond to run one of two branches, dn.select to choose element by "
            "element, or Python's own if in a function that is itself decorated with dn.defn\n"
            "  at user.py:2",
        ),
    ),
    Construct(
        "walrus",
        """
        if (k := n * 2) > 3:
            x = x * k
        return x
        """,
        (
            """
            if (y := x * 2) > 3:
                x = y + 1
            while (y := x + 1) < 9:
                x = y
            return x + y
            """,
            "while",
        ),
        (
            "return (y := x) if x > 1 else y",
            "TraceError: defn: `:=` in what a condition on a tensor decides; bind the name in a "
            "statement before\n  at user.py:2",
        ),
    ),
    Construct(
        "comprehension",
        """
        return sum([x * k for k in range(4) if k != n and not k == 1])
        """,
        (
            """
            return sum(y if y > 0 else 0.0 for y in (x, -x, x + 1))
            """,
            "cond",
        ),
        (
            "return [y for y in (x, -x) if y > 0]",
            "TraceError: defn: `if` on a tensor in a comprehension; use dn.select, or compute all "
            "and mask them\n  at user.py:2",
        ),
    ),
    Construct(
        "match",
        """
        match {"scale": n}:
            case {"scale": k} if k == 2:
                return x * k
            case _:
                return x
        """,
        (
            """
            match ("scale", n):
                case ("scale", k):
                    if x > 1:
                        x = x * k
                case _:
                    x = -x
            return x
            """,
            "cond",
        ),
        (
            """
            match n:
                case k if x > k:
                    return x
                case _:
                    return -x
            """,
            "TraceError: defn: a guard on a tensor in a `match`; use if, elif and else\n"
            "  at user.py:3",
        ),
    ),
    Construct(
        "match of a tensor",
        """
        match n:
            case 2:
                return x
            case _:
                return -x
        """,
        "a pattern is compared with `==` and has to be plain",
        (
            """
            match x:
                case 2.0:
                    return x
                case _:
                    return -x
            """,
            "TraceError: bool: the tensor bool is being traced and has no values yet in `case 2.0:`; "
            "use dn.cond to run one of two branches, dn.select to choose element by element, or "
            "Python's own if in a function that is itself decorated with dn.defn\n  at user.py:3",
        ),
    ),
    Construct(
        "nested function",
        """
        def g(y):
            if n == 2:
                y = y * 10
            return y
        return g(x)
        """,
        (
            """
            def g(y):
                if y > 1:
                    return y * 10
                return y
            return g(x) + g(-x)
            """,
            "cond",
        ),
        (
            """
            def g(y):
                if y > 1:
                    return y
            return g(x)
            """,
            "TraceError: defn: `return` in one branch only of an if on a tensor; return from every "
            "branch, or bind a variable in both and return it after the if:\n"
            "      if condition: result = a\n      else: result = b\n      return result\n"
            "  at user.py:3",
        ),
    ),
    Construct(
        "lambda",
        "return (lambda y, k=n: y * 10 if k == 2 else y)(x)",
        ("return (lambda y, k=n: y * k if y > 1 else -y)(x)", "cond"),
        (
            "return (lambda y: (y, y) if y > 1 else y)(x)",
            "ContainerError: cond: branch 1 and branch 0 differ in structure: one is tensor, the "
            "other (tensor, tensor)\n  at user.py:2",
        ),
    ),
    Construct(
        "nonlocal",
        """
        total = 0.0
        def add(y):
            nonlocal total
            total = total + y if n == 2 else total
        add(x)
        add(x)
        return total
        """,
        (
            """
            total, count = 0.0, 0
            def add(y):
                nonlocal total, count
                total = total + y
                if y > 1:
                    count = count + 1
            for k in dn.range(3):
                add(x)
            if x > 0:
                add(x * 2)
            return total * 10 + count
            """,
            "while",
        ),
        (
            """
            state = None
            def note(y):
                nonlocal state
                state = y
            if x > 1:
                note(x)
            return state
            """,
            "ContainerError: if: the variable state is f32 in one branch and None in the other, a "
            "condition on a tensor needs one type; give it a tensor or a number in both\n"
            "  at user.py:6",
        ),
    ),
    Construct(
        "class inside",
        """
        class Scale:
            def of(self, y):
                return y * 10 if n == 2 else y
        return Scale().of(x)
        """,
        (
            """
            class Scale:
                def of(self, y):
                    if y > 1:
                        y = y * 10
                    return y
            return Scale().of(x)
            """,
            "cond",
        ),
        NEVER,
    ),
    Construct(
        "generator",
        """
        def parts():
            for k in range(3):
                if k != n:
                    yield x * k
        return sum(parts())
        """,
        "a generator is left as it is",
        (
            """
            def parts():
                if x > 1:
                    yield x
            return list(parts())
            """,
            "TraceError: defn: a condition on a tensor in a generator; use dn.scan, or a function "
            "that returns\n  at user.py:3",
        ),
    ),
    Construct(
        "a definition that is a generator",
        "return x",
        "a definition returns once",
        (
            """
            if x > 1:
                yield x
            """,
            "TraceError: defn: f is a generator, a function that returns is required; return a tuple "
            "or a list, or use dn.scan\n  at call.py:1",
        ),
    ),
    Construct(
        "try",
        """
        try:
            y = x + {}["a"]
        except KeyError:
            y = x * n
        finally:
            y = y + 1
        return y
        """,
        (
            """
            try:
                if x > 1:
                    x = x * 10
                else:
                    try:
                        x = x + {}["a"]
                    except KeyError:
                        x = -x
            finally:
                x = x + 1
            return x
            """,
            "cond",
        ),
        (
            """
            if x > 1:
                try:
                    y = x * 2
                except ValueError:
                    return x
            return x
            """,
            "TraceError: defn: `return` in one branch only of an if on a tensor; return from every "
            "branch, or bind a variable in both and return it after the if:\n"
            "      if condition: result = a\n      else: result = b\n      return result\n"
            "  at user.py:2",
        ),
    ),
    Construct(
        "with",
        """
        with dn.options() as k:
            if n == 2:
                x = x * 10
        return x
        """,
        (
            """
            with dn.options():
                if x > 1:
                    with dn.options() as k:
                        x = x * 10
            return x
            """,
            "cond",
        ),
        (
            """
            if x > 1:
                with dn.options():
                    return x
            return -x
            """,
            "TraceError: defn: `return` in one branch only of an if on a tensor; return from every "
            "branch, or bind a variable in both and return it after the if:\n"
            "      if condition: result = a\n      else: result = b\n      return result\n"
            "  at user.py:2",
        ),
    ),
    Construct(
        "del",
        """
        y = x * 10
        if n == 2:
            z = y
            del y
            x = z
        return x
        """,
        (
            """
            y = x * 10
            if x > 1:
                z = y + 1
                x = z
                del z
            del y
            return x
            """,
            "cond",
        ),
        (
            """
            y = x
            if x > 1:
                del y
            return y
            """,
            "TraceError: if: the variable y is bound in one branch only of the condition on a tensor "
            "at user.py:3; bind it in every branch, or before, as in y = 0\n  at user.py:5",
        ),
    ),
    Construct(
        "assignment to a subscript",
        """
        state = {"x": x}
        if n == 2:
            state["x"] += 1
        return state["x"]
        """,
        (
            """
            y = 0.0
            if x > 1:
                state = {"x": x}
                state["x"] += 1
                y = state["x"]
            return y
            """,
            "cond",
        ),
        (
            """
            state = {"x": x}
            for k in dn.range(n):
                state["x"] += 1
            return state["x"]
            """,
            "TraceError: for: `state['x']` is assigned under a condition on a tensor, only variables "
            "can be; assign a variable there, and the object after it\n  at user.py:3",
        ),
    ),
    Construct(
        "assignment to an attribute",
        """
        f.last = n
        if n == 2:
            f.last = 3
        return x * f.last
        """,
        "an attribute cannot be taken back after a branch",
        (
            """
            while x < 9:
                x = x + 1
                f.last = x
            return x
            """,
            "TraceError: while: `f.last` is assigned under a condition on a tensor, only variables "
            "can be; assign a variable there, and the object after it\n  at user.py:2",
        ),
    ),
    Construct(
        "annotated assignment",
        """
        y: float = x
        if n == 2:
            y: float = x * 10
            z: int
        return y
        """,
        (
            """
            y: float = x
            if x > 1:
                y: float = x * 10
            return y
            """,
            "cond",
        ),
        NEVER,
    ),
    Construct(
        "unpacking",
        """
        if n == 2:
            a, *b = x, x * 2, x * 3
        return a + b[1]
        """,
        (
            """
            a, *b = x, x, x
            if x > 1:
                a, *b = x * 10, x * 2, x * 3
            (a, b[0]) = b[0], a
            return a + 2 * b[0] + 3 * b[1]
            """,
            "cond",
        ),
        (
            """
            a, *b = x, x, x
            if x > 1:
                a, *b = x * 10, x * 2
            return a + b[0]
            """,
            "ContainerError: if: the variable b is [f32] in one branch and [f32, f32] in the other, "
            "the structure must be the same; keep one number of items and one kind of container\n"
            "  at user.py:3",
        ),
    ),
    Construct(
        "import",
        """
        if n == 2:
            import math
        return x * math.pi
        """,
        (
            """
            y = x
            if x > 1:
                from math import pi as constant
                y = x * constant
            return y
            """,
            "cond",
        ),
        NEVER,
    ),
]
