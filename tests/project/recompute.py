"""Called by recompute.sh: with the lines of a plan file, a network gives the same results, gradients, statistics and
random numbers as without, and holds what the plan says.
"""

import copy
import gc
import random
import sys
import unittest

import small_torch as t

t.install()
code = {}
exec(compile(open(sys.argv.pop(1)).read(), "recompute.py", "exec"), code)
Recompute, apply = code["Recompute"], code["apply"]
N = 4  # elements of a tensor


class Network(t.Module):
    """`run(module, x)` is its forward; it has weights, statistics of a norm, and what is in `parts`."""

    def __init__(self, run, source, **parts):
        super().__init__()
        self.run = run
        self.w, self.v = (t.parameter([source.uniform(-1.5, 2) for _ in range(N)]) for _ in range(2))
        self.mean, self.batches = t.Tensor([0.0] * N), t.Tensor([0.0])
        vars(self).update(parts)

    def forward(self, x):
        return self.run(self, x)


def network(run, **parts):
    return lambda: Network(run, random.Random(5), **{name: Network(part, random.Random(7)) for name, part in parts.items()})


class Borders(t.TorchDispatchMode):
    """The borders that a network passes, in order."""

    def __init__(self, model):
        self.passed, self.path = [], []
        for name, module in model.named_modules():
            module.register_forward_pre_hook(lambda _, args, name=name or ".": self.enter(name))
            module.register_forward_hook(lambda _, args, out, name=name or ".": self.leave(name), always_call=True)

    def passes(self, text):
        self.passed.append(f"{text} {1 + sum(p.rpartition(' ')[0] == text for p in self.passed)}")

    def enter(self, name):
        self.path.append(name)
        self.passes(f"enter {name}")

    def leave(self, name):
        self.path.pop()
        self.passes(f"leave {name}")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(x.requires_grad for x in args):
            self.passes(f"op {self.path[-1]} {code['kind_of'](func)}")
        return func(*args)


def batch():
    return t.Tensor([0.5, -1.0, 2.0, 1.5])


def borders_of(make):
    model = make()
    with Borders(model) as borders:
        model(batch())
    return borders.passed


class Pass:
    """What a forward and a backward leave, and the memory they take beside what is there before."""

    def __init__(self, make, segments=None, **options):
        for name, generator in t.generators.items():
            generator.seed(name)
        gc.collect()  # of the passes before
        model, x = make(), batch()
        if segments is not None:
            Recompute(model, segments, **options)
        before = t.Memory.live
        t.Memory.peak = before
        out = model(x)
        self.held, self.runs = t.Memory.live - before, t.Operation.runs
        t.backward(out)
        self.peak, self.runs = t.Memory.peak - before, t.Operation.runs - self.runs
        self.left = [out.values(), x.values()] + [p.grad for p in model.parameters()]
        self.left += [b.values() for b in model.buffers()] + [g.getstate() for g in t.generators.values()]


# --- Random networks ----------------------------------------------------------------------------------------------------

def random_run(seed, length):
    def run(module, x):
        source = random.Random(seed)
        made = [t.mul(x, module.w)]
        for _ in range(length):
            made.append(random_operation(source, module, made))
            if source.randrange(3) == 0:
                del made[:-1]
        return t.mul(made[-1], module.v)
    return run


def random_operation(source, module, made):
    y, other, choice = made[-1], source.choice(made), source.randrange(13)
    if choice < 2:
        return t.relu_(y)
    if choice == 2:
        return t.add_(y, other)
    if choice == 3:
        return t.native_dropout(y)[0]
    if choice == 4:
        t.add_(module.batches, t.Tensor([1.0]))
        return t.batch_norm(y, module.w, module.v, module.mean, module.batches)
    if choice == 5:
        first, second = y.chunk()
        return t.cat(second, t.mul(first, second))
    if choice == 6:  # a view of what is overwritten
        first, second = y.chunk()
        read = t.add(first, second)
        y = t.relu_(t.add_(y, module.v))
        return t.mul(t.cat(read, read), t.cat(second, first))
    if choice < 9 and hasattr(module, "a"):
        return (module.a if choice == 7 else module.b)(y)
    return [t.relu(y), t.add(y, other), t.mm(y, module.v), t.mul(y, other)][choice % 4]


def random_network(seed):
    return network(random_run(seed, 10), a=random_run(seed + 1000, 4), b=random_run(seed + 2000, 4))


