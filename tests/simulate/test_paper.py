"""The settings of the paper are complete and have its scale."""

import numpy as np
import pytest

from diagatt import simulate


def test_every_setting_of_the_paper_is_there():
    tables = ["table1", "table2", "tableS2", "tableS3", "tableS4", "figure1", "figureS2"]
    counts = {table: len(simulate.paper_settings(table)) for table in tables}
    assert counts == dict(zip(tables, [4, 2, 4, 2, 4, 2, 6], strict=True))
    assert len(simulate.paper_settings()) == len(simulate.PAPER_SETTINGS) == 24
    for setting in simulate.paper_settings():
        data = setting.draw(3)
        assert data.X.lengths.tolist() == [setting.p] * 3
        assert data.X.n_features == setting.d
        assert data.rows.shape == (3, data.parameters.s)
        assert setting.n_test == setting.n // 4


@pytest.mark.parametrize(
    ("name", "published", "spread"),
    [
        ("table1-p100-d70", 15.181, 0.2),  # group lasso predicts a constant
        ("table1-p120-d90", 16.145, 0.1),
        ("tableS3-rho0.3", 12.710, 0.1),
        ("tableS3-rho0.6", 9.659, 0.1),
        ("table2-s2", 27.431, 0.05),
        ("table2-s3", 33.401, 0.05),
        ("tableS4-mu1-sigma2-2.5", 16.834, 0.2),
    ],
)
def test_scale_of_coefficients_is_the_papers(name, published, spread):
    parameters = simulate.paper_setting(name).draw(1).parameters
    squared = np.sum(parameters.beta**2, axis=1)
    level = np.sqrt(np.sum(parameters.sigma2 * squared) * (1 - parameters.rho) + 1)
    assert level == pytest.approx(published, abs=spread)


def test_replications_share_the_population_and_options_override():
    setting = simulate.paper_setting("table2-s3")
    one, two = setting.draw(2, seed=0).parameters, setting.draw(2, seed=1).parameters
    np.testing.assert_array_equal(one.beta, two.beta)
    np.testing.assert_array_equal(one.center, two.center)
    assert setting.draw(2, p=(5, 6), degrees_of_freedom=4).parameters.p == (5, 6)
