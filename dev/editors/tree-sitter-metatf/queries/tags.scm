(section name: (name) @name) @definition.module
(record name: (name) @name) @definition.class
