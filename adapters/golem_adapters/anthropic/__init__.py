"""The Messages API of Anthropic, and servers that speak it too.

``model`` is the class to use; ``request`` and ``conversation`` write, ``response`` and
``stream`` read, ``blocks`` is the one reading of content blocks that all of them share, and
``dialect`` holds what tells the servers apart, as data. All but the model are pure.
"""
