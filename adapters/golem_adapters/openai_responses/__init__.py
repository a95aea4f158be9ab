"""The Responses API of OpenAI, used without state at the server, and servers that speak it too.

``model`` is the class to use; ``request`` and ``conversation`` write, ``response`` and
``stream`` read, ``items`` is the one reading of output items that all of them share, and
``dialect`` holds what tells the servers apart, as data. All but the model are pure.
"""
