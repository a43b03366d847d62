"""Resource names: when two are the same, and which collection a name belongs to."""

SCHEME = "xdstp:"
WILDCARD = "*"


def canonical(name):
    """The key of a name: context parameters of an `xdstp:` name have no order, so they are sorted."""
    if not name.startswith(SCHEME) or "?" not in name:
        return name
    path, _, parameters = name.partition("?")
    return path + "?" + "&".join(sorted(parameters.split("&")))


def is_glob(name):
    """Whether a name stands for the members of a collection."""
    return name.startswith(SCHEME) and name.partition("?")[0].endswith("/*")


def collection(name):
    """The key of what covers a name besides itself. For an `xdstp:` name that is the glob of the same directory, one
    level deep, with equal context parameters; for all others it is the wildcard."""
    if not name.startswith(SCHEME):
        return WILDCARD
    path, mark, parameters = canonical(name).partition("?")
    return path.rpartition("/")[0] + "/*" + mark + parameters
