"""The Gemini API of Google, at AI Studio and at Vertex AI.

``model`` is the class to use; ``request`` and ``conversation`` write, ``response`` and
``stream`` read, ``parts`` is the one reading of content parts that all of them share, and
``dialect`` holds what tells the two servers and the generations of models apart, as data. All
but the model are pure.
"""
