"""What several adapters need: call ids, tool names and arguments on the wire, error reading.

Pure: neither httpx nor anyio, no clock, no provider's names.
"""
