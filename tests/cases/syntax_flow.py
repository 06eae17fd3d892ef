"""Branches, loops, and the ways to leave them."""

from __future__ import annotations

from cases.construct import Construct

FLOW = [
    Construct(
        "if",
        """
        y = x
        if n == 2:
            y = x * 10
        return y
        """,
        (
            """
            y = x
            if x > 1:
                y = x * 10
            return y
            """,
            "cond",
        ),
        (
            """
            y = None
            if x > 1:
                y = x
            return y
            """,
            "ContainerError: if: the variable y is f32 in one branch and None in the other, a "
            "condition on a tensor needs one type; give it a tensor or a number in both\n"
            "  at user.py:3",
        ),
    ),
    Construct(
        "if of a vector",
        """
        return x if len([n]) else -x
        """,
        (
            """
            return x if dn.any(dn.tensor([0, 1]) > x) else -x
            """,
            "cond",
        ),
        (
            """
            v = dn.iota((3,)) + x
            if v > 1:
                v = -v
            return v
            """,
            "ShapeError: cond: the predicate is bool[3], it must be a scalar; reduce it with all or any"
            "\n  at user.py:3",
        ),
    ),
    Construct(
        "else",
        """
        y = x * 10
        if n == 2:
            pass
        else:
            y = x
        return y
        """,
        (
            """
            if x > 1:
                y = x
            else:
                y = x * 10
            return y
            """,
            "cond",
        ),
        (
            """
            if x > 1:
                y = dn.tensor(1)
            else:
                y = x
            return y
            """,
            "ContainerError: if: the variable y is s32 in one branch and f32 in the other, dtype, "
            "shape and names must be the same; convert one with as_type\n  at user.py:2",
        ),
    ),
    Construct(
        "elif",
        """
        if n == 3:
            y = x
        elif n == 2:
            y = x * 10
        else:
            y = x * 100
        return y
        """,
        (
            """
            if x > 1:
                y = x
            elif x > 0:
                y = x * 10
            elif n == 2:
                y = x * 50
            else:
                y = x * 100
            return y
            """,
            "cond",
        ),
        (
            """
            v = dn.tensor([1.0])
            if x > 1:
                y = v
            elif x > 0:
                y = v.rename(["a"])
            else:
                y = v.rename(["b"])
            return y
            """,
            "ContainerError: if: the variable y is f32[a: 1] in one branch and f32[b: 1] in the "
            "other, dtype, shape and names must be the same; rename the axes of one\n"
            "  in the other: f32[b: 1], made at user.py:8\n"
            "  at user.py:3",
        ),
    ),
    Construct(
        "a variable of one branch",
        """
        if n == 2:
            y = x * 10
        return y
        """,
        (
            """
            if x > 1:
                y = x * 10
                x = y + 1
            return x
            """,
            "cond",
        ),
        (
            """
            if x > 1:
                y = x * 10
            return y
            """,
            "TraceError: if: the variable y is bound in one branch only of the condition on a tensor "
            "at user.py:2; bind it in every branch, or before, as in y = 0\n  at user.py:4",
        ),
    ),
    Construct(
        "a bool that changes",
        """
        found = False
        for k in range(3):
            if k == n:
                found = True
        return x if found else -x
        """,
        (
            """
            found, first = False, True
            count = 0
            for k in dn.range(9):
                if first:
                    count = count + 100
                    first = False
                if x == k and not found:
                    found = True
                count = count + (1 if found else 0)
            return count + (True if x > 1 else False)
            """,
            "while",
        ),
        (
            """
            found = False
            if x > 1:
                found = "yes"
            return found
            """,
            "ContainerError: if: the variable found is 'yes' in one branch and False in the other, a condition on a tensor "
            "needs one type; give it a tensor or a number in both\n  at user.py:3",
        ),
    ),
    Construct(
        "a function that changes",
        """
        fun = dn.sin if n == 3 else dn.cos
        if n == 2:
            def fun(y):
                return y * 10
        return fun(x)
        """,
        "a function cannot be chosen by a value: call both, and choose what they give",
        (
            """
            fun = dn.sin
            if x > 1:
                fun = dn.cos
            return fun(x)
            """,
            "ContainerError: if: the variable fun is the function cos in one branch and the function sin in the other, a "
            "condition on a tensor needs one type; give it a tensor or a number in both\n  at user.py:3",
        ),
    ),
    Construct(
        "conditional expression",
        "return x * 10 if n == 2 else -x",
        ("return x * 10 if x > 1 else -x", "cond"),
        (
            "return x if x > 1 else (x, x)",
            "ContainerError: cond: branch 1 and branch 0 differ in structure: one is (tensor, "
            "tensor), the other tensor\n  at user.py:2",
        ),
    ),
    Construct(
        "while",
        """
        k = 0
        while k < n:
            x = x * 2
            k += 1
        return x
        """,
        (
            """
            k = 0
            while x < 100 and k < 9:
                x = x * 2
                k += 1
            return x + k
            """,
            "while",
        ),
        (
            """
            k = dn.tensor(0)
            while x < 10:
                k = k + 0.5
                x = x + 1
            return k
            """,
            "ContainerError: while: the variable k is s32 before the loop and f32 after a trip, "
            "dtype, shape and names must be the same; start from a float, as in 0.0, or convert "
            "with as_type\n  after a trip: f32, made at user.py:4\n  at user.py:3",
        ),
    ),
    Construct(
        "while and else",
        """
        while n < 2:
            n += 1
        else:
            x = x * 10
        return x
        """,
        (
            """
            while x < 9:
                x = x + 3
            else:
                x = x * 10
            return x
            """,
            "while",
        ),
        "the else clause runs unless a break ended the loop",
    ),
    Construct(
        "for over a range",
        """
        for k in range(n):
            x = x * 2 + k
        return x
        """,
        (
            """
            for k in dn.range(n):
                x = x * 2 + k
            return x
            """,
            "while",
        ),
        (
            """
            y = dn.tensor([1.0])
            for k in dn.range(n):
                y = dn.concatenate([y, y])
            return y
            """,
            "ContainerError: for: the variable y is f32[1] before the loop and f32[2] after a trip, "
            "dtype, shape and names must be the same; broadcast one to the shape of the other\n"
            "  after a trip: f32[2], made at user.py:4\n"
            "  at user.py:3",
        ),
    ),
    Construct(
        "for over Python's range with traced bounds",
        """
        for k in range(n, 2 * n, 2):
            x = x * 2 + k
        return x
        """,
        (
            """
            y = x * 0
            for k in range(dn.as_type(x * 0, "s32") + n, 7, 2):
                y = y * 2 + k
            return y
            """,
            "while",
            "return 22.0",
        ),
        (
            """
            return sum([k for k in range(dn.tensor(n) + (x > 0))])
            """,
            "TraceError: index: the tensor s32 is being traced and has no values yet; loop over it in "
            "a function decorated with defn, or with dn.for_ over dn.range, or pass the value as an "
            "option (a keyword-only parameter)\n  at user.py:2",
        ),
    ),
    Construct(
        "for over a range with traced bounds",
        """
        for k in range(n, 2 * n):
            x = x * 2 + k
        return x
        """,
        (
            """
            y = x * 0
            for k in dn.range(dn.tensor(n), dn.tensor(n) * 2):
                y = y * 2 + k
            return y
            """,
            "while",
            "return 7.0",
        ),
        (
            """
            for k in range(x):
                x = x + k
            return x
            """,
            "DTypeError: range: a bound is f32, it must be an integer\n  at user.py:2",
        ),
    ),
    Construct(
        "for over a tensor",
        """
        for k in [1.0, 2.0]:
            x = x * k
        return x
        """,
        (
            """
            y = x * 0
            for k in dn.tensor([1.0, 2.0]) * x:
                y = y + k
            return y
            """,
            "while",
        ),
        (
            """
            for k in x:
                x = x + k
            return x
            """,
            "ShapeError: for_: the operand is f32, it must have a first axis to iterate over\n"
            "  at user.py:2",
        ),
    ),
    Construct(
        "for over other iterables",
        """
        for k, (key, value) in enumerate({"a": x, "b": 2.0}.items()):
            x = x * value + k if key == "b" else x
        return x
        """,
        (
            """
            for y in [x, -x]:
                if y > 0:
                    break
            return y
            """,
            "cond",
        ),
        "what is not a tensor or dn.range is Python's, whatever its items are",
    ),
    Construct(
        "break",
        """
        for k in range(9):
            if k == n:
                break
            x = x + k
        return x
        """,
        (
            """
            k = 0
            for k in dn.range(9):
                if x > 5:
                    break
                x = x + k
            return x + k
            """,
            "while",
        ),
        (
            """
            while x < 9:
                try:
                    x = x + 1
                    break
                finally:
                    pass
            return x
            """,
            "TraceError: defn: `break` inside with or try in a while on a tensor; use dn.while_, "
            "both conditions in its test\n  at user.py:2",
        ),
    ),
    Construct(
        "continue",
        """
        for k in range(4):
            if k == n:
                continue
            x = x + k
        return x
        """,
        (
            """
            for k in range(4):
                if x > k:
                    continue
                x = x + k
            return x
            """,
            "cond",
        ),
        (
            """
            for k in dn.range(4):
                try:
                    continue
                finally:
                    pass
            return x
            """,
            "TraceError: defn: `continue` inside with or try in a for over a tensor or dn.range; use "
            "if and else around what is skipped\n  at user.py:2",
        ),
    ),
    Construct(
        "return from every branch",
        """
        if n == 2:
            return x * 10
        else:
            return x
        """,
        (
            """
            if x > 1:
                return x * 10
            elif x > 0:
                y = x + 1
                return y * 2
            else:
                return -x
            """,
            "cond",
        ),
        (
            """
            if x > 1:
                return x
            else:
                return None
            """,
            "ContainerError: cond: branch 1 and branch 0 differ in structure: one is None, the other "
            "tensor\n  at user.py:2",
        ),
    ),
    Construct(
        "return from one branch",
        """
        if n == 2:
            return x * 10
        return x
        """,
        (
            """
            if x > 1:
                return x * 10
            return x
            """,
            "cond",
        ),
        (
            """
            if x > 1:
                return x * 10
            x = x + 1
            """,
            "TraceError: defn: `return` in one branch only of an if on a tensor; return from every "
            "branch, or bind a variable in both and return it after the if:\n"
            "      if condition: result = a\n      else: result = b\n      return result\n"
            "  at user.py:2",
        ),
    ),
    Construct(
        "return from a loop",
        """
        while True:
            x = x + 1
            n = n - 1
            if n == 0:
                return x
        """,
        (
            """
            while True:
                x = x + 1
                if x > 3:
                    return x
            """,
            "while",
        ),
        (
            """
            while x < 9:
                with dn.checks("nan"):
                    return x
            """,
            "TraceError: defn: `return` in a while on a tensor; bind the result, leave with break, "
            "and return after the loop:\n      while condition:\n          if found:\n"
            "              break\n      return result\n  at user.py:2",
        ),
    ),
]
