"""OpenAI Chat Completions, and the many servers that speak it too.

``model`` is the class to use; ``request``, ``response`` and ``stream`` are pure; ``dialect``
holds what tells the servers apart, as data.
"""
