"""What selects among the variants of a resource (TP2), on the wire: the final form of 2022 and the draft of 2021, which gave the same
numbers another meaning."""

from ads.wire import all_of, field, fields, text_of, varint

FINAL, DRAFT = "final", "draft"


def entry(key, value):
    """An entry of a map of texts."""
    return field(1, key) + field(2, value)


def entries(message, number):
    """A map of texts."""
    return {text_of(one, 1): text_of(one, 2) for one in all_of(message, number)}


def locator(dialect, name, parameters):
    """A `ResourceLocator`: each key with the value that it is to have."""
    if dialect == FINAL:
        return field(1, name) + b"".join(field(2, entry(*item)) for item in parameters.items())
    exactly = (field(1, key) + field(2, field(2, field(1, value))) for key, value in parameters.items())
    return field(1, name) + field(2, b"".join(field(1, one) for one in exactly))


def locator_of_range(name, key, least):
    """A `ResourceLocator` of the draft: a number, and no smaller one. The final form cannot say it."""
    at_least = field(2, field(1, varint(1 << 3) + varint(least)))
    return field(1, name) + field(2, field(1, field(1, key) + field(2, field(2, at_least))))


def read_locator(dialect, message):
    """The name and the parameters of a locator, if it is one of exact values."""
    name = text_of(message, 1)
    if dialect == FINAL:
        return name, entries(message, 2)
    parameters = {}
    for constraints in all_of(message, 2):
        for one in all_of(constraints, 1):
            [of_key] = all_of(one, 2)
            [constraint] = all_of(of_key, 2)
            parameters[text_of(one, 1)] = text_of(constraint, 1)
    return name, parameters


def variant(dialect, name, parameters):
    """The fields of a `Resource` that say what it is called, and for whom it is."""
    if dialect == FINAL:
        return field(8, variant_name(name, parameters))
    return field(3, name) + b"".join(field(8, entry(*item)) for item in parameters.items())


def variant_name(name, parameters):
    """A `ResourceName`, for who sends these parameters and maybe others."""
    return field(1, name) + field(2, constraints(parameters))


def constraints(parameters):
    """`DynamicParameterConstraints` of the final form."""
    each = [field(1, field(1, key) + field(2, value)) for key, value in sorted(parameters.items())]
    return each[0] if len(each) == 1 else field(3, b"".join(field(1, one) for one in each))


def named(dialect, resource):
    """The name of a `Resource`."""
    return text_of(resource, 3) if dialect == DRAFT else text_of(all_of(resource, 8)[0], 1)


def is_for(dialect, resource, parameters):
    """Whether a `Resource` is the variant for who sends these parameters."""
    if dialect == DRAFT:
        return all(parameters.get(key, value) == value for key, value in entries(resource, 8).items())
    return all(satisfied(constraint, parameters) for constraint in all_of(all_of(resource, 8)[0], 2))


def satisfied(constraint, parameters):
    """Whether parameters satisfy `DynamicParameterConstraints` of the final form."""
    [(kind, value)] = fields(constraint)
    if kind == 1:
        key = text_of(value, 1)
        return key in parameters and all(parameters[key] == wanted.decode() for wanted in all_of(value, 2))
    if kind == 4:
        return not satisfied(value, parameters)
    return (any if kind == 2 else all)(satisfied(one, parameters) for one in all_of(value, 1))
