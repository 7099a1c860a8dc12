# The summary of the mutants for people.
(.stale[] | "an explanation, and no survivor: \(.file) \(.function) \(.statement) \(.number)"),
"\(.caught) of \(.caught + .missed) caught, \(.missed) survived, \(.unexplained) of them without an explanation"
