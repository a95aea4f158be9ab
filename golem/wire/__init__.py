"""Bytes on the wire: pure stream readers, and the one module that speaks HTTP."""
