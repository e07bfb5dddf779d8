"""The tests of scikit-learn 1.9 that fail on estimators of this package, with the reasons; patterns of their names."""

SPARSE = "scikit-learn learns the offset of sparse rows at 0.01 times the rate; here sparse and dense rows are the same"
INIT = "a start is a metric, not a matrix of as many rows as components: any number of rows is right"

FAILURES = {
    "test_late_onset_averaging_reached[[]*SGDClassifier]": "weights agree to 1 or 2 ulp, not to 16 decimals",
    "test_class_deprecation[[]*": "passive-aggressive steps are not deprecated here",
    "test_power_t_limits[[]*": "a negative power_t, which scikit-learn has deprecated, is an error",
    "test_late_onset_averaging_reached_oneclass[[]Sparse*": SPARSE,
    "test_sgd_averaged_*_oneclass[[]Sparse*": SPARSE,
    "test_average_sparse_oneclass[[]Sparse*": SPARSE,
    "test_partial_fit_oneclass[[]*": "`coef_` is a copy at each access, not one array that changes",
    "test_sgd_oneclass_vs_linear_oneclass_offsets_match[[]*": "3e-6 from libsvm's offset: rows are in other orders",
    "test_input_format[[]*SGDRegressor]": "y of several columns are several outputs, not an error",
    "test_sgd_l1[[]*": "proximal steps after each row need not undo what it has moved; scikit-learn takes back more",
    "test_balanced_weight[[]SGDClassifier]": "an F1 score of 0.95998, not > 0.96: all classes stop together",
    "test_sgd_proba[[]SparseSGDClassifier]": "depends on the shuffles (scikit-learn's fails for 13 of 40 seeds)",
    "test_numerical_stability_large_gradient": "at rates of 30 steps diverge, an error; scikit-learn clips slopes",
    "test_tol_parameter": "the epochs depend on the shuffles (scikit-learn's own fails for 14 of 40 seeds)",
    "test_multi_thread_multi_class_and_early_stopping": "all classes stop together: after 122 epochs, not 120",
    "test_validation_mask_correctly_subsets": "looks for a private class of scikit-learn",
    "test_sgd_error_on_zero_validation_weight": "weights that are all 0 are an error before any row is held out",
    "test_toy_example_collapse_points": "asks for the value of NCA's objective, which no metric here minimises",
    "test_finite_differences": "asks for the gradient of NCA's objective",
    "test_params_validation": INIT,
    "test_n_components": INIT,
    "test_init_transformation": INIT,
    "test_warm_start_validation": "the message about the number of features is that of all estimators of scikit-learn",
    "test_verbose[[]*": "`verbose` prints the mean loss of each epoch, no table and no times",
    "test_convergence_warning": "the warning has another text: it names the epochs, the loss and `tol`",
}
