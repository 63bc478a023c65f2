(section name: (name) @name) @definition.module
(record name: (name) @name) @definition.class
(type_definition name: (name) @name) @definition.type
