"""`in_process` and `on_each_backend`: tests whose bodies run in processes of their own, against the installed plugin and a
stand-in driver."""

import functools
import inspect

import pytest

from .conftest import child_environment, run_child

FIXTURES = {"nvidia": ("nvidia_plugin", "cuda_standin"), "hygon": ("hygon_plugin", "hip_standin")}


def in_process(*macros, driver=True, backend="nvidia", **variables):
    """The decorated function's arguments, if any, come from pytest and reach the child as text. `macros` choose the
    stand-in, `variables` are the child's environment."""
    plugin, standin = FIXTURES[backend]

    def decorate(body):
        signature = inspect.signature(body)

        @pytest.mark.smoke
        @functools.wraps(body)
        def test(**arguments):
            arguments.pop(plugin)
            build = arguments.pop(standin)
            environment = child_environment(build(*macros) if driver else None, STANDIN_BACKEND=backend, **variables)
            run_child(inspect.getsourcefile(body), body.__name__, environment, arguments.values())

        fixtures = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in (plugin, standin)]
        own = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in signature.parameters.values()]
        test.__signature__ = signature.replace(parameters=fixtures + own)
        test.body = body
        return test

    return decorate


def on_each_backend(**variables):
    """As in_process, once for each GPU backend; `calls.BACKEND` tells the body which one."""

    def decorate(body):
        signature = inspect.signature(body)

        @pytest.mark.smoke
        @pytest.mark.parametrize("backend", FIXTURES)
        @functools.wraps(body)
        def test(**arguments):
            backend, request = arguments.pop("backend"), arguments.pop("request")
            plugin, standin = FIXTURES[backend]
            request.getfixturevalue(plugin)
            folder = request.getfixturevalue(standin)()
            environment = child_environment(folder, STANDIN_BACKEND=backend, **variables)
            run_child(inspect.getsourcefile(body), body.__name__, environment, arguments.values())

        fixtures = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in ("backend", "request")]
        own = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in signature.parameters.values()]
        test.__signature__ = signature.replace(parameters=fixtures + own)
        test.body = body
        return test

    return decorate
