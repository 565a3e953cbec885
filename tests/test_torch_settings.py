"""Every registered estimator is the same, whatever its caller has set in torch."""

import contextlib
import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone

from benchmarks.battery.models import X, estimators, fitted, methods, responses
from diagatt import DiagAttRegressor
from diagatt.torch_settings import own_torch_settings

pytestmark = pytest.mark.filterwarnings("ignore")


@contextlib.contextmanager
def new_tensors_elsewhere():
    torch.set_default_device("meta")  # a device that every machine has, and that holds no numbers
    try:
        yield
    finally:
        torch.set_default_device(None)


@contextlib.contextmanager
def every_setting():
    with torch.inference_mode(), new_tensors_elsewhere(), torch.autocast("cpu"):
        yield


def flat(answer):
    if hasattr(answer, "__dataclass_fields__"):
        answer = [getattr(answer, name) for name in answer.__dataclass_fields__]
    if isinstance(answer, list | tuple):
        return np.concatenate([np.ravel(flat(one)) for one in answer])
    return np.asarray(answer)


NAMES = [name for name, _ in estimators() if "(" not in name or "(gradient)" in name]


@pytest.mark.parametrize("name", NAMES)
def test_every_estimator_is_fitted_and_asked_as_without_settings(name):
    expected = {ask: flat(method(X)) for ask, method in methods(fitted(name))}
    with every_setting():
        model = clone(fitted(name)).fit(X, responses(fitted(name)))
        found = {ask: flat(method(X)) for ask, method in methods(model)}
    for ask, answer in expected.items():
        np.testing.assert_array_equal(found[ask], answer, err_msg=ask)


@pytest.mark.parametrize("method", ["calibrate", "existence_test", "summary"])
def test_what_refits_a_model_works_with_every_setting(method):
    model = DiagAttRegressor(solver="likelihood", random_state=0).fit(
        X, responses(DiagAttRegressor())
    )
    given = (X, responses(model)) if method != "summary" else ()
    expected = getattr(pickle.loads(pickle.dumps(model)), method)(*given)
    with every_setting():
        found = getattr(model, method)(*given)
    assert repr(found) == repr(expected)


def test_settings_of_the_caller_are_restored():
    with torch.no_grad(), new_tensors_elsewhere():
        with own_torch_settings():
            assert torch.is_grad_enabled()
            assert torch.empty(1).device.type == "cpu"
        assert not torch.is_grad_enabled()
        assert torch.empty(1).device.type == "meta"
