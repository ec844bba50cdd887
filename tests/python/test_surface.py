"""Names, signatures, docstrings, stubs and torch schemas say the same as operators.toml."""

import ast
import inspect
import re
from pathlib import Path

import clover_ops
import pytest
import torch
from clover_ops._generated import functions
from clover_ops._generated.table import OPERATORS as TABLE

from .cases import IDS, MUTATING, OPERATORS, overloads, torch_name

pytestmark = pytest.mark.smoke

STUB = ast.parse((Path(clover_ops.__path__[0]) / "__init__.pyi").read_text(encoding="utf-8"))
STUBS = {f.name: f for f in STUB.body if isinstance(f, ast.FunctionDef)}
SIZED = [op for op in OPERATORS if op.workspace]


def positional(op):
    inputs = [t.name for t in op.tensors if t.role != "out" or not op.functional]
    return [*inputs, *(a.name for a in op.attributes)]


def keywords(op):
    has_out = op.functional and any(t.role == "out" for t in op.tensors)
    return [*(["out"] if has_out else []), *(["workspace"] if op.workspace else []), "provider", "stream"]


@pytest.mark.parametrize("op", OPERATORS, ids=IDS)
def test_signature(op):
    parameters = inspect.signature(getattr(clover_ops, op.name)).parameters
    by_position = [n for n, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    by_name = [n for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY]
    assert (by_position, by_name) == (positional(op), keywords(op))
    for a in op.attributes:
        assert (parameters[a.name].default is inspect.Parameter.empty) == a.required


@pytest.mark.parametrize("name", sorted(functions.__all__))
def test_stub_matches(name):
    parameters = inspect.signature(getattr(clover_ops, name)).parameters
    arguments = STUBS[name].args
    assert [a.arg for a in arguments.args] == [n for n, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert [a.arg for a in arguments.kwonlyargs] == [n for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY]
    given = {a.arg for a in arguments.args[len(arguments.args) - len(arguments.defaults) :]}
    given |= {a.arg for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults) if default is not None}
    assert given == {n for n, p in parameters.items() if p.default is not inspect.Parameter.empty}
    optional = {a.arg for a in [*arguments.args, *arguments.kwonlyargs] if "None" in ast.unparse(a.annotation)}
    none = {n for n, p in parameters.items() if p.default is None}
    assert none <= optional


def test_stubs_hold_every_public_name():
    imported = {alias.asname for item in STUB.body if isinstance(item, ast.ImportFrom) for alias in item.names}
    assert {*STUBS, *imported, "Tensor"} >= {n for n in dir(clover_ops) if _is_public(n)}
    assert set(STUBS) == set(functions.__all__)


def _is_public(name):
    return not name.startswith("_") and name in {*clover_ops.__all__, *clover_ops._QUERIES, *functions.__all__}


@pytest.mark.parametrize("op", OPERATORS, ids=IDS)
def test_stub_says_what_is_returned(op):
    count = sum(t.role == "out" for t in op.tensors) if op.functional else 0
    expected = {0: "None", 1: "Tensor"}.get(count, f"tuple[{', '.join(['Tensor'] * count)}]")
    assert ast.unparse(STUBS[op.name].returns) == expected


@pytest.mark.parametrize("op", OPERATORS, ids=IDS)
def test_docstring_mentions_every_argument_and_result(op):
    text = inspect.getdoc(getattr(clover_ops, op.name))
    sections = dict(re.findall(r"^(Args|Returns|Raises):\n((?:[ ]+.*\n?)+)", text, flags=re.MULTILINE))
    described = re.findall(r"^    (\w+): ", sections["Args"], flags=re.MULTILINE)
    assert described == [*positional(op), *keywords(op)]
    if "out" in keywords(op):
        results = re.findall(r"^    (\w+): ", sections["Returns"], flags=re.MULTILINE)
        assert results == [t.name for t in op.tensors if t.role == "out"]
    raised = re.findall(r"^    (\w+): ", sections["Raises"], flags=re.MULTILINE)
    assert raised == ["InvalidArgument", "Unsupported", *(["MissingWorkspace"] if op.workspace else [])]


@pytest.mark.parametrize("op", SIZED, ids=lambda op: op.name)
def test_workspace_query_has_the_same_arguments(op):
    query = getattr(clover_ops, f"{op.name}_workspace_size")
    assert list(inspect.signature(query).parameters) == [*positional(op), "provider"]
    assert op.name in inspect.getdoc(query)


def test_only_operators_with_a_workspace_have_a_query():
    assert set(functions.__all__) == {*IDS, *(f"{op.name}_workspace_size" for op in SIZED)}


@pytest.mark.parametrize("op", OPERATORS, ids=IDS)
def test_torch_schema(op):
    kinds = {"int": "int", "float": "float", "bool": "bool", "enum": "str"}
    packet = getattr(torch.ops.clover, op.name)
    assert packet.overloads() == (["default"] if op in MUTATING else ["default", "into"])
    for overload, takes_outputs in overloads(op):
        schema = overload._schema
        outputs = [t.name for t in op.tensors if t.role == "out"] if takes_outputs else []
        names = [torch_name(n, takes_outputs) for n in (*positional(op), *outputs)]
        assert [a.name for a in schema.arguments] == [*names, "provider"]
        assert [a.name for a in schema.arguments if a.kwarg_only] == [*outputs, "provider"]
        written = [t.name for t in op.tensors if t.written and (t.name in outputs or t.name in positional(op))]
        assert [a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write] == written
        pure = overload._overloadname == "default" and op not in MUTATING
        assert len(schema.returns) == (sum(t.role == "out" for t in op.tensors) if pure else 0)
        assert schema.is_mutable == bool(written)
        types = {a.name: str(a.type) for a in schema.arguments}
        for t in op.tensors:
            if t.name in types:
                assert types[t.name] == ("Optional[Tensor]" if t.optional else "Tensor")
        for a in op.attributes:
            argument = next(x for x in schema.arguments if x.name == torch_name(a.name, takes_outputs))
            assert re.sub(r"Optional\[(\w+)\]", r"\1", str(argument.type)) == kinds[a.type]
            assert argument.has_default_value() != a.required


def test_table_lists_the_schema():
    assert [o.name for o in TABLE] == IDS
    for op, listed in zip(OPERATORS, TABLE):
        assert [(t.name, t.role, t.optional) for t in listed.tensors] == [
            (t.name, t.role, t.optional) for t in op.tensors
        ]
        assert [(a.name, a.type, a.choices) for a in listed.attributes] == [
            (a.name, a.type, a.choices) for a in op.attributes
        ]
        assert (listed.number, listed.workspace) == (op.number, op.workspace)


def test_package_lists_itself():
    assert {*IDS, *clover_ops.__all__, *clover_ops._QUERIES} <= set(dir(clover_ops))
    with pytest.raises(AttributeError, match=r"has no attribute 'no_such_operator'"):
        clover_ops.no_such_operator  # noqa: B018
    with pytest.raises(AttributeError):
        clover_ops._private  # noqa: B018


def test_queries():
    described = clover_ops.describe()
    assert [(o["name"], o["number"]) for o in described["operators"]] == [(op.name, op.number) for op in OPERATORS]
    assert described["version"] == clover_ops.__version__
    for op in OPERATORS:
        assert clover_ops.supports(op.name, "cpu")
        assert clover_ops.supports(op.name, torch.device("cpu"))
        assert not clover_ops.supports(op.name, "cpu:7")
        assert clover_ops.provides(op.name, "cpu")
        assert [p.slot for p in clover_ops.providers(op.name) if p.backend == "cpu"][:1] == [0]
    for call in (
        clover_ops.providers,
        lambda op: clover_ops.supports(op, "cpu"),
        lambda op: clover_ops.provides(op, "cpu"),
    ):
        with pytest.raises(clover_ops.InvalidArgument, match=r"no operator is called 'cas'; did you mean cast"):
            call("cas")
    with pytest.raises(clover_ops.InvalidArgument, match=r"no backend is called `nosuch`; installed: .*cpu"):
        clover_ops.provides("cast", "nosuch")
    for device in ("tpu", "cuda:x", "", None, "cpu:-1", "cuda:²", "cuda:99999999999999999999"):
        with pytest.raises(clover_ops.InvalidArgument, match=r"device must be one of cpu, cuda, rocm, hip"):
            clover_ops.supports("cast", device)
    with pytest.raises(clover_ops.Unsupported, match=r"^warmup: no active backend on rocm:3"):
        clover_ops.warmup("rocm:3")
    with pytest.raises(clover_ops.Unsupported, match=r"^warmup: there is no cpu:7, only cpu:0$"):
        clover_ops.warmup("cpu:7")


def test_errors_have_the_usual_bases():
    bases = {"InvalidArgument": ValueError, "Unsupported": NotImplementedError, "MissingWorkspace": ValueError,
             "DriverError": RuntimeError, "CompileError": RuntimeError, "AbiMismatch": ImportError}  # fmt: skip
    for name, base in bases.items():
        assert issubclass(getattr(clover_ops, name), (clover_ops.CloverError, base))
        assert issubclass(getattr(clover_ops, name), base)
        assert issubclass(getattr(clover_ops, name), clover_ops.CloverError)
