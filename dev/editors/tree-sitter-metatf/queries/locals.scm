; A record's block sees the fields that its list declares.
(dtd) @local.scope
(section) @local.scope
(record) @local.scope

(section name: (name) @local.definition.namespace)
(record name: (name) @local.definition.type)
(field (name) @local.definition.field)
(typed name: (name) @local.definition.field)
(type_definition name: (name) @local.definition.type)
(type name: (name) @local.reference)
(repetition count: (name) @local.definition.field)

(target (name) @local.reference)
(reference (name) @local.reference)
(path (name) @local.reference)