def random_segments(source, n, first=0, depth=2):
    """Pairs of places, in order, outer ones before inner; none twice."""
    found = []
    while first < n - 1 and source.randrange(6) > 0:
        begin = source.randrange(first, n - 1)
        end = source.randrange(begin + 1, n)
        found.append((begin, end))
        if depth > 0:
            found += random_segments(source, end + 1, begin, depth - 1)
        first = end
    return list(dict.fromkeys(found))


class RandomNetworks(unittest.TestCase):
    def test_a_plan_changes_no_number(self):
        n_networks, n_plans, n_refused, n_less = 0, 0, 0, 0
        for seed in range(150):
            make, source = random_network(seed), random.Random(seed)
            try:
                plain = Pass(make)
            except t.Overwritten:  # by an operation in place: no network
                continue
            n_networks += 1
            borders = borders_of(make)
            for _ in range(4):
                places = random_segments(source, len(borders))
                segments = [(borders[begin], borders[end]) for begin, end in places]
                inside = [b for i, b in enumerate(borders) if b.startswith("op ") and " chunk " not in b and
                          any(begin <= i < end for begin, end in places)]
                keep = [b for b in inside if source.randrange(4) == 0]
                offload = source.choice([None, None, True, source.choice(borders)])
                n_plans += 1
                with self.subTest(seed=seed, segments=segments, keep=keep, offload=offload):
                    try:
                        planned = Pass(make, segments, keep=keep, offload=offload)
                    except RuntimeError as refusal:  # to begin where the batch is overwritten behind the segment
                        self.assertIn("was overwritten behind it", str(refusal))
                        n_refused += 1
                        continue
                    self.assertEqual(repr(planned.left), repr(plain.left))  # some overflow
                    n_less += planned.held < plain.held
        self.assertGreater(n_networks, 40)
        self.assertLess(n_refused, n_plans // 20)
        self.assertGreater(n_less, n_plans // 3)


# --- Rows of modules ----------------------------------------------------------------------------------------------------

class Keyed(Network):
    def forward(self, x, scale=None):
        return t.mul(self.run(self, x), scale)


def keyed(call):
    source = random.Random(3)

    def run(module, x):
        for part in (module.a, module.b, module.c):
            x = call(part, x, module.v)
        return x
    return lambda: Network(run, random.Random(5), **{name: Keyed(products, source) for name in "abc"})


class Rows(unittest.TestCase):
    CALLS = (lambda part, x, scale: part(x, scale), lambda part, x, scale: part(x, scale=scale),
             lambda part, x, scale: part(x=x, scale=scale))

    def applied(self, make, rows):
        return lambda: apply(make(), {"form": "modules", "modules": rows})

    def test_the_first_module_runs_all_however_they_are_called(self):
        for call in self.CALLS:
            for rows, more in ((["a"], 4), (["a b"], 9), (["a b c"], 14), (["a b", "c"], 13), (["a b c", "b"], 18)):
                with self.subTest(rows=rows):
                    random.seed(1)
                    make = keyed(call)
                    plain, planned = Pass(make), Pass(self.applied(keyed(call), rows))
                    self.assertEqual(planned.left, plain.left)
                    self.assertLess(planned.held, plain.held)
                    self.assertGreaterEqual(planned.runs - plain.runs, more)

    def test_without_gradients_nothing_is_checkpointed(self):
        model = self.applied(keyed(self.CALLS[0]), ["a b"])()
        with t.no_grad():
            self.assertEqual(model(batch()).values(), keyed(self.CALLS[0])()(batch()).values())

    def test_a_copy_is_a_network_of_its_own(self):
        for plan in ({"form": "modules", "modules": ["a b"]},
                     {"form": "operations", "segments": [["enter a 1", "leave b 1"]], "keep": []}):
            model = apply(keyed(self.CALLS[0])(), plan)
            other = copy.deepcopy(model)
            t.backward(other(batch()))
            self.assertTrue(all(p.grad is None for p in model.parameters()))
            self.assertTrue(all(x.w.grad is not None for x in (other.a, other.b, other.c)))

    def test_what_cannot_be_is_refused(self):
        make = keyed(self.CALLS[0])
        for message, plan in (("no module d, e$", {"form": "modules", "modules": ["a d", "e"]}),
                              ("no module d$", {"form": "operations", "segments": [["enter d 1", "leave . 1"]], "keep": []}),
                              ("nn.Sequential", {"form": "sequential", "count": 2}),
                              ("found 'rows'", {"form": "rows"})):
            with self.assertRaisesRegex(ValueError, message):
                apply(make(), plan)
        hooked = make()
        hooked.b.register_forward_hook(lambda module, args, out: None)
        with self.assertRaisesRegex(ValueError, "module b has hooks"):
            apply(hooked, {"form": "modules", "modules": ["a b"]})
        planned = apply(make(), {"form": "modules", "modules": ["a b"]})
        with self.assertRaisesRegex(ValueError, "has a plan already"):
            apply(planned, {"form": "modules", "modules": ["c"]})
        planned.b.register_forward_hook(lambda module, args, out: None)
        with self.assertRaisesRegex(ValueError, "module b has hooks"):
            planned(batch())


# --- Single properties --------------------------------------------------------------------------------------------------

def products(module, x):
    for _ in range(4):
        x = t.mm(x, module.w)
    return x


def runs_again(make, segments, **options):
    return Pass(make, segments, **options).runs - Pass(make).runs


class Properties(unittest.TestCase):
    def test_a_segment_holds_what_comes_into_it(self):
        make, whole = network(products), ("enter . 1", "leave . 1")
        self.assertEqual(Pass(make).held, 4 * N)  # three that products read, and the result
        self.assertEqual(Pass(make, [whole]).held, N)
        self.assertEqual(runs_again(make, [whole]), 3)  # the last product's result is not needed
        self.assertEqual(Pass(make, [("op . product 2", "op . product 4")]).held, 3 * N)

    def test_results_that_are_kept_do_not_run_again(self):
        make, whole = network(products), ("enter . 1", "leave . 1")
        self.assertEqual(runs_again(make, [whole], keep=["op . product 2"]), 2)
        self.assertEqual(runs_again(make, [whole], keep=[f"op . product {i}" for i in (1, 2, 3)]), 0)

    def test_a_stack_counts_as_a_concatenation(self):
        def run(module, x):
            return t.mul(t.stack(t.mul(x, module.w), module.v), t.cat(x, module.w))

        self.assertIn("op . cat 2", borders_of(network(run)))
        self.assertEqual(runs_again(network(run), [("op . cat 1", "leave . 1")]), 2)

    def test_segments_in_segments_run_again_themselves(self):
        make, whole = network(products), ("enter . 1", "leave . 1")
        self.assertEqual(runs_again(make, [whole, ("op . product 2", "op . product 4")]), 3 + 1)

    def test_what_waits_on_the_host_is_not_held(self):
        make = network(products)
        self.assertEqual(Pass(make, [], offload=True).held, N)
        self.assertEqual(Pass(make, [], offload="op . product 3").held, 3 * N)

    def test_an_address_that_is_used_again_is_another_tensor(self):
        """A tensor that is gone is no view of what works in place at its address."""
        def run(goes_in_parts):
            def function(module, x):
                before = t.mul(x, module.w)
                address = before.storage._cdata
                t.mul(before.chunk()[0] if goes_in_parts else before, before.chunk()[1] if goes_in_parts else module.v)
                del before
                y = t.mul(x, module.v)
                self.assertEqual(y.storage._cdata, address)
                return t.mul(t.mul(t.relu_(y), module.w), module.v)
            return function

        whole, parts = (Pass(network(run(goes)), [("enter . 1", "leave . 1")]) for goes in (False, True))
        self.assertEqual((parts.runs, parts.peak), (whole.runs, whole.peak))

    def test_a_network_may_run_without_gradients_first(self):
        model = network(products, a=products)()
        Recompute(model, [("enter . 1", "leave . 1")])
        with t.no_grad():
            self.assertEqual(model(batch()).values(), network(products, a=products)()(batch()).values())
            self.assertEqual(model.a(batch()).values(), network(products, a=products)().a(batch()).values())

    def test_what_cannot_be_is_refused(self):
        make, whole = network(products), ("enter . 1", "leave . 1")
        for message, segments, options in (
                ("never came to 'op . product 5'", [("op . product 5", "leave . 1")], {}),
                ("never came to 'op . product 5'", [whole], {"keep": ["op . product 5"]}),
                ("never came to 'op . product 5'", [], {"offload": "op . product 5"})):
            with self.assertRaisesRegex(RuntimeError, message):
                Pass(make, segments, **options)
        with self.assertRaisesRegex(ValueError, "has no module b$"):
            Pass(make, [("enter . 1", "leave b 1")])
        model, x = make(), batch()
        Recompute(model, [whole])
        out = model(x)
        t.add_(x, x)
        with self.assertRaisesRegex(RuntimeError, "was overwritten behind it"):
            t.backward(out)


if __name__ == "__main__":
    unittest.main()
