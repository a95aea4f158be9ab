"""What several adapters need, so that each of them holds only what its provider is like.

* out: ``walk`` writes a history message by message; ``calls``, ``body``, ``media`` and ``noting``
  are what it writes with;
* in: ``lenient`` and ``reading`` read any JSON, ``streams`` judges how a stream ends, ``pieces``
  and ``telling`` are for what grows, ``story`` says what an answer does, ``counting`` reads
  counts, ``bounds`` says how much of anything is taken in;
* errors: ``failures``, ``waits`` and ``quoting``;
* the front: ``endpoint`` and ``model``.

Pure but for ``model``, which knows the HTTP shell as the adapters' models do: neither httpx nor
anyio, no clock, no provider's names.
"""
