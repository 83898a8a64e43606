"""Speed of translation side by side with public toolkits, on the same machine, model and data, by turns.

    python -m benchmarks.translation.training --joeynmt JOEYNMT/bin/python --data train.en train.de
    python -m benchmarks.translation.decoding --peers PEERS/bin/python
    python -m benchmarks.translation.decoding --peers PEERS/bin/python --precision int8
    python -m benchmarks.translation.corpus --peers PEERS/bin/python --run RUN --data test.en test.de

The toolkits live in environments of their own, beside foveate's:

    python -m venv JOEYNMT && JOEYNMT/bin/pip install joeynmt==2.3.0 importlib_metadata "torch>=2.11,<2.14"
    python -m venv PEERS && PEERS/bin/pip install ctranslate2 "transformers>=5,<6" "torch>=2.11,<2.14"

Each prints a table with its ratios: of the time on the clock, and of the processor's, which says more where other
programs use the machine. Each toolkit's threads wait in the way that is its own default.
"""
