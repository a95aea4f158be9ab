"""The Responses API of OpenAI, used without state at the server, and servers that speak it too.

``model`` is the class to use; ``request``, ``response`` and ``stream`` are pure; ``items`` is
the one reading of output items that a plain answer, a streamed one and a request share;
``dialect`` holds what tells the servers apart, as data.
"""
