"""Tests that are coroutines: a conftest hands pytest_pyfunc_call on to run_coroutine."""

import asyncio
import inspect


def run_coroutine(pyfuncitem, within_s):
    """True once it has run; None where the test is none."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), within_s))
    return True
