"""`in_process`: a test whose body runs in a process of its own, against the installed plugin and a stand-in driver."""

import functools
import inspect

import pytest

from .conftest import child_environment, run_child


def in_process(*macros, driver=True, **variables):
    """The decorated function's arguments, if any, come from pytest and reach the child as text. `macros` choose the
    stand-in, `variables` are the child's environment."""

    def decorate(body):
        signature = inspect.signature(body)

        @pytest.mark.smoke
        @functools.wraps(body)
        def test(nvidia_plugin, cuda_standin, **arguments):
            folder = cuda_standin(*macros) if driver else None
            run_child(
                inspect.getsourcefile(body), body.__name__, child_environment(folder, **variables), arguments.values()
            )

        fixtures = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in ("nvidia_plugin", "cuda_standin")]
        own = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in signature.parameters.values()]
        test.__signature__ = signature.replace(parameters=fixtures + own)
        test.body = body
        return test

    return decorate
