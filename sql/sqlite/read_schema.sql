-- Caller: MigrationStorage::check_schema, on the database and on a fresh one in memory.
-- Intent: the tables and views as SQLite has them, their columns, indexes and triggers.
-- Invariant: none to protect, it reads the schema. Only the file's own, not what is attached.
-- Twin: SQL Server has catalogue views, and is compared with what schema.sql says.
SELECT name, type, wr, strict
FROM pragma_table_list
WHERE schema = 'main' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
ORDER BY name;

SELECT t.name, c.name, c.type, c."notnull", c.dflt_value IS NOT NULL OR c.hidden > 0 AS FillsItself
FROM pragma_table_list AS t
JOIN pragma_table_xinfo(t.name) AS c
WHERE t.schema = 'main' AND t.name NOT LIKE 'sqlite\_%' ESCAPE '\'
ORDER BY t.name, c.cid;

SELECT t.name, i.name, i."unique", i.origin, s.sql, x.name, x."desc", x.coll
FROM pragma_table_list AS t
JOIN pragma_index_list(t.name) AS i
JOIN pragma_index_xinfo(i.name) AS x
LEFT JOIN sqlite_schema AS s ON s.type = 'index' AND s.name = i.name
WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT LIKE 'sqlite\_%' ESCAPE '\' AND x.key
ORDER BY t.name, i.name, x.seqno;

SELECT tbl_name, name
FROM sqlite_schema
WHERE type = 'trigger'
ORDER BY tbl_name, name;
