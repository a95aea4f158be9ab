"""What several adapters need: call ids, tool names and arguments on the wire, error reading.

Pure but for ``model``, which knows the HTTP shell as the adapters' models do: neither httpx nor
anyio, no clock, no provider's names.
"""
