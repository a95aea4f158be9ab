"""Amazon Bedrock: every model behind its Converse API.

``model`` is the class to use; ``request`` and ``conversation`` write, ``response`` and
``stream`` read, ``blocks`` is the one reading of content blocks that all of them share,
``dialect`` holds what tells the families of models apart, as data, and ``sigv4`` signs. All but
the model are pure.
"""
