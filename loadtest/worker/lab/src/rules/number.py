import math


def number(text):
    """The finite number that a text holds, if it does."""
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


