"""Run the test suites that installed packages carry on the plugin, beside XLA:CPU."""
