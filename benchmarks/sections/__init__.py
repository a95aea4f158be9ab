"""The table's sections: each measures a part of what golem does, beside who else does it."""
